//! The requests of a trial: about a workspace, and about the things in it by their names.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::doors::{Effect, Trial, Way};
use super::sockets::Direction;

/// What there is in a workspace, by name; or would be, in one that is not there.
#[derive(Debug, Clone)]
pub struct Things {
    /// The workspace.
    pub workspace: String,
    /// Name of its flow, collection, document, processing, core, prompt: what has names of its own in each workspace.
    pub name: String,
    /// Id of a user.
    pub user: String,
    /// Name of that user.
    pub username: String,
    /// Id of an API key of that user.
    pub key: String,
    /// Id of an upload that was begun.
    pub upload: String,
    /// Id of a run of the agent.
    pub run: String,
    /// Id of a thread of messages between listeners.
    pub thread: String,
}

/// A request as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Path without the first slash.
    pub path: String,
    /// Query of the address.
    pub query: Vec<(String, String)>,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// Type and text of the body.
    pub body: Option<(&'static str, String)>,
    /// The same as a frame.
    pub frame: Option<Framed>,
    /// A socket of records that is asked for instead.
    pub bulk: Option<Bulk>,
}

/// A request as a frame of the socket of many calls.
#[derive(Debug, Clone, PartialEq)]
pub enum Framed {
    /// Service, flow, request.
    Ask(String, Option<String>, Value),
    /// A run of the agent is joined again.
    Resume(Value),
}

/// A socket of records.
#[derive(Debug, Clone, PartialEq)]
pub struct Bulk {
    /// The workspace that is named.
    pub workspace: Option<String>,
    /// The flow of its path.
    pub flow: String,
    /// The kind of its path.
    pub kind: String,
    /// What goes through it.
    pub passage: Passage,
}

/// What goes through a socket of records.
#[derive(Debug, Clone, PartialEq)]
pub enum Passage {
    /// A record to the gateway.
    In(Value),
    /// What passes by.
    Live(String),
    /// What is stored of a collection.
    Stored(String),
}

/// A request about things; `named` says their workspace, else it is the asker's own. The flow of a path is that of `flow`.
pub fn request(trial: &Trial, things: &Things, named: bool, flow: &str) -> Request {
    let workspace = named.then_some(things.workspace.as_str());
    let post = |path: String, body: Map<String, Value>, frame| {
        let mut body = Value::Object(body);
        if let Some(workspace) = workspace {
            body["workspace"] = json!(workspace);
        }
        Request {
            method: "POST",
            path,
            frame,
            body: Some(("application/json", body.to_string())),
            ..bare()
        }
    };
    match &trial.way {
        Way::Service(service, operation) => {
            let mut body = trial.example.clone();
            body.insert("operation".to_owned(), json!(operation));
            body.extend(about(service, operation, things, flow));
            body.remove("workspace");
            // A run is read from its first part on.
            body.remove("offset");
            let mut framed = Value::Object(body.clone());
            if let Some(workspace) = workspace.filter(|_| service == "iam") {
                framed["workspace"] = json!(workspace);
            }
            let frame = Some(Framed::Ask(service.clone(), None, framed));
            post(format!("api/v1/{service}"), body, frame)
        }
        Way::Auth(operation) => {
            let mut body = trial.example.clone();
            body.insert("username".to_owned(), json!(things.username));
            body.insert("password".to_owned(), json!("not this one"));
            post(format!("api/v1/auth/{operation}"), body, None)
        }
        Way::Kind(kind) => {
            let mut body = match named {
                // In one's own workspace nothing needs to be done: that it may be is seen by what is said of nothing.
                false => Map::new(),
                true => trial.example.clone(),
            };
            body.insert("collection".to_owned(), json!(things.name));
            body.remove("workspace");
            let frame = Framed::Ask(
                kind.clone(),
                Some(flow.to_owned()),
                Value::Object(body.clone()),
            );
            post(
                format!("api/v1/flow/{flow}/service/{kind}"),
                body,
                Some(frame),
            )
        }
        Way::Lines(kind) => Request {
            method: "POST",
            path: format!("api/v1/flow/{flow}/import/{kind}"),
            query: in_query(workspace),
            body: Some(("application/x-ndjson", line(kind, things))),
            ..bare()
        },
        Way::Get(path, query) => get(path, query, things, workspace, flow),
        Way::Post(path, kind, text) => {
            let mut query = in_query(workspace);
            if path.ends_with("import-core") {
                query.push(("id".to_owned(), things.name.clone()));
            }
            if path.contains("/graph/") {
                query.push(("default".to_owned(), String::new()));
            }
            Request {
                method: "POST",
                path: filled(path, things, flow),
                query,
                body: Some((kind, (*text).to_owned())),
                ..bare()
            }
        }
        Way::Chat(method, path) => chat(method, path, workspace, flow),
        Way::Agents(method, path) => agents(method, path, things, workspace),
        Way::Tool(tool) => called(tool, things, workspace, flow),
        Way::Resume => {
            let mut place = trial.example.clone();
            place.insert("run".to_owned(), json!(things.run));
            Request {
                frame: Some(Framed::Resume(Value::Object(place))),
                ..bare()
            }
        }
        Way::Upgrade(direction, kind) => upgrade(*direction, kind, things, workspace, flow),
        Way::Page(path) => Request {
            path: path.trim_start_matches('/').to_owned(),
            ..bare()
        },
    }
}

