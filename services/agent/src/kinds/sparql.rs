//! What the graph tools share: writing terms into queries safely, running queries, readable lines.

use std::fmt::Write as _;

use tg_schemas::msg::SparqlQueryRequest;
use tg_schemas::processors::agent_manager::SPARQL;
use tg_schemas::vocabulary::{dc, dcterms, foaf, rdfs, schema, schema_http, skos};
use tg_schemas::{Error, Term, Triple};

use super::tool_call::Call;
use crate::error::AgentError;

/// Predicates that name things.
const NAMING: &[&str] = &[
    rdfs::LABEL,
    skos::PREF_LABEL,
    skos::ALT_LABEL,
    foaf::NAME,
    schema::NAME,
    schema_http::NAME,
    dc::TITLE,
    dcterms::TITLE,
];
/// Subjects that are records of questions asked, not knowledge.
const TRACES: &str = "urn:trustgraph:";

/// Rows or triples that a query returned.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) kind: String,
    pub(super) variables: Vec<String>,
    pub(super) rows: Vec<Vec<Option<Term>>>,
    pub(super) yes: bool,
    pub(super) triples: Vec<Triple>,
}

/// Runs a query over the collection.
pub(super) async fn run(call: &Call<'_>, query: String, limit: usize) -> Result<Results, Error> {
    let request = SparqlQueryRequest {
        collection: call.collection.to_owned(),
        query,
        limit: i64::try_from(limit).unwrap_or(i64::MAX),
        ..SparqlQueryRequest::default()
    };
    let mut answer = call.cx.ask(SPARQL, &request)?;
    let mut results = Results::default();
    while let Some(part) = answer.next().await {
        let part = part?;
        if let Some(error) = part.error {
            return Err(error);
        }
        if !part.query_type.is_empty() {
            results.kind = part.query_type;
        }
        if !part.variables.is_empty() {
            results.variables = part.variables;
        }
        results.yes |= part.ask_result;
        results
            .rows
            .extend(part.bindings.into_iter().map(|row| row.values));
        results.triples.extend(part.triples);
    }
    Ok(results)
}

/// A literal for a query.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// An IRI for a query; refused if it could end the brackets.
pub(super) fn iri(text: &str) -> Result<String, AgentError> {
    let bad =
        |c: char| c <= ' ' || matches!(c, '<' | '>' | '"' | '{' | '}' | '|' | '^' | '`' | '\\');
    if text.is_empty() || text.contains(bad) {
        return Err(AgentError::NotIri(text.to_owned()));
    }
    Ok(format!("<{text}>"))
}

/// The IRI that an argument is, if it is one.
pub(super) fn as_iri(text: &str) -> Option<String> {
    match Term::guess(text) {
        Term::Iri(iri) => Some(iri),
        _ => None,
    }
}

/// The naming predicates as a `VALUES` list.
pub(super) fn naming() -> String {
    NAMING.iter().map(|iri| format!("<{iri}> ")).collect()
}

/// Leaves out what is no knowledge.
pub(super) fn no_traces(variable: &str) -> String {
    format!("FILTER(!STRSTARTS(STR(?{variable}), \"{TRACES}\"))")
}

/// Adds a name for a variable, where the graph has one: `?x` gets `?x_name`.
pub(super) fn with_name(variable: &str) -> String {
    format!(
        "OPTIONAL {{ ?{variable} <{}> ?{variable}_name }}",
        NAMING[0]
    )
}

/// A term as text: the name if known, else what it is.
pub(super) fn show(term: Option<&Term>, name: Option<&Term>) -> String {
    let text = |term: &Term| match term {
        Term::Iri(iri) => iri.clone(),
        Term::Blank(id) => format!("_:{id}"),
        Term::Literal { value, .. } => value.clone(),
        Term::Quoted(triple) => format!(
            "<< {} >>",
            [&triple.s, &triple.p, &triple.o]
                .map(|part| show(part.as_ref(), None))
                .join(" | ")
        ),
    };
    match (name, term) {
        (Some(name), _) => text(name),
        (None, Some(term)) => text(term),
        (None, None) => String::new(),
    }
}

/// A predicate as text: its name if known, else the last part of its IRI.
pub(super) fn show_predicate(term: Option<&Term>, name: Option<&Term>) -> String {
    let shown = show(term, name);
    if name.is_some() {
        return shown;
    }
    match shown.rfind(['#', '/', ':']) {
        Some(at) if at + 1 < shown.len() => shown[at + 1..].to_owned(),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_cannot_leave_their_place() {
        assert_eq!(literal("a\"b\\c\n\u{1}"), "\"a\\\"b\\\\c\\n\\u0001\"");
        assert_eq!(iri("urn:a").unwrap(), "<urn:a>");
        for bad in ["urn:a> <urn:b", "a b", "", "urn:\"", "x\ny"] {
            assert!(iri(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_win_and_predicates_are_short() {
        let term = Term::iri("http://x.example/ns#builtIn");
        assert_eq!(show_predicate(Some(&term), None), "builtIn");
        assert_eq!(
            show_predicate(Some(&term), Some(&Term::literal("built in"))),
            "built in"
        );
        assert_eq!(show(Some(&term), None), "http://x.example/ns#builtIn");
        assert_eq!(show_predicate(Some(&Term::iri("urn:")), None), "urn:");
    }
}
