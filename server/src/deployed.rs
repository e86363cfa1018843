//! What runs where, when each service is a process of its own: the processors of each service, the stores that it owns and
//! whether it talks to servers outside. Manifests, network policies and the broker's permissions are derived from it; a test
//! holds it against what the services really host.

use tg_schemas::processors::{ProcessorSpec, processor};

/// A service as it is deployed.
#[derive(Debug, Clone, Copy)]
pub struct Deployed {
    /// Its name, as `threadgraph serve` knows it.
    pub name: &'static str,
    /// Its processors, by id.
    pub processors: &'static [&'static str],
    /// Its stores. A service with a store runs once.
    pub stores: &'static [&'static str],
    /// It is a client of servers outside: model providers, tools, an issuer of tokens.
    pub outside: bool,
    /// It has keys of model providers: no other service is given them.
    pub models: bool,
}

const fn row(
    name: &'static str,
    processors: &'static [&'static str],
    stores: &'static [&'static str],
) -> Deployed {
    Deployed {
        name,
        processors,
        stores,
        outside: false,
        models: false,
    }
}

const fn models(name: &'static str, processors: &'static [&'static str]) -> Deployed {
    Deployed {
        outside: true,
        models: true,
        ..row(name, processors, &[])
    }
}

/// All services, in the order in which they start.
#[rustfmt::skip]
pub const DEPLOYED: [Deployed; 19] = [
    row("config", &["config-svc"], &["config-svc"]),
    Deployed { outside: true, ..row("iam", &["iam-svc"], &["iam-svc"]) },
    row("flow", &["flow-svc"], &["flow-svc"]),
    row("librarian", &["librarian"], &["librarian"]),
    row("knowledge", &["knowledge", "kg-store"], &["knowledge"]),
    row("ingest", &["document-decoder", "chunker"], &[]),
    row("graph", &["triples-write", "triples-query", "sparql-query"], &["graph"]),
    row("rows", &["rows-write", "rows-query"], &["rows"]),
    row("vectors", &["graph-embeddings-write", "doc-embeddings-write", "row-embeddings-write", "graph-embeddings-query", "doc-embeddings-query", "row-embeddings-query", "kw-index"], &["vectors", "keywords"]),
    models("embeddings", &["document-embeddings", "graph-embeddings", "row-embeddings", "embeddings"]),
    models("llm", &["text-completion", "text-completion-rag", "image-to-text"]),
    row("prompt", &["prompt", "prompt-rag"], &[]),
    models("rag", &["graph-rag", "document-rag", "reranker", "nlp-query", "structured-query", "structured-diag"]),
    Deployed { outside: true, ..row("tool", &["mcp-tool"], &[]) },
    row("sessions", &["sessions"], &["sessions"]),
    row("threads", &["threads"], &["threads"]),
    row("agent", &["agent-manager"], &["agent-manager"]),
    row("extract", &["kg-extract-definitions", "kg-extract-relationships", "kg-extract-ontology", "kg-extract-rows", "kg-extract-agent", "violations"], &["extract"]),
    row("gateway", &["api-gateway"], &[]),
];

impl Deployed {
    /// Its rows of the table of processors.
    pub fn declared(&self) -> impl Iterator<Item = &'static ProcessorSpec> {
        self.processors.iter().filter_map(|id| processor(id))
    }

    /// Whether it runs once: another process of it would only stand by.
    pub fn is_single(&self) -> bool {
        !self.stores.is_empty()
    }
}

/// A service by name.
pub fn service(name: &str) -> Option<&'static Deployed> {
    DEPLOYED.iter().find(|one| one.name == name)
}