/// `GET` of nothing.
fn bare() -> Request {
    Request {
        method: "GET",
        path: String::new(),
        query: Vec::new(),
        headers: Vec::new(),
        body: None,
        frame: None,
        bulk: None,
    }
}

/// A request in the words of a model API: workspace and flow stand in headers. Each reads the fields that it knows.
fn chat(method: &'static str, path: &str, workspace: Option<&str>, flow: &str) -> Request {
    let mut headers = vec![("X-Flow", flow.to_owned())];
    headers.extend(workspace.map(|name| ("SPASS-Tenant", name.to_owned())));
    let chat = match workspace {
        // As of the kinds of a flow, nothing needs to be done in one's own workspace.
        None => json!({}),
        Some(_) if path == "/v1/completions" => json!({"model": "isolation", "prompt": OUTSIDE}),
        Some(_) => json!({"model": "isolation",
            "messages": [{"role": "user", "content": OUTSIDE}], "input": OUTSIDE}),
    };
    Request {
        method,
        path: path.trim_start_matches('/').to_owned(),
        headers,
        body: (method == "POST").then(|| ("application/json", chat.to_string())),
        ..bare()
    }
}

/// An agent that comes with the program: which there are is the same in all workspaces.
const AGENT: &str = "concise-de";

/// A request about agents and sessions: workspace and user stand in headers. Sessions are those of somebody in the other
/// workspace, so that nothing is asked of an agent in one's own.
fn agents(method: &'static str, path: &str, things: &Things, workspace: Option<&str>) -> Request {
    let mut headers = vec![("SPASS-User-Id", things.username.clone())];
    headers.extend(workspace.map(|name| ("SPASS-Tenant", name.to_owned())));
    let body = match workspace {
        // As of the kinds of a flow, nothing needs to be done in one's own workspace.
        None => json!({"message": "", "compact_keep_last_n": -1, "name": "", "templateId": ""}),
        Some(_) => json!({"message": OUTSIDE, "name": OUTSIDE, "templateId": "bobby"}),
    };
    let body = match (method, path.starts_with("/langgraph/"), workspace) {
        // Settings: nothing of them changes.
        ("PUT", ..) => json!({}),
        (_, true, None) => json!({"thread_id": "", "metadata": {"graph_id": ""}}),
        (_, true, Some(_)) => json!({"assistant_id": AGENT,
            "input": {"messages": [{"role": "user", "content": OUTSIDE}]}}),
        _ => body,
    };
    // In one's own workspace the other one is a name that is not asked for.
    let path = path
        .replace("{name}", AGENT)
        .replace("{assistant_id}", AGENT)
        .replace("{thread_id}", &things.key)
        .replace("{run_id}", &things.key)
        .replace("{response_id}", &format!("resp_{0}_{0}", things.key))
        .replace("{agent_id}", &things.key)
        .replace("{conversation_id}", &things.key)
        .replace("{summary_id}", &things.key)
        .replace("{memory_id}", &things.key)
        .replace("{workspace}", workspace.unwrap_or("default"));
    Request {
        method,
        path: path
            .replace("{session_id}", &things.key)
            .trim_start_matches('/')
            .to_owned(),
        headers,
        body: matches!(method, "POST" | "PATCH" | "PUT")
            .then(|| ("application/json", body.to_string())),
        ..bare()
    }
}

