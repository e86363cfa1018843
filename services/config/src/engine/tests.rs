//! Operations on rows in memory: answers, versions, notices and refusals.

use tg_schemas::ErrorCode;
use tg_schemas::msg::{ConfigKey, ConfigRequest, ConfigValue};

use super::*;

mod pages;
mod room;

/// Clock and grace of all tests here.
const GIVEN: Given = Given {
    now: 5_000,
    grace: 1_000,
    trash: None,
    most: tg_schemas::limits::CONFIG_WORKSPACE,
};

fn request(operation: &str, workspace: &str) -> ConfigRequest {
    ConfigRequest {
        operation: operation.into(),
        workspace: workspace.into(),
        ..ConfigRequest::default()
    }
}

fn value(kind: &str, key: &str, value: &str) -> ConfigValue {
    ConfigValue {
        r#type: kind.into(),
        key: key.into(),
        value: value.into(),
        ..ConfigValue::default()
    }
}

fn key(kind: &str, key: &str) -> ConfigKey {
    ConfigKey {
        r#type: kind.into(),
        key: key.into(),
    }
}

fn put(rows: &mut Rows, workspace: &str, values: Vec<ConfigValue>) -> Change {
    run(
        rows,
        ConfigRequest {
            values,
            ..request("put", workspace)
        },
    )
}

fn run(rows: &mut Rows, ask: ConfigRequest) -> Change {
    let workspace = ask.workspace.clone();
    let write = Write::from_request(ReadScope::System(&workspace), ask).unwrap();
    let change = plan(rows, write, &GIVEN).unwrap();
    change.apply(rows);
    change
}

fn refuse(ask: ConfigRequest) -> tg_schemas::Error {
    let workspace = ask.workspace.clone();
    Write::from_request(ReadScope::System(&workspace), ask).unwrap_err()
}

#[test]
fn get_answers_each_key_in_order_and_tells_missing_from_empty() {
    let mut rows = Rows::new(10, []);
    put(
        &mut rows,
        "acme",
        vec![value("tool", "a", "1"), value("tool", "e", "")],
    );
    let ask = ConfigRequest {
        keys: vec![key("tool", "gone"), key("tool", "e"), key("tool", "a")],
        ..request("get", "acme")
    };
    let reply = answer(&rows, ReadScope::System("acme"), &ask).unwrap();
    let values: Vec<Option<&str>> = reply.values.iter().map(|v| v.value.as_deref()).collect();
    assert_eq!(values, [None, Some(""), Some("1")]);
    assert_eq!(reply.version, 11);
}

#[test]
fn a_workspace_queue_sees_its_own_rows_whatever_the_body_says() {
    let mut rows = Rows::default();
    put(&mut rows, "acme", vec![value("tool", "a", "1")]);
    put(&mut rows, "zen", vec![value("tool", "z", "2")]);
    let ask = ConfigRequest {
        r#type: "tool".into(),
        ..request("list", "zen")
    };
    let reply = answer(&rows, ReadScope::Workspace("acme"), &ask).unwrap();
    assert_eq!(reply.directory.len(), 1);
    assert_eq!(&*reply.directory[0], "a");
    for operation in ["getvalues-all-ws", "getkeys-all-ws", "put", "nonsense"] {
        let ask = ConfigRequest {
            r#type: "tool".into(),
            ..request(operation, "zen")
        };
        let error = answer(&rows, ReadScope::Workspace("acme"), &ask).unwrap_err();
        assert_eq!(error.kind, "bad-operation");
    }
    let all = ConfigRequest {
        r#type: "tool".into(),
        ..request("getkeys-all-ws", "")
    };
    let reply = answer(&rows, ReadScope::System(""), &all).unwrap();
    let found: Vec<(&str, Option<&str>)> = reply
        .values
        .iter()
        .map(|v| (&*v.workspace, v.value.as_deref()))
        .collect();
    assert_eq!(found, [("acme", Some("")), ("zen", Some(""))]);
}

