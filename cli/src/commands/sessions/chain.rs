//! `tg compact-session`, `tg show-session-lineage` and `tg undo-compaction`: sessions that were shortened.

use clap::Args;
use serde_json::{Value, json};
use tg_schemas::operations::UndoCompaction as Undo;
use tg_schemas::operations::{
    CompactSession as Compact, ExpandSummary as Expand, OneSession, OneSummary, SessionLineage,
};

use super::Which;
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::fields::{list, text};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg compact-session`.
#[derive(Debug, Args)]
pub struct CompactSession {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    which: Which,
}

impl Command for CompactSession {
    const NAME: &'static str = "compact-session";
    const ABOUT: &'static str = "Sum a session up and go on in a new one";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let asked = OneSession::from(&self.which);
        let done = session.http()?.call::<Compact>(&asked).await?;
        let shown = json!(done);
        session.out.lay(&shown, |_| {
            format!(
                "Session {} goes on in {}. {} messages are summed up, {} stay:\n\n{}",
                done.source_session_id,
                done.successor_session_id,
                done.compacted_count,
                done.kept_count,
                done.summary_text
            )
        })
    }
}

/// Arguments of `tg show-session-lineage`.
#[derive(Debug, Args)]
pub struct ShowLineage {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    which: Which,
}

impl Command for ShowLineage {
    const NAME: &'static str = "show-session-lineage";
    const ABOUT: &'static str = "Show which sessions a session continues, and which continue it";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let asked = OneSession::from(&self.which);
        let found = session.http()?.call::<SessionLineage>(&asked).await?;
        let shown = json!(found);
        session.out.lay(&shown, |_| chain(&shown))
    }
}

/// A line for each session, the oldest first.
fn chain(shown: &Value) -> String {
    let line = |one: &Value, mark: &str| {
        format!(
            "{mark} {}  {} messages, created {}",
            text(one, "id"),
            text(one, "message_count"),
            text(one, "created_at")
        )
    };
    let before = list(shown, "backward").iter().rev();
    let before = before.map(|one| line(one, " "));
    let own = format!("> {}", text(shown, "session_id"));
    let after = list(shown, "forward").iter().map(|one| line(one, " "));
    let lines: Vec<String> = before.chain([own]).chain(after).collect();
    lines.join("\n")
}

/// Arguments of `tg expand-session-summary`.
#[derive(Debug, Args)]
pub struct ExpandSessionSummary {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    which: Which,
    /// Id of the summary [default: the newest one of the session's chain]
    #[arg(long, value_name = "ID")]
    summary_id: Option<String>,
}

impl Command for ExpandSessionSummary {
    const NAME: &'static str = "expand-session-summary";
    const ABOUT: &'static str = "Show a summary of a session with the messages that it stands for";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let of = OneSession::from(&self.which);
        let summary_id = match self.summary_id {
            Some(id) => id,
            None => {
                let mut chain = http.call::<SessionLineage>(&of).await?;
                let newest = chain.summaries.pop().map(|one| one.id);
                newest.ok_or_else(|| Error::Missing("this session has no summary".to_owned()))?
            }
        };
        let asked = OneSummary {
            name: of.name,
            session_id: of.session_id,
            summary_id,
            user_id: of.user_id,
        };
        let shown = json!(http.call::<Expand>(&asked).await?);
        session.out.lay(&shown, |_| expanded(&shown))
    }
}

/// The summary, then a paragraph for each message.
fn expanded(shown: &Value) -> String {
    let summary = &shown["summary"];
    let head = format!(
        "{} messages of session {} are summed up:\n\n{}",
        text(summary, "message_count"),
        text(summary, "source_session_id"),
        text(summary, "text")
    );
    let said = list(shown, "messages").iter();
    let said = said.map(|one| format!("{}: {}", text(one, "role"), text(one, "content")));
    let parts: Vec<String> = std::iter::once(head).chain(said).collect();
    parts.join("\n\n")
}

/// Arguments of `tg undo-compaction`.
#[derive(Debug, Args)]
pub struct UndoCompaction {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    which: Which,
    /// Delete the session that continues it
    #[arg(long)]
    yes: bool,
}

impl Command for UndoCompaction {
    const NAME: &'static str = "undo-compaction";
    const ABOUT: &'static str = "Take the summary of a session back";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if !self.yes {
            let text = "this deletes the session that continues it; add --yes to do it";
            return Err(Error::Usage(text.to_owned()));
        }
        let asked = OneSession::from(&self.which);
        let back = session.http()?.call::<Undo>(&asked).await?;
        session.out.json(&json!(back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_shown_from_its_oldest_session_on() {
        let shown = json!({"session_id": "b", "backward": [{"id": "a", "message_count": 2}],
                           "forward": [{"id": "c", "message_count": 3}]});
        let told = chain(&shown);
        let places = ["a ", "> b", "c "].map(|part| told.find(part).unwrap());
        assert!(places.is_sorted(), "{told}");
    }
}
