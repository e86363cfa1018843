//! Rows of config type `listener`: the key is the name, the value says what it is. A row that cannot be used is left out,
//! and the log says why.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tg_threads::{BadListener, Directory, Kind, Listener, Name, Reach};

/// The config type.
pub const CONFIG: &str = "listener";
/// The flow's agent, a listener by its own interface.
pub const AGENT: &str = "agent";
/// The type that the flow's agent takes.
pub const AGENT_REQUEST: &str = "agentrequest";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
struct Row {
    description: String,
    /// A model drives it.
    agent: bool,
    /// Whom an agent may forward to.
    peers: Option<Vec<String>>,
    /// It may be given work by agents that were granted `delegate` or `dispatch`.
    delegated: bool,
    /// It was granted `delegate` or `dispatch`.
    delegates: bool,
    /// Types that it takes, with their JSON schemas.
    types: BTreeMap<String, Map<String, Value>>,
}

/// Why a row is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRow {
    /// It is not a row of a listener.
    #[error("it cannot be read: {0}")]
    Form(String),
    /// It says something that a listener may not be.
    #[error(transparent)]
    Listener(#[from] BadListener),
}

/// The listeners of the rows, and the rows that are left out.
pub fn directory<'a>(
    rows: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> (Directory, Vec<(String, BadRow)>) {
    let mut listeners: Vec<Listener> = agent().into_iter().collect();
    let mut refused = Vec::new();
    for (name, text) in rows {
        match read(name, text) {
            Ok(listener) => listeners.push(listener),
            Err(why) => refused.push((name.to_owned(), why)),
        }
    }
    let (directory, taken) = Directory::new(listeners);
    refused.extend(
        taken
            .into_iter()
            .map(|(name, why)| (name.to_string(), why.into())),
    );
    (directory, refused)
}

fn read(name: &str, text: &str) -> Result<Listener, BadRow> {
    let row: Row =
        serde_json::from_slice(text.as_bytes()).map_err(|why| BadRow::Form(why.to_string()))?;
    let kind = match (row.agent, row.peers, row.delegates) {
        (false, ..) => Kind::Tool,
        (true, None, true) => Kind::Agent(Reach::Delegates),
        (true, peers, _) => {
            let peers: Result<BTreeSet<Name>, _> =
                peers.iter().flatten().map(|peer| Name::any(peer)).collect();
            Kind::Agent(Reach::Only(peers.map_err(BadListener::Name)?))
        }
    };
    let mut listener = Listener::new(name, &row.description, kind)?;
    for (kind, schema) in row.types {
        listener = listener.takes(&kind, schema)?;
    }
    Ok(match row.delegated {
        true => listener.delegated(),
        false => listener,
    })
}

fn agent() -> Option<Listener> {
    let schema = json!({"type": "object", "required": ["question"], "additionalProperties": false, "properties": {
        "question": {"type": "string", "minLength": 1}, "collection": {"type": "string"}}});
    let Value::Object(schema) = schema else {
        return None;
    };
    Listener::new(
        AGENT,
        "Answers a question by steps, with the tools of its flow.",
        Kind::Tool,
    )
    .and_then(|agent| agent.takes(AGENT_REQUEST, schema))
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_listeners_or_left_out() {
        let good = r#"{"description": "Greets.", "types": {"textinput": {"type": "object"}}}"#;
        let agent = r#"{"description": "Thinks.", "agent": true, "peers": ["greeter"]}"#;
        let (directory, refused) = directory([
            ("greeter", good),
            ("thinker", agent),
            ("Bad", good),
            ("system.x", good),
            ("agent", good),
            ("mute", "{}"),
            ("odd", r#"{"description": "x", "speed": 1}"#),
            ("text", "x"),
        ]);
        let names: Vec<_> = directory.all().map(|one| one.name().to_string()).collect();
        assert_eq!(
            names,
            [
                "agent",
                "console",
                "console-router",
                "greeter",
                "system.boot",
                "thinker"
            ]
        );
        let left: Vec<_> = refused.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left, ["Bad", "system.x", "mute", "odd", "text", "agent"]);
        let thinker = directory.get("thinker").unwrap();
        assert!(directory.may(thinker, "greeter") && !directory.may(thinker, "agent"));
        let greeter = directory.get("greeter").unwrap();
        assert!(directory.may(greeter, "agent"));
    }
}
