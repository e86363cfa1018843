//! `tg list-models`: the models that the provider offers.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{InFlow, Options};
use crate::client::{Call, Result};
use crate::fields::{list, text};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg list-models`.
#[derive(Debug, Args)]
pub struct ListModels {
    #[command(flatten)]
    flow: InFlow,
}

impl Command for ListModels {
    const NAME: &'static str = "list-models";
    const ABOUT: &'static str = "List the models that the provider offers";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.mut_arg("json", |json| json.short('j'))
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "list-models"});
        let call = Call::in_flow(&self.flow.flow_id, "text-completion", request);
        let mut socket = session.socket().await?;
        let reply = socket.ask(&call).await?;
        socket.close().await;
        let models = list(&reply, "models");
        if models.is_empty() {
            session.out.talk("The provider lists no models.");
        }
        session.out.show(&Value::from(models), || {
            let lines: Vec<String> = models.iter().map(render).collect();
            lines.join("\n")
        })
    }
}

fn render(model: &Value) -> String {
    let mut line = match text(model, "id") {
        id if id.is_empty() => "?".to_owned(),
        id => id,
    };
    let details = [
        ("name", "(", ")"),
        ("owned_by", "[", "]"),
        ("context_length", "ctx=", ""),
        ("max_output_length", "max_out=", ""),
        ("family", "family=", ""),
        ("parameter_size", "params=", ""),
        ("quantization", "quant=", ""),
    ];
    for (key, before, after) in details {
        let value = text(model, key);
        if !value.is_empty() && value != "0" {
            line.push_str(&format!("  {before}{value}{after}"));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_details_are_shown() {
        let model = json!({"id": "m", "name": "Model", "context_length": 8192});
        assert_eq!(render(&model), "m  (Model)  ctx=8192");
    }
}
