//! `/api/v1/workspaces`: what the iam service has, in the words of the agents of workspaces, for who may administer workspaces.

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::Error;
use tg_schemas::msg::{IamRequest, IamResponse, WorkspaceRecord};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use crate::world::{BOUND, World};

const PATH: &str = "/api/v1/workspaces";

/// The operations on workspaces as the iam service does them: what is made twice is there once, and each is younger than those before.
pub fn of_workspaces(
    all: &mut Vec<WorkspaceRecord>,
    ask: &IamRequest,
) -> Result<IamResponse, Error> {
    let mut response = IamResponse::default();
    if ask.operation == "list-workspaces" {
        response.workspaces = all.clone();
        response.workspaces.sort_by_key(|one| one.id.clone());
        return Ok(response);
    }
    let asked = ask.workspace_record.clone().unwrap_or_default();
    let known = all.iter().position(|one| one.id == asked.id);
    let missing = || Error::typed("not-found", "workspace not found");
    let at = match (ask.operation.as_str(), known) {
        ("create-workspace", _) if asked.name.len() > 255 => {
            let text = "workspace_record.name: is longer than 255 bytes";
            return Err(Error::typed("invalid-argument", text));
        }
        ("create-workspace", None) => {
            all.push(WorkspaceRecord {
                id: asked.id,
                name: asked.name.clone(),
                created: format!("2026-01-01T00:00:{:02}+00:00", all.len()),
                ..WorkspaceRecord::default()
            });
            all.len() - 1
        }
        ("delete-workspace", Some(at)) => {
            all.remove(at);
            return Ok(response);
        }
        (_, known) => known.ok_or_else(missing)?,
    };
    if ask.operation == "update-workspace" && !asked.name.is_empty() {
        all[at].name = asked.name;
    }
    response.workspace = all.get(at).cloned();
    Ok(response)
}

/// A request; status and body.
async fn sent(
    world: &World,
    (method, path): (&str, &str),
    key: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = world.http.request(method, world.url(path));
    let request = request.bearer_auth(key).timeout(BOUND);
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let body = serde_json::from_slice(text.as_bytes()).unwrap_or(Value::Null);
    (status, body)
}

async fn a_workspace_is_made_shown_renamed_and_deleted(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let asked =
        async |what: (&str, &str), body: Option<Value>| sent(&world, what, "tg_admin", body).await;
    let body = json!({"workspaceId": "zoo", "name": "Zoo", "kind": "mesh", "odd": 1});
    let (status, made) = asked(("POST", PATH), Some(body.clone())).await;
    let zoo = json!({"workspaceId": "zoo", "name": "Zoo", "kind": "mesh",
        "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": null});
    assert_eq!((status, &made), (201, &zoo));
    let (status, told) = asked(("POST", PATH), Some(body)).await;
    assert_eq!((status, &told["error"]["code"]), (409, &json!("conflict")));
    assert!(told["error"]["requestId"].is_string(), "{told}");
    // Without an id of its own it has a UUID.
    let (status, made) = asked(("POST", PATH), Some(json!({"name": "Ark"}))).await;
    let ark = made["workspaceId"].as_str().unwrap();
    assert_eq!((status, ark.len()), (201, 36));
    let one = format!("{PATH}/zoo");
    assert_eq!(asked(("GET", &one), None).await, (200, zoo));
    let renamed = Some(json!({"name": "Park"}));
    let (status, told) = asked(("PATCH", &one), renamed).await;
    assert_eq!((status, &told["name"]), (200, &json!("Park")));
    let (status, told) = asked(("PATCH", &one), Some(json!({}))).await;
    assert_eq!((status, &told["name"]), (200, &json!("Park")));
    // The oldest first, whatever their ids are.
    let (status, page) = asked(("GET", "/api/v1/workspaces?limit=1"), None).await;
    assert_eq!((status, &page["items"][0]["name"]), (200, &json!("Park")));
    let next = page["nextCursor"].as_str().unwrap();
    let (_, page) = asked(("GET", &format!("{PATH}?limit=1&cursor={next}")), None).await;
    let names = (&page["items"][0]["name"], &page["nextCursor"]);
    assert_eq!(names, (&json!("Ark"), &Value::Null));
    assert_eq!(asked(("DELETE", &one), None).await, (204, Value::Null));
    for method in ["GET", "DELETE"] {
        let (status, told) = asked((method, &one), None).await;
        let code = &told["error"]["code"];
        assert_eq!((status, code), (404, &json!("workspace_not_found")));
    }
}

