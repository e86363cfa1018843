//! The services of a whole system, by the names that `threadgraph serve` takes.

/// Every service, the one that is asked first.
pub const SERVICES: [&str; 19] = [
    "config",
    "iam",
    "flow",
    "librarian",
    "knowledge",
    "ingest",
    "graph",
    "rows",
    "vectors",
    "embeddings",
    "llm",
    "prompt",
    "rag",
    "tool",
    "sessions",
    "threads",
    "agent",
    "extract",
    "gateway",
];

/// Those that answer a question of the agent from the graph.
pub const ANSWERING: [&str; 10] = [
    "config",
    "iam",
    "flow",
    "librarian",
    "graph",
    "llm",
    "prompt",
    "tool",
    "agent",
    "gateway",
];

/// All of some services but these.
pub fn without(services: &[&'static str], gone: &[&str]) -> Vec<&'static str> {
    let kept = services.iter().filter(|one| !gone.contains(one));
    kept.copied().collect()
}
