//! What stands in the place of a secret in rows of configuration, for who may read them and not write them. Who takes rows from one system to another
//! knows it, too: a mask is never written over what it stands for.

/// What stands in the place of a secret.
pub const MASK: &str = "********";

/// Types of rows that are text of people (prompts, descriptions) or names of fields (schemas), where a word such as `token` is
/// no credential. Any other may hold one, whoever it is for.
const HOLD_NONE: [&str; 9] = [
    "prompt",
    "schema",
    "ontology",
    "collection",
    crate::price::ROWS,
    "interface-description",
    "agent-task-type",
    "agent-pattern",
    "agent-definition",
];

/// Whether rows of a type may hold secrets. Those that leave their type to the question may hold anything.
pub fn may_hold_secrets(kind: &str) -> bool {
    !HOLD_NONE.contains(&kind)
}

/// Whether a value holds what stands for a secret that was not shown.
pub fn is_masked(value: &str) -> bool {
    value.contains(MASK)
}
