//! `tg show-parameter-types`: the types that parameters of flow blueprints may have.

use clap::Args;
use serde_json::{Map, Value, json};

use super::{get_call, item_json};
use crate::args::{Common, Options};
use crate::client::{Call, Error, Result};
use crate::fields::{list, text, texts};
use crate::layout::{Width, record};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-parameter-types`.
#[derive(Debug, Args)]
pub struct ShowParameterTypes {
    #[command(flatten)]
    common: Common,
    /// Show this type only
    #[arg(value_name = "TYPE", conflicts_with = "kind")]
    named: Option<String>,
    /// The argument, given as a flag
    #[arg(
        short = 't',
        long = "type",
        value_name = "TYPE",
        help = "Same as <TYPE>, given as a flag"
    )]
    kind: Option<String>,
}

impl Command for ShowParameterTypes {
    const NAME: &'static str = "show-parameter-types";
    const ABOUT: &'static str = "Show the types that flow parameters may have";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        // Here -t is the type; the token has its long name only.
        command.mut_arg("token", |token| token.short(None))
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut socket = session.socket().await?;
        let only = self.named.or(self.kind);
        let names = match &only {
            Some(name) => vec![name.clone()],
            None => {
                let request = json!({"operation": "list", "type": "parameter-type"});
                texts(&socket.all("config", request).await?, "directory")
            }
        };
        let calls: Vec<Call> = names
            .iter()
            .map(|name| get_call("parameter-type", name))
            .collect();
        let replies = socket.ask_all(&calls).await?;
        socket.close().await;
        let mut types = Map::new();
        for (name, reply) in names.into_iter().zip(replies) {
            types.insert(name, item_json(&reply?).unwrap_or(Value::Null));
        }
        if let Some(name) = only.filter(|name| types[name.as_str()].is_null()) {
            return Err(Error::Missing(format!(
                "there is no parameter type '{name}'"
            )));
        }
        let types = Value::Object(types);
        session.out.lay(&types, |width| render(&types, width))
    }
}

fn render(types: &Value, width: Width) -> String {
    let Some(types) = types.as_object().filter(|types| !types.is_empty()) else {
        return "No parameter types defined.".to_owned();
    };
    let shown: Vec<String> = types
        .iter()
        .map(|(name, kind)| match kind {
            Value::Null => format!("Parameter type {name} is not readable.\n"),
            kind => format!("{}\n", render_type(name, kind, width)),
        })
        .collect();
    shown.join("\n")
}

fn render_type(name: &str, kind: &Value, width: Width) -> String {
    let base = match text(kind, "type") {
        base if base.is_empty() => "unknown".to_owned(),
        base => base,
    };
    let mut rows = vec![
        ("name", name.to_owned()),
        ("description", text(kind, "description")),
        ("type", base),
    ];
    if kind
        .get("default")
        .is_some_and(|default| !default.is_null())
    {
        rows.push(("default", text(kind, "default")));
    }
    let choices: Vec<String> = list(kind, "enum").iter().map(choice).collect();
    if !choices.is_empty() {
        rows.push(("valid values", choices.join("\n")));
    }
    let limits = limits(kind);
    if !limits.is_empty() {
        rows.push(("constraints", limits.join(", ")));
    }
    record(&rows, width)
}

fn choice(item: &Value) -> String {
    match item {
        Value::Object(_) => match text(item, "description") {
            description if description.is_empty() => format!("• {}", text(item, "id")),
            description => format!("• {} ({description})", text(item, "id")),
        },
        Value::String(text) => format!("• {text}"),
        other => format!("• {other}"),
    }
}

fn limits(kind: &Value) -> Vec<String> {
    let names = [
        ("minimum", "min"),
        ("maximum", "max"),
        ("minLength", "min length"),
        ("maxLength", "max length"),
        ("pattern", "pattern"),
    ];
    let mut limits: Vec<String> = names
        .iter()
        .filter(|(key, _)| kind.get(*key).is_some())
        .map(|(key, label)| format!("{label}: {}", text(kind, key)))
        .collect();
    if kind.get("required").and_then(Value::as_bool) == Some(true) {
        limits.push("required".to_owned());
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_defaults_and_limits_are_shown() {
        let types = json!({
            "llm-model": {"type": "string", "description": "Model", "default": "small",
                "enum": [{"id": "small", "description": "Small one"}, "large"]},
            "temperature": {"type": "number", "minimum": 0, "maximum": 2, "required": true},
        });
        let shown = render(&types, None);
        assert!(shown.contains("• small (Small one)"));
        assert!(shown.contains("• large"));
        assert!(shown.contains("min: 0, max: 2, required"));
        assert!(shown.contains("default"));
    }

    #[test]
    fn none_says_so() {
        assert_eq!(render(&json!({}), None), "No parameter types defined.");
    }
}
