//! About how many bytes an item is encoded: its texts and numbers, without the little that is beside them. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tg_schemas::msg::{ChunkEmbeddings, EntityContext, EntityEmbeddings};
use tg_schemas::{Term, Triple};

const NUMBER: usize = size_of::<f32>();

/// Of a triple, with those within it.
pub(super) fn of_triple(triple: &Triple) -> usize {
    let terms = [&triple.s, &triple.p, &triple.o];
    let terms: usize = terms.into_iter().map(of_term).sum();
    terms + triple.g.as_ref().map_or(0, String::len)
}

fn of_term(term: &Option<Term>) -> usize {
    match term {
        None => 0,
        Some(Term::Iri(text) | Term::Blank(text)) => text.len(),
        Some(Term::Literal {
            value,
            datatype,
            language,
        }) => value.len() + datatype.len() + language.len(),
        // How deep they are was bounded when the frame was read.
        Some(Term::Quoted(triple)) => of_triple(triple),
    }
}

/// Of the vector of an entity.
pub(super) fn of_entity(one: &EntityEmbeddings) -> usize {
    let texts = [&one.chunk_id, &one.made_by, &one.text];
    let texts = texts.into_iter().chain(&one.rdf_type);
    of_term(&one.entity)
        + one.vector.len() * NUMBER
        + texts.map(String::len).sum::<usize>()
        + of_attributes(&one.attributes)
}

/// Of the vector of a chunk.
pub(super) fn of_chunk(one: &ChunkEmbeddings) -> usize {
    one.chunk_id.len() + one.vector.len() * NUMBER + one.text.len() + of_attributes(&one.attributes)
}

/// Of a text about an entity.
pub(super) fn of_context(one: &EntityContext) -> usize {
    let texts = [&one.context, &one.chunk_id, &one.made_by];
    let texts = texts.into_iter().chain(&one.rdf_type);
    of_term(&one.entity) + texts.map(String::len).sum::<usize>() + of_attributes(&one.attributes)
}

/// Of a row.
pub(super) fn of_row(row: &BTreeMap<String, String>) -> usize {
    row.iter()
        .map(|(name, value)| name.len() + value.len())
        .sum()
}

fn of_attributes(attributes: &Map<String, Value>) -> usize {
    match attributes.is_empty() {
        true => 0,
        false => serde_json::to_vec(attributes).map_or(0, |text| text.len()),
    }
}
