//! `tg show-flows`: the flows with their parameters and the topics of their interfaces.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{blueprints, parameter_types, parameters};
use crate::args::{Common, Options};
use crate::client::{Call, Result};
use crate::fields::{embedded, list, text, texts};
use crate::layout::{Width, record};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-flows`.
#[derive(Debug, Args)]
pub struct ShowFlows {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowFlows {
    const NAME: &'static str = "show-flows";
    const ABOUT: &'static str = "Show the flows";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let view = fetch(session).await?;
        let shown: Map<String, Value> = view.flows.clone().into_iter().collect();
        session
            .out
            .lay(&Value::Object(shown), |width| render(&view, width))
    }
}

/// All that the rendering needs.
#[derive(Debug, Default)]
struct View {
    interfaces: Vec<(String, Value)>,
    flows: Vec<(String, Value)>,
    blueprints: BTreeMap<String, Value>,
    types: BTreeMap<String, Value>,
}

async fn fetch(session: &Session) -> Result<View> {
    let mut socket = session.socket().await?;
    let mut view = View::default();
    // All in one answer: there are some thirty of them, and a question each is what a command's time would go into.
    let request = json!({"operation": "getvalues", "type": "interface-description"});
    let described = socket.all("config", request).await?;
    for row in list(&described, "values") {
        match embedded(row, "value") {
            Value::Null => {}
            interface => view.interfaces.push((text(row, "key"), interface)),
        }
    }
    let request = json!({"operation": "list-flows"});
    let flow_ids = texts(&socket.all("flow", request).await?, "flow-ids");
    let calls: Vec<Call> = flow_ids
        .iter()
        .map(|id| Call::global("flow", json!({"operation": "get-flow", "flow-id": id})))
        .collect();
    let replies = socket.ask_all(&calls).await?;
    for (id, reply) in flow_ids.into_iter().zip(replies) {
        // A flow that was stopped since the listing is not an error of this listing.
        if let Ok(reply) = reply {
            view.flows.push((id, embedded(&reply, "flow")));
        }
    }
    let mut names: Vec<String> = view
        .flows
        .iter()
        .map(|(_, flow)| text(flow, "blueprint-name"))
        .filter(|name| !name.is_empty())
        .collect();
    names.sort();
    names.dedup();
    view.blueprints = blueprints(&mut socket, &names).await?;
    view.types = parameter_types(&mut socket, view.blueprints.values()).await?;
    socket.close().await;
    Ok(view)
}

fn render(view: &View, width: Width) -> String {
    if view.flows.is_empty() {
        return "No flows.".to_owned();
    }
    let shown: Vec<String> = view
        .flows
        .iter()
        .map(|(id, flow)| render_flow(id, flow, view, width))
        .collect();
    shown.join("\n\n")
}

fn render_flow(id: &str, flow: &Value, view: &View, width: Width) -> String {
    let blueprint = text(flow, "blueprint-name");
    let mut rows = vec![
        ("id", id.to_owned()),
        ("blueprint", blueprint.clone()),
        ("desc", text(flow, "description")),
    ];
    let status = text(flow, "status");
    if !status.is_empty() && status != "running" {
        rows.push(("status", status));
    }
    let values = flow.get("parameters").and_then(Value::as_object);
    if let Some(values) = values.filter(|values| !values.is_empty()) {
        let lines = parameter_lines(values, view.blueprints.get(&blueprint), &view.types);
        rows.push(("parameters", lines.join("\n")));
    }
    rows.push(("queue", interface_lines(flow, &view.interfaces).join("\n")));
    record(&rows, width)
}

fn parameter_lines(
    values: &Map<String, Value>,
    blueprint: Option<&Value>,
    types: &BTreeMap<String, Value>,
) -> Vec<String> {
    let known = blueprint.map(parameters).unwrap_or_default();
    let mut lines = Vec::new();
    for (name, parameter) in &known {
        let Some(value) = values.get(*name) else {
            continue;
        };
        let label = match text(parameter, "description") {
            label if label.is_empty() => (*name).clone(),
            label => label,
        };
        let shown = match choice_label(value, types.get(&text(parameter, "type"))) {
            shown if shown.is_empty() => "(provider's default)".to_owned(),
            shown => shown,
        };
        let by = match text(parameter, "controlled-by") {
            by if by.is_empty() => String::new(),
            by => format!(" (controlled by {by})"),
        };
        lines.push(format!("• {label}: {shown}{by}"));
    }
    let is_known = |name: &String| known.iter().any(|(known, _)| *known == name);
    for (name, value) in values.iter().filter(|(name, _)| !is_known(name)) {
        lines.push(format!("• {name}: {} (undefined)", plain(value)));
    }
    lines
}

/// A value under the description its type gives it.
fn choice_label(value: &Value, kind: Option<&Value>) -> String {
    let choices = kind.map(|kind| list(kind, "enum")).unwrap_or_default();
    let chosen = choices
        .iter()
        .find(|choice| choice.get("id") == Some(value));
    match chosen.map(|choice| text(choice, "description")) {
        Some(label) if !label.is_empty() => label,
        _ => plain(value),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn interface_lines(flow: &Value, descriptions: &[(String, Value)]) -> Vec<String> {
    let Some(interfaces) = flow.get("interfaces") else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (name, description) in descriptions {
        let visible = description.get("visible").and_then(Value::as_bool) == Some(true);
        // A flow need not have every interface that is described.
        let Some(topics) = interfaces.get(name).filter(|_| visible) else {
            continue;
        };
        match text(description, "kind").as_str() {
            "request-response" => {
                lines.push(format!("{name} request: {}", text(topics, "request")));
                lines.push(format!("{name} response: {}", text(topics, "response")));
            }
            "send" => lines.push(format!("{name}: {}", text(topics, "flow"))),
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_shows_parameters_by_label_and_visible_interfaces_only() {
        let view = View {
            interfaces: vec![
                (
                    "agent".into(),
                    json!({"kind": "request-response", "visible": true}),
                ),
                ("secret".into(), json!({"kind": "send"})),
                ("absent".into(), json!({"kind": "send", "visible": true})),
            ],
            flows: vec![(
                "default".into(),
                json!({"blueprint-name": "everything", "description": "Main",
                "parameters": {"model": "m1", "extra": "x"},
                "interfaces": {
                    "agent": {"request": "request:tg:agent:w:f", "response": "response:tg:agent:w:f"},
                    "secret": {"flow": "flow:tg:secret"},
                }}),
            )],
            blueprints: BTreeMap::from([(
                "everything".into(),
                json!({"parameters": {"model": {"description": "Model", "type": "llm-model",
                    "controlled-by": "size"}}}),
            )]),
            types: BTreeMap::from([(
                "llm-model".into(),
                json!({"enum": [{"id": "m1", "description": "Model One"}]}),
            )]),
        };
        let shown = render(&view, None);
        assert!(shown.contains("• Model: Model One (controlled by size)"));
        assert!(shown.contains("• extra: x (undefined)"));
        assert!(shown.contains("agent request: request:tg:agent:w:f"));
        assert!(!shown.contains("flow:tg:secret"));
        assert!(!shown.contains("absent"));
    }
}
