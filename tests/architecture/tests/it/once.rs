//! What stands in one place: arguments and deletions of queues, purging, how pauses grow, caches, names of vendors.

use tg_architecture_tests::source::{Source, shipped};
use tg_architecture_tests::text::{is_word, line_of};
use tg_architecture_tests::words::{Exception, Rule};

/// The rules, each with the places where it does not hold and why.
const RULES: &[Rule] = &[
    Rule {
        says: "arguments of queues and exchanges stand in crates/bus/src/rabbitmq/arguments.rs: what foreign processors share has none",
        words: &["FieldTable", "AMQPValue", "FieldArray"],
        within: &[],
        strings: false,
        but: &[
            ("crates/bus/src/rabbitmq/arguments.rs", "the place"),
            (
                "crates/bus/src/rabbitmq/wire.rs",
                "headers of messages are such tables as well",
            ),
        ],
    },
    Rule {
        says: "queues are declared and deleted by one file, and never emptied",
        words: &[
            "queue_declare",
            "queue_delete",
            "exchange_delete",
            "queue_purge",
        ],
        within: &[],
        strings: false,
        but: &[("crates/bus/src/rabbitmq/topology.rs", "the file")],
    },
    Rule {
        says: "several messages in one record are what an answer leaves behind: who keeps knowledge passes such records by, unread",
        words: &["record_together"],
        within: &[],
        strings: false,
        but: &[
            ("crates/clients/src/traces.rs", "the trace of an answer"),
            ("crates/rpc/src/together.rs", "how it is written"),
            ("crates/mesh/src/scope.rs", "passes it on"),
        ],
    },
    Rule {
        says: "data of a workspace is purged by the reaper of crates/collections alone, which holds its tombstone",
        words: &[".purge("],
        within: &[],
        strings: false,
        but: &[
            ("crates/collections/src/reaper.rs", "the reaper"),
            (
                "services/librarian/src/reaped.rs",
                "what the reaper calls, for rows and contents together",
            ),
            ("services/librarian/src/library/tidy.rs", "as above"),
        ],
    },
    Rule {
        says: "a store drops what it has of a workspace where the reaper asks it to, and nowhere else",
        words: &["::purge(", ".drop_workspace(", "::drop_workspace("],
        within: &[],
        strings: false,
        but: &[
            (
                "*/store/*",
                "how the purge that the reaper asks for is done",
            ),
            (
                "services/flow/src/reaped.rs",
                "what the reaper calls, by the name of its trait",
            ),
        ],
    },
    Rule {
        says: "names of a span's attributes stand in crates/telemetry/src/attributes.rs",
        words: &["gen_ai.", "messaging."],
        within: &["crates/", "services/", "server/", "cli/"],
        strings: true,
        but: &[("crates/telemetry/src/attributes.rs", "the place")],
    },
    Rule {
        says: "a graph is asked by what translates a client's question and by the services that reason over one: no second way",
        words: &["TriplesQueryRequest {", "SparqlQueryRequest {"],
        within: &["crates/", "services/", "server/", "cli/"],
        strings: false,
        but: &[
            (
                "services/gateway/src/engine/translate/triples.rs",
                "patterns of clients, and those that the gateway asks for them",
            ),
            (
                "services/gateway/src/engine/translate/sparql.rs",
                "SPARQL of clients",
            ),
            ("services/rag/src/ask/patterns.rs", "retrieval over a graph"),
            ("services/agent/src/kinds/sparql.rs", "a tool of agents"),
        ],
    },
    Rule {
        says: "a collection is dropped when its owner asks, by the one handler of crates/collections",
        words: &[".drop_collection("],
        within: &["crates/", "services/"],
        strings: false,
        but: &[("crates/collections/src/handlers.rs", "the handler")],
    },
    Rule {
        says: "a tombstone is made by whoever deletes and restores workspaces, and read from the configuration by others",
        words: &["WorkspaceTombstone {"],
        within: &[],
        strings: false,
        but: &[
            ("schemas/src/workspace_key.rs", "what it is"),
            ("services/config/src/engine/lifecycle.rs", "who makes it"),
        ],
    },
    Rule {
        says: "pauses grow by crates/bus/src/pause.rs, between calls of other servers by crates/provider-http/src/backoff.rs",
        words: &[
            "saturating_mul(2)",
            "saturating_mul(1 <<",
            "* 2).min(",
            "pause * 2",
            "pause *= 2",
            "patience * 2",
            "1 << attempt",
            "1 << tries",
            "1 << failed",
            "2u32.pow(",
            "2_u32.pow(",
            "checked_shl(",
            "backon::",
            "tokio_retry::",
        ],
        within: &[],
        strings: false,
        but: &[
            ("crates/bus/src/pause.rs", "the place"),
            ("crates/provider-http/src/backoff.rs", "the other place"),
        ],
    },
    Rule {
        says: "the providers of models stand in the table of services/llm/src/providers/mod.rs, which makes their clients: another one is a row there, with its file and a word in docs/models.md",
        words: &["OpenAi::new(", "Anthropic::new(", "Ollama::new("],
        within: &["services/", "server/"],
        strings: false,
        but: &[("services/llm/src/providers/", "the table and the adapters")],
    },
    Rule {
        says: "whether a failure is worth another try is said by the table of schemas/src/error.rs",
        words: &[
            "fn is_final(",
            "fn is_transient(",
            "fn is_retryable(",
            "fn is_permanent(",
            "fn retryable(",
            "fn retry(self",
            "fn worth_a_retry(",
            "fn may_pass(",
            "fn comes_again(",
            "-> Again {",
        ],
        within: &[],
        strings: false,
        but: &[
            ("schemas/src/error.rs", "the table"),
            (
                "crates/provider-http/src/error.rs",
                "answers of other servers, by status and Retry-After",
            ),
            ("services/embeddings/src/error.rs", "those of embeddings"),
        ],
    },
    Rule {
        says: "the collection of what names none is said by schemas/src/msg/metadata.rs",
        words: &[
            "collection: \"default\"",
            "\"collection\", \"default\"",
            "\"\" => \"default\"",
        ],
        within: &[],
        strings: true,
        but: &[],
    },
    Rule {
        says: "hexadecimal is written by the crate of that name",
        words: &[":02x}", ":02X}"],
        within: &[],
        strings: true,
        but: &[
            (
                "crates/storage/src/blob/stage.rs",
                "the name of a folder is one byte",
            ),
            (
                "cli/src/client/http.rs",
                "escapes in an address, which are written in capitals",
            ),
        ],
    },
    Rule {
        says: "what a moment is called is said by crates/rpc/src/clock.rs",
        words: &["fn now(", "fn now_ms(", "fn now_millis(", "fn unix_time("],
        within: &[],
        strings: false,
        but: &[("crates/rpc/src/clock.rs", "the clock")],
    },
    Rule {
        says: "XML is read without quick-xml's namespaces and checks, whose time and memory grow with the square of a tag \
               (RUSTSEC-2026-0194 and -0195, see deny.toml)",
        words: &[
            "NsReader",
            "try_get_attribute",
            "RdfXml",
            "QueryResultsFormat::Xml",
        ],
        within: &[],
        strings: false,
        but: &[(
            "services/gateway/src/engine/rdf/media.rs",
            "answers are written in it; nothing is read",
        )],
    },
    Rule {
        says: "the registry of workspaces is named by schemas/src/workspace_key.rs",
        words: &["__workspaces__"],
        within: &["schemas/", "crates/", "services/", "server/"],
        strings: true,
        but: &[
            ("schemas/src/workspace_key.rs", "the name"),
            (
                "services/config/src/store/sqlite.rs",
                "a statement is a constant",
            ),
        ],
    },
    Rule {
        says: "answers of other servers are read through tg-provider-http, which bounds them",
        words: &[
            "reqwest::Response",
            "bytes_stream()",
            "axum::body::to_bytes",
        ],
        within: &["crates/", "services/"],
        strings: false,
        but: &[("crates/provider-http/", "the place")],
    },
];

