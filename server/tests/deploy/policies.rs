//! Who may talk with whom: nobody, but for clients with the gateway, Prometheus with each report, each service with the broker,
//! and the clients of outside servers with these. Services never talk with each other but through the broker.

use serde_json::{Value, json};
use tg_server::deployed::DEPLOYED;

use crate::pod::{self, NAME, name};

/// Ports of a broker, plain and with TLS.
const BROKER: [u16; 2] = [5671, 5672];

fn policy(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": spec,
    })
}

fn everything() -> Value {
    json!({"matchLabels": {"app.kubernetes.io/name": NAME}})
}

/// The cache of names on each node, where a cluster has one: no pod as far as a policy knows.
const NODE_DNS: &str = "169.254.20.10/32";

/// Nothing is open that another policy does not open; names are resolved.
pub fn nothing() -> Value {
    let dns = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]);
    let to = json!([{"namespaceSelector": {}}, {"ipBlock": {"cidr": NODE_DNS}}]);
    policy(
        "threadgraph-nothing-else",
        json!({
            "podSelector": everything(),
            "policyTypes": ["Ingress", "Egress"],
            "egress": [{"to": to, "ports": dns}],
        }),
    )
}

/// Clients reach the gateway.
pub fn door() -> Value {
    policy(
        "threadgraph-door",
        json!({
            "podSelector": {"matchLabels": {"threadgraph/door": "open"}},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": "http", "protocol": "TCP"}]}],
        }),
    )
}

/// Namespaces with the label `threadgraph/metrics: read` read health and metrics; a node reaches the pods that it probes in any
/// case.
pub fn reports() -> Value {
    let from = json!([{"namespaceSelector": {"matchLabels": {"threadgraph/metrics": "read"}}}]);
    policy(
        "threadgraph-reports",
        json!({
            "podSelector": everything(),
            "policyTypes": ["Ingress"],
            "ingress": [{"from": from, "ports": [{"port": "report", "protocol": "TCP"}]}],
        }),
    )
}

/// What is never outside: private networks, and with them the cluster itself, and the metadata of the machine.
const PRIVATE: [&str; 5] = [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
];
/// The same in IPv6.
const PRIVATE6: [&str; 2] = ["fc00::/7", "fe80::/10"];

/// Servers on public networks. Policies add up: whoever has models in a network of their own writes one for these.
pub fn outside(service: &str) -> Value {
    policy(
        &format!("{}-outside", name(service)),
        json!({
            "podSelector": {"matchLabels": pod::selector(service)},
            "policyTypes": ["Egress"],
            "egress": [{"to": [
                {"ipBlock": {"cidr": "0.0.0.0/0", "except": PRIVATE}},
                {"ipBlock": {"cidr": "::/0", "except": PRIVATE6}},
            ]}],
        }),
    )
}

fn broker(service: &str) -> Value {
    let ports = BROKER.map(|port| json!({"port": port, "protocol": "TCP"}));
    let to = json!([{
        "namespaceSelector": {},
        "podSelector": {"matchLabels": {"app.kubernetes.io/component": "rabbitmq"}},
    }]);
    policy(
        &format!("{}-broker", name(service)),
        json!({
            "podSelector": {"matchLabels": pod::selector(service)},
            "policyTypes": ["Egress"],
            "egress": [{"to": to, "ports": ports}],
        }),
    )
}

/// What each service may reach.
pub fn of_services() -> Vec<Value> {
    let each = DEPLOYED.iter().flat_map(|one| {
        let outside = one.outside.then(|| outside(one.name));
        std::iter::once(broker(one.name)).chain(outside)
    });
    each.collect()
}
