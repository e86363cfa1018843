//! One shape for every service: the same rooms under the same names, and what it keeps behind a trait that knows no
//! database. The handlers of the gateway serve endpoints (HTTP routes and sockets) where those of others serve queues.

use std::collections::BTreeSet;

use tg_architecture_tests::source::{Source, all, shipped};
use tg_architecture_tests::text::{is_word, item_end, line_of};
use tg_architecture_tests::words::places;

/// All services, in the order of their names.
const SHAPED: &[&str] = &[
    "agent",
    "config",
    "embeddings",
    "extract",
    "flow",
    "gateway",
    "graph",
    "iam",
    "ingest",
    "knowledge",
    "librarian",
    "llm",
    "prompt",
    "rag",
    "rows",
    "sessions",
    "threads",
    "tool",
    "vectors",
];

/// Services that keep something, behind a trait.
const KEEPERS: &[&str] = &[
    "agent",
    "config",
    "extract",
    "flow",
    "graph",
    "iam",
    "knowledge",
    "librarian",
    "rows",
    "sessions",
    "vectors",
];

/// What each service has: its list of processors, what its starter decides, their queues, its rules, its errors.
const ROOMS: &[&str] = &[
    "lib",
    "processors",
    "options",
    "handlers",
    "engine",
    "error",
];

/// Names that these rooms had before, or that say nothing.
const FORMER: &[&str] = &[
    "processor",
    "handler",
    "fault",
    "faults",
    "settings",
    "utils",
    "helpers",
    "common",
    "service",
];

/// Identifiers that were struck for the field's words, and those words.
const STRUCK: &[(&str, &str)] = &[
    ("AGAIN", "a retry: its delay, how many, how long"),
    ("Fault", "an error, and of what"),
    ("Holder", "a reply server"),
    ("Keeper", "what it keeps: a writer, a recorder"),
    ("Mistake", "an error"),
    ("Narrator", "an answer stream"),
    ("Nowhere", "unroutable"),
    ("OwnedStore", "a leased store"),
    ("PATIENCE", "a timeout"),
    ("Promise", "a publish mode"),
    ("PutAside", "a dead letter"),
    ("Regime", "an authentication mode"),
    ("Standing", "a resume point"),
    ("Teller", "an answer stream"),
];

/// What belongs to one kind of database. No adapter's neighbour may know it.
const DATABASE: &[&str] = &[
    "rusqlite",
    "Database",
    "Connection",
    "Transaction",
    "oxigraph",
    "MemoryStore",
    "sqlx",
    "PgPool",
];

/// The files of a service, by their path below `src/`.
fn files<'a>(sources: &'a [Source], service: &str) -> Vec<(&'a str, &'a Source)> {
    let folder = format!("services/{service}/src/");
    sources
        .iter()
        .filter_map(|source| Some((source.path.strip_prefix(&folder)?, source)))
        .collect()
}

/// The modules that lie directly in a folder of a service.
fn modules(files: &[(&str, &Source)], below: &str) -> BTreeSet<String> {
    files
        .iter()
        .filter_map(|(path, _)| path.strip_prefix(below))
        .filter_map(|path| path.split('/').next())
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .collect()
}

/// The traits of a file: their lines and all that stands from their names to their last braces.
fn traits(code: &str) -> Vec<(usize, &str)> {
    items(code, "trait ")
}

/// The same of other items that begin with a word.
fn items<'a>(code: &'a str, word: &str) -> Vec<(usize, &'a str)> {
    let starts = code.match_indices(word);
    starts
        .filter(|(at, _)| {
            let before = code[..*at].trim_end();
            before.is_empty() || before.ends_with([';', '}', ']', ')']) || before.ends_with("pub")
        })
        .map(|(at, _)| (line_of(code, at), &code[at..item_end(code, at)]))
        .collect()
}

/// Whether a code has a word, as a word of its own.
fn names(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].bytes().next_back();
        let after = code[at + word.len()..].bytes().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

