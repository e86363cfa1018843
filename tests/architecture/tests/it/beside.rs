//! What goes on beside the runtime's tasks: who takes messages from the bus, what waits for how long, what blocks a thread,
//! and what is shared behind a lock. Each place is named with its reason, so that none comes unseen.

use tg_architecture_tests::source::{Source, shipped};
use tg_architecture_tests::words::Rule;

/// The rules, each with the places where it does not hold and why.
const RULES: &[Rule] = &[
    Rule {
        says: "messages are taken from the bus by crates/mesh, and answers by crates/rpc: a service hands in a handler",
        words: &["Sink for", "dyn Sink", ".consume(&", ".open_inbox("],
        within: &[],
        strings: false,
        but: &[
            ("crates/bus/", "the bus and its adapters"),
            (
                "crates/mesh/",
                "hosts processors, and watches configuration and presence",
            ),
            (
                "crates/rpc/src/peer.rs",
                "the inbox of a process, for answers",
            ),
            (
                "crates/rpc/src/client.rs",
                "answers of foreign services, on their own topics",
            ),
            (
                "crates/rpc/src/near.rs",
                "servers that crates/mesh hosts, for questions of the same process",
            ),
        ],
    },
    Rule {
        says: "a pause has a name, and a sentence that says what is waited for",
        words: &[
            "sleep(Duration::",
            "sleep(std::time::Duration::",
            "interval(Duration::",
            "thread::sleep(",
        ],
        within: &[],
        strings: false,
        but: &[],
    },
    Rule {
        says: "a thread says its stack: one that does not gets 512 MiB of address space, which the AMQP client's need",
        words: &["thread::spawn(", "scope.spawn("],
        within: &[],
        strings: false,
        but: &[],
    },
    Rule {
        says: "blocking work runs on the runtime's blocking threads only where it is named: it is bounded there",
        words: &["spawn_blocking"],
        within: &[],
        strings: false,
        but: &[
            (
                "services/extract/src/handlers/measure.rs",
                "counts the tokens of samples, one of a question at a time",
            ),
            (
                "services/prompt/src/handlers/measure.rs",
                "counts the tokens of prompts, four at once",
            ),
            (
                "services/gateway/src/handlers/compat/embeddings.rs",
                "reads texts that come as tokens, one of a request at a time",
            ),
            (
                "crates/bus/src/embedded/",
                "reads, syncs and tidies its log",
            ),
            (
                "crates/bus/src/rabbitmq/endpoint.rs",
                "reads who is trusted, at each connect",
            ),
            (
                "crates/mesh/src/erased.rs",
                "decodes large records, as many as have room in the process",
            ),
            (
                "crates/mesh/src/leased_store.rs",
                "opens and closes stores, which join their threads",
            ),
            ("crates/storage/src/blob.rs", "files of blobs"),
            (
                "server/src/process.rs",
                "reads models from disk at the start",
            ),
            (
                "server/src/disk.rs",
                "asks how much room there is, one look after the other",
            ),
            (
                "services/agent/src/run/replay.rs",
                "runs recorded runs again, four at once",
            ),
            (
                "services/embeddings/src/embedder.rs",
                "computes vectors, no more at once than processors",
            ),
            (
                "services/extract/src/ontologies.rs",
                "reads ontologies, as often as their rows change",
            ),
            (
                "services/gateway/src/budget.rs",
                "parses and frees large requests, within the budget of bytes",
            ),
            (
                "services/gateway/src/exposition.rs",
                "the text of all metrics",
            ),
            (
                "services/gateway/src/turns.rs",
                "writes pieces of long answers, one of a workspace at a time",
            ),
            (
                "services/gateway/src/judge.rs",
                "judges one answer, bounded by the request",
            ),
            (
                "services/graph/src/store/embedded/exchange.rs",
                "files of whole datasets, for conversions",
            ),
            (
                "services/graph/src/store/embedded/load.rs",
                "loads a dataset when it is first asked for",
            ),
            (
                "services/graph/src/store/embedded/quads.rs",
                "prepares large writes",
            ),
            (
                "services/gateway/src/certificate.rs",
                "reads a certificate and its key, every few seconds",
            ),
            (
                "services/graph/src/store/embedded/retrieve.rs",
                "scans, with a permit",
            ),
            (
                "services/graph/src/store/embedded/scan.rs",
                "scans, with a permit",
            ),
            (
                "services/iam/src/login.rs",
                "hashes passwords, four at once",
            ),
            ("services/ingest/src/cut.rs", "cuts long texts"),
            (
                "services/ingest/src/measure.rs",
                "counts the tokens of chunks",
            ),
            (
                "services/librarian/src/library/mod.rs",
                "hashes large documents",
            ),
            (
                "services/rag/src/handlers/reranker.rs",
                "compares many texts",
            ),
            (
                "services/rows/src/handlers/schemas.rs",
                "builds a schema, as often as its rows change",
            ),
            (
                "services/threads/src/handlers/checks.rs",
                "checks large payloads and compiles schemas, one piece of a workspace at a time",
            ),
            (
                "services/tool/src/mcp/pool.rs",
                "reads the roots of TLS once",
            ),
            (
                "services/tool/src/wikipedia.rs",
                "reads the roots of TLS once",
            ),
            (
                "services/vectors/src/store/points/scans.rs",
                "searches, no more at once than processors",
            ),
            ("cli/src/lines.rs", "a terminal is read by blocking"),
            (
                "cli/src/commands/",
                "one file is read ahead of what is sent, a bounded way",
            ),
        ],
    },
    Rule {
        says: "a thread is started only where it is named, with its bound",
        words: &["thread::Builder", "thread::spawn", "thread::scope"],
        within: &[],
        strings: false,
        but: &[
            ("crates/storage/src/group.rs", "one writer a database"),
            ("crates/storage/src/reader.rs", "a few readers a database"),
            (
                "services/graph/src/store/embedded/ended.rs",
                "gives back space, one at a time",
            ),
            (
                "services/graph/src/store/embedded/load.rs",
                "two stages of one load",
            ),
            (
                "services/graph/src/store/embedded/merge.rs",
                "merges a journal, one at a time",
            ),
            (
                "services/graph/src/store/embedded/sparql/start.rs",
                "a query has its stack, under a permit",
            ),
            (
                "services/ingest/src/decode/mod.rs",
                "parsers have their stack, in a process of their own",
            ),
            (
                "services/vectors/src/engine/scan.rs",
                "shares of one search, no more than processors",
            ),
        ],
    },
    Rule {
        says: "a future is waited for by blocking only on a thread that is no task's",
        words: &[
            "block_on",
            "blocking_recv",
            "blocking_recv_many",
            "blocking_send",
            "blocking_lock",
            "block_in_place",
        ],
        within: &[],
        strings: false,
        but: &[
            (
                "crates/storage/src/group.rs",
                "the writer's thread waits for work",
            ),
            (
                "services/agent/src/run/replay.rs",
                "a recorded run is run again on a thread of its own",
            ),
            (
                "services/graph/src/store/embedded/",
                "its own threads ask the journal",
            ),
            (
                "services/vectors/src/store/",
                "its own threads ask the database",
            ),
            ("server/src/main.rs", "the program"),
            ("cli/src/run.rs", "the program"),
            ("cli/src/completing.rs", "the program, asked by a shell"),
            (
                "cli/src/commands/",
                "readers of files wait until what they read is sent",
            ),
        ],
    },
    Rule {
        says: "a write is committed on the thread of a task only where it is named: it is short there, and reads few cold pages",
        words: &["write_short"],
        within: &[],
        strings: false,
        but: &[
            ("crates/storage/src/", "the function"),
            (
                "services/agent/src/store/sqlite.rs",
                "rows of runs, whose ids lie together",
            ),
            (
                "services/librarian/src/store/sqlite/documents.rs",
                "the texts of a step, which lie in their rows",
            ),
            (
                "services/sessions/src/store/sqlite/mod.rs",
                "messages of a session that was just read, whose ids lie together",
            ),
        ],
    },
    Rule {
        says: "a read runs on the thread of a task only where it is named: it finds a few rows by an index",
        words: &["read_short"],
        within: &[],
        strings: false,
        but: &[
            ("crates/storage/src/", "the function"),
            (
                "services/sessions/src/store/sqlite/mod.rs",
                "a session by its id, and what was said in it since its last turn",
            ),
            (
                "services/sessions/src/store/sqlite/more.rs",
                "what a workspace says of its sessions",
            ),
            (
                "services/sessions/src/store/sqlite/service.rs",
                "the LLM service of an agent, by its id",
            ),
        ],
    },
    Rule {
        says: "a map behind a lock is a registry of what goes on, and bounded by that; what is remembered of rows is \
               crates/mesh/src/derived.rs, any other cache moka's or named in once.rs",
        words: &[
            "Mutex<HashMap<",
            "Mutex<BTreeMap<",
            "Mutex<IndexMap<",
            "Mutex<LruCache<",
            "RwLock<HashMap<",
            "RwLock<BTreeMap<",
            "RwLock<IndexMap<",
            "DashMap",
        ],
        within: &[],
        strings: false,
        but: &[
            (
                "schemas/src/codec.rs",
                "schemas: our own, and of others as many as its bound says",
            ),
            (
                "crates/bus/src/embedded/core.rs",
                "topics and inboxes, which are the bus",
            ),
            ("crates/bus/src/rabbitmq/claims.rs", "claims that are held"),
            (
                "crates/bus/src/rabbitmq/consumers.rs",
                "consumers that are open",
            ),
            (
                "crates/clients/src/model_calls.rs",
                "what was said of workspaces and models, as many as its bound says",
            ),
            ("crates/mesh/src/attached.rs", "instances that are attached"),
            ("crates/mesh/src/config_view.rs", "the configuration"),
            (
                "crates/mesh/src/derived.rs",
                "the cache of what is made of rows; as many workspaces as its bound says",
            ),
            (
                "crates/mesh/src/instance_state.rs",
                "one number a subscription",
            ),
            ("crates/mesh/src/leases.rs", "stores of this process"),
            (
                "crates/mesh/src/presence.rs",
                "processes that are there, as many as its bound says",
            ),
            (
                "crates/rpc/src/awaited.rs",
                "receipts that are waited for; who waits bounds them",
            ),
            ("crates/rpc/src/client.rs", "questions in flight"),
            (
                "crates/rpc/src/near.rs",
                "servers that this process has attached",
            ),
            ("crates/rpc/src/server.rs", "answers in progress"),
            (
                "services/agent/src/programs/pool.rs",
                "sessions of programs while somebody uses them; the programs that may run bound those in between",
            ),
            (
                "services/agent/src/run/slots.rs",
                "workspaces with tasks under way",
            ),
            (
                "services/agent/src/run/tasks.rs",
                "tasks under way, which the ledger bounds, and sessions that were notified of them in the last seconds",
            ),
            (
                "services/graph/src/store/embedded/sight.rs",
                "what one question has judged, as much as its bound says",
            ),
            (
                "services/embeddings/src/cache.rs",
                "texts that are being worked out; moka keeps the vectors",
            ),
            (
                "services/extract/src/ontologies.rs",
                "indexes that are being built, as many flows as its bound says",
            ),
            (
                "services/extract/src/replies/cache.rs",
                "who asks at the moment; those that left are struck",
            ),
            (
                "services/flow/src/operations/mod.rs",
                "flows that are being changed",
            ),
            ("services/gateway/src/auth/cache.rs", "named in once.rs"),
            (
                "services/llm/src/services.rs",
                "clients of the LLM services of workspaces, as many as its bound says",
            ),
            (
                "services/rag/src/services.rs",
                "clients of the reranking services of workspaces, as many as its bound says",
            ),
            (
                "services/gateway/src/calls.rs",
                "calls of tools under way, each a request in progress",
            ),
            (
                "services/gateway/src/codes.rs",
                "codes of users who signed in within the last minute, as many as its bound says",
            ),
            (
                "services/gateway/src/offers.rs",
                "questions to clients without an answer yet, one of a request in progress",
            ),
            (
                "services/gateway/src/detached.rs",
                "work under way, which counts against its user",
            ),
            (
                "services/gateway/src/flows.rs",
                "flows that are there; an entry goes with its row",
            ),
            (
                "services/gateway/src/handlers/socket_task.rs",
                "questions of a socket, as many as it may have",
            ),
            ("services/gateway/src/inflight.rs", "counts above zero"),
            (
                "services/graph/src/store/embedded/permits.rs",
                "workspaces with a query; those that left are struck",
            ),
            (
                "services/graph/src/store/embedded/shared.rs",
                "datasets in memory, within the bound of bytes",
            ),
            (
                "services/graph/src/store/embedded/sparql/memory.rs",
                "workspaces with a query; those that left are struck",
            ),
            (
                "services/iam/src/attempts.rs",
                "failed logins, as many names and addresses as its bound says",
            ),
            (
                "services/rows/src/store/sqlite/quota.rs",
                "workspaces found full within seconds",
            ),
            (
                "services/vectors/src/reembedder.rs",
                "why a change of model does not get on: collections that change theirs, which are rows of the store",
            ),
            (
                "services/vectors/src/store/points/cache.rs",
                "named in once.rs",
            ),
            (
                "services/vectors/src/store/points/scans.rs",
                "searches that wait",
            ),
            (
                "services/sessions/src/turns.rs",
                "workspaces with a turn; each turn is a request in progress",
            ),
            (
                "services/threads/src/handlers/workspaces.rs",
                "pumps of workspaces, of no more than its bound",
            ),
        ],
    },
];

