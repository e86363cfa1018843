//! What there is to try: each operation of each endpoint, out of the description that the gateway itself gives. A path that
//! is not known here is an error, so that no endpoint is left out in silence.

use serde_json::{Map, Value};

use super::sockets::Direction;
use crate::client::{Error, Result};

/// Who may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// Anybody.
    Public,
    /// Whoever is known.
    Known,
    /// Who has a capability.
    Needs(String),
}

/// What a success would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Shows something.
    Read,
    /// Makes or changes something.
    Write,
    /// Ends or removes something.
    Delete,
}

impl Effect {
    /// As in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }

    /// By the name of an operation.
    pub(super) fn of(operation: &str) -> Self {
        let first = operation.split('-').next().unwrap_or_default();
        match first {
            "delete" | "remove" | "discard" | "stop" | "abort" | "unload" | "disable"
            | "revoke" | "cancel" | "close" => Self::Delete,
            "get" | "list" | "read" | "getvalues" | "config" | "show" | "check" | "why"
            | "doctor" | "whoami" | "processing" | "stream" | "resolve" | "judge" | "login"
            | "bootstrap" | "expand" => Self::Read,
            _ => Self::Write,
        }
    }
}

/// How an operation is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// `POST /api/v1/<service>` and a frame of the socket.
    Service(String, String),
    /// `POST /api/v1/auth/<operation>`.
    Auth(String),
    /// `POST /api/v1/flow/<flow>/service/<kind>` and a frame of the socket.
    Kind(String),
    /// `POST /api/v1/flow/<flow>/import/<kind>`.
    Lines(String),
    /// `GET` of a path with `{flow}` and `{collection}`, and a query.
    Get(String, Vec<(&'static str, &'static str)>),
    /// `POST` of a text to such a path.
    Post(String, &'static str, &'static str),
    /// A socket of records at `/api/v1/flow/<flow>/import/<kind>` or `export`.
    Upgrade(Direction, String),
    /// A path of a model API, which takes workspace and flow from headers: with a chat or a text to `POST` where it asks.
    Chat(&'static str, String),
    /// A path of agents and sessions, which takes workspace and user from headers.
    Agents(&'static str, String),
    /// A tool of the Model Context Protocol, by its name.
    Tool(String),
    /// A frame of the socket that joins a run of the agent again.
    Resume,
    /// `GET` of a page without secrets.
    Page(String),
}

/// One thing to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The endpoint, as in reports.
    pub door: String,
    /// The operation at it, or nothing.
    pub operation: String,
    /// What it does.
    pub effect: Effect,
    /// Who may.
    pub gate: Gate,
    /// How it is asked for.
    pub way: Way,
    /// A request out of the description, if it has one.
    pub example: Map<String, Value>,
}

const FLOW: &str = "/api/v1/flow/{flow}/";
/// What paths of agents and sessions begin with.
const AGENTS: [&str; 5] = [
    "/a1/",
    "/api/v1/workspaces",
    "/v1/tenant/",
    "/v1/responses/",
    "/langgraph/",
];
const QUERY: &str = "SELECT * WHERE { GRAPH ?g { ?s ?p ?o } }";

/// Everything that a description (OpenAPI, in YAML) has.
///
/// # Errors
/// [`Error::Protocol`] where it is none, and where it has an endpoint that nothing is known of.
pub fn of(description: &str) -> Result<Vec<Trial>> {
    let fault = |what: String| Error::Protocol(format!("the gateway's description: {what}"));
    let all: Value =
        serde_yaml_ng::from_str(description).map_err(|error| fault(error.to_string()))?;
    let paths = all.get("paths").and_then(Value::as_object);
    let paths = paths.ok_or_else(|| fault("no paths".to_owned()))?;
    let mut trials = Vec::new();
    for (path, methods) in paths {
        for (method, said) in methods.as_object().into_iter().flatten() {
            let found = at(&all, path, method, said);
            let found = found.ok_or_else(|| {
                let method = method.to_uppercase();
                fault(format!("{method} {path} is not known to this command"))
            })?;
            trials.extend(found);
        }
    }
    Ok(trials)
}

