//! RDF terms and triples, in the bus form (long names) and the API form (`t`/`i`/`d`/`v`/`dt`/`ln`/`dir`/`tr`).
//!
//! A base direction (RDF 1.2) stands behind the language on the bus, as in Turtle (`he--rtl`), and in a key of its own
//! in the API form: who does not know it sees the tag alone.

use std::cell::Cell;

use serde::de::Deserializer;
use serde::ser::{SerializeMap, SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::msg::lenient::nullable;

/// An RDF term. Serialised in the bus form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    /// An IRI.
    Iri(String),
    /// A blank node label.
    Blank(String),
    /// A literal; datatype and language are empty when absent.
    Literal {
        /// Lexical form.
        value: String,
        /// Datatype IRI or empty.
        datatype: String,
        /// Language tag or empty; with a base direction `he--rtl`.
        language: String,
    },
    /// A quoted triple (RDF 1.2 triple term).
    Quoted(Box<Triple>),
}

/// Whether a text in the place of an IRI is the label that rdflib draws for a blank node (`n`, 32 hexadecimal digits, and
/// `b` with a number unless it was made alone). TrustGraph's loaders send blank nodes so, and read them so. A label is
/// drawn anew whenever a file is read: equal ones are the same node, others never are.
pub fn is_drawn_label(text: &str) -> bool {
    const DIGITS: usize = 32;
    let Some(rest) = text.strip_prefix(['n', 'N']) else {
        return false;
    };
    let Some((drawn, number)) = rest.split_at_checked(DIGITS) else {
        return false;
    };
    let number = match number.strip_prefix('b') {
        Some(number) => !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()),
        None => number.is_empty(),
    };
    number && drawn.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A language tag and its base direction, `ltr` or `rtl`.
pub fn directed(language: &str) -> (&str, Option<&str>) {
    match language.split_once("--") {
        Some((tag, direction @ ("ltr" | "rtl"))) if !tag.is_empty() => (tag, Some(direction)),
        _ => (language, None),
    }
}

impl Term {
    /// Whether it says nothing: an IRI, a label or a value without a letter.
    pub fn is_empty(&self) -> bool {
        match self {
            Term::Iri(text) | Term::Blank(text) => text.is_empty(),
            Term::Literal { value, .. } => value.is_empty(),
            Term::Quoted(_) => false,
        }
    }

    /// An IRI.
    pub fn iri(iri: impl Into<String>) -> Self {
        Self::Iri(iri.into())
    }

    /// A plain literal.
    pub fn literal(value: impl Into<String>) -> Self {
        Self::Literal {
            value: value.into(),
            datatype: String::new(),
            language: String::new(),
        }
    }

    /// The API form.
    pub fn to_api(&self) -> Value {
        match self {
            Self::Iri(iri) => json!({"t": "i", "i": iri}),
            Self::Blank(id) => json!({"t": "b", "d": id}),
            Self::Literal {
                value,
                datatype,
                language,
            } => {
                let mut map = Map::new();
                map.insert("t".into(), "l".into());
                map.insert("v".into(), value.as_str().into());
                if !datatype.is_empty() {
                    map.insert("dt".into(), datatype.as_str().into());
                }
                let (tag, direction) = directed(language);
                if !tag.is_empty() {
                    map.insert("ln".into(), tag.into());
                }
                if let Some(direction) = direction {
                    map.insert("dir".into(), direction.into());
                }
                Value::Object(map)
            }
            Self::Quoted(triple) => {
                let mut term = json!({"t": "t", "tr": null});
                // Moved in: the macro would copy the whole tree.
                term["tr"] = triple.to_api();
                term
            }
        }
    }

