//! `tg list-runs`, `attach`, `replay`, `cancel` and `confirm`: runs of the agent, whichever gateway they came through. Ctrl-C leaves a
//! run that is attached to as it is.

use clap::Args;
use serde_json::{Value, json};

use super::invoke::below;
use super::render::{Chunk, Renderer, Shown};
use crate::args::{Gateway, Options, subject};
use crate::client::{Call, Result};
use crate::commands::retrieval::answered::Answered;
use crate::fields::{in_shell, list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// The run that is meant.
    RunId,
    "Id of the run, from `tg list-runs`",
    long = "run"
);

/// Arguments of `tg list-runs`.
#[derive(Debug, Args)]
pub struct ListRuns {
    #[command(flatten)]
    gateway: Gateway,
    /// Those of everybody in the workspace, for its administrators
    #[arg(long)]
    all: bool,
}

impl Command for ListRuns {
    const NAME: &'static str = "list-runs";
    const ABOUT: &'static str = "List your runs of the agent, under way and over";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "list-runs", "all": self.all});
        let reply = session.http()?.all("requests", request).await?;
        session.out.lay(&reply, |width| render(&reply, width))
    }
}

fn render(reply: &Value, width: Width) -> String {
    let columns = [
        "id",
        "state",
        "started",
        "flow",
        "workspace",
        "user",
        "on-disconnect",
    ];
    let cell = |row: &Value, column: &str| match column {
        "started" => started(row),
        column => text(row, column),
    };
    let rows: Vec<_> = list(reply, "runs")
        .iter()
        .map(|row| columns.map(|column| cell(row, column)))
        .collect();
    match rows.is_empty() {
        true => "There are no runs.".to_owned(),
        false => table(columns, rows, width),
    }
}

/// When a run began, in UTC.
fn started(row: &Value) -> String {
    let millis = row.get("started-ms").and_then(Value::as_i64);
    let time = millis.and_then(chrono::DateTime::from_timestamp_millis);
    time.map_or_else(String::new, |time| {
        time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
    })
}

/// Arguments of `tg attach`.
#[derive(Debug, Args)]
pub struct Attach {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    run: RunId,
    /// Only what comes behind this part
    #[arg(long, value_name = "OFFSET")]
    offset: Option<u64>,
    /// Show thoughts, actions and observations too
    #[arg(short = 'v', long)]
    verbose: bool,
    /// A run of somebody else in the workspace, for its administrators
    #[arg(long)]
    all: bool,
}

impl Attach {
    fn request(&self) -> Value {
        let mut request = json!({"operation": "read-run", "run": self.run.id(), "all": self.all});
        if let Some(offset) = self.offset {
            request["offset"] = json!(offset);
        }
        request
    }
}

impl Command for Attach {
    const NAME: &'static str = "attach";
    const ABOUT: &'static str = "Follow a run, or a detached request, from its first part on";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help(
            "With --json, each message of the agent is one line of JSON. Ctrl-C leaves the run as it is.",
        )
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        follow(session, self.request(), self.verbose).await
    }
}

/// How many parts of a run a message announces as not kept.
pub(super) fn missing(reply: &Value) -> Option<i64> {
    let number = |key: &str| reply.get("gap")?.get(key)?.as_i64();
    Some(number("next")? - number("first")?)
}

/// Prints what a run tells, as it comes.
async fn follow(session: &mut Session, request: Value, verbose: bool) -> Result<()> {
    let mut socket = session.socket().await?;
    let call = Call::global("requests", request);
    let mut replies = socket.start(&call).await?;
    let mut view = Renderer::new(verbose, true);
    let mut last_answer = Value::Null;
    let ended = loop {
        let reply = match replies.next().await {
            Ok(Some(reply)) => reply,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        let chunk = Chunk::read(&reply);
        match session.out.is_json() {
            true => session.out.json_line(&reply)?,
            false => session.out.piece(&view.chunk(&chunk))?,
        }
        if let Some(parts) = missing(&reply) {
            session
                .out
                .talk(format!("{parts} parts of the run are not kept."));
        }
        // The last part of retrieval has no text, and says what the answer cites.
        let ends = reply.get("end_of_session") == Some(&Value::Bool(true));
        if ends || matches!(chunk.shown(), Some(Shown::Answer)) {
            last_answer = reply;
        }
    };
    session.out.piece_if_text(&view.closing())?;
    ended?;
    let answered = Answered::read(&last_answer);
    session.out.piece_if_text(&below(&answered))?;
    socket.close().await;
    Ok(())
}

/// Arguments of `tg replay`.
#[derive(Debug, Args)]
pub struct Replay {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    run: RunId,
    /// Show thoughts, actions and observations too
    #[arg(short = 'v', long)]
    verbose: bool,
    /// A run of somebody else in the workspace, for its administrators
    #[arg(long)]
    all: bool,
}

impl Command for Replay {
    const NAME: &'static str = "replay";
    const ABOUT: &'static str = "Run a recorded run of the agent again, from its record alone";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help(
            "A run is recorded that was asked for with `tg invoke-agent --record`. No model and no tool is asked, and nothing is \
             stored: it tells what it told then, or says at which step it differs. With --json, each message is one line of JSON.",
        )
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "replay-run", "run": self.run.id(), "all": self.all});
        follow(session, request, self.verbose).await
    }
}