/// What is tried at a path.
fn at(all: &Value, path: &str, method: &str, said: &Value) -> Option<Vec<Trial>> {
    let door = format!("{} {path}", method.to_uppercase());
    let one = |effect, way| {
        vec![Trial {
            door: door.clone(),
            operation: String::new(),
            effect,
            gate: gate(said),
            way,
            example: example(said, ""),
        }]
    };
    if let Some(operations) = said.get("x-operations").and_then(Value::as_object) {
        return Some(services(&door, path, said, operations));
    }
    if let Some(tools) = said.get("x-tools").and_then(Value::as_object) {
        return Some(of_tools(&door, tools));
    }
    if let Some(operation) = path.strip_prefix("/api/v1/auth/") {
        let mut trials = one(Effect::of(operation), Way::Auth(operation.to_owned()));
        trials[0].example = example(said, &format!("iam.{operation}"));
        return Some(trials);
    }
    if AGENTS.iter().any(|one| path.starts_with(one)) {
        let (effect, method) = match method {
            "patch" => (Effect::Write, "PATCH"),
            "get" => (Effect::Read, "GET"),
            "delete" => (Effect::Delete, "DELETE"),
            "put" => (Effect::Write, "PUT"),
            _ => (Effect::Write, "POST"),
        };
        return Some(one(effect, Way::Agents(method, path.to_owned())));
    }
    if let Some(rest) = path.strip_prefix(FLOW) {
        return in_flow(all, &door, rest, method, said);
    }
    Some(match (method, path) {
        // Frames of the socket are tried with each operation.
        ("get", "/api/v1/socket" | "/api/socket") => Vec::new(),
        (
            "post",
            "/v1/chat/completions"
            | "/v1/completions"
            | "/v1/messages"
            | "/v1/messages/count_tokens"
            | "/v1/responses"
            | "/v1/embeddings",
        ) => one(Effect::Read, Way::Chat("POST", path.to_owned())),
        ("get", "/v1/models" | "/v1/models/health" | "/v1/models/{model}" | "/v1/usage") => {
            one(Effect::Read, Way::Chat("GET", path.to_owned()))
        }
        ("post", "/api/v1/import-core") => one(
            Effect::Write,
            Way::Post(path.to_owned(), "application/octet-stream", ""),
        ),
        ("post", "/oauth/register" | "/oauth/authorize" | "/oauth/token") => one(
            Effect::Read,
            Way::Post(path.to_owned(), "application/x-www-form-urlencoded", ""),
        ),
        ("get", "/api/v1/export-core" | "/api/v1/document-stream") => {
            one(Effect::Read, Way::Get(path.to_owned(), Vec::new()))
        }
        ("get", "/api/v1/runs/{run}") => {
            let of = |query| one(Effect::Read, Way::Get(path.to_owned(), query));
            [of(Vec::new()), of(vec![("all", "true")])].concat()
        }
        ("get", "/api/metrics" | "/api/metrics/" | "/metrics") => {
            one(Effect::Read, Way::Get(path.to_owned(), Vec::new()))
        }
        ("get", "/api/metrics/{path}") => {
            let query = vec![("query", "processor_info")];
            one(
                Effect::Read,
                Way::Get("/api/metrics/query".to_owned(), query),
            )
        }
        ("get", "/api/v1/i18n/packs/{lang}") => {
            one(Effect::Read, Way::Page(path.replace("{lang}", "en")))
        }
        ("get", "/assets/{file}") => one(Effect::Read, Way::Page(path.replace("{file}", "none"))),
        (
            "get",
            "/"
            | "/index.html"
            | "/docs"
            | "/openapi.yaml"
            | "/asyncapi.yaml"
            | "/health/live"
            | "/health/ready"
            | "/.well-known/oauth-protected-resource"
            | "/.well-known/oauth-protected-resource/mcp"
            | "/.well-known/oauth-authorization-server"
            | "/oauth/authorize",
        ) => one(Effect::Read, Way::Page(path.to_owned())),
        _ => return None,
    })
}

/// Each tool, by the capability that it takes.
fn of_tools(door: &str, gates: &Map<String, Value>) -> Vec<Trial> {
    let of = |capability: &String, tool: &Value| {
        let tool = tool.as_str().unwrap_or_default();
        Trial {
            door: door.to_owned(),
            operation: tool.to_owned(),
            effect: match tool {
                "add_document" => Effect::Write,
                _ => Effect::Read,
            },
            gate: Gate::Needs(capability.clone()),
            way: Way::Tool(tool.to_owned()),
            example: Map::new(),
        }
    };
    gates
        .iter()
        .flat_map(|(capability, tools)| {
            let tools = tools.as_array().into_iter().flatten();
            tools.map(move |tool| of(capability, tool))
        })
        .collect()
}

