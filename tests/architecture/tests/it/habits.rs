//! Words that stand in a few places only: SQL, AMQP, HTTP, tasks, clocks, unbounded channels, names of queues.

use tg_architecture_tests::source::{Source, shipped};
use tg_architecture_tests::text::line_of;
use tg_architecture_tests::words::{Rule, places};

/// The rules, each with the places where it does not hold and why.
const RULES: &[Rule] = &[
    Rule {
        says: "the database is known to `store` modules and to crates/storage",
        words: &["rusqlite"],
        within: &[],
        strings: true,
        but: &[
            ("crates/storage/", "this is SQLite"),
            ("*/store/*", "a store"),
        ],
    },
    Rule {
        says: "AMQP is known below crates/bus/src/rabbitmq alone",
        words: &["lapin"],
        within: &[],
        strings: false,
        but: &[("crates/bus/src/rabbitmq/", "the adapter")],
    },
    Rule {
        says: "how a wire is spoken is data, made from the mode in crates/bus/src/mode.rs; others read the rule that they need",
        words: &["Mode::Interop", "Mode::Native"],
        within: &[],
        strings: false,
        but: &[
            ("server/src/process.rs", "the setting chooses one"),
            (
                "server/src/permissions.rs",
                "there are users of the broker for each service in this mode alone",
            ),
        ],
    },
    Rule {
        says: "whether services may be foreign is known to crates/clients, which says what follows from it",
        words: &["all_ours"],
        within: &[],
        strings: false,
        but: &[
            ("crates/bus/src/mode.rs", "the rule"),
            ("crates/clients/src/neighbours.rs", "what follows from it"),
        ],
    },
    Rule {
        says: "a service asks crates/clients what it may count on, and reads no rule of the wire itself",
        words: &[".rules()"],
        within: &["services/"],
        strings: false,
        but: &[],
    },
    Rule {
        says: "the storeys under the services know rules of the wire, and neither the mode nor whose processors there are",
        words: &[
            "Mode", "interop", "Interop", "native", "Native", "foreign", "Foreign", "NATIVE",
            "INTEROP",
        ],
        within: &[
            "crates/bus/",
            "crates/rpc/",
            "crates/mesh/",
            "crates/runs/",
            "crates/collections/",
        ],
        strings: false,
        but: &[
            ("crates/bus/src/mode.rs", "the place where rules are made"),
            ("crates/bus/src/lib.rs", "passes it on to who chooses one"),
            ("crates/mesh/src/lib.rs", "as above"),
        ],
    },
    Rule {
        says: "HTTP is asked for at the edges alone: providers, tools and the commands' client",
        words: &["reqwest"],
        within: &[],
        strings: false,
        but: &[
            ("crates/provider-http/", "the one client of providers"),
            ("services/llm/src/providers/", "a provider"),
            ("services/tool/src/mcp/", "servers of tools"),
            ("services/tool/src/wikipedia.rs", "a server of tools"),
            ("cli/src/client/http.rs", "the client of the gateway"),
            (
                "cli/src/commands/local/models/download.rs",
                "fetches a model that the user named",
            ),
        ],
    },
    Rule {
        says: "HTTP is served by the gateway alone",
        words: &["axum", "hyper"],
        within: &[],
        strings: false,
        but: &[("services/gateway/", "the edge")],
    },
    Rule {
        says: "tasks start through the one spawn function, which counts them and ends them",
        words: &[
            "tokio::spawn",
            "task::spawn",
            "task::spawn_local",
            "tokio::task::spawn",
            "JoinSet",
            "runtime::Handle",
            "Handle::current",
            "Handle::try_current",
            "runtime.spawn",
            "handle.spawn",
        ],
        within: &[],
        strings: false,
        but: &[
            (
                "cli/src/interrupt.rs",
                "a command has no mesh; waits for Ctrl-C until it ends",
            ),
            (
                "crates/bus/src/task.rs",
                "the function; a client library's own threads call it from outside of the runtime",
            ),
            (
                "crates/bus/src/embedded/queue.rs",
                "a queue may be filled from any thread, and holds no task: one pause, which ends with the queue, and reading ahead",
            ),
        ],
    },
    Rule {
        says: "what waits or measures inside a process uses tokio's clock, which tests can stop",
        words: &["std::time::Instant", "SystemTime::elapsed"],
        within: &[],
        strings: false,
        but: &[],
    },
    Rule {
        says: "the time of day is told by tg_rpc::clock",
        words: &["Utc::now", "Local::now", "SystemTime::now"],
        within: &[],
        strings: false,
        but: &[
            ("crates/rpc/src/clock.rs", "the clock"),
            ("cli/", "a command has no mesh"),
        ],
    },
    Rule {
        says: "IRIs of RDF stand in schemas/src/vocabulary.rs",
        words: &[
            "http://www.w3.org/",
            "https://www.w3.org/",
            "http://purl.org/",
            "http://xmlns.com/",
            "http://schema.org/",
            "https://schema.org/",
            "http://trustgraph.ai/",
            "https://trustgraph.ai/",
            "urn:graph:",
        ],
        within: &[],
        strings: true,
        but: &[("schemas/src/vocabulary.rs", "the vocabulary")],
    },
    Rule {
        says: "every channel has a bound",
        words: &[
            "unbounded_channel",
            "UnboundedSender",
            "UnboundedReceiver",
            "std::sync::mpsc::channel",
            "futures::channel::mpsc::unbounded",
            "async_channel::unbounded",
            "crossbeam_channel::unbounded",
        ],
        within: &[],
        strings: false,
        but: &[],
    },
    Rule {
        says: "names of queues are formed by the topic type",
        words: &[
            "request:tg:",
            "response:tg:",
            "flow:tg:",
            "notify:tg:",
            "{class}:tg:",
        ],
        within: &[],
        strings: true,
        but: &[
            (
                "services/agent/src/engine/toolset/row.rs",
                "says which names a row of a tool may give",
            ),
            (
                "services/gateway/src/engine/scrub.rs",
                "looks for them in texts, to strike them",
            ),
        ],
    },
    Rule {
        says: "an engine is given clock, random and identifiers, and waits for nothing",
        words: &[
            "Instant::now",
            "SystemTime::now",
            "Utc::now",
            "Uuid::new_v4",
            "Uuid::now_v7",
            "rand::",
            "tokio::",
            "sleep",
            "std::fs",
            "std::env",
            "thread::",
            "async fn",
        ],
        within: &["*/engine/*"],
        strings: false,
        but: &[
            (
                "services/vectors/src/engine/scan.rs",
                "a scan is shared among threads that end within it; whoever calls it left the runtime",
            ),
            (
                "services/llm/src/engine/router/bucket.rs",
                "it is handed moments of the clock that tests can stop, and waits for none",
            ),
            (
                "services/llm/src/engine/router/health.rs",
                "it is handed moments of the clock that tests can stop, and waits for none",
            ),
        ],
    },
    Rule {
        says: "the contract and the builders of provenance do no I/O and know no async",
        words: &[
            "async fn",
            "tokio",
            "std::fs",
            "std::net",
            "std::env::var",
            "std::process",
            "std::thread",
        ],
        within: &["schemas/", "crates/provenance/", "crates/core-file/"],
        strings: false,
        but: &[],
    },
    Rule {
        says: "only settings may name a variable or a file of the server (`env:`, `file:`): whoever wrote a row so would read it",
        words: &["by_reference", "tg_settings::resolved"],
        within: &[],
        strings: true,
        but: &[
            ("*/options.rs", "the settings of a service"),
            (
                "services/llm/src/options/backends.rs",
                "the list of backends among them",
            ),
            ("server/src/settings/", "those of the process"),
            ("crates/provider-http/src/", "where it is made for them"),
            (
                "services/tool/src/programs.rs",
                "programs that are servers of tools are settings, too",
            ),
            (
                "services/agent/src/programs/listed.rs",
                "so are programs that are agents",
            ),
        ],
    },
    Rule {
        says: "nothing is nack-requeued",
        words: &[
            "requeue: true",
            "BasicNackOptions",
            "basic_nack",
            "basic_recover",
        ],
        within: &[],
        strings: false,
        but: &[
            (
                "crates/bus/src/rabbitmq/settle.rs",
                "what was fetched and not begun goes back once: when a consumer is cancelled, or when there is room for it",
            ),
            (
                "crates/bus/src/rabbitmq/topology.rs",
                "whether a quorum queue is empty only its leader knows: what it gives goes back at once",
            ),
        ],
    },
    Rule {
        says: "JSON is read from bytes: each type is compiled once, not once for bytes and once for texts",
        words: &["serde_json::from_str", "serde_json::from_reader"],
        within: &["schemas/", "crates/", "services/", "server/", "cli/"],
        strings: false,
        but: &[],
    },
    Rule {
        says: "a mutex is parking_lot's, which cannot be poisoned, or tokio's",
        words: &["std::sync::Mutex", "std::sync::RwLock"],
        within: &[],
        strings: false,
        but: &[(
            "schemas/src/codec.rs",
            "the contract depends on no lock of others; a poisoned one is read on",
        )],
    },
    Rule {
        says: "nothing prints past the log: only programs talk to a terminal",
        words: &["println!", "eprintln!", "print!", "eprint!", "dbg!"],
        within: &["schemas/", "crates/", "services/"],
        strings: false,
        but: &[
            ("*/src/bin/*", "a program"),
            ("*/build.rs", "what it prints is for cargo"),
        ],
    },
];

