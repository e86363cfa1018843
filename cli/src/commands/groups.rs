//! The commands by what they are for, as `tg --help` lists them, and what else people call them.

/// A line of the help: a title, and the names under it.
pub type Group = (&'static str, &'static [&'static str]);

/// What a newcomer needs.
pub const FIRST: Group = (
    "First steps",
    &[
        "add",
        "ask",
        "show-library-documents",
        "show-explain-trace",
        "doctor",
    ],
);

/// Every command, each once.
pub const GROUPS: &[Group] = &[
    (
        "Ask",
        &[
            "ask",
            "chat",
            "invoke-agent",
            "console",
            "list-agents",
            "show-agent",
            "put-agent",
            "delete-agent",
            "list-agent-templates",
            "list-sessions",
            "show-session",
            "compact-session",
            "show-session-lineage",
            "expand-session-summary",
            "undo-compaction",
            "export-session",
            "import-session",
            "list-memories",
            "forget-memory",
            "show-tenant-config",
            "set-tenant-config",
            "call",
            "invoke-document-rag",
            "invoke-graph-rag",
            "invoke-structured-query",
            "invoke-llm",
            "describe-image",
            "invoke-prompt",
            "invoke-mcp-tool",
        ],
    ),
    (
        "Answers and where they come from",
        &[
            "list-explain-traces",
            "show-explain-trace",
            "verify-trace",
            "sign-traces",
            "show-extraction-provenance",
        ],
    ),
    (
        "Documents",
        &[
            "add",
            "add-library-document",
            "show-library-documents",
            "get-document-content",
            "remove-library-document",
            "start-library-processing",
            "show-library-processing",
            "stop-library-processing",
            "process-status",
            "reindex",
            "sync",
            "update-document",
            "load-sample-documents",
        ],
    ),
    (
        "Graph and search",
        &[
            "query-graph",
            "show-graph",
            "invoke-sparql-query",
            "graph-to-turtle",
            "load-turtle",
            "load-knowledge",
            "invoke-embeddings",
            "invoke-graph-embeddings",
            "invoke-document-embeddings",
            "invoke-row-embeddings",
            "invoke-reranker",
        ],
    ),
    (
        "Tables",
        &[
            "load-structured-data",
            "save-rows",
            "load-rows",
            "invoke-rows-query",
            "invoke-nlp-query",
        ],
    ),
    (
        "Collections and cores",
        &[
            "set-collection",
            "list-collections",
            "delete-collection",
            "reembed-collection",
            "show-kg-cores",
            "get-kg-core",
            "put-kg-core",
            "load-kg-core",
            "unload-kg-core",
            "delete-kg-core",
            "show-de-cores",
            "get-de-core",
            "put-de-core",
            "load-de-core",
            "unload-de-core",
            "delete-de-core",
            "save-doc-embeds",
            "load-doc-embeds",
            "save-vectors",
            "load-vectors",
            "dump-msgpack",
        ],
    ),
    (
        "Flows",
        &[
            "show-flows",
            "start-flow",
            "stop-flow",
            "show-flow-state",
            "show-flow-blueprints",
            "get-flow-blueprint",
            "put-flow-blueprint",
            "delete-flow-blueprint",
            "check-blueprint",
            "show-parameter-types",
        ],
    ),
    (
        "What goes on",
        &[
            "doctor",
            "why",
            "verify-system-status",
            "show-processor-state",
            "dead-letters",
            "parked",
            "violations",
            "list-requests",
            "cancel-request",
            "list-runs",
            "list-tasks",
            "attach",
            "replay",
            "diff-traces",
            "cancel",
            "confirm",
            "close-thread",
            "expand-summary",
            "remake-summary",
            "show-token-rate",
            "show-usage",
            "clear-usage",
            "show-token-costs",
            "set-token-costs",
        ],
    ),
    (
        "Tools, prompts, models",
        &[
            "show-tools",
            "set-tool",
            "delete-tool",
            "show-mcp-tools",
            "list-mcp-tools",
            "set-mcp-tool",
            "delete-mcp-tool",
            "mcp-server",
            "show-prompts",
            "set-prompt",
            "list-models",
            "models",
            "route",
            "show-model-health",
        ],
    ),
    (
        "Configuration, backup",
        &[
            "show-config",
            "get-config-item",
            "put-config-item",
            "list-config-items",
            "delete-config-item",
            "export-workspace-config",
            "import-workspace-config",
            "export-workspace",
            "import-workspace",
            "backup",
            "restore",
        ],
    ),
    (
        "Access",
        &[
            "login",
            "logout",
            "profiles",
            "whoami",
            "bootstrap-iam",
            "list-users",
            "create-user",
            "update-user",
            "disable-user",
            "enable-user",
            "delete-user",
            "change-password",
            "reset-password",
            "mint-token",
            "rotate-signing-key",
            "revoke-signing-key",
            "list-groups",
            "create-group",
            "update-group",
            "delete-group",
            "list-group-members",
            "add-group-member",
            "remove-group-member",
            "list-grants",
            "add-grant",
            "remove-grant",
            "show-permissions",
            "audit-isolation",
            "show-audit",
            "create-api-key",
            "list-api-keys",
            "revoke-api-key",
            "list-workspaces",
            "list-my-workspaces",
            "create-workspace",
            "enable-workspace",
            "disable-workspace",
            "delete-workspace",
            "restore-workspace",
        ],
    ),
    ("This program", &["links", "completions", "man-pages"]),
];

/// What people type who do not know the name yet, and the commands they look for.
pub const SYNONYMS: &[(&str, &[&str])] = &[
    ("agent", &["invoke-agent"]),
    ("audit", &["show-audit"]),
    ("blueprints", &["show-flow-blueprints"]),
    ("collections", &["list-collections"]),
    ("config", &["show-config", "put-config-item"]),
    ("documents", &["show-library-documents"]),
    ("editor", &["mcp-server"]),
    ("errors", &["dead-letters", "why"]),
    ("export", &["export-workspace", "graph-to-turtle"]),
    ("flows", &["show-flows", "start-flow", "stop-flow"]),
    ("health", &["doctor", "verify-system-status"]),
    ("import", &["import-workspace", "load-turtle"]),
    ("image", &["describe-image"]),
    ("keys", &["list-api-keys", "create-api-key"]),
    ("library", &["show-library-documents"]),
    ("llm", &["invoke-llm", "list-models", "route"]),
    ("logs", &["why", "dead-letters"]),
    ("ls", &["show-library-documents", "show-flows"]),
    ("mcp", &["mcp-server", "show-mcp-tools", "set-mcp-tool"]),
    ("ps", &["show-processor-state", "process-status"]),
    ("question", &["ask"]),
    ("rag", &["invoke-document-rag", "invoke-graph-rag"]),
    ("search", &["ask", "invoke-document-rag", "query-graph"]),
    ("sparql", &["invoke-sparql-query"]),
    ("status", &["doctor", "process-status", "show-flow-state"]),
    ("tools", &["show-tools"]),
    ("traces", &["list-explain-traces"]),
    ("upload", &["add", "add-library-document"]),
    ("workspaces", &["list-my-workspaces", "list-workspaces"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ALL;

    #[test]
    fn every_command_is_listed_once() {
        let mut listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let mut known: Vec<&str> = ALL.iter().map(|row| row.name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn what_is_advised_exists_and_no_synonym_hides_a_command() {
        let known = |name: &&str| ALL.iter().any(|row| row.name == *name);
        assert!(FIRST.1.iter().all(known));
        for (word, names) in SYNONYMS {
            assert!(
                !ALL.iter().any(|row| row.names().any(|name| name == *word)),
                "{word}"
            );
            assert!(names.iter().all(known), "{word}");
        }
    }
}
