//! Every metric that code records has its row in the table of what metrics mean, with the labels that it is recorded with,
//! and every row is recorded.

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

/// A metric as a file records it.
struct Recorded {
    name: String,
    /// By which macro; `None` where the name is a constant or an argument, found by the text that it is.
    by: Option<&'static str>,
    /// `None` where it is not to be seen in the file.
    labels: Option<BTreeSet<String>>,
    line: usize,
}

/// The labels of the macro that is called at a place: of its opening bracket.
fn labels_of_call(source: &Source, open: usize) -> BTreeSet<String> {
    let mut depth = 0;
    let end = source.code[open..].bytes().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let call = &source.strings[open..open + end.unwrap_or(0)];
    let arrows = call.match_indices("=>");
    arrows
        .filter_map(|(at, _)| {
            let (_, label) = call[..at].trim_end().strip_suffix('"')?.rsplit_once('"')?;
            Some(label.to_owned())
        })
        .collect()
}

/// The labels of metrics whose names a file hands to a macro in another way than as a text.
fn labels_of_named(source: &Source) -> Option<BTreeSet<String>> {
    let text = &source.strings;
    let mut calls = RECORDED
        .iter()
        .flat_map(|kind| text.match_indices(*kind).map(|(at, _)| at + kind.len()))
        .filter(|after| quoted(&text[*after..]).is_none());
    let first = calls.next()?;
    Some(labels_of_call(source, first - 1))
}

/// The metrics that a file records.
fn recorded(source: &Source) -> Vec<Recorded> {
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
            found.push(Recorded {
                name: name.to_owned(),
                by: kind,
                labels: match kind {
                    Some(_) => Some(labels_of_call(source, before.len() - 1)),
                    None => labels_of_named(source),
                },
                line: line_of(text, at),
            });
        }
    }
    found
}

/// A row of the table.
struct Row {
    name: String,
    kind: String,
    labels: BTreeSet<String>,
}

/// The rows of the table.
fn rows(table: &str) -> Vec<Row> {
    let row = |line: &str| {
        let rest = line.trim().strip_prefix("row(")?;
        let (name, rest) = rest.split_once(',')?;
        let (kind, rest) = rest.split_once(',')?;
        let labels = quoted(rest)?.split_whitespace();
        Some(Row {
            name: quoted(name)?.to_owned(),
            kind: kind.trim().to_owned(),
            labels: labels.map(str::to_owned).collect(),
        })
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
        for one in recorded(source) {
            let at = format!("{}:{}: {}", source.path, one.line, one.name);
            match rows.iter().find(|row| row.name == one.name) {
                None => faults.push(format!("{at} has no row")),
                Some(row) if one.by.is_some_and(|by| !fits(&row.kind, by)) => {
                    faults.push(format!("{at} is a {} in the table", row.kind));
                }
                Some(row) => {
                    let labels = one.labels.filter(|labels| *labels != row.labels);
                    faults.extend(labels.map(|labels| {
                        format!("{at} has {labels:?}, in the table {:?}", row.labels)
                    }));
                }
            }
            used.insert(one.name);
        }
    }
    let idle = rows.iter().filter(|row| !used.contains(&row.name));
    faults.extend(idle.map(|row| format!("{TABLE}: {} is recorded nowhere", row.name)));
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
    let table = "    row(\"tg_a_total\", Counter, \"x\", \"A.\"),\n    row(\"tg_b\", Gauge, \"\", \"B.\"),\n";
    let code = "fn f() { metrics::counter!(\"tg_a_total\", \"x\" => y(z)).increment(1);\n \
                metrics::counter!(\n\"tg_b\").increment(1); metrics::histogram!(\"tg_c_seconds\"); }\n\
                const D: &str = \"tg_d_total\";";
    let found = faults(&[Source::new("services/a/src/lib.rs", code)], table);
    assert_eq!(found.len(), 3, "{found:?}");
    for (labels, fits) in [
        ("\"x\" => y", true),
        ("\"x\" => y, \"z\" => \"q\"", false),
        ("\"document\" => id", false),
    ] {
        let known = format!("{{ counter!(\"tg_a_total\", {labels}); gauge!(\"tg_b\"); }}");
        let named = format!(
            "{{ let c = |name| counter!(name, {labels}); c(\"tg_a_total\"); gauge!(\"tg_b\"); }}"
        );
        for code in [known, named] {
            let source = Source::new("services/a/src/lib.rs", &format!("fn f() {code}"));
            let found = faults(&[source], table);
            assert_eq!(found.is_empty(), fits, "{code}: {found:?}");
        }
    }
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
            family.is_some_and(|family| rows.iter().any(|row| row.name == family))
        }) || process.contains(&format!("\"{name}\""))
    };
    let named = named(page).into_iter();
    named.filter(|name| !is_told(name)).collect()
}

#[test]
fn what_the_docs_say_of_metrics_is_told() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_default();
    let (table, process) = (read(TABLE), read(PROCESS));
    for path in [
        "docs/operate.md",
        "docs/limits.md",
        "docs/use.md",
        "README.md",
    ] {
        let page = read(path);
        let unknown = unknown(&page, &table, &process);
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
    assert!(named(&read("docs/operate.md")).len() > 12);
    let (page, row) = (
        "sum(tg_a_bucket) / tg_b + process_c",
        "row(\"tg_a\", Seconds, \"\", \"A.\")",
    );
    assert_eq!(unknown(page, row, "\"process_c\""), ["tg_b"]);
}
