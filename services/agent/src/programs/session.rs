//! A program that stays, and answers one message after another.

use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::OwnedSemaphorePermit;

use super::listed::CliAgent;
use super::output::{Reply, Turn};
use super::process::Process;

/// Longest line that is read; of a longer one nothing is.
const LINE: usize = 1 << 20;
/// What each such program is started with: it reads and writes JSON line by line, with the pieces of its answers.
const SPEAKS: [&str; 7] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
];

/// What went wrong in a turn; what the program says of it is for the log.
#[derive(Debug)]
pub(super) enum TurnError {
    /// It took no message: it is gone.
    Gone(String),
    /// It took the message, or had gone before, and ended without a word.
    Silent(String),
    /// It failed.
    Failed(String),
}

/// See the module.
pub(super) struct Session {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Free again with this session.
    _place: OwnedSemaphorePermit,
}

/// What the program of an agent is started with.
fn arguments(agent: &CliAgent) -> Vec<&str> {
    let mut args = SPEAKS.to_vec();
    if agent.skip_permissions {
        args.push("--dangerously-skip-permissions");
    }
    for (option, value) in [
        ("--model", agent.model.as_str()),
        ("--mcp-config", agent.mcp_config.as_str()),
    ] {
        if !value.is_empty() {
            args.extend([option, value]);
        }
    }
    args.extend(agent.args.iter().map(String::as_str));
    if !agent.system_prompt.is_empty() {
        args.extend(["--system-prompt", agent.system_prompt.as_str()]);
    }
    args
}

impl Session {
    /// Starts the program of an agent.
    pub(super) fn start(agent: &CliAgent, place: OwnedSemaphorePermit) -> Result<Self, String> {
        let pipes = [Stdio::piped(), Stdio::piped(), Stdio::null()];
        let process = Process::start(agent, &arguments(agent), pipes);
        let mut process = process.map_err(|fault| fault.to_string())?;
        let pipes = (process.child.stdin.take(), process.child.stdout.take());
        let (Some(input), Some(output)) = pipes else {
            return Err("it has no input or no output".to_owned());
        };
        Ok(Self {
            process,
            input,
            output: BufReader::new(output),
            _place: place,
        })
    }

    /// Gives it a message, and waits for its answer. After a failure it is of no more use.
    pub(super) async fn turn(&mut self, message: &str) -> Result<Reply, TurnError> {
        let said = json!({"type": "user", "message": {"role": "user", "content": message}});
        let gone = |fault: std::io::Error| TurnError::Gone(fault.to_string());
        self.input
            .write_all(format!("{said}\n").as_bytes())
            .await
            .map_err(gone)?;
        self.input.flush().await.map_err(gone)?;
        let mut turn = Turn::default();
        let mut heard = false;
        loop {
            let line = self.line().await;
            let line = line.map_err(|fault| TurnError::Failed(fault.to_string()))?;
            let Some(line) = line else {
                let why = "its output ended".to_owned();
                return Err(match heard {
                    true => TurnError::Failed(why),
                    false => TurnError::Silent(why),
                });
            };
            heard = true;
            match turn.line(&line) {
                Some(Ok(reply)) => return Ok(reply),
                Some(Err(fault)) => return Err(TurnError::Failed(fault)),
                None => {}
            }
        }
    }

    /// The next line; `None`: there is none any more. One that is too long is empty.
    async fn line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let some = self.output.fill_buf().await?;
            if some.is_empty() {
                return Ok(None);
            }
            let end = some.iter().position(|byte| *byte == b'\n');
            let piece = &some[..end.unwrap_or(some.len())];
            too_long |= line.len() + piece.len() > LINE;
            if too_long {
                line.clear();
            } else {
                line.extend_from_slice(piece);
            }
            let used = end.map_or(some.len(), |end| end + 1);
            self.output.consume(used);
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }

    /// Ends its input, and has it go.
    pub(super) async fn end(self) {
        self.process.leave(self.input).await;
    }
}
