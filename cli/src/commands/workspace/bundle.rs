//! What is where in a bundle, and how names and documents are written there.
//!
//! The layout is the official commands'. They cannot read quoted triples, so those are in a file of their own
//! beside the others; a document says its triples once as plain text for them and once as they are.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use tg_schemas::{Term, Triple, directed};

use crate::fields::{list, text, texts};

/// `format` of the manifest.
pub(super) const FORMAT: &str = "tgx";
/// `format_version` of the manifest.
pub(super) const VERSION: i64 = 1;
/// Where the manifest is.
pub(super) const MANIFEST: &str = "manifest.json";
/// Graph of triples that are in none.
const COLLECTION_GRAPH: &str = "urn:trustgraph:collection:";

const LIBRARY: &str = "knowledge/library/";
const TRIPLES: &str = "/triples.nq";
const QUOTED: &str = "/triples-quoted.nq";

const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

fn escaped(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED).to_string()
}

fn unescaped(name: &str) -> String {
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

/// What a member of a bundle is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Member {
    Manifest,
    /// One configuration item, by its path; its content says which.
    Config(String),
    /// Triples of a collection; the flag says whether they hold quoted ones.
    Triples(String, bool),
    /// What is said of a document.
    Metadata(String),
    /// What a document says.
    Content(String),
}

impl Member {
    /// Reads a path; `None` for what belongs to no bundle.
    pub(crate) fn read(path: &str) -> Option<Self> {
        if path == MANIFEST {
            return Some(Self::Manifest);
        }
        if path.starts_with("config/") && path.ends_with(".json") {
            return Some(Self::Config(path.to_owned()));
        }
        if let Some(name) = path.strip_prefix(LIBRARY) {
            if let Some(id) = name.strip_suffix(".meta.json") {
                return Some(Self::Metadata(unescaped(id)));
            }
            let id = name.strip_suffix(".content")?;
            return Some(Self::Content(unescaped(id)));
        }
        let name = path.strip_prefix("knowledge/")?;
        if let Some(collection) = name.strip_suffix(TRIPLES) {
            return Some(Self::Triples(unescaped(collection), false));
        }
        let collection = name.strip_suffix(QUOTED)?;
        Some(Self::Triples(unescaped(collection), true))
    }

    /// Its path.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Manifest => MANIFEST.to_owned(),
            Self::Config(path) => path.clone(),
            Self::Triples(collection, quoted) => {
                let end = if *quoted { QUOTED } else { TRIPLES };
                format!("knowledge/{}{end}", escaped(collection))
            }
            Self::Metadata(id) => format!("{LIBRARY}{}.meta.json", escaped(id)),
            Self::Content(id) => format!("{LIBRARY}{}.content", escaped(id)),
        }
    }
}

/// Path of a configuration item.
pub(super) fn config_path(kind: &str, key: &str) -> String {
    format!("config/{}/{}.json", escaped(kind), escaped(key))
}

/// Whether a configuration type is a system's own record of a workspace, which must not be taken to another:
/// it names queues, counts starts, or is made by asking for it.
pub(super) fn is_records(kind: &str) -> bool {
    matches!(kind, "flow" | "active-flow" | "collection") || kind.starts_with("processor:")
}

/// Graph in a bundle of a triple of a collection.
pub(super) fn graph_of(collection: &str, graph: Option<&str>) -> String {
    match graph {
        Some(graph) if !graph.is_empty() => graph.to_owned(),
        _ => format!("{COLLECTION_GRAPH}{}", escaped(collection)),
    }
}

/// The triple as it was in its collection.
pub(super) fn back(mut triple: Triple) -> Triple {
    if triple
        .g
        .as_deref()
        .is_some_and(|graph| graph.starts_with(COLLECTION_GRAPH))
    {
        triple.g = None;
    }
    triple
}

/// Whether a triple says something that plain N-Quads cannot: a quoted triple, a base direction.
pub(super) fn is_quoted(triple: &Triple) -> bool {
    let terms = [&triple.s, &triple.p, &triple.o];
    terms.into_iter().flatten().any(|term| match term {
        Term::Quoted(_) => true,
        Term::Literal { language, .. } => directed(language).1.is_some(),
        Term::Iri(_) | Term::Blank(_) => false,
    })
}

