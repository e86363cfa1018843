//! Limits of bytes stand in one table, `schemas/src/limits.rs`, where they are held to agree. What only one file knows of is
//! listed here with its reason.

use tg_architecture_tests::source::{Source, shipped};
use tg_architecture_tests::text::{is_word, line_of};

/// The table.
const TABLE: &str = "schemas/src/limits.rs";

/// Constants that bound nothing which a message, a row or a request carries from one layer to another: why, and which.
const OTHERS: &[(&str, &[(&str, &str)])] = &[
    (
        "the stack of a thread",
        &[
            ("crates/storage/src/lib.rs", "STACK"),
            ("server/src/main.rs", "STACK"),
            ("services/graph/src/store/embedded/shared.rs", "CHORES"),
            (
                "services/graph/src/store/embedded/sparql/start.rs",
                "OF_BRACKETS",
            ),
            ("services/ingest/src/decode/mod.rs", "STACK"),
            ("services/vectors/src/engine/scan.rs", "STACK"),
        ],
    ),
    (
        "how much is read, written or packed together; a single item may be larger",
        &[
            ("cli/src/commands/config/mod.rs", "TOGETHER"),
            ("cli/src/commands/cores/transfer.rs", "BYTES"),
            ("cli/src/commands/structured/rows.rs", "BATCH_BYTES"),
            ("cli/src/content.rs", "PIECE"),
            ("crates/bus/src/embedded/log.rs", "SEGMENT"),
            ("crates/bus/src/embedded/queue.rs", "PAGE_BYTES"),
            ("crates/bus/src/rabbitmq/lanes.rs", "BATCH_BYTES"),
            ("services/agent/src/run/summaries.rs", "TOGETHER"),
            ("services/embeddings/src/engine/portion.rs", "BYTES"),
            ("services/flow/src/operations/stopping.rs", "BATCH_BYTES"),
            ("services/gateway/src/engine/translate/bulk/mod.rs", "BYTES"),
            ("services/graph/src/store/embedded/batch.rs", "ROW_BYTES"),
            ("services/graph/src/store/embedded/load.rs", "ROWS"),
            ("services/graph/src/store/embedded/scan.rs", "CHUNK_BYTES"),
            ("services/graph/src/store/embedded/sparql/guard.rs", "PIECE"),
            ("services/ingest/src/cut.rs", "BATCH_LENGTH"),
            ("services/ingest/src/parts.rs", "BATCH_BYTES"),
            ("services/ingest/src/parts.rs", "SECTION"),
            ("services/ingest/src/texts.rs", "WINDOW"),
            ("services/knowledge/src/load/pump.rs", "BYTES"),
            ("services/knowledge/src/store/sqlite/cores.rs", "PAGE"),
            ("services/librarian/src/library/read.rs", "STEP"),
            (
                "services/librarian/src/store/sqlite/document.rs",
                "PAGE_BYTES",
            ),
            ("services/rows/src/store/sqlite/export.rs", "BYTES"),
            ("services/vectors/src/engine/matrix.rs", "BLOCK_BYTES"),
        ],
    ),
    (
        "room that a disk has at least",
        &[("server/src/disk.rs", "LEAST")],
    ),
    (
        "memory that one owner may keep, whatever passes through it",
        &[
            ("crates/telemetry/src/queue.rs", "BYTES"),
            ("crates/bus/src/rabbitmq/options.rs", "IN_HAND"),
            ("crates/clients/src/audit.rs", "DONE"),
            ("crates/clients/src/audit.rs", "REFUSALS"),
            ("crates/clients/src/audit.rs", "STRANGERS"),
            ("services/agent/src/run/transcript.rs", "MOST"),
            ("services/agent/src/sessions.rs", "OF_ALL"),
            ("services/agent/src/sessions.rs", "OF_WORKSPACE"),
            ("services/gateway/src/sending.rs", "AT_ONCE"),
            ("services/graph/src/store/embedded/label_cache.rs", "BYTES"),
            (
                "services/graph/src/store/embedded/retrieve/labels.rs",
                "BYTES",
            ),
            ("services/graph/src/store/embedded/sparql/guard.rs", "LATE"),
            ("services/ingest/src/measure.rs", "REMEMBERED"),
            ("services/ingest/src/options.rs", "COMFORT"),
            ("services/sessions/src/pasts.rs", "KEPT"),
            ("services/threads/src/handlers/conversation.rs", "HELD"),
            ("services/agent/src/run/record.rs", "LARGEST"),
        ],
    ),
    (
        "how much of something longer is looked at; the rest is left alone, not refused",
        &[
            ("cli/src/commands/structured/propose/layout.rs", "BEGINNING"),
            ("crates/document/src/packed.rs", "LONGEST"),
            ("crates/document/src/packed.rs", "MOST"),
            ("crates/mesh/src/erased.rs", "READ_AGAIN"),
            ("crates/reader/src/lib.rs", "READABLE"),
            ("services/gateway/src/judge.rs", "LOOKED_THROUGH"),
            (
                "services/graph/src/store/embedded/retrieve/around.rs",
                "TEXT",
            ),
            ("services/ingest/src/measure.rs", "LOOKED_AT"),
            ("services/ingest/src/measure.rs", "READ"),
        ],
    ),
    (
        "a file or pipe that no other layer sees",
        &[
            ("cli/src/commands/agent/console.rs", "LONGEST"),
            ("cli/src/commands/explain/exported.rs", "LONGEST"),
            ("cli/src/commands/workspace/import/said.rs", "SAID"),
            ("crates/tls/src/pem.rs", "LONGEST"),
            ("services/ingest/src/decode/frames.rs", "LONGEST"),
            ("services/ingest/src/decode/frames.rs", "PIECE"),
            ("services/agent/src/programs/once.rs", "KEPT"),
            ("services/agent/src/programs/output.rs", "LONGEST"),
            ("services/agent/src/programs/session.rs", "LINE"),
            ("services/sessions/src/agents_dir.rs", "LARGEST"),
        ],
    ),
    (
        "from so many bytes on something is done another way; nothing is refused",
        &[
            ("cli/src/commands/graph/loaded_from.rs", "LARGEST"),
            ("cli/src/commands/workspace/import/documents.rs", "WHOLE"),
            ("cli/src/content.rs", "WHOLE"),
            ("crates/bus/src/embedded/store.rs", "BODIES_ALONE"),
            ("services/gateway/src/budget.rs", "LARGE"),
        ],
    ),
];

