//! The table of what can be asked through the gateway, and which capability it takes.
//!
//! What is not in the table does not exist for clients.

use tg_schemas::processors::{
    Serves, Spec, TopicScope, agent_manager, config_svc, flow_svc, iam_svc, knowledge, librarian,
    violations,
};
use tg_schemas::{Message, Reply};

use crate::ask::{self, Asks};
use crate::cores;
use crate::engine::translate::agent::Agent;
use crate::engine::translate::audit::Audit;
use crate::engine::translate::collection::Collection;
use crate::engine::translate::completion::Completion;
use crate::engine::translate::config::Config;
use crate::engine::translate::embeddings::Embeddings;
use crate::engine::translate::flow::Flow;
use crate::engine::translate::generic::Generic;
use crate::engine::translate::iam::Iam;
use crate::engine::translate::image::ImageToText;
use crate::engine::translate::librarian::Librarian;
use crate::engine::translate::load::{DocumentLoad, TextLoad};
use crate::engine::translate::passthrough::Passthrough;
use crate::engine::translate::prompt::Prompt;
use crate::engine::translate::rag::{DocumentRag, GraphRag};
use crate::engine::translate::reranker::Reranker;
use crate::engine::translate::rows::Rows;
use crate::engine::translate::sparql::Sparql;
use crate::engine::translate::structured::{NlpQuery, StructuredDiag, StructuredQuery};
use crate::engine::translate::tool::Tool;
use crate::engine::translate::traces::Traces;
use crate::engine::translate::triples::TriplesQuery;
use crate::engine::translate::vectors::{
    DocumentEmbeddings, GraphEmbeddings, KeywordIndex, RowEmbeddings,
};
use crate::engine::translate::violations::Violations;

/// What a caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Nothing.
    Public,
    /// To be known.
    Authenticated,
    /// A capability.
    Needs(&'static str),
}

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
    /// Operations by what they need.
    operations: &'static [(Gate, &'static [&'static str])],
}

/// A kind of flow service.
pub(crate) struct Kind {
    /// Name at the endpoints, and of the interface.
    pub(crate) name: &'static str,
    /// What it needs.
    pub(crate) gate: Gate,
    /// Its translator.
    pub(crate) asks: Asks,
    /// It is an input of the flow, which the librarian fills.
    pub(crate) input: bool,
    /// It leaves something behind but its answer: it may go on without its caller.
    pub(crate) lasting: bool,
}

use Gate::{Authenticated, Needs, Public};

/// What the gateway says of answers.
pub(crate) const ANSWERS: &str = "answers";

const SERVICES: &[Service] = &[
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
        name: "requests",
        home: Home::Gateway,
        // Answered where the requests are.
        asks: ask::ask::<Generic>,
        operations: &[(Authenticated, &["list-requests", "cancel-request"])],
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
            (Needs("collections:read"), &["list-collections"]),
            (
                Needs("collections:write"),
                &["update-collection", "delete-collection"],
            ),
        ],
    },
    Service {
        name: "traces",
        home: Home::of(agent_manager::TRACES),
        asks: ask::ask::<Traces>,
        operations: &[(
            Needs("triples:read"),
            &["sign-traces", "list-ended-runs", "get-signing-key"],
        )],
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

const fn kind(name: &'static str, capability: &'static str, asks: Asks) -> Kind {
    Kind {
        name,
        gate: Needs(capability),
        asks,
        input: false,
        lasting: false,
    }
}

const fn lasting(name: &'static str, capability: &'static str, asks: Asks) -> Kind {
    Kind {
        lasting: true,
        ..kind(name, capability, asks)
    }
}

const fn load(name: &'static str, asks: Asks) -> Kind {
    Kind {
        name,
        gate: Needs("documents:write"),
        asks,
        input: true,
        lasting: true,
    }
}

const KINDS: &[Kind] = &[
    lasting("agent", "agent", ask::ask::<Agent>),
    kind("text-completion", "llm", ask::ask::<Completion>),
    kind("prompt", "llm", ask::ask::<Prompt>),
    lasting("mcp-tool", "mcp", ask::ask::<Tool>),
    kind("triples", "triples:read", ask::ask::<TriplesQuery>),
    kind("sparql", "sparql:read", ask::ask::<Sparql>),
    load("text-load", ask::ask::<TextLoad>),
    load("document-load", ask::ask::<DocumentLoad>),
    lasting("graph-rag", "graph-rag:read", ask::ask::<GraphRag>),
    lasting("document-rag", "document-rag:read", ask::ask::<DocumentRag>),
    kind("embeddings", "embeddings", ask::ask::<Embeddings>),
    kind(
        "graph-embeddings",
        "graph-embeddings:read",
        ask::ask::<GraphEmbeddings>,
    ),
    kind(
        "document-embeddings",
        "document-embeddings:read",
        ask::ask::<DocumentEmbeddings>,
    ),
    kind(
        "row-embeddings",
        "row-embeddings:read",
        ask::ask::<RowEmbeddings>,
    ),
    // Finds chunks, as their vectors do.
    kind(
        "keyword-index",
        "document-embeddings:read",
        ask::ask::<KeywordIndex>,
    ),
    kind("rows", "rows:read", ask::ask::<Rows>),
    kind("nlp-query", "nlp-query:read", ask::ask::<NlpQuery>),
    kind(
        "structured-query",
        "structured-query:read",
        ask::ask::<StructuredQuery>,
    ),
    kind(
        "structured-diag",
        "structured-query:read",
        ask::ask::<StructuredDiag>,
    ),
    kind("reranker", "reranker", ask::ask::<Reranker>),
    kind("image-to-text", "image-to-text", ask::ask::<ImageToText>),
    kind("cloze", "cloze", ask::ask::<Generic>),
    kind("decision-scoring", "decision-scoring", ask::ask::<Generic>),
    kind("field-extraction", "field-extraction", ask::ask::<Generic>),
];

/// Any interface, by name: `thru/<interface>`. Who may look at the flows of a workspace may use it, see
/// [`thru_gate`].
pub(crate) const THRU: Kind = Kind {
    name: "thru",
    gate: Needs("flows:read"),
    asks: ask::ask::<Passthrough>,
    input: false,
    lasting: true,
};

/// Kinds of import sockets.
pub(crate) const IMPORTS: &[(&str, &str)] = &[
    ("triples", "triples:write"),
    ("graph-embeddings", "graph-embeddings:write"),
    ("document-embeddings", "document-embeddings:write"),
    ("entity-contexts", "entity-contexts:write"),
    ("rows", "rows:write"),
];

/// Kinds of export sockets.
pub(crate) const EXPORTS: &[(&str, &str)] = &[
    ("triples", "triples:read"),
    ("graph-embeddings", "graph-embeddings:read"),
    ("document-embeddings", "document-embeddings:read"),
    ("entity-contexts", "entity-contexts:read"),
    ("rows", "rows:read"),
];

/// A service outside flows.
pub(crate) fn service(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == name)
}