/// Where tools are called.
pub const TOOLS: &str = "mcp";

/// A call of a tool: the workspace stands in the query, and all else in its arguments.
fn called(tool: &str, things: &Things, workspace: Option<&str>, flow: &str) -> Request {
    let mut arguments = match tool {
        "get_document" | "list_document_parts" => json!({"document_id": document(things)}),
        "fetch" => json!({"id": document(things)}),
        "sparql_query" => json!({"query": "SELECT * WHERE { ?s ?p ?o }"}),
        // As of the kinds of a flow, nothing needs to be done in one's own workspace.
        _ if workspace.is_none() => json!({}),
        "ask_agent" => json!({"question": OUTSIDE}),
        "chat_with_agent" => json!({"name": AGENT, "message": OUTSIDE}),
        "graph_rag" | "document_rag" | "search_documents" | "search" => json!({"query": OUTSIDE}),
        "add_document" => {
            json!({"text": OUTSIDE, "title": OUTSIDE, "document_id": document(things)})
        }
        _ => json!({}),
    };
    let of_flow = !matches!(tool, "get_document" | "fetch" | "chat_with_agent");
    if of_flow && !tool.starts_with("list_") {
        arguments["flow"] = json!(flow);
        arguments["collection"] = json!(things.name);
    }
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    Request {
        method: "POST",
        path: TOOLS.to_owned(),
        query: in_query(workspace),
        body: Some(("application/json", call.to_string())),
        ..bare()
    }
}

fn upgrade(
    direction: Direction,
    kind: &str,
    things: &Things,
    workspace: Option<&str>,
    flow: &str,
) -> Request {
    let passage = match direction {
        Direction::In => Passage::In(record(kind, things, OUTSIDE)),
        Direction::Live => Passage::Live(things.name.clone()),
        Direction::Stored => Passage::Stored(things.name.clone()),
    };
    Request {
        bulk: Some(Bulk {
            workspace: workspace.map(str::to_owned),
            flow: flow.to_owned(),
            kind: kind.to_owned(),
            passage,
        }),
        ..bare()
    }
}

fn get(
    path: &str,
    query: &[(&'static str, &'static str)],
    things: &Things,
    workspace: Option<&str>,
    flow: &str,
) -> Request {
    let mut all = in_query(workspace);
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    all.extend(query.iter().map(owned));
    match path {
        "/api/v1/export-core" => all.push(("id".to_owned(), things.name.clone())),
        "/api/v1/document-stream" => all.push(("document-id".to_owned(), document(things))),
        path if path.contains("/export/") => {
            all.push(("collection".to_owned(), things.name.clone()));
        }
        _ => {}
    }
    Request {
        path: filled(path, things, flow),
        query: all,
        ..bare()
    }
}

/// The document of a workspace.
pub fn document(things: &Things) -> String {
    format!("urn:isolation:{}", things.name)
}

fn filled(path: &str, things: &Things, flow: &str) -> String {
    let path = path.trim_start_matches('/').replace("{flow}", flow);
    let path = path.replace("{run}", &things.run);
    path.replace("{collection}", &things.name)
}

fn in_query(workspace: Option<&str>) -> Vec<(String, String)> {
    let named = workspace.map(|name| ("workspace".to_owned(), name.to_owned()));
    named.into_iter().collect()
}

/// The listener that a line of a console is for: where nobody is named who takes it, it says so to the console, and the
/// thread can be gone on with.
pub const ROUTER: &str = "console-router";
/// What such a line is.
pub const ROUTED: &str = "consoleinput";
/// What those who ask write.
const OUTSIDE: &str = "from-outside";

/// One record of an import, as a line.
fn line(kind: &str, things: &Things) -> String {
    record(kind, things, OUTSIDE).to_string()
}

