//! No circle of files within a crate.

use std::collections::BTreeSet;

use tg_architecture_tests::imports::Graph;
use tg_architecture_tests::source::shipped;

/// Crates in which no file may reach itself through its imports. One that is freed of its circles joins the list.
const FREE: &[&str] = &[
    "schemas",
    "crates/bus",
    "crates/citations",
    "crates/clients",
    "crates/collections",
    "crates/compaction",
    "crates/console",
    "crates/core-file",
    "crates/counted-alloc",
    "crates/document",
    "crates/jwt",
    "crates/mesh",
    "crates/provenance",
    "crates/provider-http",
    "crates/reader",
    "crates/replies",
    "crates/rpc",
    "crates/runs",
    "crates/settings",
    "crates/storage",
    "crates/telemetry",
    "crates/templates",
    "crates/threads",
    "crates/tls",
    "crates/tokens",
    "services/agent",
    "services/config",
    "services/embeddings",
    "services/extract",
    "services/flow",
    "services/gateway",
    "services/graph",
    "services/iam",
    "services/ingest",
    "services/knowledge",
    "services/librarian",
    "services/llm",
    "services/prompt",
    "services/rag",
    "services/rows",
    "services/sessions",
    "services/threads",
    "services/tool",
    "services/vectors",
];

#[test]
fn no_file_reaches_itself() {
    let sources = shipped();
    let mut report = String::new();
    for package in FREE {
        let graph = Graph::new(package, &sources);
        assert!(!graph.arrows().is_empty(), "{package} has no files");
        for circle in graph.circles() {
            report.push_str(&format!("{package}: {} files\n", circle.len()));
            for (from, targets) in graph.arrows() {
                for to in targets {
                    if circle.contains(&from) && circle.contains(&to) {
                        report.push_str(&format!("  {from} -> {to}\n"));
                    }
                }
            }
        }
    }
    assert!(
        report.is_empty(),
        "files that import each other in a circle:\n{report}"
    );
}

#[test]
fn every_storey_is_looked_at() {
    let sources = shipped();
    let packages = sources.iter().map(|source| source.package());
    let found: BTreeSet<&str> = packages
        .filter(|package| *package == "schemas" || package.starts_with("crates/"))
        // A build script is a file by itself.
        .filter(|package| !package.ends_with("/build.rs"))
        .filter(|package| !FREE.contains(package))
        .collect();
    assert!(found.is_empty(), "storeys that nobody looks at: {found:?}");
}
