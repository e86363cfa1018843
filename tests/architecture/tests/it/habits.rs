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
        but: &[("server/src/process.rs", "the setting chooses one")],
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
        ],
        within: &[],
        strings: false,
        but: &[(
            "cli/src/interrupt.rs",
            "a command has no mesh; waits for Ctrl-C until it ends",
        )],
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
        ],
        within: &["*/engine/*"],
        strings: false,
        but: &[],
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
        says: "nothing is nack-requeued",
        words: &[
            "requeue: true",
            "BasicNackOptions",
            "basic_nack",
            "basic_recover",
        ],
        within: &[],
        strings: false,
        but: &[(
            "crates/bus/src/rabbitmq/settle.rs",
            "what was fetched and not begun goes back once: when a consumer is cancelled, or when there is room for it",
        )],
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

/// Words of the machine room, which no text of an error shows to a client.
const INSIDE: &[&str] = &[
    "exchange",
    "queue",
    "queues",
    "broker",
    "rabbitmq",
    "amqp",
    "sqlite",
    "routing key",
    "mutex",
    "panicked",
    "channel",
];

/// What is put into a text of an error by such a name is a place of the system, or somebody else's.
const PUT_IN: &[&str] = &[
    "{host", "{path", "{file", "{dir", "{queue", "{topic", "{url", "{address", "{broker",
];

/// Whose texts no client is shown: they are for logs, and what is answered is made elsewhere.
const FOR_LOGS: &[(&str, &str)] = &[
    (
        "crates/bus/src/rabbitmq/wire.rs",
        "becomes a `BusError`, which has its own texts",
    ),
    (
        "crates/storage/src/error.rs",
        "its conversion to the contract's error has its own texts",
    ),
];

/// The strings in the arguments of `Error::new(…)`, and in `#[error("…")]` of what becomes one, with their places.
fn error_texts(strings: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (open, close) in [("Error::new(", ";"), ("#[error(", ")]")] {
        for (at, _) in strings.match_indices(open) {
            let rest = &strings[at + open.len()..];
            // At the end of a function nothing closes it.
            let ends = [rest.find(close), rest.find("\n}")];
            let end = ends.into_iter().flatten().min().unwrap_or(rest.len());
            let quoted: Vec<&str> = rest[..end].split('"').skip(1).step_by(2).collect();
            found.push((at, quoted.join(" ")));
        }
    }
    found
}

#[test]
fn no_error_speaks_of_the_machine_room() {
    let (mut told, mut idle) = (Vec::new(), FOR_LOGS.to_vec());
    for source in shipped() {
        if !source.path.starts_with("services/") && !source.path.starts_with("crates/") {
            continue;
        }
        for (at, text) in error_texts(&source.strings) {
            // The path of a field, which every error about one begins with.
            let lower = text.to_lowercase();
            let lower = lower.strip_prefix("{path}: ").unwrap_or(&lower);
            let words = [places(lower, INSIDE), places(lower, PUT_IN)].concat();
            let Some((_, word)) = words.first() else {
                continue;
            };
            if FOR_LOGS.iter().any(|(path, _)| *path == source.path) {
                idle.retain(|(path, _)| *path != source.path);
                continue;
            }
            let line = line_of(&source.strings, at);
            told.push(format!("{}:{line}: {word}: {text}", source.path));
        }
    }
    assert!(idle.is_empty(), "exceptions that nothing needs: {idle:?}");
    assert!(
        told.is_empty(),
        "errors that name what no client knows:\n  {}",
        told.join("\n  ")
    );
}

/// "is no number" and "is none of them", where English says "is not a number" and "is not one of them"; and what is
/// left out "is required", in these words and no others.
fn worded_oddly(text: &str) -> bool {
    let odd = [
        "is no ",
        "are no ",
        "is none of",
        "that is no ",
        "but is none",
        "but none",
        "is missing",
        "are missing",
        "must not be empty",
        "must be given",
        "is needed",
    ];
    let plain = text
        .to_lowercase()
        .replace("there is no ", "")
        .replace("there are no ", "");
    odd.iter().any(|words| plain.contains(words))
}

#[test]
fn texts_are_plain_english() {
    let mut odd = Vec::new();
    for source in shipped() {
        if source.path.starts_with("services/llm/src/engine/builtin/") {
            // Reads and writes the English of others.
            continue;
        }
        for (at, line) in source.strings.lines().enumerate() {
            let quoted = line.split('"').skip(1).step_by(2);
            for text in quoted.filter(|text| worded_oddly(text)) {
                odd.push(format!("{}:{}: {text}", source.path, at + 1));
            }
        }
    }
    assert!(
        odd.is_empty(),
        "texts that nobody would write:\n  {}",
        odd.join("\n  ")
    );
}

#[test]
fn odd_words_are_found() {
    for odd in [
        "built: is no whole number",
        "is none of its values",
        "name: is missing",
        "question: must not be empty",
    ] {
        assert!(worded_oddly(odd), "{odd}");
    }
    for plain in [
        "there is no flow 'x'",
        "is not a number",
        "name: is required",
    ] {
        assert!(!worded_oddly(plain), "{plain}");
    }
}

#[test]
fn texts_of_errors_are_found() {
    let code = "let a = Error::new(Code::A, format!(\"the exchange {x} is gone\"));";
    assert_eq!(error_texts(code)[0].1, "the exchange {x} is gone");
    assert_eq!(places(&error_texts(code)[0].1, INSIDE).len(), 1);
    let code =
        "#[error(\"the queue {path} is gone\")]\nGone,\n#[error(transparent)]\nB(#[from] C),";
    let texts = error_texts(code);
    assert_eq!(texts[0].1, "the queue {path} is gone");
    assert_eq!(places(&texts[0].1, INSIDE).len(), 1);
    assert_eq!(places(&texts[0].1, PUT_IN).len(), 1);
    assert!(texts[1].1.is_empty(), "{texts:?}");
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
