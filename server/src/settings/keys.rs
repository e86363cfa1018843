//! Every setting with its default and what it means: the one table from which `threadgraph settings` and
//! docs/settings.md are made.

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name as in the file, e.g. `log.format`; in the environment `THREADGRAPH_LOG__FORMAT`.
    pub name: &'static str,
    /// Default, as text.
    pub default: &'static str,
    /// What it means, with its unit and allowed values.
    pub meaning: &'static str,
}

const fn key(name: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key {
        name,
        default,
        meaning,
    }
}

/// All of them but those of retrieval, whose names are `rag.` and one of [`tg_rag::KEYS`].
pub const KEYS: &[Key] = &[
    key(
        "listen",
        "127.0.0.1:8888",
        "Address and port of the gateway. Anything but a loopback address needs `auth = iam`.",
    ),
    key(
        "data_dir",
        "",
        "Where stores live. Empty: `threadgraph` below the user's data directory.",
    ),
    key(
        "bus",
        "embedded",
        "`embedded`, or a broker: `amqp://user:password@host:port/vhost`.",
    ),
    key(
        "mode",
        "native",
        "`native`, or `interop`: names and JSON of TrustGraph 2.11, to share a broker with its processors.",
    ),
    key(
        "auth",
        "none",
        "`none` (loopback only, everybody may everything) or `iam` (users with keys).",
    ),
    key(
        "durability",
        "process",
        "How hard a commit is: `process` survives the death of the process, `power` a power loss.",
    ),
    key(
        "log.filter",
        "info,lapin=off",
        "Which log lines are written, in the syntax of `tracing` filters.",
    ),
    key("log.format", "text", "`text` or `json`."),
    key(
        "drain_seconds",
        "20",
        "How long a stop waits for what is in progress, in seconds (1 to 600).",
    ),
    key(
        "agent.max_iterations",
        "10",
        "Steps of an agent run at most (1 to 100).",
    ),
    key(
        "extract.parallel",
        "16",
        "Chunks that an extractor works on at a time (1 to 1,024).",
    ),
    key(
        "embeddings.provider",
        "lexical",
        "`lexical`, `static`, `openai` or `ollama`.",
    ),
    key(
        "embeddings.model",
        "",
        "Model of the provider; empty: its usual one.",
    ),
    key("embeddings.path", "", "Directory of a static model."),
    key(
        "embeddings.url",
        "",
        "Base URL of the provider; empty: its usual one, or its variable.",
    ),
    key(
        "embeddings.key",
        "",
        "Key of the provider; empty: its variable.",
    ),
    key(
        "embeddings.dimensions",
        "",
        "Dimensions asked of the provider; empty: the model's own.",
    ),
    key(
        "embeddings.batch",
        "64",
        "Texts in one question to the provider.",
    ),
    key(
        "embeddings.concurrency",
        "4",
        "Questions to the provider at a time.",
    ),
    key(
        "embeddings.cache_mb",
        "64",
        "Memory of remembered vectors, in MiB.",
    ),
    key(
        "vectors.memory_mb",
        "4096",
        "Memory of vectors in this process, in MiB (16 or more).",
    ),
    key(
        "graph.memory_mb",
        "0",
        "Memory of graphs in this process, in MiB; a graph that does not fit is refused when it is loaded. 0: three quarters of the machine's, or of the container's.",
    ),
    key(
        "graph.query_memory_mb",
        "256",
        "Memory of one SPARQL query, in MiB.",
    ),
    key(
        "graph.queries_memory_mb",
        "1024",
        "Memory of all SPARQL queries in progress, in MiB; a workspace may have half of it.",
    ),
    key(
        "graph.workspace_quads",
        "50000000",
        "Quads of one workspace at most.",
    ),
    key(
        "graph.workspace_mb",
        "16384",
        "Quads and texts of one workspace at most, in MiB, estimated at 200 bytes a quad and its text.",
    ),
    key(
        "rows.workspace_rows",
        "20000000",
        "Rows of one workspace at most.",
    ),
    key(
        "config.restore_hours",
        "168",
        "How long a deleted workspace can be restored before its data is purged, in hours. 0: it is purged at once.",
    ),
    key(
        "flow.put_aside_records",
        "500000",
        "Put-aside records of one workspace at most; a flow may have half of them.",
    ),
    key(
        "flow.put_aside_mb",
        "2048",
        "Put-aside records of one workspace at most, in MiB; a flow may have half of it.",
    ),
    key(
        "library.documents",
        "10000000",
        "Documents of one workspace at most, parts of documents included.",
    ),
    key(
        "library.content_mb",
        "262144",
        "Content of the documents of one workspace at most, in MiB.",
    ),
];

/// The default of a setting.
pub fn default_of(name: &str) -> Option<&'static str> {
    KEYS.iter()
        .find(|key| key.name == name)
        .map(|key| key.default)
}

/// The page of all settings, as docs/settings.md has it.
pub fn page() -> String {
    let mut page = String::from(
        "# Settings\n\nMade from the program's own table by `UPDATE=1 cargo test -p tg-server settings_page`; do not edit.\n\n\
         A setting comes from its flag, else from the environment (`THREADGRAPH_` and its name in capitals, with `__` for \
         each dot), else from `threadgraph.toml`, else it has its default. All mistakes are told at once.\n\n\
         | setting | default | meaning |\n|---|---|---|\n",
    );
    for key in KEYS {
        let default = match key.default {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        page.push_str(&format!(
            "| `{}` | {default} | {} |\n",
            key.name, key.meaning
        ));
    }
    page.push_str("\nOf retrieval, see [retrieval.md](retrieval.md): ");
    let own: Vec<_> = tg_rag::KEYS
        .iter()
        .map(|name| format!("`rag.{name}`"))
        .collect();
    page.push_str(&own.join(", "));
    page.push_str(".\n\nFlags only: `--adopt-store NAME` (repeatable) serves with a store although another one of its name served before.\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_page() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            written,
            page(),
            "run UPDATE=1 cargo test -p tg-server settings_page"
        );
    }
}
