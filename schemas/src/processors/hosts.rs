//! Which service hosts which processor. The table never says whether a service runs, or where.

/// The service that hosts a processor of this release, by the name that `threadgraph serve` takes.
pub fn service_of(processor: &str) -> Option<&'static str> {
    Some(match processor {
        "config-svc" => "config",
        "iam-svc" => "iam",
        "flow-svc" => "flow",
        "librarian" => "librarian",
        "knowledge" | "kg-store" => "knowledge",
        "document-decoder" | "chunker" => "ingest",
        "triples-write" | "triples-query" | "sparql-query" => "graph",
        "rows-write" | "rows-query" => "rows",
        "graph-embeddings-write"
        | "doc-embeddings-write"
        | "row-embeddings-write"
        | "graph-embeddings-query"
        | "doc-embeddings-query"
        | "row-embeddings-query"
        | "kw-index" => "vectors",
        "document-embeddings" | "graph-embeddings" | "row-embeddings" | "embeddings" => {
            "embeddings"
        }
        "text-completion" | "text-completion-rag" | "image-to-text" => "llm",
        "prompt" | "prompt-rag" => "prompt",
        "graph-rag" | "document-rag" | "reranker" | "nlp-query" | "structured-query"
        | "structured-diag" => "rag",
        "mcp-tool" => "tool",
        "sessions" => "sessions",
        "threads" => "threads",
        "agent-manager" => "agent",
        "kg-extract-definitions"
        | "kg-extract-relationships"
        | "kg-extract-ontology"
        | "kg-extract-rows"
        | "kg-extract-agent"
        | "violations" => "extract",
        "api-gateway" => "gateway",
        _ => return None,
    })
}
