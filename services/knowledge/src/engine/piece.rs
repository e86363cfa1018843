//! What cores are made of: lists of triples or vectors, cut to a bounded size. Pure.
//!
//! Cutting is greedy from the front, so a piece that is cut again stays one: what is handed out and taken in
//! again is the same piece, with the same digest.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tg_schemas::msg::{
    ChunkEmbeddings, DocumentEmbeddings, EntityEmbeddings, GraphEmbeddings, KnowledgeResponse,
    Metadata, Triples,
};
use tg_schemas::{Error, ErrorCode, Triple};

/// Bytes of a piece at most, unless a single item has more.
const BYTES: usize = 256 << 10;
/// Items of a piece at most.
const ITEMS: usize = 10_000;

/// What a piece holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// Triples.
    Triples,
    /// Vectors of entities.
    Entities,
    /// Vectors of chunks.
    Chunks,
}

impl Part {
    /// As stored; never changes.
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Triples => 1,
            Self::Entities => 2,
            Self::Chunks => 3,
        }
    }

    /// What was stored.
    pub(crate) fn read(code: i64) -> Option<Self> {
        [Self::Triples, Self::Entities, Self::Chunks]
            .into_iter()
            .find(|part| part.code() == code)
    }

    /// Its items in counts.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Triples => "triples",
            Self::Entities => "entities",
            Self::Chunks => "chunks",
        }
    }
}

/// Some of what a core holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) part: Part,
    /// Model of the vectors; empty when nobody said.
    pub(crate) model: String,
    pub(crate) items: usize,
    /// A JSON list of the items in the form of the bus.
    pub(crate) body: Vec<u8>,
}

impl Piece {
    /// The same for the same content.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut sha = Sha256::new();
        sha.update([self.part.code() as u8]);
        sha.update((self.model.len() as u64).to_be_bytes());
        sha.update(self.model.as_bytes());
        sha.update(&self.body);
        sha.finalize().into()
    }

    fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        serde_json::from_slice(&self.body)
            .map_err(|_| Error::new(ErrorCode::Storage, "a piece of the core cannot be read"))
    }

    /// The message that carries it.
    pub(crate) fn message(&self, metadata: Metadata) -> Result<Carried, Error> {
        let (metadata, model) = (Some(metadata), self.model.clone());
        Ok(match self.part {
            Part::Triples => Carried::Triples(Triples {
                metadata,
                triples: self.read()?,
            }),
            Part::Entities => Carried::Entities(GraphEmbeddings {
                metadata,
                entities: self.read()?,
                model,
            }),
            Part::Chunks => Carried::Chunks(DocumentEmbeddings {
                metadata,
                chunks: self.read()?,
                model,
            }),
        })
    }
}

/// A piece as a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Carried {
    Triples(Triples),
    Entities(GraphEmbeddings),
    Chunks(DocumentEmbeddings),
}

impl From<Carried> for KnowledgeResponse {
    fn from(carried: Carried) -> Self {
        let mut reply = Self::default();
        match carried {
            Carried::Triples(one) => reply.triples = Some(one),
            Carried::Entities(one) => reply.graph_embeddings = Some(one),
            Carried::Chunks(one) => reply.document_embeddings = Some(one),
        }
        reply
    }
}

/// Pieces of triples.
pub(crate) fn of_triples(triples: &[Triple]) -> Result<Vec<Piece>, Error> {
    cut(Part::Triples, "", triples)
}

/// Pieces of vectors of entities.
pub(crate) fn of_entities(
    model: &str,
    mut entities: Vec<EntityEmbeddings>,
) -> Result<Vec<Piece>, Error> {
    check("entities", entities.iter().map(|one| &one.vector))?;
    // The order of attributes means nothing and is lost on the bus; who found it, of which flow and how, and of which text a
    // vector was made is not of a core.
    for entity in &mut entities {
        entity.attributes.sort_keys();
        entity.made_by.clear();
        entity.text.clear();
    }
    cut(Part::Entities, model, &entities)
}

/// Pieces of vectors of chunks.
pub(crate) fn of_chunks(
    model: &str,
    mut chunks: Vec<ChunkEmbeddings>,
) -> Result<Vec<Piece>, Error> {
    check("chunks", chunks.iter().map(|one| &one.vector))?;
    for chunk in &mut chunks {
        chunk.attributes.sort_keys();
        chunk.text.clear();
    }
    cut(Part::Chunks, model, &chunks)
}

/// JSON has no number that is none.
fn check<'a>(list: &str, vectors: impl Iterator<Item = &'a Vec<f32>>) -> Result<(), Error> {
    for (at, vector) in vectors.enumerate() {
        if !vector.iter().all(|number| number.is_finite()) {
            let text = format!("{list}[{at}].vector: has a number that is not finite");
            return Err(Error::new(ErrorCode::BadRequest, text));
        }
    }
    Ok(())
}

