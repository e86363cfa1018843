//! What came of a task is announced in the session that it was given in: by its main agent, in its own words, else as it is.

use std::time::Duration;

use tg_clients::session_notices;
use tg_mesh::Cx;
use tg_mesh::tg_bus::pause::after;
use tg_schemas::msg::SessionNotice;
use tg_schemas::{Class, Topic, WorkspaceId};
use tokio::time::Instant;

use super::agent::Agent;
use crate::engine::delegating::{MAX_RESULT, cut};
use crate::sessions::{Notification, Sessions};

/// How long the main agent may take each time.
const ATTEMPT: Duration = Duration::from_secs(120);
/// Latest that it is tried again, after the first time.
const LONGEST: Duration = Duration::from_secs(3600);

/// Kinds of notices.
const ANNOUNCE: &str = "announce";
const PROGRESS: &str = "progress";

/// Where a task came from.
#[derive(Clone, Copy)]
pub(super) struct Parent<'a> {
    /// Workspace in the text form of its key.
    pub(super) workspace: &'a str,
    /// Whose run gave it.
    pub(super) user: &'a str,
    /// Session of that run.
    pub(super) session: &'a str,
    /// The sessions service asked for that run. Other callers write into no session: each of them names its conversation as it likes.
    pub(super) of_sessions: bool,
    /// What people call the agent that did it.
    pub(super) agent: &'a str,
}

/// Announces what came of a task.
pub(super) async fn announce(
    agent: &Agent,
    cx: &Cx,
    parent: Parent<'_>,
    came: &Result<String, String>,
) {
    let told = async {
        let notification = Notification {
            workspace: parent.workspace.to_owned(),
            user: parent.user.to_owned(),
            session: parent.session.to_owned(),
            text: notification(parent.agent, came),
        };
        let first = Duration::from_secs(agent.options.announce_seconds);
        let tries = (agent.options.announce_retries, first);
        let replied = through_main(&*agent.tasks.sessions, &notification, tries).await;
        // Otherwise the sessions service asks the agent of the session, if it has one.
        let asked = match replied {
            Some(_) => String::new(),
            None => notification.text,
        };
        let text = replied.unwrap_or_else(|| raw(parent.agent, came));
        tell(cx, parent, (text, asked)).await;
    };
    tokio::select! {
        () = told => {}
        () = cx.mesh.stopping().cancelled() => {}
    }
}

/// Announces a result in a session. The session keeps it before the notice is sent.
async fn tell(cx: &Cx, parent: Parent<'_>, (text, notification): (String, String)) {
    let Some(workspace) = &cx.scope.workspace else {
        return;
    };
    let mut notice = SessionNotice {
        session_id: parent.session.to_owned(),
        message_id: uuid::Uuid::new_v4().to_string(),
        text,
        kind: ANNOUNCE.to_owned(),
        notification,
    };
    if parent.of_sessions {
        match session_notices::keep(cx, workspace, &notice).await {
            Ok(Some(kept)) => notice.text = kept,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error.message, "a session does not keep what came of a task");
            }
        }
    }
    notice.notification.clear();
    notify(cx, workspace, &notice).await;
}

/// Notifies a session of progress. No session keeps that: the result is announced.
pub(super) async fn report(cx: &Cx, parent: Parent<'_>, text: &str) {
    let Some(workspace) = &cx.scope.workspace else {
        return;
    };
    let notice = SessionNotice {
        session_id: parent.session.to_owned(),
        message_id: uuid::Uuid::new_v4().to_string(),
        text: text.to_owned(),
        kind: PROGRESS.to_owned(),
        notification: String::new(),
    };
    notify(cx, workspace, &notice).await;
}

async fn notify(cx: &Cx, workspace: &WorkspaceId, notice: &SessionNotice) {
    let topic = Topic::workspace(Class::Notify, "session", workspace);
    if let Err(error) = cx.mesh.notify(&topic, notice).await {
        let kind = &*notice.kind;
        tracing::warn!(%error.message, kind, "a session was not notified of a task");
    }
}

/// What the main agent replies. It is tried again so often; the first pause is given, and each time is twice as long after the first
/// try as the one before. `None`: there is no main agent, or it failed each time.
async fn through_main(
    sessions: &dyn Sessions,
    told: &Notification,
    (retries, first): (u32, Duration),
) -> Option<String> {
    let began = Instant::now();
    for tries in 0..=retries {
        if let Some(before) = tries.checked_sub(1) {
            tokio::time::sleep_until(began + after(first, before, LONGEST)).await;
        }
        match tokio::time::timeout(ATTEMPT, sessions.tell(told)).await {
            Ok(Ok(reply)) => return reply.filter(|text| !text.trim().is_empty()),
            Ok(Err(error)) => tracing::debug!(%error, "a main agent was not told of a task"),
            Err(_) => tracing::debug!("a main agent takes too long over what came of a task"),
        }
    }
    None
}