/// The imported form of a word (`use std::time::{Duration, Instant}`) is written out before the rules are held.
fn written_out(mut source: Source) -> Source {
    for (module, names) in [
        ("std::time", &["Instant"][..]),
        ("std::sync", &["Mutex", "RwLock"]),
        ("tokio::task", &["spawn", "JoinSet"]),
        ("tokio::runtime", &["Handle"]),
    ] {
        let open = format!("{module}::{{");
        let mut from = 0;
        while let Some(at) = source.code[from..].find(&open).map(|at| at + from) {
            let end = source.code[at..]
                .find(';')
                .map_or(source.code.len(), |end| at + end);
            for name in names {
                let listed = source.code[at + open.len()..end]
                    .split([',', '{', '}'])
                    .any(|part| part.trim() == *name);
                if listed {
                    source.code.insert_str(end, &format!(" {module}::{name}"));
                }
            }
            from = at + open.len();
        }
    }
    source
}

#[test]
fn words_stay_where_they_belong() {
    let sources: Vec<Source> = shipped().into_iter().map(written_out).collect();
    let reports: Vec<String> = RULES
        .iter()
        .filter_map(|rule| rule.hold(&sources).report(rule))
        .collect();
    assert!(reports.is_empty(), "\n{}", reports.join("\n"));
}

