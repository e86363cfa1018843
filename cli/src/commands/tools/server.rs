//! `tg mcp-server`: this system's tools for editors and agents that start programs as their MCP servers. It reads messages
//! from standard input, a line each, hands them to the gateway, and writes what comes back, a line each. Nothing else is
//! written there.

use std::pin::pin;
use std::time::Duration;

use clap::Args;
use futures::StreamExt;
use futures::stream::SelectAll;
use tg_schemas::limits;

use super::server_call::{Bridge, Calls, message};
use crate::args::{InCollection, Options};
use crate::client::{Error, Result};
use crate::lines::{Typed, written};
use crate::registry::Command;
use crate::session::Session;

/// Messages that are answered at once; the next is read when one of them is.
const AT_ONCE: usize = 64;
/// How long what was asked before the end of the input may take to be answered.
const LAST: Duration = Duration::from_secs(2);

/// Arguments of `tg mcp-server`.
#[derive(Debug, Args)]
pub struct McpServer {
    #[command(flatten)]
    of: InCollection,
}

impl Command for McpServer {
    const NAME: &'static str = "mcp-server";
    const ABOUT: &'static str =
        "Serve the tools of this system to an editor or agent over stdin and stdout (MCP)";

    fn options(&self) -> Options {
        Options::from(&self.of)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let bridge = Bridge::new(
            session.http()?,
            &[
                ("workspace", session.options.workspace.as_deref()),
                ("flow", Some(&self.of.flow.flow_id)),
                ("collection", Some(&self.of.collection)),
            ],
        );
        let calls = Calls::default();
        let mut answers = SelectAll::new();
        loop {
            let mut next = pin!(written(limits::MCP_MESSAGE));
            // What was begun to be read is read to its end, whatever is answered meanwhile.
            let typed = loop {
                tokio::select! {
                    typed = &mut next, if answers.len() < AT_ONCE => break typed,
                    Some(answer) = answers.next() => tell(session, answer)?,
                }
            };
            match typed? {
                Typed::Line(line) if line.trim().is_empty() => {}
                Typed::Line(line) => match message(line) {
                    Ok(message) if message.cancels().is_some() => calls.cancel(&message),
                    Ok(message) => {
                        let id = message.id();
                        answers.push(calls.begin(id, bridge.ask(message)));
                    }
                    Err(fault) => tell(session, fault.to_string())?,
                },
                Typed::Cleared => return Err(Error::Interrupted),
                Typed::End => break,
            }
        }
        let rest = async {
            while let Some(answer) = answers.next().await {
                tell(session, answer)?;
            }
            Ok(())
        };
        // Whoever closed the input is going, or has asked all that it wanted to.
        tokio::time::timeout(LAST, rest).await.unwrap_or(Ok(()))
    }
}

fn tell(session: &mut Session, answer: String) -> Result<()> {
    session.out.piece(&format!("{answer}\n"))
}
