//! The storeys under the services name none of them: no type of its questions and answers, no processor, and no name as a text.
//! Which there are is read from the folders and from the contract, so a new service is held at once.

use std::collections::BTreeSet;

use tg_architecture_tests::source::{Source, shipped};
use tg_architecture_tests::text::{is_word, line_of};

/// The storeys.
const STOREYS: &[&str] = &[
    "crates/bus/",
    "crates/rpc/",
    "crates/mesh/",
    "crates/runs/",
    "crates/collections/",
    "crates/provider-http/",
];

/// Names as texts that mean something else there, and what.
const BUT: &[(&str, &str, &str)] = &[("crates/mesh/src/scope.rs", "flow", "the scope")];

/// What belongs to services.
#[derive(Debug, Default)]
struct Known {
    /// Identifiers: processors, and types that are asked and answered.
    identifiers: BTreeSet<String>,
    /// Texts: services and ids of processors.
    texts: BTreeSet<String>,
}

fn word_before(text: &str) -> &str {
    let start = text.bytes().rposition(|byte| !is_word(byte));
    &text[start.map_or(0, |at| at + 1)..]
}

fn word_after(text: &str) -> &str {
    let end = text.bytes().position(|byte| !is_word(byte));
    &text[..end.unwrap_or(text.len())]
}

/// Reads them from the project.
fn known(sources: &[Source]) -> Known {
    let mut known = Known::default();
    for source in sources {
        if let Some(below) = source.path.strip_prefix("services/") {
            let service = below.split('/').next().unwrap_or_default();
            known.texts.insert(service.to_owned());
        }
        if source.path.starts_with("schemas/src/processors/") {
            // `module("id", ProcessorScope, hosted: …) {`
            for (at, id) in source.literals() {
                let (before, after) = (&source.code[..at - 1], &source.code[at + id.len()..]);
                if let Some(before) = before.strip_suffix('(')
                    && after.starts_with("\", ")
                    && after
                        .lines()
                        .next()
                        .is_some_and(|line| line.contains("hosted: "))
                {
                    known.identifiers.insert(word_before(before).to_owned());
                    known.texts.insert(id.to_owned());
                }
            }
        }
        if source.path.starts_with("schemas/src/msg/") {
            for (at, open) in source.code.match_indices("message!(") {
                let name = word_after(&source.code[at + open.len()..]);
                if name.ends_with("Request") || name.ends_with("Response") {
                    known.identifiers.insert(name.to_owned());
                }
            }
        }
    }
    // Words of any program; as a path of the contract they are found by what stands before them.
    for plain in ["prompt", "embeddings"] {
        known.identifiers.remove(plain);
    }
    known
        .identifiers
        .extend(["processors::prompt", "processors::embeddings"].map(str::to_owned));
    known
}

/// Where a file names a service.
fn named(source: &Source, known: &Known) -> Vec<String> {
    let mut found = Vec::new();
    for name in &known.identifiers {
        for (at, _) in source.code.match_indices(name.as_str()) {
            let whole = word_before(&source.code[..at]).is_empty()
                && word_after(&source.code[at + name.len()..]).is_empty();
            if whole {
                let line = line_of(&source.code, at);
                found.push(format!("{}:{line}: {name}", source.path));
            }
        }
    }
    for (at, text) in source.literals() {
        let but = |(path, name, _): &&(&str, &str, &str)| *path == source.path && *name == text;
        if known.texts.contains(text) && !BUT.iter().any(|one| but(&one)) {
            let line = line_of(&source.code, at);
            found.push(format!("{}:{line}: \"{text}\"", source.path));
        }
    }
    found
}

#[test]
fn the_storeys_under_the_services_name_none() {
    let sources = shipped();
    let known = known(&sources);
    let below = |source: &&Source| STOREYS.iter().any(|one| source.path.starts_with(one));
    let storeys: Vec<_> = sources.iter().filter(below).collect();
    let found: Vec<_> = storeys.iter().flat_map(|one| named(one, &known)).collect();
    assert!(
        found.is_empty(),
        "what they need of one is passed in, or a part in schemas/src/processors/fabric.rs:\n  {}",
        found.join("\n  ")
    );
    for (path, name, _) in BUT {
        let source = storeys.iter().find(|source| source.path == *path);
        let needed = source.is_some_and(|one| one.literals().iter().any(|(_, text)| text == name));
        assert!(needed, "exception that nothing needs: {path} \"{name}\"");
    }
}

#[test]
fn a_service_that_is_named_is_found() {
    let known = known(&shipped());
    for service in ["agent", "graph", "llm", "vectors", "rows", "iam"] {
        let text = format!("fn f() {{ ask(\"{service}\") }}");
        let source = Source::new("crates/mesh/src/x.rs", &text);
        assert_eq!(named(&source, &known).len(), 1, "{service}: {known:?}");
    }
    for name in [
        "AgentRequest",
        "TriplesQueryResponse",
        "text_completion",
        "agent_manager",
        "kg_store",
        "processors::prompt",
    ] {
        let source = Source::new("crates/rpc/src/x.rs", &format!("use a::{name};"));
        assert_eq!(named(&source, &known).len(), 1, "{name}: {known:?}");
    }
    let prose = "fn f(rows: u8) { g(\"an agent asks\"); } // AgentRequest";
    assert!(named(&Source::new("crates/rpc/src/x.rs", prose), &known).is_empty());
}

/// Parts of names that only one service is called by, whatever stands around them.
const CALLED: &[&str] = &["librar", "embedding", "text_completion"];

/// Where a storey calls something after a service: a field, a function, a variable.
fn called_after(sources: &[Source]) -> Vec<String> {
    let below = |one: &&Source| STOREYS.iter().any(|storey| one.path.starts_with(storey));
    let mut found = Vec::new();
    for one in sources.iter().filter(below) {
        for (at, line) in one.code.to_lowercase().lines().enumerate() {
            if CALLED.iter().any(|part| line.contains(part)) {
                found.push(format!("{}:{}: {}", one.path, at + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn nothing_in_a_storey_is_called_after_a_service() {
    let found = called_after(&shipped());
    assert!(found.is_empty(), "{}", found.join("\n"));
    let field = Source::new(
        "crates/bus/src/mode.rs",
        "pub struct Rules { library_records: bool }",
    );
    assert_eq!(called_after(&[field]).len(), 1);
}
