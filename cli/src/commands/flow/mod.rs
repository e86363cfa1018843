//! Flows and the blueprints they are started from.

pub mod blueprints;
pub mod check_blueprint;
pub mod show_blueprints;
pub mod show_flows;
pub mod show_state;
pub mod start;
pub mod stop;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::client::{Call, Error, Http, Result, Socket};
use crate::commands::config::{get_call, item_json};
use crate::fields::{embedded, text, texts};
use crate::session::Session;

crate::args::subject!(
    /// The flow that a command is about.
    FlowId,
    "Id of the flow",
    short = 'i',
    long = "flow-id"
);

/// Where a blueprint definition comes from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Definition {
    /// The definition as JSON text
    #[arg(short = 'c', long, value_name = "JSON")]
    config: Option<String>,
    /// File that holds the definition; `-` is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Definition {
    /// Reads it and makes sure that it is JSON.
    pub(crate) fn read(&self) -> Result<Value> {
        let (source, text) = match (&self.config, &self.file) {
            (Some(text), _) => ("--config".to_owned(), text.clone()),
            (None, Some(path)) => (path.display().to_string(), crate::files::read_text(path)?),
            (None, None) => return Err(Error::Usage("--config or --file is required".to_owned())),
        };
        serde_json::from_slice(text.as_bytes())
            .map_err(|error| Error::Usage(format!("{source} is not JSON: {error}")))
    }
}

/// Refuses what needs a flow that does not run.
///
/// # Errors
/// `Error::Missing`, or as [`Http::all`] where the connection breaks.
pub(crate) async fn must_run(session: &Session, http: &Http, flow: &str) -> Result<()> {
    let running = match http.all("flow", json!({"operation": "list-flows"})).await {
        Ok(reply) => texts(&reply, "flow-ids"),
        Err(error) if error.is_missing_workspace() => return Err(error),
        // Who may write need not be allowed to look.
        Err(Error::Service { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    if running.iter().any(|known| known == flow) {
        return Ok(());
    }
    let workspace = session.options.workspace.as_deref();
    Err(Error::not_running(flow, workspace, &running))
}

/// Blueprints by name, `Null` where one is not readable.
pub(crate) async fn blueprints(
    socket: &mut Socket,
    names: &[String],
) -> Result<BTreeMap<String, Value>> {
    let calls: Vec<Call> = names
        .iter()
        .map(|name| {
            let request = json!({"operation": "get-blueprint", "blueprint-name": name});
            Call::global("flow", request)
        })
        .collect();
    let replies = socket.ask_all(&calls).await?;
    let definition = |reply: Result<Value>| {
        reply.map_or(Value::Null, |reply| {
            embedded(&reply, "blueprint-definition")
        })
    };
    Ok(names
        .iter()
        .cloned()
        .zip(replies.into_iter().map(definition))
        .collect())
}

/// The parameter types that some blueprints name.
pub(crate) async fn parameter_types<'a>(
    socket: &mut Socket,
    blueprints: impl Iterator<Item = &'a Value>,
) -> Result<BTreeMap<String, Value>> {
    let mut names: Vec<String> = blueprints
        .flat_map(parameters)
        .map(|(_, parameter)| text(parameter, "type"))
        .filter(|name| !name.is_empty())
        .collect();
    names.sort();
    names.dedup();
    let calls: Vec<Call> = names
        .iter()
        .map(|name| get_call("parameter-type", name))
        .collect();
    let replies = socket.ask_all(&calls).await?;
    Ok(names
        .into_iter()
        .zip(replies)
        .filter_map(|(name, reply)| Some((name, item_json(&reply.ok()?)?)))
        .collect())
}

/// The parameters of a blueprint in their own order.
pub(crate) fn parameters(blueprint: &Value) -> Vec<(&String, &Value)> {
    let mut parameters: Vec<_> = blueprint
        .get("parameters")
        .and_then(Value::as_object)
        .map(|map| map.iter().collect())
        .unwrap_or_default();
    parameters.sort_by_key(|(_, parameter)| order(parameter));
    parameters
}

fn order(parameter: &Value) -> i64 {
    parameter
        .get("order")
        .and_then(Value::as_i64)
        .unwrap_or(999)
}
