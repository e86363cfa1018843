//! Statements as lines of N-Triples in the one form that is hashed (the canonical form of RDF 1.2): what a trace says has
//! the same lines whoever writes them, and in whatever order they were stored.

use tg_schemas::vocabulary::{tg, xsd};
use tg_schemas::{Term, Triple, is_drawn_label};

use crate::stable::joined_hash;

/// Room for the lines of most entities: a dozen of some 170 bytes.
const LINES: usize = 2 << 10;
/// And for where they end.
const ENDS: usize = 16;

/// SHA-256 in hexadecimal over the lines of what is said of an entity and its parts: each once, sorted by their bytes, each
/// ended by a line feed. The hash itself is left out, and so is which document holds the entity's text: what counts
/// is the text, whose hash is a statement of its own, and a library of others may not have taken it.
pub(crate) fn entity_hash<'a>(id: &str, said: impl IntoIterator<Item = &'a Triple>) -> String {
    let (mut written, mut ends) = (String::with_capacity(LINES), Vec::with_capacity(ENDS));
    for triple in said.into_iter().filter(|triple| !is_left_out(id, triple)) {
        line(&mut written, triple);
        ends.push(written.len());
    }
    let mut start = 0;
    let lines = ends.into_iter().map(|end| {
        let from = std::mem::replace(&mut start, end);
        &written[from..end]
    });
    let mut lines: Vec<&str> = lines.collect();
    lines.sort_unstable();
    lines.dedup();
    joined_hash(&lines)
}

fn is_left_out(id: &str, triple: &Triple) -> bool {
    let own = matches!(&triple.s, Some(Term::Iri(subject)) if subject == id);
    own && [tg::ENTITY_HASH, tg::DOCUMENT]
        .iter()
        .any(|left_out| is(&triple.p, left_out))
}

/// Whether a term is an IRI.
pub(crate) fn is(term: &Option<Term>, iri: &str) -> bool {
    matches!(term, Some(Term::Iri(text)) if text == iri)
}

fn line(out: &mut String, triple: &Triple) {
    statement(out, triple);
    out.push_str(" .\n");
}

fn statement(out: &mut String, triple: &Triple) {
    for (at, part) in [&triple.s, &triple.p, &triple.o].into_iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        if let Some(part) = part {
            term(out, part);
        }
    }
}

fn term(out: &mut String, term: &Term) {
    match term {
        Term::Iri(label) if is_drawn_label(label) => blank(out, label),
        Term::Blank(label) => blank(out, label),
        Term::Iri(iri) => {
            out.push('<');
            out.push_str(iri);
            out.push('>');
        }
        Term::Literal {
            value,
            datatype,
            language,
        } => {
            text(out, value);
            if !language.is_empty() {
                out.push('@');
                out.push_str(&language.to_ascii_lowercase());
            } else if !datatype.is_empty() && datatype != xsd::STRING {
                out.push_str("^^<");
                out.push_str(datatype);
                out.push('>');
            }
        }
        Term::Quoted(triple) => {
            out.push_str("<<( ");
            statement(out, triple);
            out.push_str(" )>>");
        }
    }
}

fn blank(out: &mut String, label: &str) {
    out.push_str("_:");
    out.push_str(label.strip_prefix("_:").unwrap_or(label));
}

fn text(out: &mut String, value: &str) {
    out.push('"');
    let mut rest = value;
    while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
        out.push_str(&rest[..at]);
        let mut others = rest[at..].chars();
        if let Some(character) = others.next() {
            escaped(out, character);
        }
        rest = others.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// Whether the character that begins with a byte, or goes on with it, stands for itself. `EF` begins U+FFFE and U+FFFF, and others.
fn is_plain(byte: u8) -> bool {
    !matches!(byte, 0..=0x1f | b'"' | b'\\' | 0x7f | 0xef)
}

fn escaped(out: &mut String, character: char) {
    match character {
        '\u{8}' => out.push_str("\\b"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\u{c}' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\0'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => {
            out.push_str(&format!("\\u{:04X}", u32::from(character)));
        }
        other => out.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stable::text_hash;

    fn of(object: Term) -> String {
        let mut out = String::new();
        let said = Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), object);
        line(&mut out, &said);
        out
    }

    fn literal(value: &str, datatype: &str, language: &str) -> Term {
        Term::Literal {
            value: value.to_owned(),
            datatype: datatype.to_owned(),
            language: language.to_owned(),
        }
    }

    #[test]
    fn terms_have_one_form() {
        let quoted = Triple::new(Term::iri("urn:a"), Term::iri("urn:b"), Term::literal("c"));
        for (object, shown) in [
            (Term::iri("urn:o"), "<urn:o>"),
            (Term::Blank("b0".into()), "_:b0"),
            (
                Term::literal("ü\"\\\n\t\u{1}\u{7f}"),
                "\"ü\\\"\\\\\\n\\t\\u0001\\u007F\"",
            ),
            (Term::literal("a\u{fffd}\u{fffe}ü"), "\"a\u{fffd}\\uFFFEü\""),
            (literal("x", xsd::STRING, ""), "\"x\""),
            (
                literal("1", xsd::INTEGER, ""),
                "\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            ),
            (literal("x", "", "he--rtl"), "\"x\"@he--rtl"),
            (literal("x", "", "en-GB"), "\"x\"@en-gb"),
            (
                Term::Quoted(Box::new(quoted)),
                "<<( <urn:a> <urn:b> \"c\" )>>",
            ),
        ] {
            assert_eq!(of(object), format!("<urn:s> <urn:p> {shown} .\n"));
        }
        let drawn = "n9d323b3bc4cc42718c41837f972ff86ab1";
        assert_eq!(of(Term::iri(drawn)), of(Term::Blank(drawn.into())));
    }

    #[test]
    fn order_and_repeats_change_nothing_and_everything_else_does() {
        let says = |predicate: &str, object: &str| {
            Triple::new(
                Term::iri("urn:e"),
                Term::iri(predicate),
                Term::literal(object),
            )
        };
        let (a, b) = (says("urn:p", "a"), says("urn:q", "b"));
        let hash = entity_hash("urn:e", [&a, &b]);
        assert_eq!(hash, entity_hash("urn:e", [&b, &a, &b]));
        assert_eq!(
            hash,
            entity_hash("urn:e", [&a, &b, &says(tg::ENTITY_HASH, "x")])
        );
        assert_eq!(
            hash,
            entity_hash("urn:e", [&a, &b, &says(tg::DOCUMENT, "x")])
        );
        assert_ne!(
            hash,
            entity_hash("urn:other", [&a, &b, &says(tg::DOCUMENT, "x")])
        );
        assert_ne!(hash, entity_hash("urn:e", [&a]));
        assert_ne!(hash, entity_hash("urn:e", [&a, &says("urn:q", "c")]));
        assert_ne!(
            hash,
            entity_hash("urn:e", [&a, &b, &says(tg::TEXT_HASH, "x")])
        );
        // As `sha256sum` says it.
        assert_eq!(
            entity_hash("urn:e", [&a]),
            text_hash("<urn:e> <urn:p> \"a\" .\n")
        );
    }
}
