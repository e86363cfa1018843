//! Every metric that code records has its row in the table of what metrics mean, and every row is recorded.

use std::collections::BTreeSet;

use tg_architecture_tests::source::{Source, root, shipped};
use tg_architecture_tests::text::line_of;

/// The table.
const TABLE: &str = "server/src/metrics/table.rs";
/// What the process tells of itself stands here, with what it means.
const PROCESS: &str = "server/src/metrics/process.rs";
/// How a metric is recorded.
const RECORDED: [&str; 3] = ["counter!(", "gauge!(", "histogram!("];

/// A quoted text right after a place.
fn quoted(text: &str) -> Option<&str> {
    Some(text.trim_start().strip_prefix('"')?.split_once('"')?.0)
}

/// The metrics that a file records, with their kind and place. One whose name is a constant or an argument is found by the
/// text that it is.
fn recorded(source: &Source) -> Vec<(String, Option<&'static str>, usize)> {
    let text = &source.strings;
    let mut found = Vec::new();
    for (at, _) in text.match_indices("\"tg_") {
        let Some(name) = quoted(&text[at..]) else {
            continue;
        };
        if !name
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_lowercase())
        {
            continue;
        }
        let before = text[..at].trim_end();
        let kind = RECORDED.into_iter().find(|kind| before.ends_with(kind));
        let named = kind.is_some() || name.ends_with("_total");
        if named {
            found.push((name.to_owned(), kind, line_of(text, at)));
        }
    }
    found
}

/// The rows of the table: name and kind.
fn rows(table: &str) -> Vec<(String, String)> {
    let row = |line: &str| {
        let rest = line.trim().strip_prefix("row(")?;
        let (name, rest) = rest.split_once(',')?;
        let kind = rest.trim_start().split(',').next()?;
        Some((quoted(name)?.to_owned(), kind.to_owned()))
    };
    table.lines().filter_map(row).collect()
}

/// Whether a kind of the table is recorded so.
fn fits(kind: &str, by: &str) -> bool {
    match by {
        "counter!(" => kind == "Counter",
        "gauge!(" => kind == "Gauge",
        _ => kind == "Seconds" || kind == "Counts",
    }
}

fn faults(sources: &[Source], table: &str) -> Vec<String> {
    let rows = rows(table);
    let mut used = BTreeSet::new();
    let mut faults = Vec::new();
    for source in sources {
        if source.path == TABLE || source.path == PROCESS {
            continue;
        }
        for (name, by, line) in recorded(source) {
            let at = format!("{}:{line}: {name}", source.path);
            match rows.iter().find(|(known, _)| *known == name) {
                None => faults.push(format!("{at} has no row")),
                Some((_, kind)) if by.is_some_and(|by| !fits(kind, by)) => {
                    faults.push(format!("{at} is a {kind} in the table"));
                }
                Some(_) => {}
            }
            used.insert(name);
        }
    }
    let idle = rows.iter().filter(|(name, _)| !used.contains(name));
    faults.extend(idle.map(|(name, _)| format!("{TABLE}: {name} is recorded nowhere")));
    faults
}

#[test]
fn every_metric_is_in_the_table_and_no_other() {
    let sources = shipped();
    let table = sources.iter().find(|source| source.path == TABLE);
    let table = table.map(|table| table.text.as_str()).unwrap_or_default();
    assert!(rows(table).len() > 60, "the table is read");
    let faults = faults(&sources, table);
    assert!(faults.is_empty(), "metrics:\n  {}", faults.join("\n  "));
}

#[test]
fn what_is_not_described_is_found() {
    let table = "    row(\"tg_a_total\", Counter, \"A.\"),\n    row(\"tg_b\", Gauge, \"B.\"),\n";
    let code = "fn f() { metrics::counter!(\"tg_a_total\", \"x\" => y).increment(1);\n \
                metrics::counter!(\n\"tg_b\").increment(1); metrics::histogram!(\"tg_c_seconds\"); }\n\
                const D: &str = \"tg_d_total\";";
    let found = faults(&[Source::new("services/a/src/lib.rs", code)], table);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].ends_with("3: tg_b is a Gauge in the table"),
        "{found:?}"
    );
    let none = faults(&[], table);
    assert!(
        none[0].ends_with("tg_a_total is recorded nowhere"),
        "{none:?}"
    );
}

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| c != '_' && !c.is_ascii_lowercase());
    let own = |word: &&str| {
        let crate_of_ours = ["tg_mesh"];
        let prefix = word.starts_with("tg_") || word.starts_with("process_");
        prefix && !crate_of_ours.contains(word)
    };
    words.filter(own).collect()
}

/// Those of a page that nobody tells.
fn unknown<'a>(page: &'a str, table: &str, process: &str) -> Vec<&'a str> {
    let rows = rows(table);
    let is_told = |name: &str| {
        let ends = ["", "_bucket", "_sum", "_count"];
        ends.iter().any(|end| {
            let family = name.strip_suffix(end);
            family.is_some_and(|family| rows.iter().any(|row| row.0 == family))
        }) || process.contains(&format!("\"{name}\""))
    };
    let named = named(page).into_iter();
    named.filter(|name| !is_told(name)).collect()
}

#[test]
fn what_the_docs_say_of_metrics_is_told() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_default();
    let (table, process) = (read(TABLE), read(PROCESS));
    for path in ["docs/operate.md", "README.md"] {
        let page = read(path);
        let unknown = unknown(&page, &table, &process);
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
    assert!(named(&read("docs/operate.md")).len() > 12);
    let (page, row) = (
        "sum(tg_a_bucket) / tg_b + process_c",
        "row(\"tg_a\", Seconds, \"A.\")",
    );
    assert_eq!(unknown(page, row, "\"process_c\""), ["tg_b"]);
}
