//! Reading a query, and saying in words for people why it cannot be read.

use spargebra::{Query, SparqlParser};

use crate::error::GraphError;

/// Longest word of a query that is said again.
const LONGEST: usize = 100;

/// Reads a query whose nesting is known to be bounded.
pub(super) fn parse(text: &str) -> Result<Query, GraphError> {
    let refused = |why: &str| Err(GraphError::QuerySyntax(why.to_owned()));
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
    let (place, expected) = message.split_once("expected ")?;
    if !expected.contains("Prefix not found") {
        return None;
    }
    let (prefix, whole) = prefixed(text, offset(text, place)?)?;
    let why = format!("the prefix {prefix}: of {whole} is not declared");
    let how = format!("`PREFIX {prefix}: <…>` before the query declares it");
    Some(format!("{place}{why}; {how}"))
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

/// Where `error at LINE:COLUMN: ` points to.
fn offset(text: &str, place: &str) -> Option<usize> {
    let place = place
        .strip_prefix("error at ")?
        .trim_end_matches([':', ' ']);
    let (line, column) = place.split_once(':')?;
    let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
    let start: usize = match line {
        1 => 0,
        line => text.match_indices('\n').nth(line.checked_sub(2)?)?.0 + 1,
    };
    let mut chars = text[start..].char_indices().map(|(at, _)| start + at);
    chars.nth(column.checked_sub(1)?).or(Some(text.len()))
}

/// The prefixed name that ends at a place, or begins there, and its prefix.
fn prefixed(text: &str, at: usize) -> Option<(&str, &str)> {
    let named = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '%');
    let before = text[..at].trim_end_matches(named).len();
    let after = text[at..]
        .find(|c| !named(c))
        .map_or(text.len(), |end| at + end);
    let whole = text[before..after].trim_end_matches('.');
    let (prefix, _) = whole.split_once(':')?;
    (whole.len() <= LONGEST).then_some((prefix, whole))
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
            (
                "SELECT * { ?s ex:p ?o }",
                "the prefix ex: of ex:p is not declared",
            ),
            (
                "SELECT * {\n ex:größe ?p ?o . }",
                "the prefix ex: of ex:größe is not declared",
            ),
            (
                "SELECT * { ?s :p ?o }",
                "the prefix : of :p is not declared",
            ),
            (
                "SELECT * { ?s ?p ?o FILTER(ex:f(?o)) }",
                "the prefix ex: of ex:f is not declared",
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