fn services(door: &str, path: &str, said: &Value, gates: &Map<String, Value>) -> Vec<Trial> {
    let service = path.trim_start_matches("/api/v1/");
    let mut trials = Vec::new();
    for (who, operations) in gates {
        for operation in operations.as_array().into_iter().flatten() {
            let operation = operation.as_str().unwrap_or_default();
            trials.push(Trial {
                door: door.to_owned(),
                operation: operation.to_owned(),
                effect: Effect::of(operation),
                gate: match who.as_str() {
                    "public" => Gate::Public,
                    "authenticated" => Gate::Known,
                    capability => Gate::Needs(capability.to_owned()),
                },
                way: Way::Service(service.to_owned(), operation.to_owned()),
                example: example(said, &format!("{service}.{operation}")),
            });
            trials.extend(of_all(&trials[trials.len() - 1]));
        }
    }
    trials
}

/// Operations about runs and tasks of the agent.
const OF_RUNS: [&str; 9] = [
    "list-runs",
    "list-tasks",
    "cancel-run",
    "read-run",
    "replay-run",
    "confirm-run",
    "why-run",
    "expand-summary",
    "remake-summary",
];

/// Who asks about runs of the agent means their own, or with `all` everybody's in a workspace that they administer.
fn of_all(trial: &Trial) -> Option<Trial> {
    // Sessions have summaries of their own.
    let of_agent = matches!(&trial.way, Way::Service(service, _) if service == "requests");
    (of_agent && OF_RUNS.contains(&trial.operation.as_str())).then(|| {
        let mut all = trial.clone();
        all.gate = Gate::Needs("users:admin".to_owned());
        all.example.insert("all".to_owned(), Value::Bool(true));
        all
    })
}

/// What is tried at a path of a flow.
fn in_flow(all: &Value, door: &str, rest: &str, method: &str, said: &Value) -> Option<Vec<Trial>> {
    let trial = |operation: &str, effect, way| Trial {
        door: door.to_owned(),
        operation: operation.to_owned(),
        effect,
        gate: gate(said),
        way,
        example: example(said, rest.trim_start_matches("service/")),
    };
    let path = format!("{FLOW}{rest}");
    let get = |query| Way::Get(path.clone(), query);
    let named = |kind: &str| path.replace("{kind}", kind);
    Some(match (method, rest) {
        ("post", "service/thru/{interface}") => {
            let kinds = all.get("paths").and_then(Value::as_object);
            let kinds = kinds.into_iter().flatten().filter_map(|(path, _)| {
                let kind = path.strip_prefix(FLOW)?.strip_prefix("service/")?;
                (!kind.contains('/')).then_some(kind)
            });
            kinds
                .map(|kind| trial(kind, Effect::Write, Way::Kind(format!("thru/{kind}"))))
                .collect()
        }
        ("post", rest) if rest.starts_with("service/") => {
            let kind = rest.trim_start_matches("service/");
            let effect = match kind {
                "text-load" | "document-load" => Effect::Write,
                _ => Effect::Read,
            };
            vec![trial("", effect, Way::Kind(kind.to_owned()))]
        }
        ("post", "import/{kind}") => import_kinds(all)
            .map(|kind| trial(kind, Effect::Write, Way::Lines(kind.to_owned())))
            .collect(),
        ("get", "import/{kind}") => import_kinds(all)
            .map(|kind| trial(kind, Effect::Write, Way::Get(named(kind), Vec::new())))
            .collect(),
        ("get", "export/{kind}") => kinds_of(said)
            .flat_map(|kind| {
                let live = trial(kind, Effect::Read, Way::Get(named(kind), Vec::new()));
                let stored = vec![("stored", "1")];
                let stored = trial(kind, Effect::Read, Way::Get(named(kind), stored));
                [live, stored]
            })
            .collect(),
        ("get", "sparql/{collection}") => {
            vec![trial("", Effect::Read, get(vec![("query", QUERY)]))]
        }
        ("get", "graph/{collection}") => {
            vec![trial("", Effect::Read, get(vec![("default", "")]))]
        }
        ("post", "sparql/{collection}") => {
            let way = Way::Post(path, "application/sparql-query", QUERY);
            vec![trial("", Effect::Read, way)]
        }
        ("post", "graph/{collection}") => {
            let triple = "<urn:isolation:x> <urn:isolation:p> \"from outside\" .";
            let way = Way::Post(path, "text/turtle", triple);
            vec![trial("", Effect::Write, way)]
        }
        _ => return None,
    })
}