/// Names that a file gives to maps (`type Counts<K> = Arc<Mutex<HashMap<K, usize>>>`) are written out where a lock holds them.
fn written_out(mut source: Source) -> Source {
    let declared: Vec<String> = source
        .code
        .split("type ")
        .skip(1)
        .filter_map(|rest| rest.split(';').next()?.split_once('='))
        .filter(|(_, of)| {
            of.trim_start().starts_with("HashMap<") || of.trim_start().starts_with("BTreeMap<")
        })
        .filter_map(|(name, _)| name.split(['<', ' ']).next().map(str::to_owned))
        .collect();
    for name in declared {
        for lock in ["Mutex", "RwLock"] {
            for end in ['<', '>'] {
                let (from, to) = (
                    format!("{lock}<{name}{end}"),
                    format!("{lock}<HashMap<{end}"),
                );
                source.code = source.code.replace(&from, &to);
            }
        }
    }
    source
}

#[test]
fn what_goes_on_beside_is_named() {
    let sources: Vec<Source> = shipped().into_iter().map(written_out).collect();
    let reports: Vec<String> = RULES
        .iter()
        .filter_map(|rule| rule.hold(&sources).report(rule))
        .collect();
    assert!(reports.is_empty(), "\n{}", reports.join("\n"));
}

#[test]
fn every_rule_can_fail() {
    for rule in RULES {
        for word in rule.words {
            let text = format!("fn f() {{ {word} (h) }}");
            let found = rule.hold(&[Source::new("services/a/src/lib.rs", &text)]);
            assert!(!found.breaches.is_empty(), "{}: {word}", rule.says);
        }
    }
}

#[test]
fn a_map_under_another_name_is_found() {
    let text = "type Known<K> = HashMap<K, u8>;\ntype Names = Vec<u8>;\nstruct A { a: Mutex<Known<u8>>, b: RwLock<Names> }";
    let source = written_out(Source::new("services/a/src/lib.rs", text));
    assert!(source.code.contains("Mutex<HashMap<<u8>>") && source.code.contains("RwLock<Names>"));
}