#[test]
fn what_stands_in_one_place_stays_there() {
    let sources = shipped();
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
            let text = match rule.strings {
                true => format!("fn f() {{ g(\"{word} h\") }}"),
                false => format!("fn f() {{ {word} h) }}"),
            };
            let found = rule.hold(&[Source::new("services/a/src/lib.rs", &text)]);
            assert!(!found.breaches.is_empty(), "{}: {word}", rule.says);
        }
    }
}

/// Caches that are not moka's, and why.
const CACHES: &[Exception] = &[
    (
        "services/embeddings/src/cache.rs",
        "moka holds the vectors; beside them stand the texts that are being worked out",
    ),
    (
        "services/extract/src/replies/cache.rs",
        "the ledger on disk keeps the replies; in memory is only who asks at the moment",
    ),
    (
        "services/gateway/src/auth/cache.rs",
        "expires by the caller's clock, which tests stop; moka has a clock of its own",
    ),
    (
        "services/graph/src/store/embedded/label_cache.rs",
        "a change is forgotten before anybody is told of it, in one step with the readers",
    ),
    (
        "services/vectors/src/store/points/cache.rs",
        "an index is changed in place by its writer, and loaded while changes wait",
    ),
];

/// The caches that a file declares: its types whose names say so. One that is called `Cached…` holds all there is.
fn caches(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, start) in code.match_indices("struct ") {
        let rest = &code[at + start.len()..];
        let end = rest.bytes().position(|byte| !is_word(byte));
        let name = &rest[..end.unwrap_or(rest.len())];
        let says = ["Cache", "Memo", "Lru"]
            .iter()
            .any(|word| name.ends_with(word));
        if says {
            found.push((line_of(code, at), name.to_owned()));
        }
    }
    found
}

