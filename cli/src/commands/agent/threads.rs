//! `tg close-thread`: ends a thread of listeners, and what runs on it.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{InFlow, Options};
use crate::client::Result;
use crate::fields::{counted, text};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg close-thread`.
#[derive(Debug, Args)]
pub struct CloseThread {
    #[command(flatten)]
    place: InFlow,
    /// Whole id of the thread: the second line of `/status` in `tg console`, or `thread` in the answer of send-message
    #[arg(value_name = "THREAD")]
    thread: String,
    /// It began in `tg console`
    #[arg(long)]
    console: bool,
}

impl Command for CloseThread {
    const NAME: &'static str = "close-thread";
    const ABOUT: &'static str =
        "End a thread of yours with listeners, and stop what runs on it and below";

    fn options(&self) -> Options {
        Options::from(&self.place.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "close-thread", "flow": self.place.flow_id, "thread": self.thread,
            "console": self.console});
        let reply = session.http()?.service("threads", request).await?;
        session.out.show(&reply, || ended(&reply))
    }
}

fn ended(reply: &Value) -> String {
    match text(reply, "closed").parse::<u64>() {
        Ok(count) if count > 0 => format!("Ended: {}", counted(count, "thread")),
        _ => "Nothing ended: no live thread of yours has this id in this flow, or it began at the other end (--console)."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_ended_are_counted() {
        assert_eq!(ended(&json!({"closed": 1})), "Ended: 1 thread");
        assert_eq!(ended(&json!({"closed": 2})), "Ended: 2 threads");
        assert!(ended(&json!({"closed": 0})).starts_with("Nothing ended"));
    }
}
