//! Files and functions that can be read at once, and files that say what they are for.

use tg_architecture_tests::functions::functions;
use tg_architecture_tests::source::{all, root};
use tg_architecture_tests::text::{Keep, blank};

/// More lines than a file may have, for tests or not.
const FILE: usize = 600;
/// More lines than a function may have, a test or not.
const FUNCTION: usize = 100;
/// More lines than a page may have that everybody reads: one and a half screens, a list of changes, and a first listener.
const PAGES: &[(&str, usize)] = &[
    ("README.md", 80),
    ("CHANGELOG.md", 60),
    ("examples/greeter.rs", 60),
];

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = all()
        .iter()
        .map(|source| (source.path.clone(), source.text.lines().count()))
        .filter(|(_, lines)| *lines > FILE)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect();
    assert!(
        long.is_empty(),
        "files over {FILE} lines:\n  {}",
        long.join("\n  ")
    );
}

#[test]
fn no_function_is_too_long() {
    let mut long = Vec::new();
    for source in all() {
        for function in functions(&blank(&source.text, Keep::Code)) {
            if function.lines > FUNCTION {
                let place = format!("{}:{}", source.path, function.line);
                long.push(format!(
                    "{place}: {} has {} lines",
                    function.name, function.lines
                ));
            }
        }
    }
    assert!(
        long.is_empty(),
        "functions over {FUNCTION} lines:\n  {}",
        long.join("\n  ")
    );
}

#[test]
fn first_pages_are_short() {
    let read = |page: &str| std::fs::read_to_string(root().join(page)).expect("a page");
    for (page, most) in PAGES {
        let lines = read(page).lines().count();
        assert!(lines <= *most, "{page} has {lines} lines of {most}");
    }
    let limits = read("docs/limits.md");
    let long: Vec<&str> = limits
        .lines()
        .filter(|line| line.starts_with(' '))
        .collect();
    assert!(long.is_empty(), "limits of more than a line: {long:?}");
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<String> = all()
        .iter()
        .filter(|source| !opens_with_a_sentence(&source.text))
        .map(|source| source.path.clone())
        .collect();
    assert!(
        silent.is_empty(),
        "files without a `//!` head:\n  {}",
        silent.join("\n  ")
    );
}

fn opens_with_a_sentence(text: &str) -> bool {
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("#!["));
    first.is_some_and(|line| line.starts_with("//!") && line.len() > 8)
}

#[test]
fn a_head_is_told_from_none() {
    assert!(opens_with_a_sentence(
        "#![no_std]\n\n//! What it is for.\nfn f() {}"
    ));
    assert!(!opens_with_a_sentence(
        "/// Not the file.\nfn f() {}\n//! Too late."
    ));
    assert!(!opens_with_a_sentence("//!\nfn f() {}"));
    assert!(!opens_with_a_sentence(""));
}