/// Constants that are so many MiB: their line and name.
fn mebibytes(source: &Source) -> Vec<(usize, &str)> {
    let code = &source.code;
    let mut found = Vec::new();
    for (at, open) in code.match_indices("const ") {
        let item = &code[at + open.len()..];
        let item = &item[..item.find(';').unwrap_or(item.len())];
        let name = &item[..item.bytes().position(|b| !is_word(b)).unwrap_or(item.len())];
        let whole = !code[..at].bytes().next_back().is_some_and(is_word);
        let value = item.split_once('=').map_or("", |(_, value)| value);
        let value: String = value.split_whitespace().collect();
        let is_many = ["<<20", "1024*1024"].iter().any(|one| value.contains(one));
        if whole && is_many && item[name.len()..].starts_with(':') {
            found.push((line_of(code, at), name));
        }
    }
    found
}

#[test]
fn limits_of_bytes_stand_in_their_table() {
    let mut listed: Vec<(&str, &str)> = Vec::new();
    for (_, constants) in OTHERS {
        listed.extend(*constants);
    }
    let mut found = Vec::new();
    for source in shipped().iter().filter(|source| source.path != TABLE) {
        for (line, name) in mebibytes(source) {
            let place = (source.path.as_str(), name);
            match listed.iter().position(|one| *one == place) {
                Some(at) => _ = listed.remove(at),
                None => found.push(format!("{}:{line}: {name}", source.path)),
            }
        }
    }
    assert!(
        found.is_empty(),
        "a limit of bytes stands in {TABLE}:\n  {}",
        found.join("\n  ")
    );
    assert!(
        listed.is_empty(),
        "exceptions that nothing needs: {listed:?}"
    );
}

#[test]
fn a_limit_of_bytes_is_found() {
    for (code, name) in [
        ("const MOST: usize = 4 << 20;", Some("MOST")),
        (
            "pub(crate) const MOST: u64 =\n    2 * (4 << 20);",
            Some("MOST"),
        ),
        ("const MOST: usize = 4 * 1024 * 1024;", Some("MOST")),
        ("const MOST: usize = limits::PART;", None),
        ("const MOST: usize = 4 << 10;", None),
        ("const fn most() -> usize { let a = 1; 4 << 20 }", None),
        (
            "#[cfg(test)]\nmod tests { const MOST: usize = 4 << 20; }",
            None,
        ),
        ("// const MOST: usize = 4 << 20;", None),
    ] {
        let source = Source::new("services/a/src/b.rs", code);
        let names: Vec<&str> = mebibytes(&source).iter().map(|(_, name)| *name).collect();
        assert_eq!(names, Vec::from_iter(name), "{code}");
    }
}
