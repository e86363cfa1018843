//! `tg invoke-llm`: a system prompt and a prompt for the model.

use clap::Args;
use serde_json::json;

use super::{speak, usage};
use crate::args::{InFlow, Options};
use crate::client::{Call, Result};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg invoke-llm`.
#[derive(Debug, Args)]
pub struct InvokeLlm {
    #[command(flatten)]
    flow: InFlow,
    /// System prompt, e.g. "You are a helpful assistant"
    system: String,
    /// Prompt, e.g. "What is 2 + 2?"
    prompt: String,
    /// Wait for the whole answer
    #[arg(long)]
    no_streaming: bool,
    /// Say how many tokens were used, on stderr
    #[arg(long)]
    show_usage: bool,
}

impl Command for InvokeLlm {
    const NAME: &'static str = "invoke-llm";
    const ABOUT: &'static str = "Ask the model";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({
            "system": self.system,
            "prompt": self.prompt,
            "streaming": !self.no_streaming,
        });
        let call = Call::in_flow(&self.flow.flow_id, "text-completion", request);
        let said = speak(session, &call, "response").await?;
        if session.out.is_json() {
            session.out.json(&json!({
                "response": said.text,
                "in_token": said.last.get("in_token"),
                "out_token": said.last.get("out_token"),
                "model": said.last.get("model"),
            }))?;
        }
        if self.show_usage {
            session.out.talk(usage(&said.last));
        }
        Ok(())
    }
}
