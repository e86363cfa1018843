//! Names of tools as models write them.

/// Longest tool name.
pub(super) const MAX_NAME: usize = 200;

/// A name without what models put around it.
pub(super) fn clean_name(name: &str) -> &str {
    name.trim()
        .trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | '*'))
        .trim()
}