    /// Reads the API form. Bare text is accepted: an IRI if it looks like one, else a literal.
    /// `None` for anything that is no term.
    pub fn from_api(value: &Value) -> Option<Self> {
        if let Value::String(text) = value {
            return Some(Self::guess(text));
        }
        let map = value.as_object()?;
        let text = |key: &str| {
            map.get(key)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        Some(match map.get("t")?.as_str()? {
            "i" => Self::Iri(text("i")),
            "b" => Self::Blank(text("d")),
            "l" => Self::Literal {
                value: text("v"),
                datatype: text("dt"),
                language: match (text("ln"), text("dir")) {
                    (tag, direction) if tag.is_empty() || direction.is_empty() => tag,
                    (tag, direction) => format!("{tag}--{direction}"),
                },
            },
            "t" => Self::Quoted(Box::new(Triple::from_api(map.get("tr")?)?)),
            _ => return None,
        })
    }

    /// An IRI if the text looks like one (`http:`, `https:`, `urn:` or in angle brackets), else a literal.
    pub fn guess(text: &str) -> Self {
        if let Some(inner) = text
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix('>'))
        {
            return Self::Iri(inner.to_owned());
        }
        let is_iri = ["http://", "https://", "urn:"]
            .iter()
            .any(|scheme| text.starts_with(scheme));
        if is_iri {
            Self::iri(text)
        } else {
            Self::literal(text)
        }
    }
}

/// A triple, possibly in a named graph. `None` components occur only in patterns and foreign messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Triple {
    /// Subject.
    pub s: Option<Term>,
    /// Predicate.
    pub p: Option<Term>,
    /// Object.
    pub o: Option<Term>,
    /// Graph IRI; `None` or empty for the default graph.
    pub g: Option<String>,
}

impl Triple {
    /// A triple in the default graph.
    pub fn new(s: Term, p: Term, o: Term) -> Self {
        Self {
            s: Some(s),
            p: Some(p),
            o: Some(o),
            g: None,
        }
    }

    /// The same triple in a named graph.
    pub fn in_graph(mut self, graph: &str) -> Self {
        self.g = (!graph.is_empty()).then(|| graph.to_owned());
        self
    }

    /// The API form; empty components are left out.
    pub fn to_api(&self) -> Value {
        // With its graph it has four members, for which a new map would grow.
        let mut map = Map::with_capacity(4);
        for (key, term) in [("s", &self.s), ("p", &self.p), ("o", &self.o)] {
            if let Some(term) = term {
                map.insert(key.into(), term.to_api());
            }
        }
        if let Some(graph) = self.g.as_deref().filter(|graph| !graph.is_empty()) {
            map.insert("g".into(), graph.into());
        }
        Value::Object(map)
    }

    /// Reads the API form.
    pub fn from_api(value: &Value) -> Option<Self> {
        let map = value.as_object()?;
        let term = |key: &str| map.get(key).and_then(Term::from_api);
        Some(Self {
            s: term("s"),
            p: term("p"),
            o: term("o"),
            g: map.get("g").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

/// A term or a triple that is serialised in the API form. It writes what `to_api` has as a tree.
#[derive(Debug, Clone, Copy)]
pub struct ApiForm<'a, T>(pub &'a T);

impl Serialize for ApiForm<'_, Term> {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let mut out = ser.serialize_map(None)?;
        match self.0 {
            Term::Iri(iri) => {
                out.serialize_entry("t", "i")?;
                out.serialize_entry("i", iri)?;
            }
            Term::Blank(id) => {
                out.serialize_entry("t", "b")?;
                out.serialize_entry("d", id)?;
            }
            Term::Literal {
                value,
                datatype,
                language,
            } => {
                out.serialize_entry("t", "l")?;
                out.serialize_entry("v", value)?;
                if !datatype.is_empty() {
                    out.serialize_entry("dt", datatype)?;
                }
                let (tag, direction) = directed(language);
                if !tag.is_empty() {
                    out.serialize_entry("ln", tag)?;
                }
                if let Some(direction) = direction {
                    out.serialize_entry("dir", direction)?;
                }
            }
            Term::Quoted(triple) => {
                out.serialize_entry("t", "t")?;
                out.serialize_entry("tr", &ApiForm(&**triple))?;
            }
        }
        out.end()
    }
}

impl Serialize for ApiForm<'_, Triple> {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let triple = self.0;
        let mut out = ser.serialize_map(None)?;
        for (key, term) in [("s", &triple.s), ("p", &triple.p), ("o", &triple.o)] {
            if let Some(term) = term {
                out.serialize_entry(key, &ApiForm(term))?;
            }
        }
        if let Some(graph) = triple.g.as_deref().filter(|graph| !graph.is_empty()) {
            out.serialize_entry("g", graph)?;
        }
        out.end()
    }
}

