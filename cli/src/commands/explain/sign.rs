//! `tg sign-traces`: the signed head over the traces of a day, as a file that can be verified without the gateway.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tg_provenance::Head;

use super::heads;
use crate::args::{Common, Options};
use crate::client::{Error, Http, Result};
use crate::fields::text;
use crate::registry::Command;
use crate::session::Session;

const SERVICE: &str = "traces";

/// Arguments of `tg sign-traces`.
#[derive(Debug, Args)]
pub struct SignTraces {
    #[command(flatten)]
    common: Common,
    /// Day in UTC, YYYY-MM-DD, not longer ago than five weeks [default: today]
    #[arg(long, value_name = "DAY")]
    day: Option<String>,
    /// File to write [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only the public key that verifies heads, as PEM
    #[arg(long, conflicts_with = "day")]
    public_key: bool,
}

impl Command for SignTraces {
    const NAME: &'static str = "sign-traces";
    const ABOUT: &'static str = "Sign one hash over all traces of a day";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        if self.public_key {
            let reply = http.service(SERVICE, json!({"operation": "get-signing-key"}));
            let key = text(&reply.await?, "key");
            return match &self.output {
                Some(path) => write(path, &key),
                None => session.out.show(&json!({"key": key}), || key.clone()),
            };
        }
        let day = self.day.as_deref().unwrap_or_default();
        let request = json!({"operation": "sign-traces", "day": day});
        let reply = http.service(SERVICE, request).await?;
        let signed = text(&reply, "head");
        let head = Head::read(&signed)
            .map_err(|_| Error::Protocol("no head of this release".to_owned()))?;
        let runs = runs(&http, &head).await?;
        let (signature, key) = (text(&reply, "signature"), text(&reply, "key"));
        let file = heads::written(&signed, &signature, &key, &runs);
        match &self.output {
            Some(path) => {
                let body = serde_json::to_string_pretty(&file).unwrap_or_default();
                write(path, &(body + "\n"))?;
                if session.out.is_json() {
                    let done = json!({"file": path.display().to_string(), "day": head.day, "runs": head.runs});
                    session.out.json(&done)?;
                }
            }
            None => session.out.json(&file)?,
        }
        let (day, count) = (&head.day, head.runs);
        let said = format!("Signed {count} runs of {day} with key {}.", head.key);
        session.out.talk(said);
        Ok(())
    }
}

/// The runs that a head counts: more may have ended since.
async fn runs(http: &Http, head: &Head) -> Result<Vec<tg_provenance::Ended>> {
    let request = json!({"operation": "list-ended-runs", "day": head.day});
    let reply: Value = http.all(SERVICE, request).await?;
    let runs = heads::counted(head, heads::runs_of(&reply));
    runs.ok_or_else(|| {
        let text = format!("the runs of {} are not those that were signed", head.day);
        Error::Check(text)
    })
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| Error::file(path, error))
}
