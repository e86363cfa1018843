//! `tg verify-system-status`: waits until the system is healthy, or says what is not.
//!
//! Exit code 0 only if every check passes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::args::{Options, Stored};
use crate::client::{Error, Http, Result};
use crate::fields::{counted, list, texts};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg verify-system-status`.
#[derive(Debug, Args)]
pub struct VerifySystemStatus {
    /// Language of the report; there is English only
    #[arg(long, env = "TRUSTGRAPH_LANG", default_value = "en", hide = true)]
    lang: String,
    /// Seconds for everything together
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    global_timeout: u64,
    /// Seconds for one try of one check
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    check_timeout: u64,
    /// Seconds between tries
    #[arg(long, default_value_t = 3, value_name = "SECONDS")]
    retry_delay: u64,
    /// Minimum number of running processors
    #[arg(long, default_value_t = 15, value_name = "COUNT")]
    min_processors: usize,
    /// Address of the gateway [env: THREADGRAPH_URL, TRUSTGRAPH_URL] [default: http://localhost:8888/]
    #[arg(
        long = "api-url",
        visible_alias = "url",
        short = 'u',
        value_name = "URL"
    )]
    url: Option<String>,
    /// Address of web pages and gateway; asks for a page, too
    #[arg(long, value_name = "URL")]
    ui_url: Option<String>,
    /// Do not ask for a web page
    #[arg(long)]
    skip_ui: bool,
    /// API key or other token [env: THREADGRAPH_TOKEN, TRUSTGRAPH_TOKEN]
    #[arg(short = 't', long)]
    token: Option<String>,
    /// Workspace [env: THREADGRAPH_WORKSPACE, TRUSTGRAPH_WORKSPACE] [default: the caller's own, usually `default`]
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
    /// Authorities that may sign the gateway's certificate, in PEM form, instead of this machine's [env: THREADGRAPH_CA_FILE]
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Address, token and workspace that `tg login` keeps under a name [env: THREADGRAPH_PROFILE]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Say why a try failed
    #[arg(short = 'v', long)]
    verbose: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Command for VerifySystemStatus {
    const NAME: &'static str = "verify-system-status";
    const ABOUT: &'static str = "Check the whole system, waiting for what still starts";

    fn options(&self) -> Options {
        Options {
            url: self.url.clone().or_else(|| self.ui_url.clone()),
            token: self.token.clone().filter(|token| !token.is_empty()),
            workspace: self.workspace.clone().filter(|id| !id.is_empty()),
            ca_file: self.ca_file.clone(),
            stored: Stored::Use(self.profile.clone()),
            json: self.json,
            timeout: Duration::from_secs(self.check_timeout),
        }
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let started = Instant::now();
        let mut outcomes = Vec::new();
        for (title, checks) in PHASES {
            if *title == UI_PHASE && (self.skip_ui || self.ui_url.is_none()) {
                continue;
            }
            say(session, format!("{title}\n{}", "-".repeat(60)))?;
            for check in *checks {
                let outcome = self.until_passed(session, &http, *check, started).await?;
                outcomes.push((check.name(), outcome));
            }
            say(session, String::new())?;
        }
        summary(session, &outcomes, started)
    }
}

const UI_PHASE: &str = "Phase 4: Web pages";

const PHASES: &[(&str, &[Check])] = &[
    ("Phase 1: Infrastructure", &[Check::Gateway]),
    (
        "Phase 2: Core services",
        &[
            Check::Processors,
            Check::Blueprints,
            Check::Flows,
            Check::Prompts,
        ],
    ),
    ("Phase 3: Data services", &[Check::Library]),
    (UI_PHASE, &[Check::Ui]),
];

/// One thing to look at.
#[derive(Debug, Clone, Copy)]
enum Check {
    Gateway,
    Processors,
    Blueprints,
    Flows,
    Prompts,
    Library,
    Ui,
}

/// What a try found: fine with a remark, or not with the reason.
type Finding = std::result::Result<String, String>;

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::Gateway => "API Gateway",
            Self::Processors => "Processors",
            Self::Blueprints => "Flow Blueprints",
            Self::Flows => "Flows",
            Self::Prompts => "Prompts",
            Self::Library => "Library",
            Self::Ui => "Web pages",
        }
    }

    async fn look(self, http: &Http, min_processors: usize) -> Result<Finding> {
        Ok(match self {
            Self::Gateway => match http.get_text("", &[]).await?.0 {
                200 | 404 => Ok("the gateway answers".to_owned()),
                status => Err(format!("the gateway answers with status {status}")),
            },
            Self::Processors => {
                let count = http.metrics(None, "processor_info").await?.len();
                at_least(count, min_processors, "processor")
            }
            Self::Blueprints => {
                let reply = http
                    .all("flow", json!({"operation": "list-blueprints"}))
                    .await?;
                at_least(texts(&reply, "blueprint-names").len(), 1, "blueprint")
            }
            Self::Flows => {
                let reply = http.all("flow", json!({"operation": "list-flows"})).await?;
                at_least(texts(&reply, "flow-ids").len(), 0, "flow")
            }
            Self::Prompts => {
                let request = json!({"operation": "list", "type": "prompt"});
                let keys = texts(&http.all("config", request).await?, "directory");
                let count = keys.iter().filter(|key| key.starts_with("template."));
                at_least(count.count(), 1, "prompt")
            }
            Self::Library => {
                let request = json!({"operation": "list-documents", "include-children": false});
                let reply = http.all("librarian", request).await?;
                at_least(list(&reply, "document-metadatas").len(), 0, "document")
            }
            Self::Ui => match http.get_text("index.html", &[]).await?.0 {
                200 => Ok("a page is served".to_owned()),
                status => Err(format!("status {status}")),
            },
        })
    }
}

fn at_least(count: usize, min: usize, what: &str) -> Finding {
    let told = counted(count as u64, what);
    if count >= min {
        return Ok(told);
    }
    Err(format!("{told}, and the minimum is {min}"))
}

impl VerifySystemStatus {
    /// Tries a check until it passes or the time is up. The error is the user's interrupt.
    async fn until_passed(
        &self,
        session: &mut Session,
        http: &Http,
        check: Check,
        started: Instant,
    ) -> Result<Finding> {
        let limit = Duration::from_secs(self.global_timeout);
        let delay = Duration::from_secs(self.retry_delay);
        let mut attempt = 1;
        loop {
            let again = match attempt {
                1 => String::new(),
                attempt => format!(" (attempt {attempt})"),
            };
            log(
                session,
                started,
                "⏳",
                format!("Checking {}...{again}", check.name()),
            )?;
            let finding = match check.look(http, self.min_processors).await {
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => Err(error.to_string()),
                Ok(finding) => finding,
            };
            let reason = match finding {
                Ok(remark) => {
                    log(session, started, "✓", format!("{}: {remark}", check.name()))?;
                    return Ok(Ok(remark));
                }
                Err(reason) => reason,
            };
            if self.verbose {
                log(session, started, " ", format!("  {reason}"))?;
            }
            if started.elapsed() + delay >= limit {
                let text = format!(
                    "{}: failed after {attempt} attempts: {reason}",
                    check.name()
                );
                log(session, started, "✗", text)?;
                return Ok(Err(reason));
            }
            session.pause(delay).await?;
            attempt += 1;
        }
    }
}

fn summary(session: &mut Session, outcomes: &[(&str, Finding)], started: Instant) -> Result<()> {
    let failed = outcomes
        .iter()
        .filter(|(_, outcome)| outcome.is_err())
        .count();
    let total = outcomes.len();
    if session.out.is_json() {
        let checks: Vec<Value> = outcomes
            .iter()
            .map(|(name, outcome)| match outcome {
                Ok(detail) => json!({"name": name, "ok": true, "detail": detail}),
                Err(detail) => json!({"name": name, "ok": false, "detail": detail}),
            })
            .collect();
        session
            .out
            .json(&json!({"healthy": failed == 0, "checks": checks}))?;
    }
    say(
        session,
        format!("Checks passed: {}/{total}", total - failed),
    )?;
    say(session, format!("Checks failed: {failed}/{total}"))?;
    say(session, format!("Total time: {}", clock(started.elapsed())))?;
    if failed == 0 {
        return say(session, "\n✓ The system is healthy.".to_owned());
    }
    Err(Error::Check(format!("{failed} of {total} checks failed")))
}

/// The report is the data of this command, unless it is to be JSON.
fn say(session: &mut Session, text: String) -> Result<()> {
    if session.out.is_json() {
        return Ok(());
    }
    session.out.line(text)?;
    session.out.flush()
}

fn log(session: &mut Session, started: Instant, icon: &str, text: String) -> Result<()> {
    say(
        session,
        format!("[{}] {icon} {text}", clock(started.elapsed())),
    )
}

fn clock(time: Duration) -> String {
    format!("{:02}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_compared_and_shown() {
        assert_eq!(at_least(3, 2, "flow"), Ok("3 flows".to_owned()));
        assert!(at_least(1, 2, "flow").is_err());
        assert!(at_least(1, 0, "flow") == Ok("1 flow".to_owned()));
        assert_eq!(clock(Duration::from_secs(75)), "01:15");
    }
}