/// The notification for the main agent.
fn notification(agent: &str, came: &Result<String, String>) -> String {
    match came {
        Ok(text) if text.trim().is_empty() => {
            format!("The task of agent {agent} is completed, without output.")
        }
        Ok(text) => {
            let text = cut(text, MAX_RESULT);
            format!("The task of agent {agent} is completed. Its result:\n\n{text}")
        }
        Err(error) => format!("The task of agent {agent} has failed: {error}"),
    }
}

/// The text for the session where no main agent words it.
fn raw(agent: &str, came: &Result<String, String>) -> String {
    let text = match came {
        Ok(text) if text.trim().is_empty() => "The task finished without output.".to_owned(),
        Ok(text) => cut(text, MAX_RESULT),
        Err(error) => format!("The task failed: {error}"),
    };
    format!("**{agent}**\n\n{text}")
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use parking_lot::Mutex;
    use tg_schemas::{Error, ErrorCode};

    use super::*;
    use crate::sessions::{InMemory, SessionId, Turn};

    /// A main agent that fails so often, and notes when it was told what.
    struct Main {
        fails: usize,
        hangs: bool,
        told: Mutex<Vec<(u64, String)>>,
        began: Instant,
    }

    impl Main {
        fn new(fails: usize, hangs: bool) -> Self {
            Self {
                fails,
                hangs,
                told: Mutex::default(),
                began: Instant::now(),
            }
        }

        fn times(&self) -> Vec<u64> {
            self.told.lock().iter().map(|(at, _)| *at).collect()
        }
    }

    #[async_trait]
    impl Sessions for Main {
        async fn turns(&self, _: &SessionId) -> Result<Vec<Turn>, Error> {
            Ok(Vec::new())
        }

        async fn add(&self, _: &SessionId, _: Turn) -> Result<(), Error> {
            Ok(())
        }

        async fn tell(&self, notification: &Notification) -> Result<Option<String>, Error> {
            let at = self.began.elapsed().as_secs();
            let told = {
                let mut told = self.told.lock();
                told.push((at, notification.text.clone()));
                told.len()
            };
            if self.hangs {
                std::future::pending::<()>().await;
            }
            match told <= self.fails {
                true => Err(Error::new(ErrorCode::Provider, "away")),
                false => Ok(Some("It is done.".to_owned())),
            }
        }
    }

    async fn told(sessions: &dyn Sessions) -> Option<String> {
        let notification = Notification {
            text: notification("Bee", &Ok("B".to_owned())),
            ..Notification::default()
        };
        through_main(sessions, &notification, (3, Duration::from_secs(2))).await
    }

    /// Line 116: the main agent puts it in its own words, and is tried at 0, 2, 4 and 8 seconds.
    #[tokio::test(start_paused = true)]
    async fn line_116_a_main_agent_is_tried_four_times() {
        let main = Main::new(0, false);
        assert_eq!(told(&main).await.unwrap(), "It is done.");
        let heard = main.told.lock().clone();
        let expected = "The task of agent Bee is completed. Its result:\n\nB";
        assert_eq!(heard, [(0, expected.to_owned())]);
        let main = Main::new(3, false);
        assert_eq!(told(&main).await.unwrap(), "It is done.");
        assert_eq!(main.times(), [0, 2, 4, 8]);
        let main = Main::new(4, false);
        assert_eq!(told(&main).await, None);
        assert_eq!(main.times(), [0, 2, 4, 8]);
    }

    /// Line 116: each try has two minutes.
    #[tokio::test(start_paused = true)]
    async fn a_main_agent_that_hangs_is_given_up() {
        let main = Main::new(0, true);
        assert_eq!(told(&main).await, None);
        assert_eq!(main.times(), [0, 120, 240, 360]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_main_agent_it_is_told_as_it_is_at_once() {
        let began = Instant::now();
        assert_eq!(told(&InMemory::default()).await, None);
        assert_eq!(began.elapsed(), Duration::ZERO);
        let raw = |came: Result<&str, &str>| {
            super::raw("Bee", &came.map(str::to_owned).map_err(str::to_owned))
        };
        assert_eq!(raw(Ok("B")), "**Bee**\n\nB");
        assert_eq!(raw(Ok(" ")), "**Bee**\n\nThe task finished without output.");
        assert_eq!(raw(Err("away")), "**Bee**\n\nThe task failed: away");
    }

    /// Line 117: a long result is cut, with a note.
    #[test]
    fn line_117_a_long_result_is_cut() {
        let came = Ok("x".repeat(20_000));
        let cut = format!(
            "{}\n[cut: 16384 of 20000 characters shown]",
            "x".repeat(16_384)
        );
        assert_eq!(raw("Bee", &came), format!("**Bee**\n\n{cut}"));
        assert!(notification("Bee", &came).ends_with(&cut));
    }
}
