//! The one pod that every manifest starts, with the service and its needs as parameters.

use serde_json::{Value, json};
use tg_server::deployed::Deployed;

use crate::memory::memory;

/// Port of the gateway.
pub const DOOR: u16 = 8888;
/// Port on which each process reports.
pub const REPORT: u16 = 9090;
/// Seconds for a stop: `drain_seconds` and what is left to the mesh and to blocking work after it.
pub const GRACE: u64 = 40;
/// Seconds of these in which a gateway still takes clients: until no node sends it any.
pub const LEAVE: u64 = 5;
/// Replicas of a service that keeps nothing.
pub const REPLICAS: u64 = 2;
/// The user that nobody else is.
pub const USER: u64 = 65532;
/// Name of everything.
pub const NAME: &str = "threadgraph";
/// Secret with the address of the broker for each service, under the service's name.
pub const BROKER_SECRET: &str = "threadgraph-broker";
/// Secret with the variables of model providers, such as `OPENAI_API_KEY`; may be missing.
pub const MODEL_SECRET: &str = "threadgraph-model";

/// Name of what runs a service.
pub fn name(service: &str) -> String {
    format!("{NAME}-{service}")
}

/// Labels by which a service's pods are found.
pub fn selector(service: &str) -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": service})
}

/// Labels of a service's pods.
pub fn labels(service: &str, door: bool) -> Value {
    let mut labels = selector(service);
    if door {
        labels["threadgraph/door"] = json!("open");
    }
    labels
}

/// What a pod runs.
pub struct Run<'a> {
    /// Name of the service, or `up`.
    pub name: &'a str,
    /// Arguments of the program.
    pub args: Vec<&'a str>,
    /// It has the gateway.
    pub door: bool,
    /// It has keys of model providers.
    pub models: bool,
    /// It speaks with a broker.
    pub broker: bool,
    /// Its data are on a volume of its own; else nothing of it lasts.
    pub keeps: bool,
}

impl<'a> From<&'a Deployed> for Run<'a> {
    fn from(of: &'a Deployed) -> Self {
        Self {
            name: of.name,
            args: vec!["serve", of.name],
            door: of.name == "gateway",
            models: of.models,
            broker: true,
            // A lease alone needs no disk, but such a service runs once all the same.
            keeps: of.is_single(),
        }
    }
}

/// The template of a pod.
pub fn template(run: &Run<'_>) -> Value {
    let mut volumes = vec![json!({"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}})];
    if !run.keeps {
        volumes.push(json!({"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}));
    }
    json!({
        "metadata": {"labels": labels(run.name, run.door)},
        "spec": {
            "serviceAccountName": NAME,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": GRACE,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "topologySpreadConstraints": [spread("kubernetes.io/hostname", "ScheduleAnyway", run.name)],
            "containers": [container(run)],
            "volumes": volumes,
        },
    })
}

/// Spreads a service's pods over nodes or zones.
pub fn spread(over: &str, unless: &str, service: &str) -> Value {
    json!({
        "maxSkew": 1,
        "topologyKey": over,
        "whenUnsatisfiable": unless,
        "labelSelector": {"matchLabels": selector(service)},
    })
}

fn container(run: &Run<'_>) -> Value {
    let memory = memory(run.name);
    let mut env: Vec<Value> = memory
        .shares
        .iter()
        .map(|(name, mib)| json!({"name": format!("THREADGRAPH_{name}"), "value": mib.to_string()}))
        .collect();
    if run.broker {
        env.push(json!({
            "name": "THREADGRAPH_BUS",
            "valueFrom": {"secretKeyRef": {"name": BROKER_SECRET, "key": run.name}},
        }));
    }
    let mut from = vec![json!({"configMapRef": {"name": NAME}})];
    if run.models {
        from.push(json!({"secretRef": {"name": MODEL_SECRET, "optional": true}}));
    }
    let mut ports = vec![json!({"name": "report", "containerPort": REPORT, "protocol": "TCP"})];
    if run.door {
        ports.push(json!({"name": "http", "containerPort": DOOR, "protocol": "TCP"}));
    }
    let probe = |path: &str, period: u64, failures: u64| {
        json!({
            "httpGet": {"path": path, "port": "report"},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        })
    };
    let mut whole = json!({
        "name": NAME,
        "image": NAME,
        "imagePullPolicy": "IfNotPresent",
        "args": run.args,
        "env": env,
        "envFrom": from,
        "ports": ports,
        // A large store takes minutes to open after a crash; it lives meanwhile.
        "startupProbe": probe("/health/live", 2, 60),
        "livenessProbe": probe("/health/live", 10, 6),
        "readinessProbe": probe("/health/ready", 5, 2),
        "resources": {
            "requests": {"cpu": "100m", "memory": format!("{}Mi", memory.request)},
            "limits": {"memory": format!("{}Mi", memory.limit)},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    });
    if run.door {
        // The image has no program that sleeps.
        whole["lifecycle"] = json!({"preStop": {"sleep": {"seconds": LEAVE}}});
    }
    whole
}
