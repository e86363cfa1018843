//! `tg invoke-prompt`: runs a prompt template with variables.

use clap::Args;
use serde_json::{Map, Value, json};

use super::{speak, usage};
use crate::args::{InFlow, Options};
use crate::client::{Call, Error, Result};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg invoke-prompt`.
#[derive(Debug, Args)]
pub struct InvokePrompt {
    #[command(flatten)]
    flow: InFlow,
    /// Id of the prompt, e.g. `question`
    #[arg(value_name = "TEMPLATE-ID")]
    id: String,
    /// Variables of the template
    #[arg(value_name = "VARIABLE=VALUE")]
    variable: Vec<String>,
    /// Wait for the whole answer
    #[arg(long)]
    no_streaming: bool,
    /// Say how many tokens were used, on stderr
    #[arg(long)]
    show_usage: bool,
}

impl Command for InvokePrompt {
    const NAME: &'static str = "invoke-prompt";
    const ABOUT: &'static str = "Run a prompt";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({
            "id": self.id,
            "variables": variables(&self.variable)?,
            "streaming": !self.no_streaming,
        });
        let call = Call::in_flow(&self.flow.flow_id, "prompt", request);
        let said = speak(session, &call, "text").await?;
        let object = said.object.map(|object| {
            serde_json::from_slice(object.as_bytes()).unwrap_or(Value::String(object))
        });
        if session.out.is_json() {
            session.out.json(&json!({
                "text": said.text,
                "object": object,
                "in_token": said.last.get("in_token"),
                "out_token": said.last.get("out_token"),
                "model": said.last.get("model"),
            }))?;
        } else if let Some(object) = object {
            session.out.json(&object)?;
        }
        if self.show_usage {
            session.out.talk(usage(&said.last));
        }
        Ok(())
    }
}

fn variables(pairs: &[String]) -> Result<Map<String, Value>> {
    pairs
        .iter()
        .map(|pair| {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| Error::Usage(format!("{pair}: must be variable=value")))?;
            Ok((name.to_owned(), json!(value)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_needs_an_equals_sign() {
        let read = variables(&["q=a=b".to_owned()]).expect("parsed");
        assert_eq!(read["q"], json!("a=b"));
        assert!(variables(&["q".to_owned()]).is_err());
    }
}
