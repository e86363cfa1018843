//! Services outside flows, and what each of their operations takes.

use tg_schemas::operations;
use tg_schemas::processors::{
    Serves, Spec, TopicScope, agent_manager, config_svc, flow_svc, iam_svc, knowledge, librarian,
    sessions, threads, violations,
};
use tg_schemas::{Message, Reply};

use super::flow_services::KINDS;
use super::gate::Gate::{self, Authenticated, Needs, Public};
use crate::ask::{self, Asks};
use crate::cores;
use crate::engine::translate::audit::Audit;
use crate::engine::translate::collection::Collection;
use crate::engine::translate::config::Config;
use crate::engine::translate::flow::Flow;
use crate::engine::translate::generic::Generic;
use crate::engine::translate::iam::Iam;
use crate::engine::translate::librarian::Librarian;
use crate::engine::translate::operations::Operations;
use crate::engine::translate::threads::Threads;
use crate::engine::translate::traces::Traces;
use crate::engine::translate::usage::Usage;
use crate::engine::translate::violations::Violations;

/// Who answers a service outside flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// Who serves the system topic of this base.
    System(&'static str),
    /// Who serves the topics of workspaces of this base.
    Workspace(&'static str),
    /// The gateway itself.
    Gateway,
}

impl Home {
    /// The processor that serves a spec.
    const fn of<Q: Message, R: Reply>(spec: Spec<Serves<Q, R>>) -> Self {
        match spec.place {
            TopicScope::System => Self::System(spec.name),
            _ => Self::Workspace(spec.name),
        }
    }
}

/// A service outside flows.
pub(crate) struct Service {
    /// Name at the endpoints.
    pub(crate) name: &'static str,
    /// Who answers it.
    pub(crate) home: Home,
    /// Its translator.
    pub(crate) asks: Asks,
    /// Operations by what they need. Those that are types say so themselves.
    pub(super) operations: &'static [(Gate, &'static [&'static str])],
}

impl Service {
    /// What an operation needs; `None` when there is no such operation.
    pub(crate) fn gate(&self, operation: &str) -> Option<Gate> {
        let mut listed = self.operations.iter();
        let listed = listed.find(|(_, names)| names.contains(&operation));
        let declared = || operations::find(self.name, operation);
        listed
            .map(|(gate, _)| *gate)
            .or_else(|| Some(Needs(declared()?.capability)))
    }
}

/// Whether an operation of a workspace's service is about all workspaces: who asks for it needs what it takes everywhere.
pub(crate) fn is_for_all(service: &str, operation: &str) -> bool {
    service == "traces" && matches!(operation, "rotate-signing-key" | "revoke-signing-key")
}

/// Whether an operation of a service has models asked: it declares that itself. A message for a listener does, as a listener may ask
/// the agent.
pub(crate) fn asks_models(service: &str, operation: &str) -> bool {
    match operations::find(service, operation) {
        Some(meta) => meta.asks_models,
        None => service == THREADS && operation == "send-message",
    }
}

/// Requests that go on without their callers, and runs of the agent.
pub(crate) const REQUESTS: &str = "requests";
/// Its operation that replays a run from its record.
pub(crate) const REPLAY: &str = "replay-run";
/// Shows what a run summed up, with the steps that the summary stands for.
pub(crate) const EXPAND: &str = "expand-summary";
/// Has another model sum the same steps up.
pub(crate) const REMAKE: &str = "remake-summary";
/// Agents over time.
pub(crate) const SESSIONS: &str = operations::SESSIONS;
/// Messages for listeners.
const THREADS: &str = "threads";
/// What the gateway says of answers.
pub(crate) const ANSWERS: &str = "answers";

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "iam",
        home: Home::of(iam_svc::IAM),
        asks: ask::ask::<Iam>,
        operations: &[
            (Public, &["login", "bootstrap", "bootstrap-status"]),
            (
                Authenticated,
                &["whoami", "list-my-workspaces", "change-password"],
            ),
            (
                Needs("users:admin"),
                &[
                    "create-user",
                    "disable-user",
                    "enable-user",
                    "delete-user",
                    "reset-password",
                ],
            ),
            (Needs("users:read"), &["list-users", "get-user"]),
            (Needs("users:write"), &["update-user"]),
            (
                Needs("keys:admin"),
                &["create-api-key", "list-api-keys", "revoke-api-key"],
            ),
            (
                Needs("workspaces:admin"),
                &[
                    "create-workspace",
                    "list-workspaces",
                    "get-workspace",
                    "update-workspace",
                    "enable-workspace",
                    "disable-workspace",
                    "delete-workspace",
                    "restore-workspace",
                ],
            ),
            (Needs("mint-token"), &["mint-token"]),
            (
                Needs("iam:admin"),
                &[
                    "rotate-signing-key",
                    "revoke-signing-key",
                    "create-group",
                    "get-group",
                    "list-groups",
                    "update-group",
                    "delete-group",
                    "add-group-member",
                    "remove-group-member",
                    "list-group-members",
                    "add-group-grant",
                    "remove-group-grant",
                    "list-group-grants",
                    "add-user-grant",
                    "remove-user-grant",
                    "list-user-grants",
                    "resolve-effective-permissions",
                ],
            ),
        ],
    },
    Service {
        name: "audit",
        home: Home::of(iam_svc::AUDIT),
        asks: ask::ask::<Audit>,
        operations: &[(Needs("audit:read"), &["list-events"])],
    },
    Service {
        name: REQUESTS,
        home: Home::Gateway,
        // Answered where the requests are.
        asks: ask::ask::<Generic>,
        operations: &[
            (
                Authenticated,
                &[
                    "list-requests",
                    "cancel-request",
                    "list-runs",
                    "list-tasks",
                    "cancel-run",
                    "confirm-run",
                    "why-run",
                    "why-request",
                ],
            ),
            // What it says was said to who may ask the agent.
            (Needs("agent"), &["read-run", REPLAY, EXPAND, REMAKE]),
        ],
    },
    Service {
        name: ANSWERS,
        home: Home::Gateway,
        // Judged here.
        asks: ask::ask::<Generic>,
        operations: &[(Authenticated, &["judge-answer"])],
    },
    Service {
        name: "config",
        home: Home::of(config_svc::CONFIG_OF_WORKSPACE),
        asks: ask::ask::<Config>,
        operations: &[
            (
                Needs("config:read"),
                &["get", "list", "getvalues", "getvalues-all-ws", "config"],
            ),
            (Needs("config:write"), &["put", "delete"]),
        ],
    },
    Service {
        name: "flow",
        home: Home::of(flow_svc::FLOW),
        asks: ask::ask::<Flow>,
        operations: &[
            (
                Needs("flows:read"),
                &[
                    "list-blueprints",
                    "get-blueprint",
                    "check-blueprint",
                    "list-flows",
                    "get-flow",
                    "why",
                    "doctor",
                    "list-put-aside",
                ],
            ),
            (
                Needs("flows:write"),
                &[
                    "put-blueprint",
                    "delete-blueprint",
                    "start-flow",
                    "stop-flow",
                    "show-put-aside",
                    "replay-put-aside",
                    "discard-put-aside",
                ],
            ),
        ],
    },
    Service {
        name: "librarian",
        home: Home::of(librarian::LIBRARIAN),
        asks: ask::ask::<Librarian>,
        operations: &[
            (
                Needs("documents:read"),
                &[
                    "get-document",
                    "get-document-metadata",
                    "get-document-content",
                    "stream-document",
                    "list-documents",
                    "list-children",
                    "get-contents",
                    "list-processing",
                    "processing-status",
                    "get-upload-status",
                    "list-uploads",
                ],
            ),
            (
                Needs("documents:write"),
                &[
                    "add-document",
                    "add-child-document",
                    "remove-document",
                    "update-document",
                    "add-processing",
                    "retry-processing",
                    "reindex",
                    "load-document",
                    "remove-processing",
                    "begin-upload",
                    "upload-chunk",
                    "complete-upload",
                    "abort-upload",
                ],
            ),
        ],
    },
    Service {
        name: "collection-management",
        home: Home::of(librarian::COLLECTION),
        asks: ask::ask::<Collection>,
        operations: &[
            (
                Needs("collections:read"),
                &["list-collections", "show-reembedding"],
            ),
            (
                Needs("collections:write"),
                &[
                    "update-collection",
                    "delete-collection",
                    "reembed-collection",
                    "abandon-reembedding",
                ],
            ),
        ],
    },
    Service {
        name: "traces",
        home: Home::of(agent_manager::TRACES),
        asks: ask::ask::<Traces>,
        operations: &[
            (
                Needs("triples:read"),
                &["sign-traces", "list-ended-runs", "get-signing-key"],
            ),
            (
                Needs("iam:admin"),
                &["rotate-signing-key", "revoke-signing-key"],
            ),
        ],
    },
    Service {
        name: "usage",
        home: Home::of(agent_manager::USAGE_TOTALS),
        asks: ask::ask::<Usage>,
        operations: &[
            (Needs("metrics:read"), &["list-usage"]),
            (Needs("config:write"), &["clear-usage"]),
        ],
    },
    Service {
        name: "knowledge",
        home: Home::of(knowledge::KNOWLEDGE),
        asks: cores::ask,
        operations: &[
            (
                Needs("knowledge:read"),
                &[
                    "get-kg-core",
                    "list-kg-cores",
                    "get-de-core",
                    "list-de-cores",
                ],
            ),
            (
                Needs("knowledge:write"),
                &[
                    "put-kg-core",
                    "delete-kg-core",
                    "load-kg-core",
                    "unload-kg-core",
                    "put-de-core",
                    "delete-de-core",
                    "unload-de-core",
                    "load-de-core",
                ],
            ),
        ],
    },
    Service {
        name: THREADS,
        home: Home::of(threads::THREADS),
        asks: ask::ask::<Threads>,
        operations: &[
            (
                Needs("agent"),
                &["send-message", "list-listeners", "close-thread"],
            ),
            // Why a row cannot be used may repeat what it says.
            (Needs("config:read"), &["list-refused-listeners"]),
            (Needs("iam:admin"), &["show-thread"]),
        ],
    },
    Service {
        name: SESSIONS,
        home: Home::of(sessions::SESSIONS),
        asks: ask::ask::<Operations>,
        operations: &[],
    },
    Service {
        name: "violations",
        home: Home::of(violations::VIOLATIONS),
        asks: ask::ask::<Violations>,
        operations: &[
            (Needs("knowledge:read"), &["list-violations"]),
            (
                Needs("knowledge:write"),
                &["replay-violations", "discard-violations"],
            ),
        ],
    },
];

