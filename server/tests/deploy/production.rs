//! What a cluster with operators has beside `standard`: three broker nodes, replicas by the length of queues, and pods in
//! different zones. The kinds of the operators are not Kubernetes' own: no schema of them is at hand, so they are unchecked.

use serde_json::{Value, json};
use tg_server::deployed::{DEPLOYED, Deployed};

use crate::compose;
use crate::pod::{self, NAME, REPLICAS, name};

/// Replicas of a service at most.
const MOST: u64 = 10;
/// Messages that wait for one replica before another is started.
const WAITING: u64 = 64;
/// Queues that KEDA reads at most, of one service: it asks the broker for one page, and a page is no larger.
const QUEUES: u64 = 500;
const BROKER: &str = "threadgraph-broker";
/// The label of a node that says in which zone it is.
const ZONE: &str = "topology.kubernetes.io/zone";

/// What a cluster of brokers is configured with, as RabbitMQ refuses queues that are neither durable nor exclusive since 4.3. With records
/// in quorum queues, questions and inboxes have such queues, because those move to another node.
pub const PERMITS: &str = "deprecated_features.permit.transient_nonexcl_queues = true";

/// Patches of `standard`: records in quorum queues, workers over zones.
pub fn patches() -> Value {
    let queues = setting("THREADGRAPH_BROKER__QUEUES", "quorum");
    std::iter::once(queues).chain(zones()).collect()
}

/// A patch that adds a setting to those that all pods read.
pub fn setting(name: &str, value: &str) -> Value {
    let add = json!([{"op": "add", "path": format!("/data/{name}"), "value": value}]);
    json!({
        "target": {"kind": "ConfigMap", "name": NAME},
        "patch": add.to_string(),
    })
}

/// Whether KEDA says how many replicas a service has. Clients come to the gateway, and no queue.
fn is_scaled(one: &Deployed) -> bool {
    !one.is_single() && one.name != "gateway"
}

/// Patches that spread the workers over zones, and leave their number to KEDA: each `kubectl apply` would set it back.
fn zones() -> Vec<Value> {
    let workers = DEPLOYED.iter().filter(|one| !one.is_single());
    let patch = |one: &Deployed| {
        let spread = pod::spread(ZONE, "DoNotSchedule", one.name);
        let path = "/spec/template/spec/topologySpreadConstraints/-";
        let mut operations = vec![json!({"op": "add", "path": path, "value": spread})];
        if is_scaled(one) {
            operations.push(json!({"op": "remove", "path": "/spec/replicas"}));
        }
        json!({
            "target": {"kind": "Deployment", "name": name(one.name)},
            "patch": Value::from(operations).to_string(),
        })
    };
    workers.map(patch).collect()
}

/// The broker, as its cluster operator makes it: a node in each zone.
pub fn broker() -> Vec<Value> {
    let bounds = "cluster_partition_handling = pause_minority\n\
        # Else all leaders of queues are on the node that the first process connects to.\n\
        queue_leader_locator = balanced\n\
        # Longer than the longest step: what takes longer is handed out again.\n\
        consumer_timeout = 7200000\n";
    let settings = format!("{bounds}{PERMITS}\n");
    let spread = json!({
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": BROKER}},
    });
    // The operator reads this as a whole pod, which has containers; its own are added.
    let pod = json!({"containers": [], "topologySpreadConstraints": [spread]});
    let cluster = json!({
        "apiVersion": "rabbitmq.com/v1beta1",
        "kind": "RabbitmqCluster",
        "metadata": {"name": BROKER},
        "spec": {
            "replicas": 3,
            // Its operator has a newer one each few months. This one has the plugins that the operator starts.
            "image": format!("{}-management", compose::IMAGE),
            "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
            "persistence": {"storage": "50Gi"},
            "override": {"statefulSet": {"spec": {"template": {"spec": pod}}}},
            "rabbitmq": {"additionalConfig": settings},
        },
    });
    // The operator makes none: without two of its nodes no queue takes a record.
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": BROKER},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": BROKER}},
            "maxUnavailable": 1,
        },
    });
    vec![cluster, budget]
}

/// Workers by what waits in their queues.
pub fn scaling() -> Vec<Value> {
    let access = json!({
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "TriggerAuthentication",
        "metadata": {"name": BROKER},
        "spec": {"secretTargetRef": [
            {"parameter": "host", "name": "threadgraph-broker-management", "key": "url"},
        ]},
    });
    let workers = DEPLOYED.iter().filter(|one| is_scaled(one));
    let each = workers.map(|one| {
        let queues = format!(
            "^nt\\.(request|flow)\\..*\\.({})(--.*)?$",
            one.processors.join("|")
        );
        json!({
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"name": name(one.name)},
            "spec": {
                "scaleTargetRef": {"name": name(one.name)},
                "minReplicaCount": REPLICAS,
                "maxReplicaCount": MOST,
                "triggers": [{
                    "type": "rabbitmq",
                    "metadata": {
                        "protocol": "http",
                        "queueName": queues,
                        "useRegex": "true",
                        "pageSize": QUEUES.to_string(),
                        "operation": "sum",
                        "mode": "QueueLength",
                        "value": WAITING.to_string(),
                    },
                    "authenticationRef": {"name": BROKER},
                }],
            },
        })
    });
    std::iter::once(access).chain(each).collect()
}