#[test]
fn every_cache_has_a_bound() {
    let (mut found, mut idle) = (Vec::new(), CACHES.to_vec());
    for source in shipped() {
        for (line, name) in caches(&source.code) {
            match idle.iter().position(|(path, _)| *path == source.path) {
                Some(at) => drop(idle.remove(at)),
                None => found.push(format!("{}:{line}: {name} is not moka's", source.path)),
            }
        }
        let built = source.code.contains("moka::") && source.code.contains("builder()");
        if built && !source.code.contains(".max_capacity(") {
            found.push(format!("{}: moka without a bound", source.path));
        }
    }
    found.extend(
        idle.iter()
            .map(|(path, _)| format!("{path}: exception that nothing needs")),
    );
    assert!(found.is_empty(), "caches:\n  {}", found.join("\n  "));
}

/// Vendors of models, in small letters.
const VENDORS: &[&str] = &[
    "openai",
    "anthropic",
    "claude",
    "ollama",
    "cohere",
    "jina",
    "mistral",
    "gemini",
    "bedrock",
    "azure",
    "huggingface",
];

/// Where they may be named: adapters, what chooses among them, and texts that tell people what can be set.
const NAMED: &[Exception] = &[
    (
        "services/agent/src/programs/listed.rs",
        "the program that keeps a session where the operator names none",
    ),
    ("services/llm/src/providers/", "the adapters of models"),
    (
        "services/llm/src/options.rs",
        "chooses one by its settings and variables",
    ),
    (
        "services/llm/src/services.rs",
        "the providers whose servers workspaces may name, with their addresses",
    ),
    (
        "services/sessions/src/engine/llm_service.rs",
        "which of them an agent of a workspace may be bound to",
    ),
    (
        "services/embeddings/src/provider/",
        "the adapters of vectors",
    ),
    (
        "services/embeddings/src/options.rs",
        "chooses one by its settings and variables",
    ),
    ("services/rag/src/endpoint.rs", "the adapter of rerankers"),
    (
        "services/gateway/src/handlers/compat/models.rs",
        "the header by which a client says which API it speaks",
    ),
    (
        "services/gateway/src/engine/secret_words.rs",
        "how keys of providers begin, which are masked",
    ),
    ("services/rag/src/options.rs", "chooses its dialect"),
    (
        "crates/provider-http/src/settings.rs",
        "OLLAMA_HOST is written as no other address is, and read by two services",
    ),
    ("crates/provider-http/src/lib.rs", "passes that on"),
    (
        "cli/src/commands/local/models/catalogue.rs",
        "the host that files of local models are fetched from",
    ),
    (
        "server/src/greeting.rs",
        "tells people which variables to set",
    ),
    (
        "server/src/settings/page.rs",
        "as above, in the settings page",
    ),
];

/// Vendors that a text names, with their places.
fn vendors(text: &str) -> Vec<(usize, &'static str)> {
    let text = text.to_lowercase();
    VENDORS
        .iter()
        .flat_map(|vendor| text.match_indices(vendor).map(|(at, _)| (at, *vendor)))
        .collect()
}

#[test]
fn vendors_are_named_by_their_adapters_alone() {
    let (mut found, mut used) = (Vec::new(), vec![false; NAMED.len()]);
    for source in shipped() {
        for (at, vendor) in vendors(&source.strings) {
            let allowed = NAMED
                .iter()
                .position(|(path, _)| match path.ends_with('/') {
                    true => source.path.starts_with(path),
                    false => source.path == *path,
                });
            match allowed {
                Some(which) => used[which] = true,
                None => {
                    let line = line_of(&source.strings, at);
                    found.push(format!("{}:{line}: {vendor}", source.path));
                }
            }
        }
    }
    let idle = NAMED.iter().zip(used).filter(|(_, used)| !used);
    found.extend(idle.map(|((path, _), _)| format!("{path}: exception that nothing needs")));
    assert!(found.is_empty(), "vendors:\n  {}", found.join("\n  "));
}

#[test]
fn caches_and_vendors_are_found() {
    let code =
        "pub(crate) struct ReplyCache<K> {}\nstruct Cache;\nstruct CachedConfig {}\nenum Memory {}";
    let found = caches(code);
    assert_eq!(
        found,
        [(1, "ReplyCache".to_owned()), (2, "Cache".to_owned())]
    );
    let named = vendors("let a = OpenAi::new();\n\"set OLLAMA_HOST\"");
    assert_eq!(named.len(), 2, "{named:?}");
}
