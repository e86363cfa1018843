//! Names of things as IRIs: one rule for all extractors, so that the same name is the same thing whoever
//! found it.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tg_citations::forms::composed;

/// Namespace of entities and of predicates that no ontology declares.
pub const ENTITIES: &str = tg_schemas::vocabulary::made::ENTITY;

/// Longest name that is one, in characters; more is a sentence.
const LONGEST: usize = 256;

/// What stands for itself in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'_')
    .remove(b'.')
    .remove(b'-')
    .remove(b'~')
    .remove(b'/');

/// A name as it is kept: single spaces, none around it. `None` if it says nothing or is no name.
pub fn clean(text: &str) -> Option<String> {
    let name = single_spaced(text);
    let known = name.chars().any(char::is_alphanumeric) && name.chars().count() <= LONGEST;
    known.then(|| name.into_owned())
}

/// The IRI of what a clean name names: lower case, hyphens for spaces, percent-encoded.
///
/// ```
/// use tg_extract::engine::names::entity_iri;
///
/// assert_eq!(entity_iri("Old Bridge"), "http://trustgraph.ai/e/old-bridge");
/// assert_eq!(entity_iri("Zoë & Co"), "http://trustgraph.ai/e/zo%C3%AB-%26-co");
/// ```
pub fn entity_iri(name: &str) -> String {
    // However its characters are stored, it is the same name.
    let lower = composed(name).to_lowercase().replace(' ', "-");
    format!("{ENTITIES}{}", utf8_percent_encode(&lower, ESCAPED))
}

/// The text with every run of blanks made one space.
pub fn single_spaced(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let mut blank = false;
    let single = text.chars().all(|c| {
        let again = blank && c == ' ';
        blank = c == ' ';
        !again && (c == ' ' || !c.is_whitespace() && !c.is_control())
    });
    if single {
        return Cow::Borrowed(text);
    }
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    Cow::Owned(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rule_for_iris() {
        for (name, iri) in [
            ("Old Bridge", "old-bridge"),
            ("  Old\n\t Bridge ", "old-bridge"),
            ("A/B (test)", "a/b-%28test%29"),
            ("100%", "100%25"),
            ("ÉCOLE", "%C3%A9cole"),
            ("E\u{301}cole", "%C3%A9cole"),
            ("ＵＰＳ", "ups"),
            ("x_y.z-~", "x_y.z-~"),
            ("C++", "c%2B%2B"),
            ("<script>\"", "%3Cscript%3E%22"),
        ] {
            let clean = clean(name).unwrap();
            assert_eq!(entity_iri(&clean), format!("{ENTITIES}{iri}"), "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "  ", "--", "?!", "\u{0}"] {
            assert_eq!(clean(text), None, "{text:?}");
        }
        assert_eq!(clean(&"word ".repeat(100)), None);
        assert_eq!(clean(" a\u{a0}b \u{0} c ").as_deref(), Some("a b c"));
    }
}