/// A service outside flows.
pub(crate) fn service(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == name)
}

/// The gate of a capability, where something in the table needs it.
pub(crate) fn gate_of(capability: &str) -> Option<Gate> {
    let kinds = KINDS.iter().map(|kind| kind.gate);
    let listed = SERVICES.iter().flat_map(|service| service.operations);
    let listed = listed.map(|(gate, _)| *gate);
    let declared = operations::ALL.iter().map(|meta| Needs(meta.capability));
    let mut all = kinds.chain(listed).chain(declared);
    all.find(|gate| matches!(gate, Needs(name) if *name == capability))
}

/// Every operation of every service, with what it needs.
#[cfg(test)]
pub(crate) fn all_operations() -> impl Iterator<Item = (&'static str, &'static str, Gate)> {
    let declared = operations::ALL.iter();
    let declared = declared.map(|meta| (meta.service, meta.name, Needs(meta.capability)));
    let listed = SERVICES.iter().flat_map(|service| {
        service.operations.iter().flat_map(move |(gate, names)| {
            names.iter().map(move |name| (service.name, *name, *gate))
        })
    });
    listed.chain(declared)
}

/// Every service outside flows.
#[cfg(test)]
pub(crate) fn all_services() -> impl Iterator<Item = &'static str> {
    SERVICES.iter().map(|service| service.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operation_is_listed_twice() {
        for service in SERVICES {
            let mut names: Vec<_> = service.operations.iter().flat_map(|row| row.1).collect();
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all, "{}", service.name);
        }
    }

    #[test]
    fn operations_ask_models_as_they_declare_and_so_do_messages_for_listeners() {
        for meta in operations::ALL {
            assert_eq!(asks_models(meta.service, meta.name), meta.asks_models);
        }
        assert!(asks_models(THREADS, "send-message"));
        for (service, operation) in [(THREADS, "list-listeners"), ("config", "put")] {
            assert!(!asks_models(service, operation), "{service} {operation}");
        }
    }

    #[test]
    fn the_services_inner_operations_are_not_reachable() {
        let iam = service("iam").unwrap();
        for inner in [
            "authenticate-anonymous",
            "resolve-api-key",
            "resolve-token",
            "authorise",
            "authorise-many",
            "get-signing-key-public",
        ] {
            assert_eq!(iam.gate(inner), None);
        }
        assert_eq!(iam.gate("login"), Some(Public));
        assert_eq!(
            service("config").unwrap().gate("put"),
            Some(Needs("config:write"))
        );
    }
}