thread_local! {
    /// Terms are written without the fields that are empty.
    static LEAN: Cell<bool> = const { Cell::new(false) };
}

/// Writes something as JSON whose terms have no empty fields, half the size of a triple. Readers of ours take a field that is missing
/// for empty; for foreign ones each term has all of them.
pub fn lean<T>(write: impl FnOnce() -> T) -> T {
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            LEAN.set(self.0);
        }
    }

    let _before = Before(LEAN.replace(true));
    write()
}

/// The bus form of a term: all fields always present, unless it is written [`lean`].
#[derive(Default, Deserialize)]
#[serde(default, rename = "Term")]
struct Wire {
    #[serde(deserialize_with = "nullable")]
    r#type: String,
    #[serde(deserialize_with = "nullable")]
    iri: String,
    #[serde(deserialize_with = "nullable")]
    id: String,
    #[serde(deserialize_with = "nullable")]
    value: String,
    #[serde(deserialize_with = "nullable")]
    datatype: String,
    #[serde(deserialize_with = "nullable")]
    language: String,
    triple: Option<Box<Triple>>,
}

impl Serialize for Term {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let (kind, iri, id, value, datatype, language, triple) = match self {
            Self::Iri(iri) => ("i", iri.as_str(), "", "", "", "", None),
            Self::Blank(id) => ("b", "", id.as_str(), "", "", "", None),
            Self::Literal {
                value,
                datatype,
                language,
            } => (
                "l",
                "",
                "",
                value.as_str(),
                datatype.as_str(),
                language.as_str(),
                None,
            ),
            Self::Quoted(triple) => ("t", "", "", "", "", "", Some(triple)),
        };
        let lean = LEAN.get();
        let mut out = ser.serialize_struct("Term", 7)?;
        out.serialize_field("type", kind)?;
        for (name, text) in [
            ("iri", iri),
            ("id", id),
            ("value", value),
            ("datatype", datatype),
            ("language", language),
        ] {
            match lean && text.is_empty() {
                true => out.skip_field(name)?,
                false => out.serialize_field(name, text)?,
            }
        }
        match lean && triple.is_none() {
            true => out.skip_field("triple")?,
            false => out.serialize_field("triple", &triple)?,
        }
        out.end()
    }
}