/// One record of an import that holds a word.
pub fn record(kind: &str, things: &Things, word: &str) -> Value {
    let entity = json!({"t": "i", "i": format!("urn:isolation:{word}")});
    let rest = match kind {
        "triples" => json!({"triples": [{"s": entity, "p": {"t": "i", "i": "urn:isolation:p"},
            "o": {"t": "l", "v": word}}]}),
        "graph-embeddings" => json!({"entities": [{"entity": entity, "vector": [0.5, 0.5]}]}),
        "document-embeddings" => json!({"chunks": [{"chunk_id": word, "vector": [0.5, 0.5]}]}),
        "entity-contexts" => json!({"entities": [{"entity": entity, "context": word}]}),
        _ => json!({"schema_name": things.name, "values": [{"id": word}]}),
    };
    let mut all = json!({"metadata": {"id": document(things), "root": "",
        "collection": things.name}});
    if let (Some(all), Value::Object(rest)) = (all.as_object_mut(), rest) {
        all.extend(rest);
    }
    all
}

/// The number of a statement that fits no ontology which is nobody's: what a model says decides whether there is one.
const VIOLATION: &str = "9223372036854775807";

/// The fields of a service that name things; `flow` is the one that answers.
fn about(service: &str, operation: &str, things: &Things, flow: &str) -> Map<String, Value> {
    let (name, id) = (&things.name, document(things));
    let fields = match service {
        "iam" => iam(operation, things),
        "config" => json!({"type": "isolation", "keys": [{"type": "isolation", "key": name}],
            "values": [{"type": "isolation", "key": name, "value": "\"from outside\""}]}),
        // Blueprints are of all flows: one that is not there starts nothing.
        "flow" => json!({"flow-id": name, "blueprint-name": "isolation-none", "parameters": {},
            "description": "from outside", "put-aside-id": name}),
        "librarian" => json!({"document-id": id, "document-ids": [id], "processing-id": name,
            "upload-id": things.upload, "collection": name, "chunk-index": 0, "total-size": 12,
            "content": STANDARD.encode("from outside"),
            "document-metadata": {"id": id, "kind": "text/plain", "title": "from outside",
                "comments": "", "metadata": [], "tags": []},
            "processing-metadata": {"id": name, "document-id": id, "flow": name,
                "collection": name, "tags": []}}),
        "collection-management" => {
            json!({"collection": name, "name": "from outside", "description": "from outside"})
        }
        "knowledge" => json!({"id": name, "flow": name, "collection": name}),
        // A run of the agent is a detached request, too.
        "requests" => json!({"id": things.run, "run": things.run, "request-id": things.run}),
        // To oneself, so that the thread is all that is of somebody else.
        "threads" => json!({"flow": flow, "thread": things.thread, "to": ROUTER,
            "type": ROUTED, "payload": {"text": OUTSIDE, "target": "nobody"}, "console": true}),
        "sessions" => json!({"name": AGENT, "session_id": things.key, "user_id": things.username,
            "agent_id": things.key, "conversation_id": things.key, "llm_service_id": things.key, "reranking_service_id": things.key, "message": "", "compact_keep_last_n": -1}),
        "violations" => json!({"id": VIOLATION, "flow": name, "collection": name}),
        _ => json!({ "id": things.key }),
    };
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn iam(operation: &str, things: &Things) -> Value {
    let user = match (operation, Effect::of(operation)) {
        // A name is somebody's everywhere; who makes a user learns of that.
        ("create-user", _) => json!({"username": format!("isolation-{}", uuid::Uuid::new_v4()),
            "workspace": things.workspace, "roles": ["reader"]}),
        _ => json!({"username": things.username, "workspace": things.workspace,
            "roles": ["reader"]}),
    };
    json!({"user_id": things.user, "username": things.username, "key_id": things.key,
        "group_id": things.key, "member_type": "user", "member_id": things.user,
        "user": user, "password": "not this one", "new_password": "nor this one",
        "workspace_record": {"id": things.workspace, "name": "from outside", "enabled": false},
        "key": {"user_id": things.user, "name": "from outside", "expires": ""},
        "grant": {"capability": "admin", "workspace": things.workspace},
        "capability": "admin", "user_context_json": "{}"})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::iam::isolation::{doors, sockets};

    const DOORS: &str = include_str!("../../../../../specs/api/openapi.yaml");
    const SOCKETS: &str = include_str!("../../../../../specs/api/asyncapi.yaml");

    fn things() -> Things {
        let named = |what: &str| format!("{what}-of-b");
        Things {
            workspace: named("w"),
            name: named("name"),
            user: named("user"),
            username: named("username"),
            key: named("key"),
            upload: named("upload"),
            run: named("run"),
            thread: named("thread"),
        }
    }

    fn trials() -> Vec<Trial> {
        let mut trials = doors::of(DOORS).unwrap();
        trials.extend(sockets::of(SOCKETS).unwrap());
        trials
    }

    /// All that is sent over REST and as a frame about things, by operations of an endpoint.
    fn sent(door: &str, operation: &str, named: bool) -> Vec<String> {
        let trials = trials().into_iter();
        let trials = trials.filter(|one| one.door.ends_with(door) && one.operation == operation);
        let of = |one: Trial| {
            let asked = request(&one, &things(), named, "flow-that-answers");
            let body = asked.body.map(|(_, text)| text).unwrap_or_default();
            let rest = format!("{} {:?} {body}", asked.path, asked.query);
            let frame = asked.frame.map(|frame| format!("{frame:?}"));
            (!matches!(one.way, Way::Resume))
                .then_some(rest)
                .into_iter()
                .chain(frame)
        };
        trials.flat_map(of).collect()
    }

    #[test]
    fn runs_and_threads_of_the_other_workspace_are_named_by_their_ids() {
        let run = "run-of-b";
        let thread = "thread-of-b";
        for (door, operation, id, times) in [
            // One's own and anybody's, over REST and as a frame.
            ("/api/v1/requests", "read-run", run, 4),
            ("/api/v1/requests", "replay-run", run, 4),
            ("/api/v1/requests", "cancel-run", run, 4),
            ("/api/v1/requests", "confirm-run", run, 4),
            ("/api/v1/requests", "why-run", run, 4),
            ("/api/v1/requests", "expand-summary", run, 4),
            ("/api/v1/requests", "remake-summary", run, 4),
            ("/api/v1/requests", "cancel-request", run, 2),
            ("/api/v1/requests", "why-request", run, 2),
            ("/api/v1/runs/{run}", "", run, 2),
            ("/api/v1/socket", "resume", run, 2),
            ("/api/v1/threads", "send-message", thread, 2),
            ("/api/v1/threads", "close-thread", thread, 2),
            ("/api/v1/threads", "show-thread", thread, 2),
        ] {
            for named in [true, false] {
                let sent = sent(door, operation, named);
                assert_eq!(sent.len(), times, "{door} {operation}: {sent:?}");
                for text in sent {
                    assert!(text.contains(id), "{door} {operation}: {text}");
                    assert!(!text.contains("offset"), "from the first part on: {text}");
                }
            }
        }
        let all = |texts: Vec<String>| texts.iter().filter(|text| text.contains("all")).count();
        assert_eq!(all(sent("/api/v1/runs/{run}", "", false)), 1);
        // The flow of the own workspace is there: what is not is the thread.
        for text in sent("/api/v1/threads", "show-thread", false) {
            assert!(text.contains("flow-that-answers"), "{text}");
        }
    }

    #[test]
    fn the_words_of_the_openai_api_name_workspace_and_flow_in_headers() {
        let trials = trials().into_iter();
        let chats: Vec<_> = trials
            .filter(|one| matches!(one.way, Way::Chat(..)))
            .collect();
        assert_eq!(chats.len(), 10);
        for one in chats {
            let asked = request(&one, &things(), true, "f");
            let door = format!("{} /{}", asked.method, asked.path);
            assert_eq!(door, one.door);
            let header = |name| {
                let mut found = asked.headers.iter().filter(|header| header.0 == name);
                found.next().map(|header| header.1.as_str())
            };
            assert_eq!(header("SPASS-Tenant"), Some("w-of-b"), "{door}");
            assert_eq!(header("X-Flow"), Some("f"), "{door}");
            assert_eq!(asked.body.is_some(), asked.method == "POST", "{door}");
            let own = request(&one, &things(), false, "f");
            assert_eq!(own.headers, [("X-Flow", "f".to_owned())], "{door}");
        }
    }
}
