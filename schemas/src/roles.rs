//! Roles as the edge asks about them, and what a key's scopes say besides capabilities. What a role may do is known to the iam
//! service alone.

/// Before the name of a role: the capability that stands for having it, whole, in a workspace.
pub const ROLE: &str = "role:";
/// Before the name of a tool, in the scopes of a key: agents that it asks use the tool without asking first.
pub const TOOL: &str = "tool:";
/// The roles there are, and the capability that stands for each.
pub const ROLES: [(&str, &str); 3] = [
    ("reader", "role:reader"),
    ("writer", "role:writer"),
    ("admin", "role:admin"),
];
