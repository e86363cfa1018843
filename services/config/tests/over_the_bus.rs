//! The service as others meet it: over a bus, on both queues, with its notices.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_config::{Seed, bootstrap};
use tg_mesh::bus::{Consume, Delivery, Sink};
use tg_mesh::{Ask, Bus, Deadline, Host, Processor};
use tg_schemas::codec;
use tg_schemas::msg::{
    ConfigKey, ConfigPush, ConfigRequest, ConfigResponse, ConfigValue, FlowRequest, FlowResponse,
};
use tg_schemas::processors;
use tg_schemas::{Class, Error, ErrorCode, Subscription, Topic, WorkspaceId};
use tg_testkit::fakes::Played;
use tg_testkit::place::Place;
use tokio::sync::mpsc;

const BOUND: Duration = Duration::from_secs(60);

struct System {
    mesh: Host,
    notices: mpsc::Receiver<ConfigPush>,
    _consumer: Box<dyn tg_mesh::bus::Consumer>,
}

struct Listen(mpsc::Sender<ConfigPush>);

impl Sink for Listen {
    fn deliver(&self, delivery: Delivery) {
        let envelope = &delivery.envelope;
        if let Ok(push) = codec::decode(&envelope.body, envelope.content_type) {
            let _ = self.0.try_send(push);
        }
    }
}

async fn join(bus: Arc<dyn Bus>) -> Host {
    tg_testkit::place::host(bus).await
}

async fn start(bus: Arc<dyn Bus>, dir: &Path) -> System {
    let mesh = join(bus).await;
    let (tx, notices) = mpsc::channel(256);
    let subscription = Subscription::service(Topic::system(Class::Notify, "config"), "test");
    let consumer = mesh
        .bus()
        .consume(&subscription, Consume::prefetch(64), Arc::new(Listen(tx)))
        .await
        .unwrap();
    host(&mesh, dir).await;
    System {
        mesh,
        notices,
        _consumer: consumer,
    }
}

async fn host(mesh: &Host, dir: &Path) {
    let options = tg_config::Options {
        data_dir: dir.to_owned(),
        ..tg_config::Options::default()
    };
    for processor in tg_config::processors(mesh, options) {
        mesh.host(processor).await.unwrap();
    }
}

impl System {
    async fn notice(&mut self, wanted: impl Fn(&ConfigPush) -> bool) -> ConfigPush {
        tokio::time::timeout(BOUND, async {
            loop {
                let push = self.notices.recv().await.expect("the bus is there");
                if wanted(&push) {
                    return push;
                }
            }
        })
        .await
        .expect("the notice comes")
    }
}

fn options() -> Ask {
    Ask {
        deadline: Some(Deadline::after(BOUND)),
        ..Ask::default()
    }
}

async fn system(mesh: &Host, ask: ConfigRequest) -> Result<ConfigResponse, Error> {
    let topic = Topic::system(Class::Request, "config");
    mesh.ask(&topic, &ask, options()).last().await
}

/// Asks on a workspace's queue, as soon as it is served.
async fn own(mesh: &Host, workspace: &str, ask: ConfigRequest) -> Result<ConfigResponse, Error> {
    let topic = Topic::workspace(
        Class::Request,
        "config",
        &WorkspaceId::new(workspace).unwrap(),
    );
    mesh.ask(&topic, &ask, options()).last().await
}

fn put(workspace: &str, rows: &[(&str, &str, &str)]) -> ConfigRequest {
    let values = rows.iter().map(|(kind, key, value)| ConfigValue {
        r#type: (*kind).into(),
        key: (*key).into(),
        value: (*value).into(),
        ..ConfigValue::default()
    });
    ConfigRequest {
        operation: "put".into(),
        workspace: workspace.into(),
        values: values.collect(),
        ..ConfigRequest::default()
    }
}

fn get(workspace: &str, kind: &str, key: &str) -> ConfigRequest {
    ConfigRequest {
        operation: "get".into(),
        workspace: workspace.into(),
        keys: vec![ConfigKey {
            r#type: kind.into(),
            key: key.into(),
        }],
        ..ConfigRequest::default()
    }
}