/// A document of the library as a bundle says it.
pub(super) fn to_bundle(document: &Value) -> Value {
    let triples = list(document, "metadata");
    let plain: Vec<Value> = triples
        .iter()
        .filter_map(Triple::from_api)
        .filter_map(|triple| {
            Some(json!({"s": plain(&triple.s)?, "p": plain(&triple.p)?, "o": plain(&triple.o)?}))
        })
        .collect();
    let seconds = document.get("time").and_then(Value::as_i64).unwrap_or(0);
    let time = chrono::DateTime::from_timestamp(seconds, 0).filter(|_| seconds > 0);
    json!({
        "id": text(document, "id"),
        "time": time.map(|time| time.format("%Y-%m-%dT%H:%M:%S").to_string()),
        "kind": text(document, "kind"),
        "title": text(document, "title"),
        "comments": text(document, "comments"),
        "metadata": plain,
        "triples": triples,
        "tags": texts(document, "tags"),
        "parent_id": text(document, "parent-id"),
        "document_type": text(document, "document-type"),
    })
}

fn plain(term: &Option<Term>) -> Option<&str> {
    match term.as_ref()? {
        Term::Iri(text) | Term::Blank(text) => Some(text),
        Term::Literal { value, .. } => Some(value),
        Term::Quoted(_) => None,
    }
}

/// A document of a bundle as the library takes it.
pub(super) fn to_library(said: &Value) -> Value {
    let triples = match said.get("triples") {
        Some(Value::Array(triples)) => triples.clone(),
        // Plain text only: what looks like an IRI is taken for one.
        _ => list(said, "metadata")
            .iter()
            .filter_map(|triple| {
                let term = |key: &str| Term::guess(triple.get(key)?.as_str()?).to_api().into();
                let (s, p, o): (Option<Value>, Option<Value>, Option<Value>) =
                    (term("s"), term("p"), term("o"));
                Some(json!({"s": s?, "p": p?, "o": o?}))
            })
            .collect(),
    };
    let time = said.get("time").and_then(Value::as_str).and_then(|time| {
        let time = time.get(..19)?;
        let time = chrono::NaiveDateTime::parse_from_str(time, "%Y-%m-%dT%H:%M:%S").ok()?;
        Some(time.and_utc().timestamp())
    });
    let kind = match text(said, "kind") {
        kind if kind.is_empty() => "text/plain".to_owned(),
        kind => kind,
    };
    json!({
        "id": text(said, "id"),
        "time": time.unwrap_or_else(|| chrono::Utc::now().timestamp()),
        "kind": kind,
        "title": text(said, "title"),
        "comments": text(said, "comments"),
        "metadata": triples,
        "tags": texts(said, "tags"),
        "parent-id": text(said, "parent_id"),
        "document-type": text(said, "document_type"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_known_by_their_paths() {
        for member in [
            Member::Manifest,
            Member::Triples("a/b c".into(), false),
            Member::Triples("ü".into(), true),
            Member::Metadata("https://e/doc?x=1".into()),
            Member::Content("urn:doc:1".into()),
        ] {
            assert_eq!(Member::read(&member.path()), Some(member));
        }
        let path = Member::Content("urn:doc:1".into()).path();
        assert_eq!(path, "knowledge/library/urn%3Adoc%3A1.content");
        assert_eq!(
            config_path("prompt", "a/b"),
            "config/prompt/a%2Fb.json".to_owned()
        );
        let config = "config/a/b.json".to_owned();
        assert_eq!(Member::read(&config), Some(Member::Config(config)));
        for other in ["../x", "knowledge/x", "README"] {
            assert_eq!(Member::read(other), None);
        }
    }

    #[test]
    fn documents_come_back_as_they_were() {
        let typed = json!({"t": "l", "v": "5", "dt": "urn:int"});
        let triple =
            json!({"s": {"t": "i", "i": "urn:d"}, "p": {"t": "i", "i": "urn:p"}, "o": typed});
        let document = json!({"id": "urn:d", "time": 1_700_000_000, "kind": "text/plain", "title": "T",
            "comments": "", "metadata": [triple], "tags": ["x"], "parent-id": "urn:p",
            "document-type": "page"});
        let said = to_bundle(&document);
        assert_eq!(
            said["metadata"],
            json!([{"s": "urn:d", "p": "urn:p", "o": "5"}])
        );
        assert_eq!(to_library(&said), document);
        // What the official command wrote has plain text only.
        let mut theirs = said.clone();
        theirs.as_object_mut().expect("an object").remove("triples");
        let read = to_library(&theirs);
        assert_eq!(read["metadata"][0]["s"], json!({"t": "i", "i": "urn:d"}));
        assert_eq!(read["metadata"][0]["o"], json!({"t": "l", "v": "5"}));
    }

    #[test]
    fn the_default_graph_has_a_name_in_a_bundle_only() {
        let graph = graph_of("my docs", None);
        assert_eq!(graph, "urn:trustgraph:collection:my%20docs");
        let triple = Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), Term::literal("o"));
        assert_eq!(back(triple.clone().in_graph(&graph)), triple);
        let named = triple.in_graph("urn:graph:source");
        assert_eq!(back(named.clone()), named);
    }
}
