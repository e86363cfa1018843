//! `tg start-flow`. Silent on stdout when it worked; on stderr it says what was started.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::FlowId;
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::fields::{embedded, texts};
use crate::files::read_text;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg start-flow`.
#[derive(Debug, Args)]
pub struct StartFlow {
    #[command(flatten)]
    common: Common,
    /// Blueprint to start from
    #[arg(short = 'n', long, value_name = "NAME")]
    blueprint_name: String,
    #[command(flatten)]
    flow: FlowId,
    /// What the flow is for
    #[arg(
        short = 'd',
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "TEXT"
    )]
    description: String,
    /// Parameters as a JSON object
    #[arg(short = 'p', long, value_name = "JSON", conflicts_with_all = ["parameters_file", "param"])]
    parameters: Option<String>,
    /// File that holds the parameters as a JSON object
    #[arg(long, value_name = "FILE", conflicts_with = "param")]
    parameters_file: Option<PathBuf>,
    /// One parameter; may be given many times
    #[arg(long, value_name = "KEY=VALUE")]
    param: Vec<String>,
}

impl Command for StartFlow {
    const NAME: &'static str = "start-flow";
    const ABOUT: &'static str = "Start a flow from a blueprint";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut request = json!({
            "operation": "start-flow",
            "flow-id": self.flow.id(),
            "blueprint-name": self.blueprint_name,
            "description": self.description,
        });
        if let Some(parameters) = self.read_parameters()? {
            request["parameters"] = Value::Object(parameters);
        }
        let reply = session.http()?.service("flow", request).await?;
        let said = embedded(&reply, "flow");
        session.out.talk(started(self.flow.id(), &said));
        for (key, what) in [
            ("waiting-for", "is there, but these do not serve it yet"),
            (
                "unused-parameters",
                "is there; the blueprint has no use for",
            ),
        ] {
            let names = texts(&said, key);
            if !names.is_empty() {
                let names = names.join(", ");
                session
                    .out
                    .talk(format!("Flow {} {what}: {names}", self.flow.id()));
            }
        }
        session.out.show(&reply, String::new)
    }
}

/// `Flow f is started (34 processors).`, or that it ran before.
fn started(flow: &str, said: &Value) -> String {
    let how = match said.get("already-running").and_then(Value::as_bool) {
        Some(true) => "runs already",
        _ => "is started",
    };
    let many = match said.get("processors").and_then(Value::as_u64) {
        None => String::new(),
        Some(1) => " (1 processor)".to_owned(),
        Some(many) => format!(" ({many} processors)"),
    };
    format!("Flow {flow} {how}{many}.")
}

impl StartFlow {
    fn read_parameters(&self) -> Result<Option<Map<String, Value>>> {
        if let Some(path) = &self.parameters_file {
            return from_json(&path.display().to_string(), &read_text(path)?).map(Some);
        }
        if let Some(text) = &self.parameters {
            return from_json("--parameters", text).map(Some);
        }
        if self.param.is_empty() {
            return Ok(None);
        }
        from_pairs(&self.param).map(Some)
    }
}

/// Parameter values are text on the wire, whatever they were.
fn from_json(source: &str, text: &str) -> Result<Map<String, Value>> {
    let parsed = serde_json::from_slice(text.as_bytes())
        .map_err(|error| Error::Usage(format!("{source} is not JSON: {error}")))?;
    let Value::Object(values) = parsed else {
        return Err(Error::Usage(format!("{source} is not a JSON object")));
    };
    let as_text = |value: Value| match value {
        Value::String(text) => Value::String(text),
        other => Value::String(other.to_string()),
    };
    Ok(values
        .into_iter()
        .map(|(key, value)| (key, as_text(value)))
        .collect())
}

fn from_pairs(pairs: &[String]) -> Result<Map<String, Value>> {
    let mut values = Map::new();
    for pair in pairs {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| Error::Usage(format!("--param {pair}: must be key=value")))?;
        values.insert(key.trim().to_owned(), json!(value.trim()));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_text() {
        let values = from_json("x", r#"{"a": 1, "b": true, "c": "t"}"#).expect("parsed");
        assert_eq!(
            Value::Object(values),
            json!({"a": "1", "b": "true", "c": "t"})
        );
        assert!(from_json("x", "[1]").is_err());
    }

    #[test]
    fn a_pair_may_hold_an_equals_sign_in_its_value() {
        let values = from_pairs(&["a=b=c".to_owned()]).expect("parsed");
        assert_eq!(Value::Object(values), json!({"a": "b=c"}));
        assert!(from_pairs(&["a".to_owned()]).is_err());
    }
}
