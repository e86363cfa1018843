//! The first records of a run. The same run has the same ones each time they are made.

use tg_provenance::DocumentFacts;
use tg_schemas::msg::{Document, DocumentMetadata, Metadata, TextDocument, Triples};
use tg_schemas::{Error, Triple};

use super::flow::Flow;
use crate::error::invalid;

/// Triples in one record.
const BATCH: usize = 1000;

/// A record to publish.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) topic: String,
    pub(crate) body: Body,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Triples(Triples),
    Text(TextDocument),
    Document(Document),
}

impl Record {
    /// How many triples it holds.
    pub(crate) fn triples(&self) -> usize {
        match &self.body {
            Body::Triples(record) => record.triples.len(),
            Body::Text(_) | Body::Document(_) => 0,
        }
    }
}

/// What is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) thread: &'a str,
    pub(crate) document: &'a DocumentMetadata,
    pub(crate) collection: &'a str,
    /// Whether the collection still needs the names of the vocabulary.
    pub(crate) labels: bool,
}

/// The record of a run that names the vocabulary.
pub(crate) fn vocabulary_record(thread: &str) -> String {
    format!("{thread}/vocabulary/0")
}

/// Makes them: what is known of the document first, the document last.
pub(crate) fn records(subject: Subject<'_>, flow: &Flow, name: &str) -> Result<Vec<Record>, Error> {
    let Subject {
        thread, document, ..
    } = subject;
    let Some(load) = flow.load(&document.kind) else {
        return Err(invalid(format!(
            "processing-metadata.flow: flow '{name}' takes no documents of kind {}",
            document.kind
        )));
    };
    let metadata = Metadata {
        id: document.id.clone(),
        root: document.id.clone(),
        collection: subject.collection.to_owned(),
    };
    let mut records = Vec::new();
    if let Some(topic) = flow.triples() {
        let mut describe = |what: &str, triples: &[Triple]| {
            for (at, batch) in triples.chunks(BATCH).enumerate() {
                records.push(Record {
                    id: format!("{thread}/{what}/{at}"),
                    topic: topic.to_owned(),
                    body: Body::Triples(Triples {
                        metadata: Some(metadata.clone()),
                        triples: batch.to_vec(),
                    }),
                });
            }
        };
        if subject.labels {
            describe("vocabulary", &tg_provenance::vocabulary_labels());
        }
        let facts = DocumentFacts {
            id: &document.id,
            title: &document.title,
            kind: &document.kind,
            metadata: &document.metadata,
        };
        describe("document", &tg_provenance::document(&facts));
    }
    records.push(Record {
        id: format!("{thread}/load"),
        topic: load.to_owned(),
        body: if Flow::enters_as_text(&document.kind) {
            Body::Text(TextDocument {
                metadata: Some(metadata),
                document_id: document.id.clone(),
                title: document.title.clone(),
                kind: document.kind.clone(),
                ..TextDocument::default()
            })
        } else {
            Body::Document(Document {
                metadata: Some(metadata),
                document_id: document.id.clone(),
                ..Document::default()
            })
        },
    });
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::Term;

    fn flow() -> Flow {
        Flow::read(
            r#"{"interfaces":{"text-load":{"flow":"flow:tg:text:w:f"},
                "document-load":{"flow":"flow:tg:document:w:f"},
                "triples-store":{"flow":"flow:tg:triples:w:f"}}}"#,
        )
        .unwrap()
    }

    fn document(kind: &str, triples: usize) -> DocumentMetadata {
        let triple = |n: usize| {
            Triple::new(
                Term::iri("urn:d"),
                Term::iri("urn:p"),
                Term::literal(n.to_string()),
            )
        };
        DocumentMetadata {
            id: "urn:d".into(),
            kind: kind.into(),
            title: "T".into(),
            metadata: (0..triples).map(triple).collect(),
            ..DocumentMetadata::default()
        }
    }

    fn made(kind: &str, triples: usize, labels: bool) -> Vec<Record> {
        let document = document(kind, triples);
        let subject = Subject {
            thread: "run.0.x",
            document: &document,
            collection: "c",
            labels,
        };
        records(subject, &flow(), "f").unwrap()
    }

    #[test]
    fn what_is_known_goes_first_and_the_document_last() {
        let all = made("text/plain", 2500, true);
        let ids: Vec<_> = all.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "run.0.x/vocabulary/0",
                "run.0.x/document/0",
                "run.0.x/document/1",
                "run.0.x/document/2",
                "run.0.x/load"
            ]
        );
        let Body::Text(text) = &all[4].body else {
            panic!("{:?}", all[4]);
        };
        let metadata = text.metadata.clone().unwrap();
        assert_eq!(
            (metadata.root.as_str(), metadata.collection.as_str()),
            ("urn:d", "c")
        );
        assert_eq!(
            (text.document_id.as_str(), text.text.as_str()),
            ("urn:d", "")
        );
        assert_eq!(made("text/plain", 2500, true), all);
    }

    #[test]
    fn other_kinds_enter_as_documents() {
        let all = made("application/pdf", 0, false);
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].topic, "flow:tg:document:w:f");
        assert!(matches!(all[1].body, Body::Document(_)));
        let nothing = document("text/plain", 0);
        let subject = Subject {
            thread: "t",
            document: &nothing,
            collection: "c",
            labels: false,
        };
        let refused = records(subject, &Flow::default(), "f").unwrap_err();
        assert_eq!(
            refused.message,
            "processing-metadata.flow: flow 'f' takes no documents of kind text/plain"
        );
    }
}
