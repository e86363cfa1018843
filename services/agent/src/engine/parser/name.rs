//! Names of tools as models write them.

/// Longest tool name.
pub(super) const MAX_NAME: usize = 200;

/// A name without what models put around it.
pub(super) fn clean_name(name: &str) -> &str {
    let name = name.trim().trim_end_matches(['(', ')', ',', ':']);
    name.trim()
        .trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | '*' | '“' | '”' | '‘' | '’'))
        .trim()
}

/// Whether the name says that there is no tool to use.
pub(super) fn is_none(name: &str) -> bool {
    // Some say why.
    let name = name.split('(').next().unwrap_or_default().trim();
    ["none", "n/a", "null", "no action"]
        .iter()
        .any(|none| name.eq_ignore_ascii_case(none))
}

/// Whether what stands for a name says that the answer follows.
pub(super) fn is_answer(name: &str) -> bool {
    ["final answer", "final_answer"]
        .iter()
        .any(|answer| name.eq_ignore_ascii_case(answer))
}
