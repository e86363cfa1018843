//! The requests of a trial: about a workspace, and about the things in it by their names.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::doors::{Effect, Trial, Way};

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
    /// Type and text of the body.
    pub body: Option<(&'static str, String)>,
    /// The same as a frame: service, flow, request.
    pub frame: Option<(String, Option<String>, Value)>,
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
            query: Vec::new(),
            frame,
            body: Some(("application/json", body.to_string())),
        }
    };
    match &trial.way {
        Way::Service(service, operation) => {
            let mut body = trial.example.clone();
            body.insert("operation".to_owned(), json!(operation));
            body.extend(about(service, operation, things));
            body.remove("workspace");
            let mut framed = Value::Object(body.clone());
            if let Some(workspace) = workspace.filter(|_| service == "iam") {
                framed["workspace"] = json!(workspace);
            }
            let frame = Some((service.clone(), None, framed));
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
            let frame = (
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
            frame: None,
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
                frame: None,
            }
        }
        Way::Page(path) => Request {
            method: "GET",
            path: path.trim_start_matches('/').to_owned(),
            query: Vec::new(),
            body: None,
            frame: None,
        },
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
        method: "GET",
        path: filled(path, things, flow),
        query: all,
        body: None,
        frame: None,
    }
}

/// The document of a workspace.
pub fn document(things: &Things) -> String {
    format!("urn:isolation:{}", things.name)
}

fn filled(path: &str, things: &Things, flow: &str) -> String {
    let path = path.trim_start_matches('/').replace("{flow}", flow);
    path.replace("{collection}", &things.name)
}

fn in_query(workspace: Option<&str>) -> Vec<(String, String)> {
    let named = workspace.map(|name| ("workspace".to_owned(), name.to_owned()));
    named.into_iter().collect()
}

/// One record of an import.
pub fn line(kind: &str, things: &Things) -> String {
    let metadata = json!({"id": document(things), "root": "", "collection": things.name});
    let entity = json!({"t": "i", "i": "urn:isolation:x"});
    let rest = match kind {
        "triples" => json!({"triples": [{"s": entity, "p": {"t": "i", "i": "urn:isolation:p"},
            "o": {"t": "l", "v": "from outside"}}]}),
        "graph-embeddings" => json!({"entities": [{"entity": entity, "vector": [0.5, 0.5]}]}),
        "document-embeddings" => json!({"chunks": [{"chunk_id": "c", "vector": [0.5, 0.5]}]}),
        "entity-contexts" => json!({"entities": [{"entity": entity, "context": "from outside"}]}),
        _ => json!({"schema_name": things.name, "values": [{"id": "from outside"}]}),
    };
    let mut all = json!({ "metadata": metadata });
    if let (Some(all), Value::Object(rest)) = (all.as_object_mut(), rest) {
        all.extend(rest);
    }
    all.to_string()
}

/// The fields of a service that name things.
fn about(service: &str, operation: &str, things: &Things) -> Map<String, Value> {
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
