//! Terms on the command line: reading what the user typed, showing what the graph holds.

use tg_schemas::vocabulary::xsd;
use tg_schemas::{Term, Triple};

use crate::client::{Error, Result};

/// How deep quoted triples may stand in each other; they are read by recursion.
const DEEPEST: usize = 64;

/// What a term is meant to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TermKind {
    /// An IRI
    Iri,
    /// A literal
    Literal,
    /// A quoted triple
    Triple,
}

/// A term as typed: a quoted triple in `<<…>>`, an IRI by its scheme or in angle brackets, else a
/// literal; `kind` overrides the guess.
pub(super) fn read(text: &str, kind: Option<TermKind>) -> Result<Term> {
    read_nested(text, kind, 0)
}

/// A term inside so many quoted triples.
fn read_nested(text: &str, kind: Option<TermKind>, depth: usize) -> Result<Term> {
    let quoted = text.starts_with("<<") && text.ends_with(">>") && text.len() >= 4;
    match kind {
        Some(TermKind::Iri) => {
            let inner = text
                .strip_prefix('<')
                .and_then(|rest| rest.strip_suffix('>'));
            Ok(Term::iri(inner.unwrap_or(text)))
        }
        Some(TermKind::Literal) => Ok(Term::literal(unquote(text))),
        Some(TermKind::Triple) if !quoted => read_json(text),
        _ if quoted && depth == DEEPEST => Err(Error::Usage(format!(
            "quoted triples are nested more than {DEEPEST} deep"
        ))),
        _ if quoted => read_quoted(&text[2..text.len() - 2], depth + 1),
        _ => match Term::guess(text) {
            Term::Literal { value, .. } => Ok(read_literal(&value)),
            term => Ok(term),
        },
    }
}

/// A literal, maybe with the quotes, language or datatype that [`display`] writes.
fn read_literal(text: &str) -> Term {
    let Some(end) = text
        .rfind('"')
        .filter(|end| text.starts_with('"') && *end > 0)
    else {
        return Term::literal(text);
    };
    let (value, suffix) = (&text[1..end], &text[end + 1..]);
    let literal = |datatype: &str, language: &str| Term::Literal {
        value: value.to_owned(),
        datatype: datatype.to_owned(),
        language: language.to_owned(),
    };
    if suffix.is_empty() {
        return literal("", "");
    }
    if let Some(language) = suffix.strip_prefix('@') {
        return literal("", language);
    }
    match suffix.strip_prefix("^^") {
        Some(datatype) => literal(datatype.trim_matches(['<', '>']), ""),
        None => Term::literal(text),
    }
}

fn unquote(text: &str) -> &str {
    text.strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(text)
}

fn read_json(text: &str) -> Result<Term> {
    let value = serde_json::from_slice(text.as_bytes())
        .map_err(|error| Error::Usage(format!("{text}: neither <<s p o>> nor JSON: {error}")))?;
    let triple = Triple::from_api(&value)
        .ok_or_else(|| Error::Usage(format!("{text}: is not a triple in JSON form")))?;
    Ok(Term::Quoted(Box::new(triple)))
}

fn read_quoted(inner: &str, depth: usize) -> Result<Term> {
    let inner = inner.trim();
    let inner = inner
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or(inner);
    let parts = split(inner);
    let [s, p, o] = parts.as_slice() else {
        return Err(Error::Usage(format!(
            "<<{inner}>>: a quoted triple has 3 parts, this has {}",
            parts.len()
        )));
    };
    Ok(Term::Quoted(Box::new(Triple::new(
        read_nested(s, None, depth)?,
        read_nested(p, None, depth)?,
        read_nested(o, None, depth)?,
    ))))
}

/// Splits at blanks outside quotes and outside inner quoted triples.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut in_quotes, mut depth) = (false, 0_u32);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let mut taken = character.len_utf8();
        match character {
            '"' => in_quotes = !in_quotes,
            '<' if !in_quotes && rest.starts_with("<<") => (depth, taken) = (depth + 1, 2),
            '>' if !in_quotes && depth > 0 && rest.starts_with(">>") => {
                (depth, taken) = (depth - 1, 2);
            }
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if !(character.is_whitespace() && !in_quotes && depth == 0) => {
                part.push_str(&rest[..taken]);
            }
            _ => parts.push(String::new()),
        }
        rest = &rest[taken..];
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// A literal with a datatype or a language.
pub(super) fn refine(term: Term, datatype: Option<&str>, language: Option<&str>) -> Result<Term> {
    if datatype.is_none() && language.is_none() {
        return Ok(term);
    }
    let Term::Literal { value, .. } = term else {
        return Err(Error::Usage(
            "a datatype or a language goes with a literal only".to_owned(),
        ));
    };
    Ok(Term::Literal {
        value,
        datatype: datatype.map(expand).unwrap_or_default(),
        language: language.unwrap_or_default().to_owned(),
    })
}

