//! Kinds of streams of records, into a flow and out of one, and what each takes.

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