/// How statements begin, and what stands further on in them; SPARQL, which is asked for outside of stores, has no such pair.
const STATEMENTS: &[(&str, &str)] = &[
    ("SELECT ", " FROM "),
    ("INSERT INTO ", ""),
    ("INSERT OR ", " INTO "),
    ("REPLACE INTO ", ""),
    ("UPDATE ", " SET "),
    ("DELETE FROM ", ""),
    ("CREATE TABLE ", ""),
    ("CREATE UNIQUE ", ""),
    ("CREATE INDEX ", ""),
    ("CREATE VIRTUAL ", ""),
    ("CREATE TRIGGER ", ""),
    ("CREATE VIEW ", ""),
    ("CREATE TEMP", ""),
    ("DROP TABLE ", ""),
    ("DROP INDEX ", ""),
    ("DROP TRIGGER ", ""),
    ("DROP VIEW ", ""),
    ("ALTER TABLE ", ""),
    ("PRAGMA ", ""),
    ("ATTACH ", " AS "),
    ("WITH RECURSIVE ", ""),
    ("BEGIN IMMEDIATE", ""),
    ("SAVEPOINT ", ""),
    ("VACUUM", ""),
];

/// Whether a text is or has a statement of SQL: written large anywhere, or in any letters from its start on.
fn is_sql(text: &str) -> bool {
    let text = text.replace("\\n", " ").replace('\\', " ");
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
    let large = plain.to_uppercase();
    STATEMENTS.iter().any(|(verb, then)| {
        let within = places(&plain, &[verb]);
        let within = within.iter().any(|(at, _)| plain[*at..].contains(then));
        within || (large.starts_with(verb) && !then.is_empty() && large.contains(then))
    })
}

/// Where SQL stands outside of stores.
fn sql(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        if source.path.starts_with("crates/storage/") || source.path.contains("/store/") {
            continue;
        }
        for (at, text) in source
            .literals()
            .into_iter()
            .filter(|(_, text)| is_sql(text))
        {
            let line = line_of(&source.code, at);
            found.push(format!("{}:{line}: {text}", source.path));
        }
    }
    found
}

#[test]
fn sql_stands_in_stores() {
    let found = sql(&shipped());
    assert!(
        found.is_empty(),
        "SQL outside of `store` modules and crates/storage:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn statements_are_found() {
    for statement in [
        "SELECT id FROM t",
        "select id\n    from t",
        "\\\n   UPDATE t SET a = 1",
        "PRAGMA user_version",
        "WITH RECURSIVE a AS (SELECT 1)",
        "DELETE FROM t WHERE a = ?1",
    ] {
        let text = format!("fn f() {{ g(\"{statement}\") }}");
        let outside = Source::new("services/a/src/engine/b.rs", &text);
        assert_eq!(sql(&[outside]).len(), 1, "{statement}");
        let store = Source::new("services/a/src/store/b.rs", &text);
        assert!(sql(&[store]).is_empty());
    }
    for other in [
        "SELECT ?s WHERE { ?s ?p ?o } LIMIT 5",
        "a document to select from the list",
        "UPDATE=1 cargo test",
    ] {
        assert!(!is_sql(other), "{other}");
    }
}

#[test]
fn a_list_of_imports_is_written_out() {
    let text =
        "use std::time::{\n    Duration,\n    Instant,\n};\nuse std::sync::{Arc, atomic::{A}};";
    let source = written_out(Source::new("a/src/lib.rs", text));
    assert!(source.code.contains("std::time::Instant"));
    assert!(!source.code.contains("std::sync::Mutex"));
    assert_eq!(source.code.lines().count(), 5);
}

/// Every rule finds what it forbids where it forbids it.
#[test]
fn every_rule_can_fail() {
    for rule in RULES {
        let path = match rule.within.first() {
            None => "services/a/src/lib.rs".to_owned(),
            Some(part) if part.starts_with('*') => {
                format!("services/a/src{}x.rs", part.trim_matches('*'))
            }
            Some(folder) => format!("{folder}src/x.rs"),
        };
        for word in rule.words {
            let text = match rule.strings {
                true => format!("fn f() {{ g(\"{word} h\") }}"),
                false => format!("fn f() {{ {word} (h) }}"),
            };
            let found = rule.hold(&[Source::new(&path, &text)]);
            assert!(!found.breaches.is_empty(), "{}: {word}", rule.says);
        }
    }
}
