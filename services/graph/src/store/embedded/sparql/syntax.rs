//! Reading a query, and saying in words for people why it cannot be read.

use spargebra::{Query, SparqlParser};

use crate::error::GraphError;

/// Longest word of a query that is said again.
const LONGEST: usize = 100;
/// Longest query that is read again to find a prefix that is not declared, and prefixes that are tried.
const TRIED: usize = 64 << 10;
const PREFIXES: usize = 8;

/// Reads a query whose nesting is known to be bounded.
pub(super) fn parse(text: &str) -> Result<Query, GraphError> {
    let refused = |why: &str| Err(GraphError::QuerySyntax(why.to_owned()));
    // Some editors write a byte order mark before a file.
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return refused("query: is required");
    }
    let error = match SparqlParser::new().parse_query(text) {
        Ok(query) => return Ok(query),
        Err(error) => error,
    };
    if SparqlParser::new().parse_update(text).is_ok() {
        return refused("query: is an update; only queries are answered here");
    }
    let told = error.to_string();
    refused(&misspelt(text, &told).unwrap_or_else(|| plain(&told)))
}

/// What the parser cannot say well: which word begins no query, and which prefix is not declared.
fn misspelt(text: &str, message: &str) -> Option<String> {
    if let Some((at, word)) = begins_nothing(text) {
        let (line, column) = position(text, at);
        return Some(format!(
            "error at {line}:{column}: no query begins with {word}, but with SELECT, ASK, CONSTRUCT or DESCRIBE"
        ));
    }
    let (place, _) = message.split_once("expected ")?;
    let prefix = undeclared(text)?;
    Some(format!(
        "{place}the prefix {prefix}: is not declared; `PREFIX {prefix}: <…>` before the query declares it"
    ))
}

/// The first prefix without which alone the query cannot be read.
fn undeclared(text: &str) -> Option<&str> {
    if text.len() > TRIED {
        return None;
    }
    let mut used: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices(':') {
        let named = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let start = text[..at].trim_end_matches(named).len();
        let prefix = &text[start..at];
        if !used.contains(&prefix) && used.len() < PREFIXES {
            used.push(prefix);
        }
    }
    let reads = |without: Option<&str>| {
        let given = used.iter().filter(|prefix| Some(**prefix) != without);
        let parser = given.fold(SparqlParser::new(), |parser, prefix| {
            // What is not the name of one is left out.
            parser
                .clone()
                .with_prefix(*prefix, "urn:x:")
                .unwrap_or(parser)
        });
        parser.parse_query(text).is_ok()
    };
    // All of them declared, it must be readable: else something else is wrong.
    let fault = reads(None);
    used.iter()
        .copied()
        .find(|prefix| fault && !reads(Some(prefix)))
}

/// The word behind all declarations, if no query begins with it.
fn begins_nothing(text: &str) -> Option<(usize, &str)> {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix('#') {
            rest = comment.split_once('\n')?.1;
            continue;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric());
        let word = &rest[..end.unwrap_or(rest.len())];
        let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
        if is(&["PREFIX", "BASE"]) {
            rest = rest.split_once('>')?.1;
            continue;
        }
        let known = is(&["SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "VERSION"]);
        let tells = !known && !word.is_empty() && word.len() <= LONGEST;
        return tells.then(|| (text.len() - rest.len(), word));
    }
}

/// Line and column of a place, both from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}

/// The parser's message without its classes of characters, which tell people nothing.
fn plain(message: &str) -> String {
    const EXPECTED: &str = "expected ";
    let Some((place, expected)) = message.split_once(EXPECTED) else {
        return message.to_owned();
    };
    let expected = expected.strip_prefix("one of ").unwrap_or(expected);
    let named: Vec<&str> = expected
        .split(", ")
        .map(str::trim)
        .filter(|item| !item.starts_with('[') && !item.is_empty())
        .collect();
    match named.as_slice() {
        [] => format!("{place}the query cannot be read from here on"),
        [one] => format!("{place}{EXPECTED}{one}"),
        many => format!("{place}{EXPECTED}one of {}", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_word_and_an_undeclared_prefix_are_named() {
        let told = fault("\n  SELEC * { ?s ?p ?o }");
        let wanted =
            "error at 2:3: no query begins with SELEC, but with SELECT, ASK, CONSTRUCT or DESCRIBE";
        assert_eq!(told, wanted);
        let declared = "# what\nPREFIX a: <urn:a:>\nSELEKT * { ?s ?p ?o }";
        assert!(
            fault(declared).contains("no query begins with SELEKT"),
            "{}",
            fault(declared)
        );
        for (text, prefix) in [
            ("SELECT * { ?s ex:p ?o }", "the prefix ex: is not declared"),
            (
                "SELECT * {\n ex:größe ?p ?o . }",
                "the prefix ex: is not declared",
            ),
            ("SELECT * { ?s :p ?o }", "the prefix : is not declared"),
            (
                "SELECT * { ?s ?p ?o FILTER(ex:f(?o)) }",
                "the prefix ex: is not declared",
            ),
        ] {
            let told = fault(text);
            assert!(told.contains(prefix), "{text}: {told}");
        }
        let long = format!("SELECT * {{ ?s {}:p ?o }}", "x".repeat(1 << 16));
        assert!(fault(&long).len() < 1000);
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        assert!(parse("SELECT ?s WHERE { ?s ?p ?o }").is_ok());
        assert!(parse("\u{feff}SELECT ?s WHERE { ?s ?p ?o }").is_ok());
        assert_eq!(fault(" \n"), "query: is required");
        let update = "query: is an update; only queries are answered here";
        for text in ["DROP ALL", "INSERT DATA { <urn:a> <urn:b> 1 }"] {
            assert_eq!(fault(text), update);
        }
        let cut = fault("SELECT ?s WHERE { ?s");
        assert!(cut.starts_with("error at 1:21: expected one of "), "{cut}");
        for text in [
            &cut,
            &fault("nonsense"),
            &fault("SELECT ?s WHERE { ?s ?p ?o } LIMIT -1"),
        ] {
            assert!(text.contains("error at 1:"), "{text}");
            assert!(
                !text.contains("..=") && !text.contains("[_]") && !text.contains('\n'),
                "{text}"
            );
        }
    }
}
