//! Patterns of paths by which the guard tells requests apart. Which endpoint serves each is said in `routes.rs`.

use tg_schemas::operations::{ALL, Operation, SendConversationMessage, SendMessage};

/// What was built into the program, and holds no data: whoever links to it may.
pub(crate) const PAGES: [&str; 6] = [
    "/",
    "/index.html",
    "/docs",
    "/assets/{file}",
    "/openapi.yaml",
    "/asyncapi.yaml",
];
/// Streams in bulk, whose clients may have their key in the address.
pub(crate) const IMPORT: &str = "/api/v1/flow/{flow}/import/{kind}";
/// The other way.
pub(crate) const EXPORT: &str = "/api/v1/flow/{flow}/export/{kind}";

/// The page on which a user signs in for a client of `/mcp`.
pub(crate) const AUTHORIZE: &str = "/oauth/authorize";

/// The workspaces themselves.
pub(crate) const WORKSPACES: &str = "/api/v1/workspaces";

/// Whether a pattern serves what was built into the program.
pub(crate) fn is_of_page(pattern: &str) -> bool {
    PAGES.contains(&pattern)
}

/// Whether a pattern takes messages whose turns go on without their client.
pub(crate) fn is_of_turn(pattern: &str) -> bool {
    let turns = [
        SendMessage::META.path,
        SendMessage::META.stream,
        // With events such a turn ends with its client, unless the client says `detach`.
        SendConversationMessage::META.path,
    ];
    turns.contains(&pattern)
}

/// Whether a pattern answers an operation with events, which a client may leave and join again.
pub(crate) fn is_of_events(pattern: &str) -> bool {
    let mut streams = ALL.iter().map(|meta| meta.stream);
    !pattern.is_empty() && streams.any(|stream| stream == pattern)
}

/// Whether a pattern is of streams in bulk.
pub(crate) fn is_bulk(pattern: &str) -> bool {
    matches!(pattern, IMPORT | EXPORT)
}
