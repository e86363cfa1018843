//! All listeners of a flow, those of the system included, and what its agents read of their peers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tg_schemas::limits;

use crate::listener::{BadListener, CHECKS, Kind, LIGHTEST, Listener, Reach};
use crate::name::Name;
use crate::payload::Payload;

/// Most listeners of a flow.
const MOST: usize = 1000;
/// Most patterns in the schemas of all of them.
const PATTERNS: usize = 256;
/// Longest text for one agent, in bytes; what would be beyond is left out.
const USAGE: usize = 256 << 10;
/// What stands for what is left out.
const MORE: &str = "\nThere are more, which are not named here.\n";
/// How deep an example follows its schema.
const DEPTH: usize = 8;
/// What every agent reads about its respond.
const WARNING: &str = "When you respond, your call ends: every listener you called is ended with all that it remembers, and \
what still runs for you is thrown away. Finish all sub-tasks, and have their results, before you respond.";

/// A message from outside, and the listener that takes it.
#[derive(Debug, Clone)]
pub struct Admitted {
    pub(crate) listener: Arc<Listener>,
    pub(crate) payload: Payload,
}

/// The listeners of a flow. Those that could not be registered are reported beside it.
#[derive(Debug, Clone)]
pub struct Directory {
    listeners: BTreeMap<Name, Arc<Listener>>,
}

impl Directory {
    /// Registers listeners: the first of a name has it.
    pub fn new(given: impl IntoIterator<Item = Listener>) -> (Self, Vec<(Name, BadListener)>) {
        let mut listeners: BTreeMap<_, _> = system_listeners()
            .into_iter()
            .map(|listener| (listener.name.clone(), Arc::new(listener)))
            .collect();
        let (mut refused, mut patterns, mut compiled) = (Vec::new(), 0, 0);
        for listener in given {
            let name = listener.name.clone();
            if listeners.contains_key(&name) {
                refused.push((name, BadListener::Taken));
            } else if listeners.len() >= MOST {
                refused.push((name, BadListener::Many));
            } else if patterns + listener.patterns() > PATTERNS
                || compiled + listener.compiled() > limits::LISTENER_PATTERNS
            {
                refused.push((name, BadListener::Patterns));
            } else {
                patterns += listener.patterns();
                compiled += listener.compiled();
                listeners.insert(name, listener.into());
            }
        }
        (Self { listeners }, refused)
    }

    /// A listener by its name as somebody wrote it.
    pub fn get(&self, name: &str) -> Option<&Arc<Listener>> {
        self.listeners.get(&Name::any(name).ok()?)
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Listener>> {
        self.listeners.values()
    }

    /// What an agent reads of its peers; `None` for what is no agent. Made when the agent is asked, and part of what its
    /// message takes: all of them at once may be the square of how many there are.
    pub fn usage(&self, name: &Name) -> Option<String> {
        let agent = self.listeners.get(name).filter(|one| one.is_agent())?;
        Some(self.instructions(agent))
    }

    /// A message from outside as its listener takes it; `None` where there is no such listener, or it does not.
    pub fn admitted(&self, to: &str, kind: &str, raw: &[u8]) -> Option<Admitted> {
        let payload = Payload::read(kind, raw)?;
        let listener = self.get(to)?;
        let payload = listener.admitted(payload)?;
        let listener = listener.clone();
        Some(Admitted { listener, payload })
    }

    /// Whether it takes long to read a payload of so many bytes and to check it by what its listener takes: longer than a task
    /// may keep a thread of the runtime.
    pub fn is_costly(&self, to: &str, kind: &str, bytes: usize) -> bool {
        Self::cost(self.get(to), kind, bytes) >= CHECKS
    }

    /// Bytes times the values of the schema that they are checked by.
    pub(crate) fn cost(to: Option<&Arc<Listener>>, kind: &str, bytes: usize) -> usize {
        let weight = to.map_or(LIGHTEST, |listener| listener.weight(kind));
        bytes.saturating_mul(weight)
    }

    /// The listener that another one may forward to. A forbidden listener is treated as an unknown one, so that the time of the
    /// answer does not differ either.
    pub(crate) fn reached(&self, from: &Name, to: &str) -> Option<&Arc<Listener>> {
        let (own, target) = (self.listeners.get(from), self.get(to));
        let may = own.is_some_and(|own| self.may(own, to));
        target.filter(|_| may)
    }

    /// Whether one may forward to another. Names are compared exactly.
    pub fn may(&self, from: &Listener, to: &str) -> bool {
        match &from.kind {
            _ if from.name.as_str() == to => true,
            Kind::Tool | Kind::Door => true,
            Kind::Agent(Reach::Only(peers)) => peers.iter().any(|peer| peer.as_str() == to),
            Kind::Agent(Reach::Delegates) => self.get(to).is_some_and(|peer| peer.delegated),
        }
    }

    fn instructions(&self, agent: &Listener) -> String {
        let mut text = format!("You are {}. {}\n", agent.name, agent.description);
        let peers = self
            .listeners
            .values()
            .filter(|peer| peer.name != agent.name && self.may(agent, peer.name.as_str()));
        let most = USAGE - MORE.len() - WARNING.len() - 2;
        'all: for peer in peers {
            let mut added = vec![format!("\n{}: {}\n", peer.name, peer.description)];
            for (kind, schema) in &peer.types {
                let source = Value::Object(schema.source().clone());
                let example = example(&source, DEPTH);
                added.push(format!(
                    "  {kind} takes {source}\n  for example {example}\n"
                ));
                if added.iter().map(String::len).sum::<usize>() > most {
                    break;
                }
            }
            for one in added {
                if text.len() + one.len() > most {
                    text.push_str(MORE);
                    break 'all;
                }
                text.push_str(&one);
            }
        }
        let _ = write!(text, "\n{WARNING}\n");
        text
    }
}

/// A value that a plain schema admits: its own example, if it gives one.
fn example(schema: &Value, depth: usize) -> Value {
    if let Some(given) = schema["examples"].get(0).or_else(|| schema.get("default")) {
        return given.clone();
    }
    if let Some(first) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!("text"),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(json!(1.5)),
        Some("boolean") => json!(true),
        Some("array") if depth > 0 => json!([example(&schema["items"], depth - 1)]),
        Some("object") | None if depth > 0 => {
            let properties = schema["properties"].as_object();
            let each = properties.into_iter().flatten();
            let all: Map<_, _> = each
                .map(|(key, value)| (key.clone(), example(value, depth - 1)))
                .collect();
            Value::Object(all)
        }
        _ => Value::Null,
    }
}

fn system_listeners() -> Vec<Listener> {
    let prompt = json!({"type": "object", "properties": {
        "output": {"type": "string"}, "source": {"type": "string"}, "show_banner": {"type": "boolean"}}});
    let input = json!({"type": "object", "required": ["text", "target"], "properties": {
        "text": {"type": "string"}, "target": {"type": "string"}}});
    let own = |name, description, kind| Listener::named(name, description, kind);
    let taking = |listener: Listener, kind, schema: Value| match schema {
        Value::Object(schema) => listener.takes(kind, schema),
        _ => Err(BadListener::Schema),
    };
    let all = [
        own(Name::boot(), "Notes that the mesh has started.", Kind::Tool),
        own(
            Name::console(),
            "Shows texts to a person and takes lines.",
            Kind::Door,
        )
        .and_then(|console| taking(console, "consoleprompt", prompt)),
        own(
            Name::console_router(),
            "Passes lines of the console on.",
            Kind::Tool,
        )
        .and_then(|router| taking(router, "consoleinput", input)),
    ];
    all.into_iter().flatten().collect()
}
