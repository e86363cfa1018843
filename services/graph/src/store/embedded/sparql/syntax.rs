//! Reading a query, and saying in words for people why it cannot be read.

use spargebra::{Query, SparqlParser};

use crate::error::GraphError;

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
    refused(&plain(&error.to_string()))
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