/// Arguments of `tg cancel`.
#[derive(Debug, Args)]
pub struct Cancel {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    run: RunId,
    /// A run of somebody else in the workspace, for its administrators
    #[arg(long)]
    all: bool,
}

impl Command for Cancel {
    const NAME: &'static str = "cancel";
    const ABOUT: &'static str = "Cancel a run of the agent, and say what had happened in it";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "cancel-run", "run": self.run.id(), "all": self.all});
        let reply = session.http()?.service("requests", request).await?;
        session.out.show(&reply, || happened(&reply))
    }
}

/// Arguments of `tg confirm`.
#[derive(Debug, Args)]
pub struct Confirm {
    #[command(flatten)]
    gateway: Gateway,
    /// Id of the run, from `tg list-runs`
    #[arg(value_name = "RUN")]
    run: String,
    /// Whether the tool may be used
    #[arg(value_name = "yes|no", value_parser = ["yes", "no"])]
    answer: String,
    /// The message that asks, where the run has asked more than once
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
    /// A run of somebody else in the workspace, for its administrators
    #[arg(long)]
    all: bool,
}

impl Command for Confirm {
    const NAME: &'static str = "confirm";
    const ABOUT: &'static str = "Answer a run of the agent that asks whether it may use a tool";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let asked = self.message_id.as_deref().unwrap_or_default();
        let mut request = answer_to(&self.run, asked, &self.answer);
        request["all"] = json!(self.all);
        let reply = session.http()?.service("requests", request).await?;
        session
            .out
            .show(&reply, || format!("Answered: {}", self.answer))
    }
}

/// The command that answers what a run asks. It names the question, so that a late answer does not count for the next one.
pub(super) fn confirm_command(run: &str, asked: &str, answer: &str) -> String {
    let command = format!("tg confirm {} {answer}", in_shell(run));
    match asked {
        "" => command,
        asked => format!("{command} --message-id {}", in_shell(asked)),
    }
}

/// Says yes or no to what a run asks.
pub(super) fn answer_to(run: &str, asked: &str, answer: &str) -> Value {
    let mut request = json!({"operation": "confirm-run", "run": run, "answer": answer});
    if !asked.is_empty() {
        request["message_id"] = json!(asked);
    }
    request
}

fn happened(reply: &Value) -> String {
    let count = |key: &str| reply.get(key).and_then(Value::as_u64).unwrap_or(0);
    let is = |row: &Value, key: &str| row.get(key).and_then(Value::as_bool) == Some(true);
    let mut lines = vec![format!("Cancelled: {}", text(reply, "cancelled"))];
    // Other streams than runs of the agent have no steps.
    if reply.get("steps").is_some() {
        lines.push(format!(
            "Steps: {}, tokens in: {}, tokens out: {}",
            count("steps"),
            count("in-token"),
            count("out-token")
        ));
    }
    for call in list(reply, "tool-calls") {
        let came = match (is(call, "returned"), is(call, "failed")) {
            (true, false) => "returned",
            (true, true) => "failed",
            (false, _) => "under way: it may or may not have had its effect",
        };
        lines.push(format!("Tool {}: {came}", text(call, "tool")));
    }
    if !is(reply, "ended") {
        lines.push("The run had not ended yet when this was said.".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_a_table() {
        let reply = json!({"runs": [{"id": "r1", "state": "running", "flow": "default",
            "workspace": "acme", "user": "ann", "on-disconnect": "grace=30", "started-ms": 1_790_000_000_000_i64}]});
        let shown = render(&reply, None);
        for part in ["r1", "running", "grace=30", "2026-09-21T14:13:20Z"] {
            assert!(shown.contains(part), "{shown}");
        }
        assert_eq!(render(&json!({"runs": []}), None), "There are no runs.");
    }

    #[test]
    fn the_command_that_answers_names_the_question() {
        for (run, asked, command) in [
            ("r1", "urn:m", "tg confirm r1 yes|no --message-id urn:m"),
            ("r1", "", "tg confirm r1 yes|no"),
            ("r 1", "a;b", "tg confirm 'r 1' yes|no --message-id 'a;b'"),
        ] {
            assert_eq!(confirm_command(run, asked, "yes|no"), command);
        }
    }

    #[test]
    fn a_cancel_says_what_had_happened() {
        let reply = json!({"cancelled": "r1", "ended": true, "steps": 2, "in-token": 30, "out-token": 4,
            "tool-calls": [{"tool": "mail", "returned": true, "failed": false},
                           {"tool": "pay", "returned": false, "failed": false}]});
        assert_eq!(
            happened(&reply),
            "Cancelled: r1\nSteps: 2, tokens in: 30, tokens out: 4\nTool mail: returned\n\
             Tool pay: under way: it may or may not have had its effect"
        );
        let stream = json!({"cancelled": "r2.g1", "ended": true});
        assert_eq!(happened(&stream), "Cancelled: r2.g1");
    }
}