impl<'de> Deserialize<'de> for Term {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(de)?;
        Ok(match wire.r#type.as_str() {
            "b" => Self::Blank(wire.id),
            "l" => Self::Literal {
                value: wire.value,
                datatype: wire.datatype,
                language: wire.language,
            },
            "t" => Self::Quoted(wire.triple.unwrap_or_default()),
            // A foreign term of unknown type carries no data we know; an empty IRI matches nothing.
            _ => Self::Iri(wire.iri),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted() -> Term {
        Term::Quoted(Box::new(Triple::new(
            Term::iri("urn:a"),
            Term::iri("urn:b"),
            Term::Literal {
                value: "x".into(),
                datatype: String::new(),
                language: "en".into(),
            },
        )))
    }

    #[test]
    fn both_forms_round_trip_with_quoted_triples() {
        for term in [
            Term::iri("urn:a"),
            Term::Blank("b0".into()),
            Term::literal("ü"),
            quoted(),
        ] {
            assert_eq!(Term::from_api(&term.to_api()).unwrap(), term);
            let bus = serde_json::to_string(&term).unwrap();
            assert_eq!(serde_json::from_str::<Term>(&bus).unwrap(), term);
        }
    }

    #[test]
    fn the_api_form_is_written_as_its_tree_is() {
        let literal = |datatype: &str, language: &str| Term::Literal {
            value: "a \"b\"\n".into(),
            datatype: datatype.into(),
            language: language.into(),
        };
        let terms = [
            Term::iri("urn:a"),
            Term::Blank("b0".into()),
            literal("", ""),
            literal("urn:d", ""),
            literal("", "en"),
            literal("urn:d", "he--rtl"),
            literal("", "--rtl"),
            quoted(),
        ];
        for term in terms {
            let written = serde_json::to_string(&ApiForm(&term)).unwrap();
            assert_eq!(written, term.to_api().to_string());
            let triple = Triple::new(Term::iri("urn:a"), Term::iri("urn:b"), term);
            let lacks = Triple {
                p: None,
                ..triple.clone()
            };
            let nowhere = Triple {
                g: Some(String::new()),
                ..triple.clone()
            };
            for triple in [triple.clone().in_graph("urn:g"), triple, lacks, nowhere] {
                let written = serde_json::to_string(&ApiForm(&triple)).unwrap();
                assert_eq!(written, triple.to_api().to_string());
            }
        }
    }

    #[test]
    fn a_base_direction_is_a_key_beside_the_tag() {
        let term = Term::Literal {
            value: "x".into(),
            datatype: String::new(),
            language: "he--rtl".into(),
        };
        let api = json!({"t": "l", "v": "x", "ln": "he", "dir": "rtl"});
        assert_eq!(term.to_api(), api);
        assert_eq!(Term::from_api(&api), Some(term.clone()));
        // As it was sent before there was the key.
        let joined = json!({"t": "l", "v": "x", "ln": "he--rtl"});
        assert_eq!(Term::from_api(&joined), Some(term));
        let alone = json!({"t": "l", "v": "x", "dir": "rtl"});
        assert_eq!(Term::from_api(&alone), Some(Term::literal("x")));
    }

    #[test]
    fn drawn_labels_are_told_from_iris() {
        let digits = "9d323b3bc4cc42718c41837f972ff86a";
        for label in [
            format!("n{digits}b1"),
            format!("N{digits}"),
            format!("n{digits}b12"),
        ] {
            assert!(is_drawn_label(&label), "{label}");
        }
        for other in [
            String::new(),
            "n".to_owned(),
            "urn:a".to_owned(),
            digits.to_owned(),
            format!("n{digits}b"),
            format!("n{digits}bx"),
            format!("n{digits}1"),
            format!("n{}é", &digits[1..]),
        ] {
            assert!(!is_drawn_label(&other), "{other}");
        }
    }

    #[test]
    fn a_lean_term_has_what_is_not_empty_and_reads_the_same() {
        let write = |term: &Term| lean(|| serde_json::to_string(term).unwrap());
        for (term, written) in [
            (Term::iri("urn:a"), r#"{"type":"i","iri":"urn:a"}"#),
            (Term::Blank("b0".into()), r#"{"type":"b","id":"b0"}"#),
            (Term::literal("x"), r#"{"type":"l","value":"x"}"#),
            (Term::literal(""), r#"{"type":"l"}"#),
            (
                quoted(),
                r#"{"type":"t","triple":{"s":{"type":"i","iri":"urn:a"},"p":{"type":"i","iri":"urn:b"},"o":{"type":"l","value":"x","language":"en"},"g":null}}"#,
            ),
        ] {
            assert_eq!(write(&term), written);
            assert_eq!(serde_json::from_str::<Term>(written).unwrap(), term);
        }
        let still = lean(|| {
            lean(|| assert!(LEAN.get()));
            LEAN.get()
        });
        assert!(still && !LEAN.get(), "within it, and only there");
    }

    #[test]
    fn the_bus_form_has_every_field() {
        assert_eq!(
            serde_json::to_string(&Term::iri("urn:a")).unwrap(),
            r#"{"type":"i","iri":"urn:a","id":"","value":"","datatype":"","language":"","triple":null}"#
        );
    }
}
