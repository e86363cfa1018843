//! What a log line says is a sentence with keys that people and machines read, and never how Rust shows a value to its
//! programmers.

use tg_architecture_tests::source::{Source, shipped};
use tg_architecture_tests::text::{is_word, line_of};

const LEVELS: [&str; 5] = ["error!(", "warn!(", "info!(", "debug!(", "trace!("];

/// Where the arguments of a macro end.
fn end(code: &str, from: usize) -> usize {
    let mut open = 0;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' => open += 1,
            b')' if open == 1 => return at,
            b')' => open -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Lines of a file that log a value as Rust's `Debug` shows it.
fn shown_raw(source: &Source) -> Vec<usize> {
    let code = &source.code;
    let mut found = Vec::new();
    for level in LEVELS {
        for (at, _) in code.match_indices(&format!("tracing::{level}")) {
            let from = at + "tracing::".len() + level.len() - 1;
            let to = end(code, from);
            let sigil = code[from..to].match_indices('?').any(|(mark, _)| {
                let before = code[from..from + mark].trim_end().bytes().last();
                let after = code.as_bytes().get(from + mark + 1).copied();
                matches!(before, Some(b'(' | b',' | b'=')) && after.is_some_and(is_word)
            });
            if sigil || source.strings[from..to].contains(":?}") {
                found.push(line_of(code, at));
            }
        }
    }
    found
}

#[test]
fn no_log_line_shows_a_value_as_a_programmer_sees_it() {
    let mut found = Vec::new();
    for source in shipped() {
        let lines = shown_raw(&source).into_iter();
        found.extend(lines.map(|line| format!("{}:{line}", source.path)));
    }
    assert!(
        found.is_empty(),
        "Debug in log lines:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn debug_is_found() {
    let code = "fn f() {\n tracing::warn!(?a, \"b\");\n tracing::info!(\n%a, b = ?c.d(), \"e\");\n \
                tracing::debug!(\"{a:?}\");\n tracing::error!(a = %b(c?), \"d?\");\n}";
    let mut found = shown_raw(&Source::new("services/a/src/lib.rs", code));
    found.sort_unstable();
    assert_eq!(found, [2, 3, 5]);
}