async fn what_does_not_fit_is_refused(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let long = "x".repeat(256);
    for (method, path, body, field) in [
        ("POST", "", Some(json!({})), "name"),
        ("POST", "", Some(json!({"name": long})), "name"),
        (
            "POST",
            "",
            Some(json!({"name": "a", "workspaceId": "_a"})),
            "workspaceId",
        ),
        (
            "POST",
            "",
            Some(json!({"name": "a", "kind": "mock"})),
            "kind",
        ),
        ("PATCH", "/zoo", Some(json!({"kind": "mesh"})), "kind"),
        ("PATCH", "/zoo", Some(json!({"name": null})), "name"),
        ("GET", "?limit=201", None, "limit"),
        ("GET", "?limit=0", None, "limit"),
    ] {
        let path = format!("{PATH}{path}");
        let (status, told) = sent(&world, (method, &path), "tg_admin", body).await;
        let error = &told["error"];
        assert_eq!(
            (status, &error["code"]),
            (400, &json!("validation_error")),
            "{method} {path}: {told}"
        );
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{field}: ")), "{message}");
    }
    let wrong = ("GET", "/api/v1/workspaces?cursor=zzz");
    let (status, told) = sent(&world, wrong, "tg_admin", None).await;
    let code = &told["error"]["code"];
    assert_eq!((status, code), (400, &json!("invalid_cursor")));
    assert!(world.fakes.iam.workspaces.lock().is_empty());
}

async fn what_is_not_there_is_told_in_the_words_of_the_surface(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for (method, path, status, code) in [
        ("GET", "/acme/nothing", 404, "not_found"),
        ("POST", "/acme/agents/a/b/c/d", 404, "not_found"),
        ("PUT", "", 405, "method_not_allowed"),
        ("POST", "/acme", 405, "method_not_allowed"),
        ("PUT", "/acme/agents", 405, "method_not_allowed"),
    ] {
        let path = format!("{PATH}{path}");
        let (found, told) = sent(&world, (method, &path), "tg_admin", None).await;
        let error = &told["error"];
        assert_eq!(
            (found, &error["code"]),
            (status, &json!(code)),
            "{method} {path}: {told}"
        );
        assert!(error["requestId"].is_string(), "{told}");
    }
    // 32 hex digits, where the client gives no name.
    let response = world.http.get(world.url("/a1")).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 404);
    let id = response.headers()["x-request-id"].to_str().unwrap();
    let is_hex = |byte: u8| byte.is_ascii_hexdigit();
    assert!(id.len() == 32 && id.bytes().all(is_hex), "{id}");
    let own = "x".repeat(128);
    let request = world
        .http
        .get(world.url("/a1"))
        .header("X-Request-Id", &own);
    let response = request.timeout(BOUND).send().await.unwrap();
    assert_eq!(response.headers()["x-request-id"], own.as_str());
}

/// Administrators of one workspace are none of the system.
async fn who_does_not_administer_workspaces_is_refused(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for (method, path) in [
        ("GET", PATH),
        ("POST", PATH),
        ("GET", "/api/v1/workspaces/acme"),
        ("PATCH", "/api/v1/workspaces/acme"),
        ("DELETE", "/api/v1/workspaces/acme"),
    ] {
        for (key, status, code) in [
            ("tg_nobody", 401, "unauthorized"),
            ("tg_reader", 403, "forbidden"),
            ("tg_manager", 403, "forbidden"),
            ("tg_scoped", 403, "forbidden"),
        ] {
            let body = matches!(method, "POST" | "PATCH").then(|| json!({}));
            let (found, told) = sent(&world, (method, path), key, body).await;
            assert_eq!(
                (found, &told["error"]["code"]),
                (status, &json!(code)),
                "{key} {method} {path}: {told}"
            );
        }
    }
    assert_eq!(world.fakes.iam.count("list-workspaces"), 0);
}

on_both_buses!(
    a_workspace_is_made_shown_renamed_and_deleted,
    what_does_not_fit_is_refused,
    what_is_not_there_is_told_in_the_words_of_the_surface,
    who_does_not_administer_workspaces_is_refused,
);