fn cut<T: Serialize>(part: Part, model: &str, items: &[T]) -> Result<Vec<Piece>, Error> {
    let mut pieces = Vec::new();
    let mut body = Vec::new();
    let mut count = 0;
    let mut close = |body: &mut Vec<u8>, count: &mut usize| {
        if *count > 0 {
            body.push(b']');
            pieces.push(Piece {
                part,
                model: model.to_owned(),
                items: std::mem::take(count),
                body: std::mem::take(body),
            });
        }
    };
    for item in items {
        let item = serde_json::to_vec(item)
            .map_err(|_| Error::new(ErrorCode::Internal, "an item cannot be written"))?;
        if count == ITEMS || (count > 0 && body.len() + item.len() >= BYTES) {
            close(&mut body, &mut count);
        }
        body.push(if count == 0 { b'[' } else { b',' });
        body.extend_from_slice(&item);
        count += 1;
    }
    close(&mut body, &mut count);
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::Term;

    const INTEGER: &str = tg_schemas::vocabulary::xsd::INTEGER;

    fn fact(number: usize) -> Triple {
        let typed = Term::Literal {
            value: number.to_string(),
            datatype: INTEGER.to_owned(),
            language: String::new(),
        };
        let inner = Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), typed);
        let quoted = Term::Quoted(Box::new(inner));
        Triple::new(Term::iri("urn:g"), Term::iri("urn:contains"), quoted)
            .in_graph("urn:graph:source")
    }

    #[test]
    fn pieces_are_bounded_and_stay_what_they_are() {
        let facts: Vec<Triple> = (0..5_000).map(fact).collect();
        let pieces = of_triples(&facts).unwrap();
        assert!(pieces.len() > 3);
        assert!(pieces.iter().all(|piece| piece.body.len() <= BYTES));
        let mut read = Vec::new();
        for piece in &pieces {
            let triples: Vec<Triple> = piece.read().unwrap();
            assert_eq!(piece.items, triples.len());
            assert_eq!(of_triples(&triples).unwrap(), std::slice::from_ref(piece));
            read.extend(triples);
        }
        assert_eq!(read, facts);
        assert!(of_triples(&[]).unwrap().is_empty());
    }

    #[test]
    fn an_item_larger_than_a_piece_is_one() {
        let large = Triple::new(
            Term::iri("urn:s"),
            Term::iri("urn:p"),
            Term::literal("x".repeat(2 * BYTES)),
        );
        let pieces = of_triples(&[fact(1), large, fact(2)]).unwrap();
        let items: Vec<usize> = pieces.iter().map(|piece| piece.items).collect();
        assert_eq!(items, [1, 1, 1]);
    }

    #[test]
    fn pieces_are_told_apart_by_content_model_and_part() {
        let entity = |vector: Vec<f32>| EntityEmbeddings {
            entity: Some(Term::iri("urn:a")),
            vector,
            chunk_id: "urn:chunk:1".into(),
            ..EntityEmbeddings::default()
        };
        let digest = |model: &str, vector| {
            let pieces = of_entities(model, vec![entity(vector)]).unwrap();
            pieces[0].digest()
        };
        assert_eq!(digest("m", vec![0.1, 2.0]), digest("m", vec![0.1, 2.0]));
        assert_ne!(digest("m", vec![0.1, 2.0]), digest("n", vec![0.1, 2.0]));
        assert_ne!(digest("m", vec![0.1, 2.0]), digest("m", vec![0.1, 2.5]));
        let pieces = of_entities("m", vec![entity(vec![0.1, f32::MIN_POSITIVE])]).unwrap();
        let read: Vec<EntityEmbeddings> = pieces[0].read().unwrap();
        assert_eq!(read, [entity(vec![0.1, f32::MIN_POSITIVE])]);
    }

    #[test]
    fn the_order_of_attributes_means_nothing() {
        let chunk = |names: [&str; 2]| {
            let attributes = names.map(|name| (name.to_owned(), name.into()));
            let chunk = ChunkEmbeddings {
                chunk_id: "c".into(),
                attributes: attributes.into_iter().collect(),
                ..ChunkEmbeddings::default()
            };
            of_chunks("", vec![chunk]).unwrap()[0].digest()
        };
        assert_eq!(chunk(["a", "b"]), chunk(["b", "a"]));
    }

    #[test]
    fn vectors_without_numbers_are_refused() {
        let chunk = ChunkEmbeddings {
            chunk_id: "c".into(),
            vector: vec![0.0, f32::NAN],
            ..ChunkEmbeddings::default()
        };
        let error = of_chunks("", vec![ChunkEmbeddings::default(), chunk]).unwrap_err();
        assert_eq!(
            error.message,
            "chunks[1].vector: has a number that is not finite"
        );
    }
}
