//! The manifests: what all overlays share, one pod with everything (`small`), and a pod of its own for each service (`standard`).

use serde_json::{Value, json};
use tg_server::deployed::DEPLOYED;

use crate::pod::{self, DOOR, NAME, REPLICAS, REPORT, Run, name};
use crate::yaml::{self, Files};
use crate::{policies, production};

/// Service that gives pods with a store their names.
const STORES: &str = "threadgraph-stores";

/// All files below `k8s/`.
pub fn files() -> Files {
    let mut files = Files::new();
    let mut add = |path: &str, documents: &[Value]| {
        files.insert(format!("k8s/{path}"), yaml::file(documents));
    };
    add(
        "base/kustomization.yaml",
        &[kustomization(&["common.yaml"], json!({}))],
    );
    add("base/common.yaml", &common());
    let image = || {
        let version = env!("CARGO_PKG_VERSION");
        json!({"namespace": NAME, "images": [{"name": NAME, "newTag": version}]})
    };
    let small = ["../../base", "up.yaml"];
    add(
        "overlays/small/kustomization.yaml",
        &[kustomization(&small, image())],
    );
    add("overlays/small/up.yaml", &up());
    let standard = [
        "../../base",
        "services.yaml",
        "policies.yaml",
        "budgets.yaml",
    ];
    add(
        "overlays/standard/kustomization.yaml",
        &[kustomization(&standard, image())],
    );
    add("overlays/standard/services.yaml", &services());
    add("overlays/standard/policies.yaml", &policies::of_services());
    add("overlays/standard/budgets.yaml", &budgets());
    let own = ["../standard", "broker.yaml", "scaling.yaml"];
    let zones = json!({"namespace": NAME, "patches": production::patches()});
    add(
        "overlays/production/kustomization.yaml",
        &[kustomization(&own, zones)],
    );
    add("overlays/production/broker.yaml", &production::broker());
    add("overlays/production/scaling.yaml", &production::scaling());
    add("components/own-users/kustomization.yaml", &[own_users()]);
    files
}

/// What an overlay takes in once each service has a user of its own at the broker.
fn own_users() -> Value {
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [production::setting("THREADGRAPH_BROKER__OWN_USERS", "true")],
    })
}

fn kustomization(resources: &[&str], more: Value) -> Value {
    let mut whole = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    whole
}

/// Account, settings, the door and the rule that nothing is open that is not named.
fn common() -> Vec<Value> {
    let settings = json!({
        "THREADGRAPH_AUTH": "iam",
        "THREADGRAPH_DATA_DIR": "/data/threadgraph",
        "THREADGRAPH_DURABILITY": "power",
        "THREADGRAPH_LISTEN": format!("0.0.0.0:{DOOR}"),
        "THREADGRAPH_LOG__FORMAT": "json",
        "THREADGRAPH_REPORT__LISTEN": format!("0.0.0.0:{REPORT}"),
    });
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME},
            "automountServiceAccountToken": false,
        }),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": settings}),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME},
            "spec": {
                "selector": {"threadgraph/door": "open"},
                "ports": [{"name": "http", "port": DOOR, "targetPort": "http", "protocol": "TCP"}],
            },
        }),
        policies::nothing(),
        policies::door(),
        policies::reports(),
    ]
}

fn claim() -> Value {
    json!([{
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "20Gi"}},
        },
    }])
}

fn keeper(run: &Run<'_>) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name(run.name), "labels": pod::selector(run.name)},
        "spec": {
            "serviceName": STORES,
            // In order, a pod that never became ready would stay when what was wrong with it is mended.
            "podManagementPolicy": "Parallel",
            // A second one would only stand by, with an empty volume.
            "replicas": 1,
            "selector": {"matchLabels": pod::selector(run.name)},
            "template": pod::template(run),
            "volumeClaimTemplates": claim(),
        },
    })
}

fn worker(run: &Run<'_>) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name(run.name), "labels": pod::selector(run.name)},
        "spec": {
            "replicas": REPLICAS,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "selector": {"matchLabels": pod::selector(run.name)},
            "template": pod::template(run),
        },
    })
}

fn names() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": STORES},
        "spec": {
            "clusterIP": "None",
            "selector": {"app.kubernetes.io/name": NAME},
            "ports": [{"name": "report", "port": REPORT, "targetPort": "report", "protocol": "TCP"}],
        },
    })
}

fn up() -> Vec<Value> {
    let run = Run {
        name: "up",
        args: vec!["up"],
        door: true,
        models: true,
        broker: false,
        keeps: true,
    };
    vec![
        names(),
        keeper(&run),
        policies::outside("up"),
        budget("up", json!({"maxUnavailable": 1})),
    ]
}

fn services() -> Vec<Value> {
    let each = DEPLOYED.iter().map(|one| match one.is_single() {
        true => keeper(&one.into()),
        false => worker(&one.into()),
    });
    std::iter::once(names()).chain(each).collect()
}

fn budget(service: &str, bound: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": pod::selector(service)}});
    for (key, value) in bound.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name(service)},
        "spec": spec,
    })
}

/// Of workers one stays; what runs once may be moved, or no node could ever be emptied.
fn budgets() -> Vec<Value> {
    let bound = |single| match single {
        true => json!({"maxUnavailable": 1}),
        false => json!({"minAvailable": 1}),
    };
    DEPLOYED
        .iter()
        .map(|one| budget(one.name, bound(one.is_single())))
        .collect()
}
