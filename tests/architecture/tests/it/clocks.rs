//! No test of `make test` compares wall-clock time with a bound that a busy machine misses: such a test stands in `tests/soak.toml`. A test
//! that waits for something waits a minute for it.

use tg_architecture_tests::source::{Source, all, root};

/// Begins of paths that a rule leaves out, each with the reason.
type Exceptions = &'static [(&'static str, &'static str)];
/// Whether a line breaks a rule.
type Rule = fn(&str) -> bool;

/// Files whose tests compare a time, and why that is no bound that a busy machine misses.
const LOOKED_AT: Exceptions = &[
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

/// Files whose tests wait for less than a minute, and why a busy machine does not fail them.
const WAITED_BRIEFLY: Exceptions = &[
    (
        "crates/storage/src/database/tests.rs",
        "a caller that leaves a query without end",
    ),
    (
        "services/agent/src/run/tests/joined.rs",
        "what was written by then is read, and the rest is joined",
    ),
    (
        "services/gateway/src/handlers/narrow.rs",
        "a read that ends with what is there",
    ),
    (
        "services/gateway/src/wire.rs",
        "a write that ends when nothing more is taken",
    ),
    (
        "services/gateway/tests/gateway/flows.rs",
        "what must not come before the event that follows",
    ),
    (
        "services/gateway/tests/gateway/receiving.rs",
        "what must not come before the event that follows",
    ),
    (
        "services/gateway/tests/gateway/tls.rs",
        "as long as files are looked at more than once",
    ),
    ("services/llm/src/routing/tests.rs", "paused time"),
    ("services/sessions/src/turns.rs", "paused time"),
    (
        "tests/integration/tests/it/connections_are_bounded.rs",
        "less than the time after which there is room by itself",
    ),
    (
        "tests/integration/tests/it/injection_is_refused.rs",
        "a connection that is counted, and never answered",
    ),
    (
        "tests/integration/tests/it/left_queries_stop.rs",
        "in tests/soak.toml",
    ),
    (
        "tests/integration/tests/it/people_log_in.rs",
        "in tests/soak.toml",
    ),
    (
        "tests/integration/tests/it/revocation_",
        "in tests/soak.toml",
    ),
    (
        "tests/integration/tests/it/slow_readers_are_never_cut.rs",
        "a read that ends with what is there",
    ),
    (
        "tests/integration/tests/it/the_standard_doors.rs",
        "a caller that leaves a query without end",
    ),
    (
        "tests/integration/tests/it/tls_at_the_gateway.rs",
        "less than the time after which half a handshake ends by itself",
    ),
    (
        "tests/integration/tests/it/why_says_what_helps.rs",
        "a caller that leaves a run which goes on",
    ),
];

/// Names of constants that say how long a test waits for something.
const WAITS: [&str; 5] = ["BOUND", "SOON", "STARTED", "TIMEOUT", "WAIT"];

/// Whether a line waits for something for less than a minute, or says that its test does.
fn waits_briefly(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with("//") {
        return false;
    }
    let named = WAITS
        .iter()
        .find_map(|name| line.split_once(&format!("const {name}: Duration = ")));
    let until = || line.split_once("Instant::now() + ");
    let found = named.or_else(|| line.split_once("timeout(")).or_else(until);
    let Some((_, time)) = found else {
        return false;
    };
    let time = time.trim_start_matches("std::time::");
    let under = |unit: &str, minute: u64| {
        let number = time
            .strip_prefix(unit)
            .and_then(|rest| rest.split_once(')'));
        let number = number.and_then(|(number, _)| number.replace('_', "").parse::<u64>().ok());
        number.is_some_and(|number| number < minute)
    };
    under("Duration::from_secs(", 60) || under("Duration::from_millis(", 60_000)
}

/// Whether a line compares a time that passed with something.
fn compares(line: &str) -> bool {
    let line = line.trim_start();
    let passed = ["elapsed() <", "elapsed() >", "took <", "took >"];
    !line.starts_with("//") && passed.iter().any(|passed| line.contains(passed))
}

/// A whole number, or the constant of a file that has this name.
fn number(text: &str, word: &str) -> Option<u64> {
    let literal = |word: &str| word.replace('_', "").parse::<u64>().ok();
    literal(word).or_else(|| {
        let (_, after) = text.split_once(&format!("const {word}: "))?;
        let (_, value) = after.split_once(" = ")?;
        literal(value.split_once(';')?.0)
    })
}

/// Milliseconds for which a line of a file sleeps.
fn sleeps(text: &str, line: &str) -> Option<u64> {
    let (_, time) = line.split_once("sleep(")?;
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name: String = time
        .chars()
        .take_while(|letter| is_of_name(*letter))
        .collect();
    let named = text.split_once(&format!("const {name}: Duration = "));
    let time = named.map_or(time, |(_, time)| time);
    let time = time.trim_start_matches("std::time::");
    let units: [(&str, u64); 2] = [
        ("Duration::from_millis(", 1),
        ("Duration::from_secs(", 1_000),
    ];
    units.iter().find_map(|(unit, millis)| {
        let (count, _) = time.strip_prefix(unit)?.split_once(')')?;
        Some(number(text, count)? * millis)
    })
}

/// Loops that look so often for something, with pauses, that all of it is less than a minute.
fn look_briefly(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let brief = |(at, line): (usize, &&str)| {
        let begin = line.trim_start();
        let times = begin.strip_prefix("for _ in 0..")?.strip_suffix(" {")?;
        let times = number(&source.text, times)?;
        let end = line.replace(begin, "}");
        let block = lines.iter().skip(at + 1).take_while(|line| **line != end);
        let block: Vec<&str> = block.map(|line| line.trim_start()).collect();
        let ends = |line: &&str| line.starts_with("return") || line.starts_with("break");
        let pause = block.iter().find_map(|line| sleeps(&source.text, line))?;
        let brief = block.iter().any(ends) && times * pause < 60_000;
        brief.then(|| format!("{}:{}: {begin}", source.path, at + 1))
    };
    lines.iter().enumerate().filter_map(brief).collect()
}

/// Benches, what tests are made of, and these rules.
fn is_tool(path: &str) -> bool {
    path.contains("/examples/")
        || path.starts_with("crates/testkit/")
        || path.starts_with("tests/architecture/")
}

/// The lines of tests of a file of which that is so.
fn found(source: &Source, so: fn(&str) -> bool) -> Vec<String> {
    let code = source.code.lines().chain(std::iter::repeat(""));
    let lines = source.text.lines().zip(code).enumerate();
    let of_tests = lines.filter(|(_, (line, code))| so(line) && (source.test || !so(code)));
    of_tests
        .map(|(at, (line, _))| format!("{}:{}: {}", source.path, at + 1, line.trim()))
        .collect()
}

/// What is so of a line of a file that no list names.
fn other(known: Exceptions, so: Rule) -> Vec<String> {
    let known = |path: &str| known.iter().any(|(start, _)| path.starts_with(start));
    let sources = all();
    let sources = sources.iter();
    sources
        .filter(|source| !is_tool(&source.path) && !known(&source.path))
        .flat_map(|source| found(source, so))
        .collect()
}

#[test]
fn tests_compare_no_time_with_a_bound() {
    let other = other(LOOKED_AT, compares);
    assert!(
        other.is_empty(),
        "use paused time, an order of events or a count, or put the test into tests/soak.toml:\n  {}",
        other.join("\n  ")
    );
}

#[test]
fn tests_wait_a_minute() {
    let other = other(WAITED_BRIEFLY, waits_briefly);
    assert!(
        other.is_empty(),
        "wait for an event, for 60 s or more:\n  {}",
        other.join("\n  ")
    );
}

#[test]
fn tests_look_for_a_minute() {
    let sources = all();
    let tests = sources
        .iter()
        .filter(|source| source.test && !is_tool(&source.path));
    let brief: Vec<String> = tests.flat_map(look_briefly).collect();
    assert!(
        brief.is_empty(),
        "look for an event for 60 s or more:\n  {}",
        brief.join("\n  ")
    );
}

#[test]
fn every_exception_is_needed() {
    let sources = all();
    let lists: [(Exceptions, Rule); 2] = [(LOOKED_AT, compares), (WAITED_BRIEFLY, waits_briefly)];
    for (known, so) in lists {
        let used = |start: &str| {
            let mut of = sources
                .iter()
                .filter(|source| source.path.starts_with(start));
            of.any(|source| !found(source, so).is_empty())
        };
        let idle: Vec<&str> = known
            .iter()
            .map(|(start, _)| *start)
            .filter(|start| !used(start))
            .collect();
        assert!(idle.is_empty(), "these are not needed: {idle:?}");
    }
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
    assert_eq!(
        found(&Source::new("services/a/src/b.rs", text), compares).len(),
        1
    );
    let shipped = "fn f() {\n    if at.elapsed() < AGE {}\n}\n";
    assert!(found(&Source::new("services/a/src/b.rs", shipped), compares).is_empty());
}

#[test]
fn a_short_wait_is_found() {
    for short in [
        "    let read = tokio::time::timeout(Duration::from_millis(1_500), read).await;",
        "    timeout(std::time::Duration::from_secs(59), read)",
        "pub const WAIT: Duration = Duration::from_secs(20);",
        "    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(20);",
    ] {
        assert!(waits_briefly(short), "{short}");
    }
    for fine in [
        "    let read = tokio::time::timeout(Duration::from_secs(60), read).await;",
        "    // timeout(Duration::from_secs(1), read)",
        "    let read = tokio::time::timeout(BOUND, read).await;",
        "    let end = Instant::now() + BOUND;",
        "const PAUSE: Duration = Duration::from_millis(5);",
    ] {
        assert!(!waits_briefly(fine), "{fine}");
    }
}

#[test]
fn a_loop_that_looks_for_less_than_a_minute_is_found() {
    for (pause, times, found) in [
        ("Duration::from_millis(50)", "200", 1),
        ("std::time::Duration::from_millis(50)", "1_200", 0),
        ("LOOK", "TIMES", 1),
        ("UNKNOWN", "200", 0),
    ] {
        let text = format!(
            "const TIMES: usize = 59;\nconst LOOK: Duration = Duration::from_secs(1);\nfn t() {{\n    for _ in 0..{times} {{\n        if is() {{\n            return;\n        }}\n        sleep({pause}).await;\n    }}\n}}\n"
        );
        let source = Source::new("services/a/tests/b.rs", &text);
        assert_eq!(look_briefly(&source).len(), found, "{pause}, {times}");
    }
}