fn told(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn every_service_is_looked_at() {
    let sources = all();
    let paths = sources.iter().map(|source| source.path.as_str());
    let below = paths.filter_map(|path| path.strip_prefix("services/")?.split('/').next());
    let found: BTreeSet<&str> = below.collect();
    let listed: BTreeSet<&str> = SHAPED.iter().copied().collect();
    assert_eq!(found, listed, "services that have the shape");
}

#[test]
fn a_service_has_its_rooms_under_their_names() {
    let sources = all();
    let mut found = Vec::new();
    for service in SHAPED {
        let files = files(&sources, service);
        let has = modules(&files, "");
        let lacks = ROOMS.iter().filter(|room| !has.contains(**room));
        found.extend(lacks.map(|room| format!("services/{service} has no `{room}`")));
        let former = FORMER.iter().filter(|room| has.contains(**room));
        found.extend(former.map(|room| format!("services/{service} has a `{room}`")));
    }
    told("rooms of services", &found);
}

/// Where a file uses an identifier that was struck.
fn struck(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (identifier, word) in STRUCK {
        for (at, _) in places(&source.code, &[identifier]) {
            let line = line_of(&source.code, at);
            found.push(format!("{}:{line}: {identifier}: {word}", source.path));
        }
    }
    let ends = source.code.match_indices("Fault");
    let ends = ends.filter(|(at, word)| {
        let (before, after) = (&source.code[..*at], &source.code[at + word.len()..]);
        before.bytes().next_back().is_some_and(is_word)
            && !after.bytes().next().is_some_and(is_word)
    });
    found.extend(ends.map(|(at, _)| {
        let line = line_of(&source.code, at);
        format!(
            "{}:{line}: a name that ends in Fault: an error",
            source.path
        )
    }));
    found
}

#[test]
fn names_that_were_struck_stay_away() {
    let found: Vec<String> = all().iter().flat_map(struck).collect();
    told("names that were struck", &found);
    let source = Source::new(
        "services/a/src/b.rs",
        "const PATIENCE: u8 = 1; // AGAIN\nstruct Error;\nfn f() -> Fault { \"Regime\" }",
    );
    let found = struck(&source).join(" ");
    assert!(found.contains("b.rs:1: PATIENCE") && found.contains("b.rs:3: Fault"));
    assert_eq!(struck(&source).len(), 2);
    let source = Source::new("crates/a/src/b.rs", "struct PemFault;\nstruct Faulty;");
    let found = struck(&source).join(" ");
    assert!(found.contains("b.rs:1: a name that ends in Fault") && struck(&source).len() == 1);
}

#[test]
fn the_root_of_a_service_says_what_there_is_and_nothing_else() {
    let sources = all();
    let mut found = Vec::new();
    for service in SHAPED {
        for (path, source) in files(&sources, service) {
            let holds = |word: &str| source.code.contains(word);
            if path == "lib.rs" && ["fn ", "struct ", "enum ", "impl "].into_iter().any(holds) {
                found.push(format!("{} holds more than modules and names", source.path));
            }
            if path == "processors.rs" && !holds("pub fn processors(") {
                found.push(format!("{} has no `processors`", source.path));
            }
        }
    }
    told("roots of services", &found);
}

#[test]
fn what_a_service_keeps_is_behind_a_trait_with_a_conformance_suite() {
    let sources = all();
    let mut found = Vec::new();
    for service in KEEPERS {
        let files = files(&sources, service);
        let has = modules(&files, "store/");
        if !has.contains("mod") || !has.contains("conformance") {
            found.push(format!(
                "services/{service}/src/store lacks its `mod` or its `conformance`"
            ));
        }
        let ports = files
            .iter()
            .filter(|(path, source)| path.starts_with("store/") && !source.test)
            .flat_map(|(_, source)| traits(&source.code));
        if ports.count() == 0 {
            found.push(format!("services/{service}/src/store has no trait"));
        }
        if has.len() < 3 {
            found.push(format!("services/{service}/src/store has no adapter"));
        }
    }
    told("stores", &found);
}

/// The name of an item, behind `trait ` or `struct `.
fn name_of(item: &str) -> &str {
    let (_, rest) = item.split_once(' ').unwrap_or_default();
    &rest[..rest.bytes().position(|b| !is_word(b)).unwrap_or(0)]
}

/// The methods that a trait declares.
fn methods(port: &str) -> Vec<&str> {
    let behind = port
        .match_indices("fn ")
        .map(|(at, open)| &port[at + open.len()..]);
    behind
        .map(|rest| &rest[..rest.bytes().position(|b| !is_word(b)).unwrap_or(0)])
        .collect()
}

/// Whether a code calls a method: `a.method(…)` or `A::method(…)`.
fn calls(code: &str, method: &str) -> bool {
    code.match_indices(method).any(|(at, _)| {
        let before = code[..at].trim_end();
        let whole = !code[at + method.len()..]
            .bytes()
            .next()
            .is_some_and(is_word);
        whole && (before.ends_with('.') || before.ends_with("::"))
    })
}

/// What of the traits of a store no suite holds: a trait that neither it nor a trait or type which it holds names, and a
/// method that it never calls.
fn unheld(ports: &[&str], types: &[&str], suite: &str) -> Vec<String> {
    let items: Vec<&str> = [ports, types].concat();
    let mut held: Vec<bool> = items.iter().map(|one| names(suite, name_of(one))).collect();
    for _ in &items {
        for at in 0..items.len() {
            let mut holders = items.iter().zip(&held).filter(|(_, held)| **held);
            held[at] |= holders.any(|(holder, _)| names(holder, name_of(items[at])));
        }
    }
    let alone = ports.iter().zip(held).filter(|(_, held)| !held);
    let mut found: Vec<String> = alone.map(|(one, _)| name_of(one).to_owned()).collect();
    for port in ports {
        let never = methods(port).into_iter().filter(|one| !calls(suite, one));
        found.extend(never.map(|method| format!("{}::{method}", name_of(port))));
    }
    found
}

#[test]
fn each_trait_of_a_store_is_held_by_its_suite() {
    let sources = all();
    let mut found = Vec::new();
    for service in KEEPERS {
        let (mut ports, mut types, mut suite) = (Vec::new(), Vec::new(), String::new());
        for (path, source) in files(&sources, service) {
            if path.starts_with("store/conformance") {
                suite.push_str(&source.code);
            } else if path.starts_with("store/") && !source.test {
                ports.extend(traits(&source.code).into_iter().map(|(_, port)| port));
                types.extend(
                    items(&source.code, "struct ")
                        .into_iter()
                        .map(|(_, one)| one),
                );
            }
        }
        let unheld = unheld(&ports, &types, &suite);
        found.extend(
            unheld
                .iter()
                .map(|what| format!("services/{service}: {what}")),
        );
    }
    told("what no conformance suite holds", &found);
}

#[test]
fn what_no_suite_holds_is_found() {
    let ports = [
        "trait Whole: Part + Send {}",
        "trait Part {\n fn get(&self) -> Box<dyn Walk>;\n fn put(&self);\n}",
        "trait Walk { fn next(&mut self); }",
        "trait Alone { fn get_all(&self); }",
    ];
    let suite = "fn f(s: Store) { s.get(); Part::put(&s); s.get().next(); get_all() }";
    let store = ["struct Store(Arc<dyn Whole>);"];
    assert_eq!(unheld(&ports, &store, suite), ["Alone", "Alone::get_all"]);
    let found = unheld(&ports[..3], &store, &suite.replace(".next", ".last"));
    assert_eq!(found, ["Walk::next"]);
    assert_eq!(unheld(&ports[..3], &[], suite), ["Whole"]);
}

#[test]
fn no_trait_of_a_store_knows_a_database() {
    let mut found = Vec::new();
    for source in all() {
        if !source.path.starts_with("services/") || !source.path.contains("/src/store/") {
            continue;
        }
        for (line, port) in traits(&source.code) {
            for word in DATABASE.iter().filter(|word| names(port, word)) {
                found.push(format!("{}:{line}: names `{word}`", source.path));
            }
        }
    }
    told("traits of stores", &found);
}

#[test]
fn every_service_that_keeps_something_is_looked_at() {
    let mut found = BTreeSet::new();
    for source in all() {
        let path = source.path.strip_prefix("services/");
        if let Some((service, _)) = path.and_then(|path| path.split_once("/src/store/"))
            && !KEEPERS.contains(&service)
        {
            found.insert(format!("services/{service}"));
        }
    }
    let found: Vec<String> = found.into_iter().collect();
    told("stores that nobody looks at", &found);
}

#[test]
fn traits_are_found() {
    let code = "use a::Database;\npub(crate) trait Port: Send {\n    async fn get(&self) -> Database;\n}\n\
                fn trait_of() {}\n#[x]\ntrait Other {}\nimpl Port for Database {}";
    let found = traits(code);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].0, 2);
    assert!(names(found[0].1, "Database") && !names(found[1].1, "Database"));
    assert!(!names("KnownDatabases", "Database"));
}

/// What waits.
const WAITS: &[&str] = &[
    "blocking_",
    "block_on(",
    "recv_timeout(",
    "wait_timeout(",
    "sleep(",
    "park(",
    ".recv()",
    ".join()",
    ".wait(",
];

#[test]
fn a_sink_never_waits() {
    let (mut found, mut count) = (Vec::new(), 0);
    for source in shipped() {
        for (at, _) in source.code.match_indices(" Sink for ") {
            let body = &source.code[at..item_end(&source.code, at)];
            count += 1;
            for word in WAITS.iter().filter(|word| body.contains(**word)) {
                let line = line_of(&source.code, at);
                found.push(format!("{}:{line}: waits: `{word}`", source.path));
            }
        }
    }
    assert!(count >= 7, "{count} sinks");
    told("sinks", &found);
}
