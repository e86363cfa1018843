//! Which role may do what. The only place that says so.

/// How far a role reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleScope {
    /// The workspace that is the user's home.
    Home,
    /// Every workspace.
    All,
}

/// A role: a name for capabilities.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// Its name.
    pub name: &'static str,
    /// Where it holds.
    pub scope: RoleScope,
    /// The role whose capabilities it has too.
    pub extends: Option<&'static str>,
    /// What it adds.
    pub adds: &'static [&'static str],
}

/// The roles there are.
pub const ROLES: &[Role] = &[
    Role {
        name: "reader",
        scope: RoleScope::Home,
        extends: None,
        adds: &[
            "agent",
            "graph:read",
            "triples:read",
            "sparql:read",
            "graph-rag:read",
            "graph-embeddings:read",
            "documents:read",
            "document-rag:read",
            "document-embeddings:read",
            "entity-contexts:read",
            "rows:read",
            "nlp-query:read",
            "structured-query:read",
            "row-embeddings:read",
            "llm",
            "embeddings",
            "reranker",
            "image-to-text",
            "cloze",
            "decision-scoring",
            "field-extraction",
            "mcp",
            "config:read",
            "flows:read",
            "collections:read",
            "knowledge:read",
            "agents:read",
            "keys:self",
        ],
    },
    Role {
        name: "writer",
        scope: RoleScope::Home,
        extends: Some("reader"),
        adds: &[
            "graph:write",
            "triples:write",
            "graph-embeddings:write",
            "document-embeddings:write",
            "entity-contexts:write",
            "documents:write",
            "rows:write",
            "collections:write",
            "knowledge:write",
            "agents:write",
        ],
    },
    Role {
        name: "admin",
        scope: RoleScope::All,
        extends: Some("writer"),
        adds: &[
            "config:write",
            "flows:write",
            "users:read",
            "users:write",
            "users:admin",
            "keys:admin",
            "workspaces:admin",
            "iam:admin",
            "metrics:read",
            "mint-token",
            "audit:read",
        ],
    },
];

impl Role {
    /// A role by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ROLES.iter().find(|role| role.name == name)
    }

    /// Whether the role, or one that it extends, has the capability.
    pub fn has(&self, capability: &str) -> bool {
        self.adds.contains(&capability)
            || self
                .extends
                .and_then(Self::find)
                .is_some_and(|base| base.has(capability))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edge asks about these.
    #[test]
    fn the_edge_knows_all_roles() {
        let own: Vec<_> = ROLES.iter().map(|role| role.name).collect();
        let asked = tg_schemas::roles::ROLES;
        assert_eq!(own, asked.map(|(name, _)| name));
        for (name, capability) in asked {
            assert_eq!(capability.strip_prefix(tg_schemas::roles::ROLE), Some(name));
        }
    }
}
