//! All sessions, and all messages of one: page after page.

use tg_schemas::operations::{
    ListMessages, ListSessions, Session as One, SessionMessage, WhichMessages, WhichSessions,
};

use crate::client::Result;
use crate::session::Session;

/// Entries of a page.
const PAGE: i64 = 200;

/// The sessions of a user with an agent, newest first.
pub(super) async fn sessions(session: &Session, agent: &str, user: &str) -> Result<Vec<One>> {
    let mut asked = WhichSessions {
        name: agent.to_owned(),
        user_id: user.to_owned(),
        limit: Some(PAGE),
        cursor: None,
    };
    let mut all = Vec::new();
    loop {
        let page = session.http()?.call::<ListSessions>(&asked).await?;
        all.extend(page.sessions);
        if page.next_cursor.is_none() || page.next_cursor == asked.cursor {
            return Ok(all);
        }
        asked.cursor = page.next_cursor;
    }
}

/// What was said in a session, oldest first.
pub(super) async fn messages(
    session: &Session,
    agent: &str,
    user: &str,
    id: &str,
) -> Result<Vec<SessionMessage>> {
    let mut asked = WhichMessages {
        name: agent.to_owned(),
        session_id: id.to_owned(),
        user_id: user.to_owned(),
        limit: Some(PAGE),
        ..WhichMessages::default()
    };
    let mut all = Vec::new();
    loop {
        let page = session.http()?.call::<ListMessages>(&asked).await?;
        all.extend(page.messages);
        if page.next_cursor.is_none() || page.next_cursor == asked.cursor {
            return Ok(all);
        }
        asked.cursor = page.next_cursor;
    }
}
