//! Tools that are known by name: those of the shipped configuration that look things up, count and tell the time.

pub(super) const ABOUT: &str = "graph_about";
pub(super) const SPARQL: &str = "graph_sparql";
pub(super) const PATTERN: &str = "graph_pattern";
pub(super) const CALCULATOR: &str = "calculator";
pub(super) const CLOCK: &str = "current_datetime";

/// All of them, and those that take the id of something and never a question.
pub(super) const NAMED: &[&str] = &[
    ABOUT,
    SPARQL,
    PATTERN,
    CALCULATOR,
    CLOCK,
    "list_documents",
    "count_documents",
    "summarize_kb",
    "list_chunks",
    "get_document",
];