fn expand(datatype: &str) -> String {
    match datatype.strip_prefix("xsd:") {
        Some(name) => format!("{}{name}", xsd::NAMESPACE),
        None => datatype.trim_matches(['<', '>']).to_owned(),
    }
}

/// A term for a line of a listing; literals are quoted, IRIs are not.
pub(crate) fn display(term: Option<&Term>) -> String {
    match term {
        None => String::new(),
        Some(Term::Iri(iri)) => iri.clone(),
        Some(Term::Blank(id)) => format!("_:{id}"),
        Some(Term::Literal {
            value,
            datatype,
            language,
        }) => match (language.as_str(), datatype.as_str()) {
            ("", "") => format!("\"{value}\""),
            ("", datatype) => format!("\"{value}\"^^{datatype}"),
            (language, _) => format!("\"{value}\"@{language}"),
        },
        Some(Term::Quoted(triple)) => format!(
            "<<{} {} {}>>",
            display(triple.s.as_ref()),
            display(triple.p.as_ref()),
            display(triple.o.as_ref()),
        ),
    }
}

/// A term for a cell: the bare value.
pub(super) fn bare(term: Option<&Term>) -> String {
    match term {
        Some(Term::Literal { value, .. }) => value.clone(),
        other => display(other),
    }
}

/// A term in Turtle.
pub(super) fn turtle(term: Option<&Term>) -> String {
    match term {
        None => "?".to_owned(),
        Some(Term::Iri(iri)) => format!("<{iri}>"),
        Some(Term::Blank(id)) => format!("_:{id}"),
        Some(Term::Literal {
            value,
            datatype,
            language,
        }) => {
            let value = escape(value);
            match (language.as_str(), datatype.as_str()) {
                ("", "") => format!("\"{value}\""),
                ("", datatype) => format!("\"{value}\"^^<{datatype}>"),
                (language, _) => format!("\"{value}\"@{language}"),
            }
        }
        Some(Term::Quoted(triple)) => format!(
            "<<( {} {} {} )>>",
            turtle(triple.s.as_ref()),
            turtle(triple.p.as_ref()),
            turtle(triple.o.as_ref()),
        ),
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_triples_are_nested_to_a_bound() {
        let nested = |depth: usize| format!("{}x{}", "<<a b ".repeat(depth), ">>".repeat(depth));
        assert!(read(&nested(DEEPEST), None).is_ok());
        let error = read(&nested(DEEPEST + 1), None).unwrap_err();
        assert!(error.to_string().contains("nested more than 64 deep"));
    }

    #[test]
    fn the_form_of_a_term_is_guessed() {
        assert_eq!(
            read("http://e/x", None).expect("iri"),
            Term::iri("http://e/x")
        );
        assert_eq!(read("<x:y>", None).expect("iri"), Term::iri("x:y"));
        assert_eq!(
            read("Marie Curie", None).expect("text"),
            Term::literal("Marie Curie")
        );
        assert_eq!(read("x", Some(TermKind::Iri)).expect("iri"), Term::iri("x"));
        assert_eq!(
            read("urn:x", Some(TermKind::Literal)).expect("text"),
            Term::literal("urn:x")
        );
    }

    #[test]
    fn what_is_shown_can_be_typed_back() {
        let inner = Triple::new(
            Term::iri("http://e/s"),
            Term::iri("http://e/p"),
            Term::Literal {
                value: "two words".into(),
                datatype: String::new(),
                language: "en".into(),
            },
        );
        let outer = Triple::new(
            Term::Quoted(Box::new(inner)),
            Term::iri("http://e/q"),
            Term::Literal {
                value: "5".into(),
                datatype: "http://www.w3.org/2001/XMLSchema#integer".into(),
                language: String::new(),
            },
        );
        let term = Term::Quoted(Box::new(outer));
        assert_eq!(read(&display(Some(&term)), None).expect("read"), term);
    }

    #[test]
    fn a_quoted_triple_has_three_parts() {
        assert!(read("<<http://e/s http://e/p>>", None).is_err());
        assert!(read("<<>>", None).is_err());
        assert!(read("<<(http://e/s http://e/p o)>>", None).is_ok());
    }

    #[test]
    fn a_language_needs_a_literal() {
        assert!(refine(Term::iri("x:y"), None, Some("en")).is_err());
        let typed = refine(Term::literal("5"), Some("xsd:integer"), None).expect("typed");
        assert_eq!(
            turtle(Some(&typed)),
            "\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>"
        );
    }

    #[test]
    fn turtle_is_escaped() {
        let term = Term::literal("a \"b\"\n\\c");
        assert_eq!(turtle(Some(&term)), "\"a \\\"b\\\"\\n\\\\c\"");
    }
}
