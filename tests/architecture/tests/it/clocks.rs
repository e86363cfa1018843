//! No test of `make test` compares wall-clock time with a bound that a busy machine misses: such a test stands in `tests/soak.toml`.

use tg_architecture_tests::source::{Source, all, root};

/// Files whose tests compare a time, and why that is no bound that a busy machine misses.
const LOOKED_AT: &[(&str, &str)] = &[
    (
        "tests/integration/tests/it/",
        "patience of 60 s, or in tests/soak.toml",
    ),
    ("crates/rpc/src/client/tests.rs", "paused time"),
    ("services/gateway/src/wire.rs", "paused time"),
    ("services/gateway/src/slow_body.rs", "paused time"),
    (
        "services/llm/src/providers/tests.rs",
        "at least, not at most",
    ),
    ("services/rag/src/endpoint.rs", "at least, not at most"),
    (
        "services/graph/src/store/embedded/tests.rs",
        "patience of 60 s",
    ),
    (
        "services/graph/src/store/embedded/sight/tests.rs",
        "patience of 60 s",
    ),
    (
        "services/graph/src/store/embedded/sparql/tests.rs",
        "patience of 60 s",
    ),
    ("services/ingest/src/decode/page.rs", "patience of 60 s"),
    ("crates/document/src/pages.rs", "patience of 60 s"),
    ("services/llm/tests/several_backends.rs", "patience of 60 s"),
    (
        "crates/bus/tests/conformance/embedded.rs",
        "patience of 60 s",
    ),
    ("crates/mesh/tests/mesh/stopping.rs", "patience of 60 s"),
    (
        "services/gateway/tests/gateway/bulk.rs",
        "in tests/soak.toml",
    ),
    ("crates/mesh/tests/mesh/dialogs.rs", "in tests/soak.toml"),
    ("cli/src/completing.rs", "in tests/soak.toml"),
];

/// Whether a line compares a time that passed with something.
fn compares(line: &str) -> bool {
    let line = line.trim_start();
    let passed = ["elapsed() <", "elapsed() >", "took <", "took >"];
    !line.starts_with("//") && passed.iter().any(|passed| line.contains(passed))
}

/// Benches, what tests are made of, and these rules.
fn is_tool(path: &str) -> bool {
    path.contains("/examples/")
        || path.starts_with("crates/testkit/")
        || path.starts_with("tests/architecture/")
}

/// The lines of tests of a file that compare a time.
fn found(source: &Source) -> Vec<String> {
    let code = source.code.lines().chain(std::iter::repeat(""));
    let lines = source.text.lines().zip(code).enumerate();
    let of_tests =
        lines.filter(|(_, (line, code))| compares(line) && (source.test || !compares(code)));
    of_tests
        .map(|(at, (line, _))| format!("{}:{}: {}", source.path, at + 1, line.trim()))
        .collect()
}

#[test]
fn tests_compare_no_time_with_a_bound() {
    let sources = all();
    let known = |path: &str| LOOKED_AT.iter().any(|(start, _)| path.starts_with(start));
    let other: Vec<String> = sources
        .iter()
        .filter(|source| !is_tool(&source.path) && !known(&source.path))
        .flat_map(found)
        .collect();
    assert!(
        other.is_empty(),
        "use paused time, an order of events or a count, or put the test into tests/soak.toml:\n  {}",
        other.join("\n  ")
    );
}

#[test]
fn every_exception_is_needed() {
    let sources = all();
    let used = |start: &str| {
        let mut of = sources
            .iter()
            .filter(|source| source.path.starts_with(start));
        of.any(|source| !found(source).is_empty())
    };
    let idle: Vec<&str> = LOOKED_AT
        .iter()
        .map(|(start, _)| *start)
        .filter(|start| !used(start))
        .collect();
    assert!(idle.is_empty(), "these compare no time: {idle:?}");
}

/// Modules `alone` hold what only `make soak` runs.
#[test]
fn what_is_alone_runs_in_soak() {
    let list = std::fs::read_to_string(root().join("tests/soak.toml")).expect("the list is there");
    let missing: Vec<String> = all()
        .iter()
        .filter(|source| source.test && source.text.contains("\nmod alone {"))
        .filter_map(|source| {
            source
                .path
                .rsplit('/')
                .next()?
                .strip_suffix(".rs")
                .map(str::to_owned)
        })
        .filter(|file| {
            let whole = format!("^{file}::alone::");
            !list.contains(&whole) && !list.contains(&format!("::{file}::alone::"))
        })
        .collect();
    assert!(missing.is_empty(), "not in tests/soak.toml: {missing:?}");
}

#[test]
fn a_comparison_is_found() {
    let text = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn t() {\n        // took < 1\n        assert!(begun.elapsed() < BOUND);\n    }\n}\n";
    assert_eq!(found(&Source::new("services/a/src/b.rs", text)).len(), 1);
    let shipped = "fn f() {\n    if at.elapsed() < AGE {}\n}\n";
    assert!(found(&Source::new("services/a/src/b.rs", shipped)).is_empty());
}
