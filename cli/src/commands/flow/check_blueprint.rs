//! `tg check-blueprint`: every fault of a blueprint with its path; stores nothing.

use clap::Args;
use serde_json::{Value, json};

use super::Definition;
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::fields::{list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg check-blueprint`.
#[derive(Debug, Args)]
pub struct CheckBlueprint {
    #[command(flatten)]
    common: Common,
    /// Name the blueprint would have [default: unnamed]
    #[arg(value_name = "NAME", conflicts_with = "blueprint_name")]
    name: Option<String>,
    /// The argument, given as a flag
    #[arg(
        short = 'n',
        long,
        value_name = "NAME",
        help = "Same as <NAME>, given as a flag"
    )]
    blueprint_name: Option<String>,
    #[command(flatten)]
    definition: Definition,
}

impl Command for CheckBlueprint {
    const NAME: &'static str = "check-blueprint";
    const ABOUT: &'static str = "Validate a flow blueprint without storing it";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let definition = self.definition.read()?;
        let name = self.name.or(self.blueprint_name);
        let request = check_request(name.as_deref().unwrap_or("unnamed"), &definition);
        let reply = session.http()?.service("flow", request).await?;
        let faults = list(&reply, "faults");
        session
            .out
            .lay(&Value::from(faults), |width| render(faults, width))?;
        match faults.len() {
            0 => Ok(()),
            1 => Err(refused("1 fault".to_owned())),
            count => Err(refused(format!("{count} faults"))),
        }
    }
}

/// The request that checks a definition.
pub(super) fn check_request(name: &str, definition: &Value) -> Value {
    json!({
        "operation": "check-blueprint",
        "blueprint-name": name,
        "blueprint-definition": definition.to_string(),
    })
}

fn refused(message: String) -> Error {
    Error::Service {
        kind: "bad-request".to_owned(),
        message,
    }
}

/// Faults as rows.
pub(super) fn render(faults: &[Value], width: Width) -> String {
    if faults.is_empty() {
        return "No faults.".to_owned();
    }
    let rows = faults
        .iter()
        .map(|fault| [text(fault, "path"), text(fault, "message")]);
    table(["path", "fault"], rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_shown_with_its_path() {
        let shown = render(
            &[json!({"path": "flow.a:{id}.topics.in", "message": "no {id}"})],
            None,
        );
        assert!(shown.contains("flow.a:{id}.topics.in"));
        assert!(shown.contains("no {id}"));
        assert_eq!(render(&[], None), "No faults.");
    }
}
