//! `tg show-flow-blueprints`: all blueprints with their parameters.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{blueprints, parameter_types, parameters};
use crate::args::{Common, Options};
use crate::client::Result;
use crate::fields::{text, texts};
use crate::layout::{Width, record};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-flow-blueprints`.
#[derive(Debug, Args)]
pub struct ShowFlowBlueprints {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowFlowBlueprints {
    const NAME: &'static str = "show-flow-blueprints";
    const ABOUT: &'static str = "Show all flow blueprints";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut socket = session.socket().await?;
        let request = json!({"operation": "list-blueprints"});
        let reply = socket.all("flow", request).await?;
        let names = texts(&reply, "blueprint-names");
        let blueprints = blueprints(&mut socket, &names).await?;
        let types = parameter_types(&mut socket, blueprints.values()).await?;
        socket.close().await;
        let shown: Map<String, Value> = blueprints.clone().into_iter().collect();
        session.out.lay(&Value::Object(shown), |width| {
            render(&blueprints, &types, width)
        })
    }
}

fn render(
    blueprints: &BTreeMap<String, Value>,
    types: &BTreeMap<String, Value>,
    width: Width,
) -> String {
    if blueprints.is_empty() {
        return "No flow blueprints.".to_owned();
    }
    let shown: Vec<String> = blueprints
        .iter()
        .map(|(name, blueprint)| render_one(name, blueprint, types, width))
        .collect();
    shown.join("\n\n")
}

fn render_one(
    name: &str,
    blueprint: &Value,
    types: &BTreeMap<String, Value>,
    width: Width,
) -> String {
    let mut rows = vec![
        ("name", name.to_owned()),
        ("description", text(blueprint, "description")),
    ];
    let tags = texts(blueprint, "tags");
    if !tags.is_empty() {
        rows.push(("tags", tags.join(", ")));
    }
    let lines: Vec<String> = parameters(blueprint)
        .into_iter()
        .map(|(name, parameter)| parameter_line(name, parameter, types))
        .collect();
    if !lines.is_empty() {
        rows.push(("parameters", lines.join("\n")));
    }
    record(&rows, width)
}

fn parameter_line(name: &str, parameter: &Value, types: &BTreeMap<String, Value>) -> String {
    let description = match text(parameter, "description") {
        description if description.is_empty() => name.to_owned(),
        description => description,
    };
    let kind = match text(parameter, "type") {
        kind if kind.is_empty() => "unknown".to_owned(),
        kind => kind,
    };
    let default = types
        .get(&kind)
        .map(|kind| text(kind, "default"))
        .filter(|default| !default.is_empty());
    match default {
        Some(default) => format!("  {name}: {description} [{kind} (default: {default})]"),
        None => format!("  {name}: {description} [{kind}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_follow_their_order_and_show_defaults() {
        let blueprints = BTreeMap::from([(
            "everything".to_owned(),
            json!({"description": "All", "tags": ["a", "b"], "parameters": {
                "z": {"order": 1, "type": "t", "description": "First"},
                "a": {"order": 2, "type": "u"},
            }}),
        )]);
        let types = BTreeMap::from([("t".to_owned(), json!({"default": 3}))]);
        let shown = render(&blueprints, &types, None);
        let first = shown.find("z: First [t (default: 3)]").expect("first");
        let second = shown.find("a: a [u]").expect("second");
        assert!(first < second);
        assert!(shown.contains("a, b"));
    }
}