#[test]
fn a_put_of_many_keys_is_one_version_and_one_notice() {
    let mut rows = Rows::new(56, []);
    let change = put(
        &mut rows,
        "default",
        vec![
            value("processor:chunker", "f", "{}"),
            value("flow", "f", "{}"),
        ],
    );
    assert_eq!((change.version, rows.version()), (57, 57));
    assert_eq!(change.push.version, 57);
    assert_eq!(change.push.changes["flow"], ["default"]);
    assert_eq!(change.push.changes["processor:chunker"], ["default"]);
    assert!(change.push.workspace_changes.is_none());
    assert_eq!(change.push.keys.len(), 2);
    // Deleting what is not there is fine, and still one version and one notice.
    let ask = ConfigRequest {
        keys: vec![key("flow", "gone")],
        ..request("delete", "default")
    };
    let change = run(&mut rows, ask);
    assert_eq!(change.version, 58);
    assert!(change.push.changes.is_empty());
}

#[test]
fn a_new_workspace_gets_what_the_template_has_and_it_lacks() {
    let mut rows = Rows::default();
    put(
        &mut rows,
        TEMPLATE,
        vec![
            value("tool", "a", "seed"),
            value("prompt", "system", "seed"),
        ],
    );
    put(&mut rows, "acme", vec![value("tool", "a", "mine")]);
    let registered = vec![value(WORKSPACE_TYPE, "acme", r#"{"enabled": true}"#)];
    let change = put(&mut rows, REGISTRY, registered.clone());
    assert_eq!(rows.get("acme", "tool", "a").map(|v| &**v), Some("mine"));
    assert_eq!(
        rows.get("acme", "prompt", "system").map(|v| &**v),
        Some("seed")
    );
    assert_eq!(change.push.changes.keys().collect::<Vec<_>>(), ["prompt"]);
    let moved = change.push.workspace_changes.unwrap();
    assert_eq!(moved.created, ["acme"]);
    // What its people removed later stays removed.
    let ask = ConfigRequest {
        keys: vec![key("prompt", "system")],
        ..request("delete", "acme")
    };
    run(&mut rows, ask);
    let again = put(&mut rows, REGISTRY, registered);
    assert!(again.push.changes.is_empty());
    assert!(rows.get("acme", "prompt", "system").is_none());
}

#[test]
fn reserved_workspaces_are_not_told_but_registry_changes_are() {
    let mut rows = Rows::default();
    let change = put(&mut rows, TEMPLATE, vec![value("tool", "a", "1")]);
    assert!(change.push.changes.is_empty() && change.push.keys.is_empty());
    put(
        &mut rows,
        REGISTRY,
        vec![value(WORKSPACE_TYPE, "acme", "{}")],
    );
    let ask = ConfigRequest {
        keys: vec![key(WORKSPACE_TYPE, "acme")],
        ..request("delete", REGISTRY)
    };
    let change = run(&mut rows, ask);
    assert!(change.push.changes.is_empty());
    assert_eq!(change.push.workspace_changes.unwrap().deleted, ["acme"]);
}

#[test]
fn deleting_a_workspace_leaves_nothing_of_it_and_the_others_whole() {
    let mut rows = Rows::default();
    for workspace in ["acme", "zen"] {
        put(
            &mut rows,
            REGISTRY,
            vec![value(WORKSPACE_TYPE, workspace, "{}")],
        );
        put(
            &mut rows,
            workspace,
            vec![value("tool", "a", "1"), value("flow", "f", "{}")],
        );
    }
    let change = run(&mut rows, request("delete-workspace", "acme"));
    assert_eq!(rows.types("acme").count(), 0);
    assert_eq!(rows.bytes("acme"), 0);
    assert!(rows.get(REGISTRY, WORKSPACE_TYPE, "acme").is_none());
    assert!(rows.get("zen", "tool", "a").is_some());
    assert_eq!(change.push.workspace_changes.unwrap().deleted, ["acme"]);
    assert_eq!(change.push.changes["tool"], ["acme"]);
    assert_eq!(
        refuse(request("delete-workspace", "__template__")).kind,
        "bad-request"
    );
}

#[test]
fn an_announcement_names_every_type_and_every_registered_workspace() {
    let mut rows = Rows::default();
    put(&mut rows, TEMPLATE, vec![value("tool", "a", "1")]);
    put(
        &mut rows,
        REGISTRY,
        vec![value(WORKSPACE_TYPE, "acme", "{}")],
    );
    put(&mut rows, "acme", vec![value("flow", "f", "{}")]);
    let push = announcement(&rows);
    assert_eq!(push.version, rows.version());
    assert_eq!(push.changes["tool"], ["acme"]);
    assert_eq!(push.changes["flow"], ["acme"]);
    assert_eq!(push.workspace_changes.unwrap().created, ["acme"]);
}

#[test]
fn refusals_name_the_field() {
    let long = "k".repeat(1025);
    let cases = [
        (
            ConfigRequest {
                values: vec![value("", "a", "1")],
                ..request("put", "acme")
            },
            "values[0].type: ",
        ),
        (
            ConfigRequest {
                values: vec![value("tool", "a", "1"), value("tool", &long, "1")],
                ..request("put", "acme")
            },
            "values[1].key: ",
        ),
        (
            ConfigRequest {
                keys: vec![key("tool", "a\nb")],
                ..request("delete", "acme")
            },
            "keys[0].key: ",
        ),
        (
            ConfigRequest {
                values: vec![value(WORKSPACE_TYPE, "a:b", "{}")],
                ..request("put", REGISTRY)
            },
            "values[0].key: workspace: ",
        ),
        (request("put", "a--b"), "workspace: "),
        (request("put", "__a:b"), "workspace: "),
        (request("put", ""), "Workspace is required"),
    ];
    for (ask, field) in cases {
        let error = refuse(ask);
        assert_eq!(error.kind, "bad-request");
        assert!(error.message.starts_with(field), "{error:?}");
    }
    let big = "x".repeat(1024 * 1024 + 1);
    let error = refuse(ConfigRequest {
        values: vec![value("tool", "a", &big)],
        ..request("put", "acme")
    });
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert!(error.message.starts_with("values[0].value: "));
}

#[test]
fn a_type_has_a_budget_in_each_workspace_and_replacing_needs_no_more() {
    let mut rows = Rows::new(10, []);
    let large = "x".repeat(1_000_000);
    for n in 0..67 {
        put(
            &mut rows,
            "acme",
            vec![value("tool", &format!("k{n}"), &large)],
        );
    }
    let more = ConfigRequest {
        values: vec![value("tool", "more", &large)],
        ..request("put", "acme")
    };
    let write = Write::from_request(ReadScope::System("acme"), more).unwrap();
    let error = plan(&rows, write, &GIVEN).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert!(error.message.starts_with("values: ") && error.message.contains("'tool'"));
    put(&mut rows, "acme", vec![value("tool", "k3", &large)]);
    put(&mut rows, "acme", vec![value("other", "k", &large)]);
    put(&mut rows, "else", vec![value("tool", "k", &large)]);
}

#[test]
fn a_workspace_keeps_its_quota_of_bytes_and_may_replace_and_remove() {
    let mut rows = Rows::new(10, []);
    let large = "x".repeat(500_000);
    for kind in ["a", "b"] {
        put(&mut rows, "acme", vec![value(kind, "k", &large)]);
    }
    let given = Given {
        most: 1 << 20,
        ..GIVEN
    };
    let plan_for = |rows: &Rows, workspace: &str, text: &str| {
        let write = Write::Put(workspace.into(), vec![value("c", "k", text)]);
        plan(rows, write, &given)
    };
    let error = plan_for(&rows, "acme", &large).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge);
    let told = "values: the configuration of a workspace must not exceed 1 MiB";
    assert_eq!(error.message, told);
    assert!(plan_for(&rows, "else", &large).is_ok());
    assert!(plan_for(&rows, "acme", "short").is_ok());
    // Fuller than it may be since the setting changed: what adds nothing is let through.
    put(&mut rows, "acme", vec![value("c", "k", &large)]);
    assert!(plan_for(&rows, "acme", &large).is_ok());
    assert!(plan_for(&rows, "acme", "short").is_ok());
}

fn register(rows: &mut Rows, workspace: &str, now: i64) {
    let registered = value(WORKSPACE_TYPE, workspace, r#"{"enabled": true}"#);
    let write = Write::Put(REGISTRY.into(), vec![registered]);
    let given = Given { now, ..GIVEN };
    plan(rows, write, &given).unwrap().apply(rows);
}

fn end(rows: &mut Rows, workspace: &str, now: i64) -> Change {
    let given = Given { now, ..GIVEN };
    let change = plan(rows, Write::DeleteWorkspace(workspace.into()), &given).unwrap();
    change.apply(rows);
    change
}

#[test]
fn a_generation_is_given_at_creation_kept_while_disabled_and_ended_by_a_tombstone() {
    let mut rows = Rows::new(1, []);
    for name in ["default", "acme"] {
        register(&mut rows, name, 70);
    }
    let generation = |rows: &Rows, name: &str| lifecycle::generation(rows, name);
    assert_eq!(generation(&rows, "default"), Some(0));
    assert_eq!(generation(&rows, "acme"), Some(70));
    let row = rows.get(REGISTRY, WORKSPACE_TYPE, "acme").unwrap();
    assert_eq!(&**row, r#"{"enabled":true,"generation":70}"#);

    run(
        &mut rows,
        ConfigRequest {
            keys: vec![key(WORKSPACE_TYPE, "acme")],
            ..request("delete", REGISTRY)
        },
    );
    assert_eq!(lifecycle::tombstone(&rows, "acme"), None);
    register(&mut rows, "acme", 90);
    assert_eq!(generation(&rows, "acme"), Some(70));

    end(&mut rows, "acme", 100);
    let stone = lifecycle::tombstone(&rows, "acme").unwrap();
    assert_eq!(
        (stone.generation, stone.deleted_at, stone.purge_after),
        (70, 100, 1_100)
    );
    assert_eq!(generation(&rows, "acme"), None);
    // Done again after a crash, it changes nothing.
    end(&mut rows, "acme", 200);
    assert_eq!(lifecycle::tombstone(&rows, "acme"), Some(stone));
    // A clock that went back does not bring an ended generation back.
    register(&mut rows, "acme", 10);
    assert_eq!(generation(&rows, "acme"), Some(71));
}

#[test]
fn a_deleted_workspace_comes_back_as_it_was_until_it_is_purged_or_its_name_is_taken() {
    let mut rows = Rows::new(1, []);
    register(&mut rows, "acme", 70);
    let kept = [
        ("prompt", "p", "1"),
        ("flow", "f", "2"),
        ("processor:a", "f", "3"),
    ];
    let kept = kept.map(|(kind, key, text)| value(kind, key, text));
    put(&mut rows, "acme", kept.to_vec());
    let Trash::Keeps(_, 1_100, trash) = end(&mut rows, "acme", 100).trash else {
        panic!("it is kept");
    };
    let restore = |rows: &Rows, now, trash: Option<&Vec<Row>>| {
        let given = Given {
            now,
            trash: trash.cloned(),
            ..GIVEN
        };
        plan(rows, Write::RestoreWorkspace("acme".into()), &given)
    };
    let text = |result: Result<Change, tg_schemas::Error>| result.unwrap_err().message;
    assert!(text(restore(&rows, 1_100, Some(&trash))).contains("too long ago"));
    assert!(text(restore(&rows, 200, None)).contains("too long ago"));
    let change = restore(&rows, 200, Some(&trash)).unwrap();
    assert_eq!(change.trash, Trash::Forgets("acme".into()));
    let workspace_changes = change.push.workspace_changes.as_ref().unwrap();
    assert_eq!(workspace_changes.created, ["acme"]);
    change.apply(&mut rows);
    assert_eq!(lifecycle::generation(&rows, "acme"), Some(70));
    // What was deleted before it under the name stays so.
    let stone = lifecycle::tombstone(&rows, "acme").unwrap();
    assert_eq!((stone.generation, stone.deleted_at), (69, 100));
    assert!(rows.get("acme", "prompt", "p").is_some());
    assert!(rows.get("acme", "flow", "f").is_none());
    assert!(rows.get("acme", "processor:a", "f").is_none());
    assert!(text(restore(&rows, 300, Some(&trash))).contains("in use"));
}

#[test]
fn what_says_generations_and_deletions_is_written_by_the_service_alone() {
    for kind in ["generation", "tombstone", "store"] {
        let put = ConfigRequest {
            values: vec![value(kind, "acme", "1")],
            ..request("put", REGISTRY)
        };
        assert!(refuse(put).message.contains("reserved"), "{kind}");
        let delete = ConfigRequest {
            keys: vec![key(kind, "acme")],
            ..request("delete", REGISTRY)
        };
        assert!(refuse(delete).message.contains("reserved"), "{kind}");
    }
}