/// A kind of flow service.
pub(crate) fn flow_kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Whether a kind stands for any interface.
pub(crate) fn is_thru(kind: &Kind) -> bool {
    kind.name == THRU.name
}

/// Whether `thru/<interface>` speaks the messages of the kind of that name. Those of `agent` have fields that
/// are not for clients.
pub(crate) fn takes_raw(interface: &str) -> bool {
    interface != "agent" && flow_kind(interface).is_some()
}

/// What `thru/<interface>` needs: what the kind of that name needs, so that the way around the translators is
/// no way around the capabilities.
pub(crate) fn thru_gate(interface: &str) -> Gate {
    flow_kind(interface).map_or(THRU.gate, |kind| kind.gate)
}

/// The capability of a kind in [`IMPORTS`] or [`EXPORTS`].
pub(crate) fn bulk(
    table: &'static [(&'static str, &'static str)],
    kind: &str,
) -> Option<&'static str> {
    table
        .iter()
        .find(|(name, _)| *name == kind)
        .map(|(_, capability)| *capability)
}

/// What there is nothing of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// A service outside flows.
    Service,
    /// An operation of this one.
    Operation(&'static str),
    /// A kind of flow service.
    Kind,
    /// A kind of import.
    Import,
    /// A kind of export.
    Export,
}

impl Unknown {
    /// What there is instead.
    pub(crate) fn known(self) -> String {
        let bulk = |table: &[(&'static str, _)]| table.iter().map(|row| row.0).collect();
        let names: Vec<&str> = match self {
            Self::Service => SERVICES.iter().map(|service| service.name).collect(),
            Self::Operation(name) => service(name)
                .into_iter()
                .flat_map(|service| service.operations.iter().flat_map(|row| row.1))
                .copied()
                .collect(),
            Self::Kind => KINDS.iter().map(|kind| kind.name).collect(),
            Self::Import => bulk(IMPORTS),
            Self::Export => bulk(EXPORTS),
        };
        match self {
            Self::Service => format!("; the services are {}", names.join(", ")),
            Self::Operation(of) => format!("; those of {of} are {}", names.join(", ")),
            _ => format!("; the kinds are {}", names.join(", ")),
        }
    }
}

/// Every operation of every service, with what it needs.
#[cfg(test)]
pub(crate) fn all_operations() -> impl Iterator<Item = (&'static str, &'static str, Gate)> {
    SERVICES.iter().flat_map(|service| {
        service.operations.iter().flat_map(move |(gate, names)| {
            names.iter().map(move |name| (service.name, *name, *gate))
        })
    })
}

/// Every service outside flows.
#[cfg(test)]
pub(crate) fn all_services() -> impl Iterator<Item = &'static str> {
    SERVICES.iter().map(|service| service.name)
}

/// Every kind of flow service.
#[cfg(test)]
pub(crate) fn all_kinds() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter()
}

impl Service {
    /// What an operation needs; `None` when there is no such operation.
    pub(crate) fn gate(&self, operation: &str) -> Option<Gate> {
        self.operations
            .iter()
            .find(|(_, names)| names.contains(&operation))
            .map(|(gate, _)| *gate)
    }
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
