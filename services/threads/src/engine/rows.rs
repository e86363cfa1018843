//! Rows of config type `listener`: the key is the name, the value says what it is. A row that cannot be used is left out;
//! the log says why, and so does `list-refused-listeners`.

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
/// What the contract gives a listener and a row cannot, with what it can have instead.
const NOT_OFFERED: [(&str, &str); 2] = [
    (
        "broadcast",
        "each message names its listener, so several listeners may take a type without it",
    ),
    ("tools", "'peers' names whom an agent may forward to"),
];
/// Most characters of why a row cannot be read: a part of it is what the row says.
const WHY: usize = 512;

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
    /// It has a field of the contract that is not offered.
    #[error("'{0}' is not offered: {1}")]
    NotOffered(&'static str, &'static str),
    /// It restricts a listener that is not an agent: such a one may forward to every listener.
    #[error(
        "'{0}' is for agents only: without \"agent\": true a listener may forward to every listener of its flow"
    )]
    OfAgents(&'static str),
    /// It says something that a listener may not be.
    #[error(transparent)]
    Listener(#[from] BadListener),
}

impl BadRow {
    /// The same for the log, which others read than may read the row: nothing of the row is in it.
    pub fn for_log(&self) -> String {
        match self {
            Self::Form(_) => "it cannot be read".to_owned(),
            other => other.to_string(),
        }
    }
}

/// The listeners of the rows of a workspace.
pub struct Listeners {
    /// Those that can be used.
    pub directory: Directory,
    /// Rows that are left out and why, by name.
    pub refused: Vec<(String, BadRow)>,
}

impl Listeners {
    /// Reads rows, each by its key.
    pub fn read<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut refused = Vec::new();
        // One after the other, so that no more are made than are kept.
        let usable = rows
            .into_iter()
            .filter_map(|(name, text)| match read(name, text) {
                Ok(listener) => Some(listener),
                Err(why) => {
                    refused.push((name.to_owned(), why));
                    None
                }
            });
        let (directory, taken) = Directory::new(agent().into_iter().chain(usable));
        refused.extend(
            taken
                .into_iter()
                .map(|(name, why)| (name.to_string(), why.into())),
        );
        refused.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self { directory, refused }
    }
}

