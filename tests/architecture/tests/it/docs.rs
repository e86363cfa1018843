//! What the contract says of its fields: their meaning, and not only their names. And that pages for users and the
//! descriptions of the endpoints are worded as texts in code are.

use tg_architecture_tests::source::{Source, root, shipped};

/// Comments that say no more than the name does.
fn says_nothing(doc: &str) -> bool {
    let doc = doc.trim();
    doc.is_empty()
        || doc.starts_with("Wire field")
        || (doc.starts_with("The `") && doc.ends_with("message body."))
}

/// The doc comments of a file, each with the number of its first line.
fn docs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        let Some(doc) = line.trim_start().strip_prefix("///") else {
            open = false;
            continue;
        };
        match found.last_mut() {
            Some((_, whole)) if open => {
                whole.push(' ');
                whole.push_str(doc.trim());
            }
            _ => found.push((at + 1, doc.trim().to_owned())),
        }
        open = true;
    }
    found
}

fn idle(source: &Source) -> Vec<String> {
    let idle = docs(&source.text).into_iter();
    let idle = idle.filter(|(_, doc)| says_nothing(doc));
    idle.map(|(line, doc)| format!("{}:{line}: {doc}", source.path))
        .collect()
}

#[test]
fn the_contract_says_what_its_fields_mean() {
    let sources = shipped();
    let contract = sources
        .iter()
        .filter(|source| source.path.starts_with("schemas/src/"));
    let idle: Vec<String> = contract.flat_map(idle).collect();
    assert!(
        idle.is_empty(),
        "comments that say nothing:\n  {}",
        idle.join("\n  ")
    );
}

#[test]
fn a_comment_that_says_nothing_is_found() {
    let text = "/// The `A` message body.\npub struct A {\n    /// Wire field `b`.\n    pub b: i64,\n    \
                /// When, in seconds\n    /// since 1970.\n    pub c: i64,\n    ///\n    pub d: i64,\n}\n";
    let found = idle(&Source::new("schemas/src/msg/a.rs", text));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[1].starts_with("schemas/src/msg/a.rs:3: Wire field"));
    assert_eq!(docs(text)[2].1, "When, in seconds since 1970.");
}

/// "a text that is no number", where English says "is not a number"; what there is "no" of is counted, and fine.
fn denied_oddly(line: &str) -> bool {
    let plain = [
        "there is no ",
        "there are no ",
        "is no more",
        "are no more",
        "is no faster",
        "is no longer",
        "are no longer",
        "are no wider",
    ]
    .iter()
    .fold(line.to_lowercase(), |text, fine| text.replace(fine, ""));
    let odd = ["is no ", "are no ", "is none of its", "but is none"];
    odd.iter().any(|words| plain.contains(words))
}

/// A dead letter by a name that it has on the wire alone, where that is written as code.
fn says_aside(line: &str) -> bool {
    let line = line.to_lowercase();
    line.contains("put aside") || line.contains("puts aside")
}

#[test]
fn pages_and_contracts_are_plain_english() {
    let mut odd = Vec::new();
    for folder in ["", "docs", "docs/decisions", "specs/api"] {
        let listed = std::fs::read_dir(root().join(folder)).expect("a folder");
        for path in listed.flatten().map(|entry| entry.path()) {
            let ending = path.extension().and_then(|ending| ending.to_str());
            if !matches!(ending, Some("md" | "yaml")) {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a text");
            let lines = text.lines().enumerate();
            let found = lines.filter(|(_, line)| denied_oddly(line) || says_aside(line));
            odd.extend(found.map(|(at, line)| format!("{}:{}: {line}", path.display(), at + 1)));
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n"));
    assert!(denied_oddly("refused: it is no number") && !denied_oddly("there is no flow"));
    assert!(says_aside("Then it is put aside.") && !says_aside("`list-put-aside`"));
}

/// `scripts/house.sh` counts what ideas take; a file that was moved or removed makes it fail, and nobody runs it each day.
#[test]
fn what_is_counted_of_ideas_is_there() {
    let script = std::fs::read_to_string(root().join("scripts/house.sh")).expect("the script");
    let folders = [("$s/", "services/"), ("$c/", "cli/src/commands/")];
    let script = folders.iter().fold(script, |script, (short, whole)| {
        script.replace(short, whole)
    });
    // A row goes on behind a backslash; its last text in quotes are the paths of now.
    let script = script.replace("\\\n", "");
    let rows = script
        .lines()
        .filter_map(|line| line.strip_prefix("lines "));
    let paths: Vec<&str> = rows
        .filter_map(|row| row.split('"').nth(3))
        .flat_map(str::split_whitespace)
        .collect();
    assert!(paths.len() > 50, "{paths:?}");
    let gone: Vec<&&str> = paths
        .iter()
        .filter(|path| !root().join(path).exists())
        .collect();
    assert!(gone.is_empty(), "{gone:?}");
}
