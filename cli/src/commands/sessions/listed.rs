//! `tg list-sessions` and `tg show-session`: sessions of a user with an agent, and what was said in one.

use clap::Args;
use serde_json::{Value, json};
use tg_schemas::operations::{GetSession, OneSession};

use super::agents::Agent;
use super::{Whose, pages};
use crate::args::{Common, Options};
use crate::client::Result;
use crate::fields::{list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg list-sessions`.
#[derive(Debug, Args)]
pub struct ListSessions {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    whose: Whose,
}

impl Command for ListSessions {
    const NAME: &'static str = "list-sessions";
    const ABOUT: &'static str = "List a user's sessions with an agent";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let found = pages::sessions(session, self.agent.id(), &self.whose.user_id).await?;
        let shown = json!({"sessions": found});
        session.out.lay(&shown, |width| render(&shown, width))
    }
}

fn render(shown: &Value, width: Width) -> String {
    let columns = ["id", "title", "message_count", "created_at", "updated_at"];
    let rows: Vec<_> = list(shown, "sessions")
        .iter()
        .map(|one| columns.map(|column| text(one, column)))
        .collect();
    match rows.is_empty() {
        true => "There are no sessions.".to_owned(),
        false => table(
            ["id", "title", "messages", "created", "changed"],
            rows,
            width,
        ),
    }
}

/// Arguments of `tg show-session`.
#[derive(Debug, Args)]
pub struct ShowSession {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    whose: Whose,
    /// Id of the session
    #[arg(long, value_name = "ID")]
    session_id: String,
}

impl Command for ShowSession {
    const NAME: &'static str = "show-session";
    const ABOUT: &'static str = "Show a session and what was said in it";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let asked = OneSession {
            name: self.agent.id().to_owned(),
            session_id: self.session_id.clone(),
            user_id: self.whose.user_id.clone(),
        };
        let found = session.http()?.call::<GetSession>(&asked).await?;
        let said = pages::messages(session, &asked.name, &asked.user_id, &found.id).await?;
        let shown = json!({"session": found, "messages": said});
        session.out.lay(&shown, |_| said_in(&shown))
    }
}

/// What was said, one paragraph for each message.
fn said_in(shown: &Value) -> String {
    let about = &shown["session"];
    let head = format!(
        "Session {} with {}, {} messages.",
        text(about, "id"),
        text(about, "agent"),
        text(about, "message_count")
    );
    let said = list(shown, "messages").iter();
    let said = said.map(|one| format!("{}: {}", text(one, "role"), text(one, "content")));
    std::iter::once(head)
        .chain(said)
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_stands_below_the_session() {
        let shown = json!({"session": {"id": "1", "agent": "a", "message_count": 2}, "messages": [
            {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]});
        assert_eq!(
            said_in(&shown),
            "Session 1 with a, 2 messages.\n\nuser: x\n\nassistant: y"
        );
        let listed = json!({"sessions": [{"id": "1", "title": null, "message_count": 2}]});
        assert!(render(&listed, None).contains('1'));
        assert_eq!(render(&json!({}), None), "There are no sessions.");
    }
}