fn read(name: &str, text: &str) -> Result<Listener, BadRow> {
    let row: Result<Row, _> = serde_json::from_slice(text.as_bytes());
    let row = row.map_err(|why| unreadable(text, &why))?;
    let kind = match (row.agent, row.peers, row.delegates) {
        // Its writer wants it restricted, and nothing would restrict it.
        (false, Some(_), _) => return Err(BadRow::OfAgents("peers")),
        (false, None, true) => return Err(BadRow::OfAgents("delegates")),
        (false, None, false) => Kind::Tool,
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

fn unreadable(text: &str, why: &serde_json::Error) -> BadRow {
    let fields: Map<String, Value> = serde_json::from_slice(text.as_bytes()).unwrap_or_default();
    let named = |(field, _): &&(&'static str, &'static str)| fields.contains_key(*field);
    match NOT_OFFERED.iter().find(named) {
        Some(&(field, instead)) => BadRow::NotOffered(field, instead),
        None => BadRow::Form(why.to_string().chars().take(WHY).collect()),
    }
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
    fn the_log_repeats_nothing_of_a_row() {
        let secret = r#"{"description": "x", "key-of-the-bank": 1}"#;
        let Listeners { refused, .. } = Listeners::read([("mute", "{}"), ("odd", secret)]);
        let logged: Vec<_> = refused.iter().map(|(_, why)| why.for_log()).collect();
        let mute = BadRow::from(BadListener::Description).to_string();
        assert_eq!(logged, [mute, "it cannot be read".to_owned()]);
        // Whoever may read the row is shown more.
        assert!(
            refused
                .iter()
                .any(|(_, why)| why.to_string().contains("bank"))
        );
    }

    #[test]
    fn rows_are_listeners_or_left_out() {
        let good = r#"{"description": "Greets.", "types": {"textinput": {"type": "object"}}}"#;
        let agent = r#"{"description": "Thinks.", "agent": true, "peers": ["greeter"]}"#;
        let Listeners { directory, refused } = Listeners::read([
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
        assert_eq!(left, ["Bad", "agent", "mute", "odd", "system.x", "text"]);
        let thinker = directory.get("thinker").unwrap();
        assert!(directory.may(thinker, "greeter") && !directory.may(thinker, "agent"));
        let greeter = directory.get("greeter").unwrap();
        assert!(directory.may(greeter, "agent"));
    }

    #[test]
    fn who_delegates_reaches_what_takes_delegated_work_and_nobody_by_an_empty_list() {
        let agent = |more: &str| format!(r#"{{"description": "x", "agent": true, {more}}}"#);
        let rows = [
            ("boss", agent(r#""delegates": true"#)),
            ("strict", agent(r#""delegates": true, "peers": []"#)),
            ("worker", agent(r#""delegated": true"#)),
            ("logger", r#"{"description": "Logs."}"#.to_owned()),
        ];
        let rows = rows.iter().map(|(name, row)| (*name, row.as_str()));
        let Listeners { directory, refused } = Listeners::read(rows);
        assert!(refused.is_empty(), "{refused:?}");
        let all = ["boss", "strict", "worker", "logger", "agent"];
        let reached = |name: &str| -> Vec<&str> {
            let from = directory.get(name).unwrap();
            let reached = all.into_iter().filter(|to| directory.may(from, to));
            reached.collect()
        };
        assert_eq!(reached("boss"), ["boss", "worker"]);
        assert_eq!(reached("strict"), ["strict"]);
        let boss = directory.get("boss").unwrap();
        let usage = directory.usage(boss.name()).unwrap();
        assert!(usage.contains("worker: x") && !usage.contains("logger"));
    }

    #[test]
    fn a_row_without_agent_that_names_whom_it_reaches_is_refused_by_that_field() {
        let more = [
            r#""peers": ["a"]"#,
            r#""peers": []"#,
            r#""delegates": true"#,
        ];
        let rows = more.map(|more| format!(r#"{{"description": "x", {more}}}"#));
        let rows = ["one", "two", "zwei"].into_iter().zip(&rows);
        let rows = rows.map(|(name, row)| (name, row.as_str()));
        let open = r#"{"description": "x", "agent": false, "peers": null, "delegates": false}"#;
        let Listeners { directory, refused } = Listeners::read(rows.chain([("open", open)]));
        let why: Vec<_> = refused.iter().map(|(_, why)| why.clone()).collect();
        let of_agents = ["peers", "peers", "delegates"].map(BadRow::OfAgents);
        assert_eq!(why, of_agents);
        let said = "'peers' is for agents only: without \"agent\": true a listener may forward to every listener of its flow";
        assert_eq!(
            (why[0].to_string().as_str(), why[0].for_log().as_str()),
            (said, said)
        );
        let open = directory.get("open").unwrap();
        assert!(directory.may(open, "agent") && directory.get("one").is_none());
    }

    #[test]
    fn what_the_contract_has_and_a_row_has_not_is_refused_by_its_name() {
        let Listeners { refused, .. } = Listeners::read([
            ("all", r#"{"description": "Hears all.", "broadcast": true}"#),
            (
                "thinker",
                r#"{"description": "Thinks.", "agent": true, "tools": ["add"]}"#,
            ),
        ]);
        let why: Vec<_> = refused.iter().map(|(_, why)| why.to_string()).collect();
        let broadcast = "'broadcast' is not offered: each message names its listener, so several listeners may take a type \
            without it";
        let tools = "'tools' is not offered: 'peers' names whom an agent may forward to";
        assert_eq!(why, [broadcast, tools]);
    }
}
