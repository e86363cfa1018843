//! Asks a program that answers on its standard output and ends.

use std::borrow::Cow;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::listed::CliAgent;
use super::process::Process;

/// Bytes that are kept of what a program writes; the rest is read and dropped.
const KEPT: usize = 1 << 20;
/// Bytes that are read at once.
const PIECE: usize = 8 << 10;

/// The message as an argument: none is taken for an option.
fn argument(message: &str) -> Cow<'_, str> {
    match message.starts_with('-') {
        true => Cow::Owned(format!(" {message}")),
        false => Cow::Borrowed(message),
    }
}

/// What the program answers; else what it says went wrong, for the log.
pub(super) async fn ask(agent: &CliAgent, message: &str) -> Result<String, String> {
    let message = argument(message);
    let args: Vec<&str> = agent.args.iter().map(String::as_str).collect();
    let args = [args, vec![&*message]].concat();
    let pipes = [Stdio::null(), Stdio::piped(), Stdio::piped()];
    let mut process = Process::start(agent, &args, pipes).map_err(|fault| fault.to_string())?;
    let (output, errors) = (process.child.stdout.take(), process.child.stderr.take());
    let (output, errors, status) = tokio::join!(read(output), read(errors), process.wait());
    let status = status.map_err(|fault| fault.to_string())?;
    match (status.success(), output.is_empty()) {
        (false, _) => Err(format!("{status}: {errors}")),
        (true, true) => Ok(errors),
        (true, false) => Ok(output),
    }
}

async fn read(from: Option<impl AsyncRead + Unpin>) -> String {
    let mut kept = Vec::new();
    let mut piece = vec![0; PIECE];
    if let Some(mut from) = from {
        while let Ok(count @ 1..) = from.read(&mut piece).await {
            let room = KEPT.saturating_sub(kept.len()).min(count);
            kept.extend_from_slice(&piece[..room]);
        }
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}
