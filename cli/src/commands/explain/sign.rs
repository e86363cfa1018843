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
    /// Only the public keys that verify heads, as PEM: the one that signs, and all that signed before
    #[arg(long, conflicts_with = "day")]
    public_key: bool,
    /// Have another key sign from now on, in all workspaces; prints what --public-key does
    #[arg(long, conflicts_with_all = ["day", "public_key"])]
    rotate_key: bool,
    /// Heads that the key of this id signed do not count, from --revoked-from on; if it is the one that signs, another does from
    /// now on. Prints what --public-key does
    #[arg(long, value_name = "ID", conflicts_with_all = ["day", "public_key", "rotate_key"])]
    revoke_key: Option<String>,
    /// When it was out of hand, RFC 3339 [default: now]
    #[arg(long, value_name = "TIME", requires = "revoke_key")]
    revoked_from: Option<String>,
}

impl Command for SignTraces {
    const NAME: &'static str = "sign-traces";
    const ABOUT: &'static str = "Sign one hash over all traces of a day";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        if let Some(request) = self.of_keys() {
            let reply = http.service(SERVICE, request);
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

impl SignTraces {
    /// What is asked about keys, if it is that.
    fn of_keys(&self) -> Option<Value> {
        if let Some(key) = &self.revoke_key {
            let from = self.revoked_from.as_deref().unwrap_or_default();
            return Some(
                json!({"operation": "revoke-signing-key", "key-id": key, "revoked-from": from}),
            );
        }
        let operation = match (self.rotate_key, self.public_key) {
            (true, _) => "rotate-signing-key",
            (_, true) => "get-signing-key",
            _ => return None,
        };
        Some(json!({"operation": operation}))
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