fn register(id: &str) -> ConfigRequest {
    put(
        "__workspaces__",
        &[("workspace", id, r#"{"enabled": true}"#)],
    )
}

async fn a_new_workspace_has_its_template_and_its_own_queue_and_one_notice_says_so(place: Place) {
    let dir = tempfile::tempdir().unwrap();
    let mut up = start(place.connect().await, dir.path()).await;
    system(
        &up.mesh,
        put("__template__", &[("tool", "a", "1"), ("prompt", "p", "2")]),
    )
    .await
    .unwrap();
    system(&up.mesh, register("acme")).await.unwrap();
    let push = up.notice(|push| push.changes.contains_key("tool")).await;
    assert_eq!(push.changes["prompt"], ["acme"]);
    assert_eq!(push.workspace_changes.unwrap().created, ["acme"]);

    let reply = own(&up.mesh, "acme", get("elsewhere", "tool", "a"))
        .await
        .unwrap();
    assert_eq!(reply.values[0].value, "1");
    let written = own(&up.mesh, "acme", put("elsewhere", &[("tool", "b", "3")]))
        .await
        .unwrap();
    let push = up.notice(|push| push.version > reply.version).await;
    assert_eq!(push.version, reply.version + 1);
    assert_eq!(written.version, push.version);
    assert_eq!(push.changes["tool"], ["acme"]);
    assert_eq!(
        (push.keys[0].key.as_str(), push.keys[0].value.as_str()),
        ("b", "")
    );

    let all = ConfigRequest {
        operation: "getvalues-all-ws".into(),
        r#type: "tool".into(),
        ..ConfigRequest::default()
    };
    let error = own(&up.mesh, "acme", all.clone()).await.unwrap_err();
    assert_eq!(error.kind, "bad-operation");
    let everywhere = system(&up.mesh, all).await.unwrap().values;
    let owners: Vec<&str> = everywhere.iter().map(|v| v.workspace.as_str()).collect();
    assert_eq!(owners, ["__template__", "acme", "acme"]);
    up.mesh.stop(Duration::from_secs(1)).await;
}

async fn a_restart_announces_everything_at_the_version_it_had(place: Place) {
    let dir = tempfile::tempdir().unwrap();
    let up = start(place.connect().await, dir.path()).await;
    system(&up.mesh, register("acme")).await.unwrap();
    system(
        &up.mesh,
        put("acme", &[("tool", "a", "1"), ("flow", "f", "{}")]),
    )
    .await
    .unwrap();
    let version = system(&up.mesh, get("acme", "tool", "a"))
        .await
        .unwrap()
        .version;
    up.mesh.stop(Duration::from_secs(1)).await;
    drop(up);

    let next = place.another().await;
    let mut up = start(next.connect().await, dir.path()).await;
    let push = up.notice(|push| !push.changes.is_empty()).await;
    assert_eq!(push.version, version);
    assert_eq!(push.changes["tool"], ["acme"]);
    assert_eq!(push.changes["flow"], ["acme"]);
    assert_eq!(push.workspace_changes.unwrap().created, ["acme"]);
    up.mesh.stop(Duration::from_secs(1)).await;
}

async fn bootstrap_makes_a_fresh_system_once_and_a_later_release_adds_what_is_missing(
    place: Place,
) {
    let dir = tempfile::tempdir().unwrap();
    let up = start(place.connect().await, dir.path()).await;
    let started = Arc::new(Mutex::new(Vec::new()));
    let kept = started.clone();
    let flows = Played::new(move |_, ask: FlowRequest| {
        let mut reply = FlowResponse::default();
        match ask.operation.as_str() {
            "start-flow" => kept.lock().push(ask),
            _ => {
                reply.flow_ids = kept
                    .lock()
                    .iter()
                    .map(|flow| flow.flow_id.clone())
                    .collect()
            }
        }
        Ok(reply)
    });
    let flow_svc =
        Processor::new(processors::flow_svc::PROCESSOR).serves(processors::flow_svc::FLOW, flows);
    up.mesh.host(flow_svc).await.unwrap();

    let mut seed = Seed::default();
    let blueprint = serde_json::json!({"description": "all of it"});
    let blueprints = seed.types.entry("flow-blueprint".into()).or_default();
    blueprints.insert("everything".into(), blueprint.clone());
    bootstrap(&up.mesh, seed.clone()).await.unwrap();
    bootstrap(&up.mesh, seed.clone()).await.unwrap();
    {
        let started = started.lock();
        assert_eq!(started.len(), 1);
        assert_eq!(started[0].flow_id, "default");
        assert_eq!(started[0].blueprint_name, "everything");
    }
    let ask = get("default", "flow-blueprint", "everything");
    let reply = system(&up.mesh, ask).await.unwrap();
    let stored: serde_json::Value = serde_json::from_str(&reply.values[0].value).unwrap();
    assert_eq!(stored, blueprint);

    // People change the template and remove the flow; the next release brings one more tool.
    system(
        &up.mesh,
        put(
            "__template__",
            &[("flow-blueprint", "everything", "\"mine\"")],
        ),
    )
    .await
    .unwrap();
    started.lock().clear();
    let tools = seed.types.entry("tool".into()).or_default();
    tools.insert("calculator".into(), serde_json::json!({}));
    bootstrap(&up.mesh, seed).await.unwrap();
    assert!(started.lock().is_empty());
    let ask = ConfigRequest {
        operation: "config".into(),
        workspace: "__template__".into(),
        ..ConfigRequest::default()
    };
    let template = system(&up.mesh, ask).await.unwrap().config;
    assert_eq!(template["flow-blueprint"]["everything"], "\"mine\"");
    assert_eq!(template["tool"]["calculator"], "{}");
    up.mesh.stop(Duration::from_secs(1)).await;
}

async fn who_asks_by_the_typed_client_reads_everything(place: Place) {
    let dir = tempfile::tempdir().unwrap();
    let up = start(place.connect().await, dir.path()).await;
    let large = "x".repeat(900_000);
    for n in 0..20 {
        let (kind, key) = (format!("type-{}", n % 2), format!("k{n:02}"));
        let row = put("acme", &[(&kind, &key, &large)]);
        system(&up.mesh, row).await.unwrap();
    }
    let whole = ConfigRequest {
        operation: "config".into(),
        workspace: "acme".into(),
        ..ConfigRequest::default()
    };
    let error = system(&up.mesh, whole).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert!(error.message.contains("pages (limit, after)"), "{error}");

    let config = tg_clients::config::Config::new(&up.mesh);
    let whole = config.whole("acme").await.unwrap();
    let keys = |kind: &str| whole[kind].keys().cloned().collect::<Vec<_>>();
    let even: Vec<_> = (0..20).step_by(2).map(|n| format!("k{n:02}")).collect();
    assert_eq!(keys("type-0"), even);
    assert_eq!(keys("type-1").len(), 10);
    assert_eq!(config.list("acme", "type-0").await.unwrap(), even);
    assert_eq!(config.values("acme", "type-1").await.unwrap().len(), 10);
    up.mesh.stop(Duration::from_secs(1)).await;
}

/// Until the process knows a generation of a workspace.
async fn generation(mesh: &Host, workspace: &str, wanted: impl Fn(i64) -> bool) -> i64 {
    let mut changes = mesh.config().changes();
    let seen = async {
        while !wanted(mesh.config().generation(workspace)) {
            changes.changed().await.expect("the view is there");
        }
        mesh.config().generation(workspace)
    };
    tokio::time::timeout(BOUND, seen).await.expect("it is seen")
}

async fn what_comes_late_for_an_ended_generation_is_refused(place: Place) {
    let dir = tempfile::tempdir().unwrap();
    let mut up = start(place.connect().await, dir.path()).await;
    let made = |push: &ConfigPush| {
        let changes = push.workspace_changes.as_ref();
        changes.is_some_and(|changes| changes.created == ["acme"])
    };
    system(&up.mesh, register("acme")).await.unwrap();
    up.notice(made).await;
    let acme = WorkspaceId::new("acme").unwrap();
    let of = |generation| tg_clients::config::Config::of_workspace(&up.mesh, &acme, generation);
    let row = |value: &str| [(("tool".to_owned(), "a".to_owned()), value.to_owned())];
    let first = generation(&up.mesh, "acme", |known| known > 0).await;
    of(first).put("acme", row("1")).await.unwrap();

    let gone = ConfigRequest {
        operation: "delete-workspace".into(),
        workspace: "acme".into(),
        ..ConfigRequest::default()
    };
    system(&up.mesh, gone).await.unwrap();
    system(&up.mesh, register("acme")).await.unwrap();
    let second = generation(&up.mesh, "acme", |known| known > first).await;
    let late = of(first).put("acme", row("2")).await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::NotFound, "{late}");
    let key = ("tool".to_owned(), "a".to_owned());
    let late = of(first).delete("acme", [key]).await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::NotFound, "{late}");
    assert!(of(second).values("acme", "tool").await.unwrap().is_empty());
    of(second).put("acme", row("3")).await.unwrap();
    assert_eq!(of(second).values("acme", "tool").await.unwrap()["a"], "3");
    up.mesh.stop(Duration::from_secs(1)).await;
}

async fn a_second_process_stands_by_and_leaves_the_store_alone(place: Place) {
    let dir = tempfile::tempdir().unwrap();
    let up = start(place.connect().await, dir.path()).await;
    let other = join(place.connect().await).await;
    host(&other, dir.path()).await;
    system(&other, put("acme", &[("tool", "a", "1")]))
        .await
        .unwrap();
    for mesh in [&up.mesh, &other] {
        let reply = system(mesh, get("acme", "tool", "a")).await.unwrap();
        assert_eq!(reply.values[0].value, "1");
    }
    up.mesh.stop(Duration::from_secs(1)).await;
}

tg_testkit::on_both_buses!(
    a_new_workspace_has_its_template_and_its_own_queue_and_one_notice_says_so,
    a_restart_announces_everything_at_the_version_it_had,
    bootstrap_makes_a_fresh_system_once_and_a_later_release_adds_what_is_missing,
    a_second_process_stands_by_and_leaves_the_store_alone,
    who_asks_by_the_typed_client_reads_everything,
    what_comes_late_for_an_ended_generation_is_refused,
);
