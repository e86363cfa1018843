//! Ids that follow from what they name: the same input has the same id, so nothing is there twice, however
//! often it is done. Never random, never from a clock.

use sha2::{Digest, Sha256};
use tg_schemas::vocabulary::made;

/// What an id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A page of a document.
    Page,
    /// A part of a document without pages.
    Section,
    /// A piece of text that extractors read.
    Chunk,
    /// An image in a document.
    Image,
    /// What one extractor found in one chunk.
    Subgraph,
    /// Work that made something.
    Activity,
    /// The trace of a question to a retrieval service. A bare UUID.
    Retrieval,
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Page => "urn:page:",
            Self::Section => "urn:section:",
            Self::Chunk => "urn:chunk:",
            Self::Image => "urn:image:",
            Self::Subgraph => made::SUBGRAPH,
            Self::Activity => made::ACTIVITY,
            Self::Retrieval => "",
        }
    }
}

/// The id of what `parts` determine: the kind's prefix and a UUID (version 8) from their SHA-256. Parts are
/// hashed with their lengths, so that different lists never read alike.
///
/// ```
/// use tg_provenance::{Kind, stable_id};
///
/// let id = stable_id(Kind::Subgraph, &["urn:chunk:1", "kg-extract-definitions"]);
/// assert!(id.starts_with(tg_schemas::vocabulary::made::SUBGRAPH));
/// assert_eq!(id, stable_id(Kind::Subgraph, &["urn:chunk:1", "kg-extract-definitions"]));
/// ```
pub fn stable_id(kind: Kind, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in [kind.prefix()].iter().chain(parts) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex::encode(bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    format!("{}{}", kind.prefix(), parts.join("-"))
}

/// SHA-256 of a text in hexadecimal.
pub fn text_hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// The same of texts behind one another.
pub(crate) fn joined_hash(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    texts.iter().for_each(|text| hash.update(text.as_bytes()));
    hex::encode(hash.finalize())
}

/// A page: by its text and how many pages of the document with the same text come before it, so that a page
/// put in before others changes no other.
pub fn page_id(document: &str, text: &str, occurrence: usize) -> String {
    let hash = text_hash(text);
    stable_id(Kind::Page, &[document, &hash, &occurrence.to_string()])
}

/// A section: by its number, from 1, so that editing it leaves its other chunks what they were.
pub fn section_id(document: &str, number: usize) -> String {
    stable_id(Kind::Section, &[document, &number.to_string()])
}

/// A chunk of a page, section or document: by its text and how many chunks of the parent with the same text
/// come before it.
pub fn chunk_id(parent: &str, text: &str, occurrence: usize) -> String {
    let hash = text_hash(text);
    stable_id(Kind::Chunk, &[parent, &hash, &occurrence.to_string()])
}

/// What an extractor finds in a chunk.
pub fn subgraph_id(chunk: &str, extractor: &str) -> String {
    stable_id(Kind::Subgraph, &[chunk, extractor])
}

/// What an extractor finds in a chunk under a fingerprint of what it does.
pub fn extraction_id(chunk: &str, extractor: &str, fingerprint: &str) -> String {
    stable_id(Kind::Subgraph, &[chunk, extractor, fingerprint])
}

/// What a component did to make something: `of` names it and how it was done.
pub fn activity_id(component: &str, of: &[&str]) -> String {
    let parts: Vec<&str> = [component].iter().chain(of).copied().collect();
    stable_id(Kind::Activity, &parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_behind_their_prefix_and_never_change() {
        // Stored ids depend on this value.
        assert_eq!(
            chunk_id("urn:page:1", "Some text.", 0),
            "urn:chunk:3784df3a-6c60-8fe2-b6c2-6645a3b8d7a7"
        );
        let page = page_id("urn:doc", "text", 0);
        let uuid = page.strip_prefix("urn:page:").unwrap();
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&uuid[14..15], "8");
        assert!("89ab".contains(&uuid[19..20]));
    }

    #[test]
    fn different_things_have_different_ids() {
        let ids = [
            stable_id(Kind::Chunk, &["a", "bc"]),
            stable_id(Kind::Chunk, &["ab", "c"]),
            stable_id(Kind::Chunk, &["abc"]),
            stable_id(Kind::Chunk, &["abc", ""]),
            stable_id(Kind::Page, &["abc"]),
            page_id("d", "t", 0),
            page_id("d", "t", 1),
            section_id("d", 1),
            section_id("d", 2),
        ];
        let mut uuids: Vec<&str> = ids
            .iter()
            .filter_map(|id| id.rsplit([':', '/']).next())
            .collect();
        uuids.sort_unstable();
        uuids.dedup();
        assert_eq!(uuids.len(), ids.len());
    }
}