fn import_kinds(all: &Value) -> impl Iterator<Item = &str> {
    let kinds = all.pointer("/components/parameters/ImportKind/schema/enum");
    let kinds = kinds.and_then(Value::as_array).into_iter().flatten();
    kinds.filter_map(Value::as_str)
}

/// The kinds that a path names in its own parameter.
fn kinds_of(said: &Value) -> impl Iterator<Item = &str> {
    let parameters = said.get("parameters").and_then(Value::as_array);
    let kind = parameters
        .into_iter()
        .flatten()
        .find(|one| one["name"] == "kind");
    let kinds = kind.and_then(|one| one.pointer("/schema/enum")?.as_array());
    kinds.into_iter().flatten().filter_map(Value::as_str)
}

fn gate(said: &Value) -> Gate {
    let open = said.get("security").and_then(Value::as_array);
    match said.get("x-capability").and_then(Value::as_str) {
        Some(capability) => Gate::Needs(capability.to_owned()),
        None if open.is_some_and(Vec::is_empty) => Gate::Public,
        None => Gate::Known,
    }
}

/// The first example of a name, or of one that begins with it.
fn example(said: &Value, name: &str) -> Map<String, Value> {
    let examples = said.pointer("/requestBody/content/application~1json/examples");
    let examples = examples.and_then(Value::as_object).into_iter().flatten();
    let mut fitting = examples.filter(|(key, _)| {
        key.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    let found = fitting.next().and_then(|(_, one)| one["value"].as_object());
    found.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The description of the gateway that this is built with.
    const OURS: &str = include_str!("../../../../../specs/api/openapi.yaml");

    #[test]
    fn everything_that_the_gateway_describes_is_tried() {
        let trials = of(OURS).unwrap();
        let has = |door: &str, operation: &str| {
            let mut found = trials.iter();
            found.any(|one| one.door == door && one.operation == operation)
        };
        assert!(has("POST /api/v1/librarian", "remove-document"));
        assert!(has("POST /api/v1/flow/{flow}/service/sparql", ""));
        assert!(has(
            "POST /api/v1/flow/{flow}/service/thru/{interface}",
            "agent"
        ));
        assert!(has("GET /api/v1/flow/{flow}/import/{kind}", "rows"));
        assert!(has("GET /api/v1/flow/{flow}/export/{kind}", "triples"));
        for door in ["POST /v1/chat/completions", "GET /v1/models"] {
            let mut found = trials.iter().filter(|one| one.door == door);
            let chat = found.next().unwrap();
            assert_eq!(chat.gate, Gate::Needs("llm".to_owned()), "{door}");
        }
        for tool in ["ask_agent", "add_document", "list_flows"] {
            assert!(has("POST /mcp", tool), "{tool}");
        }
        let all: Value = serde_yaml_ng::from_str(OURS).unwrap();
        let described = all["paths"].as_object().unwrap();
        let operations = described
            .values()
            .filter_map(|path| path["post"]["x-operations"].as_object())
            .flat_map(|gates| gates.values())
            .map(|list| list.as_array().unwrap().len())
            .sum::<usize>();
        let of_services = trials.iter();
        let of_services = of_services.filter(|one| matches!(one.way, Way::Service(..)));
        // Those about runs and tasks of the agent a second time, about everybody's.
        assert_eq!(of_services.count(), operations + OF_RUNS.len());
        // Tried as what they lead to: each operation of a socket.
        let others = ["/api/v1/socket", "/api/socket"];
        for path in described
            .keys()
            .filter(|path| !others.contains(&path.as_str()))
        {
            let mut tried = trials.iter();
            assert!(tried.any(|one| one.door.ends_with(path.as_str())), "{path}");
        }
    }

    #[test]
    fn an_endpoint_that_nobody_knows_is_an_error() {
        let more = OURS.replacen("\npaths:", "\npaths:\n  /api/v1/new-door:\n    get: {}", 1);
        let error = of(&more).unwrap_err().to_string();
        assert!(
            error.contains("GET /api/v1/new-door is not known"),
            "{error}"
        );
    }

    #[test]
    fn what_a_success_would_do_is_known_by_the_name() {
        assert_eq!(Effect::of("get-document"), Effect::Read);
        assert_eq!(Effect::of("remove-document"), Effect::Delete);
        assert_eq!(Effect::of("put"), Effect::Write);
    }
}
