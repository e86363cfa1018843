//! `tg bootstrap-iam`: the first admin key, once. The key goes to stdout alone, so that it can be
//! captured.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::args::Options;
use crate::client::{Error, Result};
use crate::fields::text;
use crate::registry::Command;
use crate::session::Session;
use crate::target::{said, variable};

/// Arguments of `tg bootstrap-iam`.
#[derive(Debug, Args)]
pub struct BootstrapIam {
    /// Address of the gateway [env: THREADGRAPH_URL, TRUSTGRAPH_URL] [default: http://localhost:8888/]
    #[arg(
        short = 'u',
        long = "api-url",
        visible_alias = "url",
        value_name = "URL"
    )]
    url: Option<String>,
    /// Authorities that may sign the gateway's certificate, in PEM form, instead of this machine's [env: THREADGRAPH_CA_FILE]
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// One-time code: at the server's terminal, or in a file of its data directory (bootstrap-code)
    /// [env: THREADGRAPH_BOOTSTRAP_CODE, TRUSTGRAPH_BOOTSTRAP_CODE]
    #[arg(long)]
    code: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Command for BootstrapIam {
    const NAME: &'static str = "bootstrap-iam";
    const ABOUT: &'static str = "Create the first administrator and print its API key, once";

    fn options(&self) -> Options {
        Options {
            url: self.url.clone(),
            ca_file: self.ca_file.clone(),
            json: self.json,
            ..Options::local()
        }
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let code = self.code.or_else(|| said("BOOTSTRAP_CODE", variable));
        let body = match &code {
            Some(code) => json!({"code": code}),
            None => json!({}),
        };
        let reply = session.http()?.post("api/v1/auth/bootstrap", &body).await?;
        let key = text(&reply, "bootstrap_admin_api_key");
        if key.is_empty() {
            return Err(Error::Service {
                kind: "operation-not-permitted".to_owned(),
                message: "no key was given: this system has its first administrator already, \
                          or runs without iam"
                    .to_owned(),
            });
        }
        if session.out.is_json() {
            return session.out.json(&reply);
        }
        let user = text(&reply, "bootstrap_admin_user_id");
        session.out.talk(format!("Admin user id: {user}"));
        session
            .out
            .talk("Admin API key (shown this once, keep it now):");
        session.out.line(&key)?;
        session
            .out
            .talk("`tg login` keeps it for the commands that follow; TRUSTGRAPH_TOKEN gives it to one shell.");
        Ok(())
    }
}
