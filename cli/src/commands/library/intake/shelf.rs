//! What the library has already, and what is to be done about a document that comes. Pure, but for reading the lists.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::super::listing;
use crate::client::{Http, Result};
use crate::fields::text;

/// Digits of hashes in the id of a processing.
const DIGITS: usize = 8;
/// Characters of a document's name in it.
const NAME: usize = 40;

/// Where documents are processed to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Destination {
    pub(super) flow: String,
    pub(super) collection: String,
}

/// A document of the library.
#[derive(Debug, Clone)]
struct LibraryDocument {
    mime: String,
    hash: String,
    /// Name of the file that it was added from, where it was.
    file: String,
}

/// What the library has.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    documents: HashMap<String, LibraryDocument>,
    /// By the hash of the content.
    contents: HashMap<String, String>,
    /// The latest processing of a document into a place: its id and how it stands.
    processed: HashMap<(String, Destination), (String, String)>,
    /// Ids of processings.
    taken: HashSet<String>,
}

/// What is to be done about a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plan {
    /// The library does not have it.
    Add,
    /// It has another content of it.
    Replace,
    /// It has it as another kind: it goes, and comes anew.
    Exchange,
    /// It has it, under this id.
    Keep(String),
}

impl Shelf {
    /// Reads the lists of a library.
    pub(super) async fn read(http: &Http) -> Result<Self> {
        let documents = listing::documents(http, false).await?;
        let processings = listing::processings(http).await?;
        Ok(Self::of(&documents, &processings))
    }

    pub(super) fn of(documents: &[Value], processings: &[Value]) -> Self {
        let mut shelf = Self::default();
        for one in documents {
            shelf.hold(
                &text(one, "id"),
                &text(one, "kind"),
                &text(one, "content-hash"),
            );
            if let Some(held) = shelf.documents.get_mut(&text(one, "id")) {
                held.file = text(one, "comments");
            }
        }
        // In the order in which they came: the last one counts.
        for one in processings {
            let into = Destination {
                flow: text(one, "flow"),
                collection: text(one, "collection"),
            };
            let standing = (text(one, "id"), text(one, "status"));
            shelf.taken.insert(standing.0.clone());
            let key = (text(one, "document-id"), into);
            shelf.processed.insert(key, standing);
        }
        shelf
    }

    /// Ids of documents, and names of the files that they were added from.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.documents.iter();
        let files = files.map(|(id, held)| (id.as_str(), held.file.as_str()));
        files.filter(|(_, file)| !file.is_empty())
    }

    /// Whether a document is there.
    pub(super) fn has(&self, id: &str) -> bool {
        self.documents.contains_key(id)
    }

    /// What to do about a document that would be kept under this id.
    pub(super) fn plan(&self, id: &str, mime: &str, hash: &str) -> Plan {
        match self.documents.get(id) {
            Some(held) if held.hash == hash => Plan::Keep(id.to_owned()),
            Some(held) if held.mime == mime => Plan::Replace,
            Some(_) => Plan::Exchange,
            None => match self.contents.get(hash) {
                Some(other) => Plan::Keep(other.clone()),
                None => Plan::Add,
            },
        }
    }

    /// The library has this from now on.
    pub(super) fn hold(&mut self, id: &str, mime: &str, hash: &str) {
        let held = LibraryDocument {
            mime: mime.to_owned(),
            hash: hash.to_owned(),
            file: String::new(),
        };
        if let Some(before) = self.documents.insert(id.to_owned(), held)
            && self.contents.get(&before.hash).is_some_and(|of| of == id)
        {
            self.contents.remove(&before.hash);
        }
        if !hash.is_empty() {
            let of = self.contents.entry(hash.to_owned());
            of.or_insert_with(|| id.to_owned());
        }
    }

    /// Where a document is to be processed to: to the place that was asked for, and, if it has changed, wherever it
    /// was processed before. What was processed as it is stays as it is.
    pub(super) fn open(
        &self,
        id: &str,
        hash: &str,
        changed: bool,
        asked: &Destination,
    ) -> BTreeSet<Destination> {
        let known = self.processed.keys().filter(|(of, _)| of == id);
        let mut places: BTreeSet<Destination> = known
            .map(|(_, into)| into.clone())
            .filter(|_| changed)
            .collect();
        places.insert(asked.clone());
        places.retain(|into| changed || !self.is_current(id, hash, into));
        places
    }

    /// The latest processing of a document into a place: its id and how it stands.
    pub(super) fn standing(&self, id: &str, into: &Destination) -> Option<&(String, String)> {
        self.processed.get(&(id.to_owned(), into.clone()))
    }

    /// A processing has begun.
    pub(super) fn begun(&mut self, id: &str, into: &Destination, processing: &str) {
        self.taken.insert(processing.to_owned());
        let standing = (processing.to_owned(), "processing".to_owned());
        self.processed
            .insert((id.to_owned(), into.clone()), standing);
    }

    /// Whether a processing has this id. A library takes a request with a known id for a repetition, if it has the same time in
    /// seconds, and starts nothing.
    pub(super) fn is_taken(&self, processing: &str) -> bool {
        self.taken.contains(processing)
    }

    /// Whether the latest processing was of this content. Of one that others began nothing else is known.
    fn is_current(&self, id: &str, hash: &str, into: &Destination) -> bool {
        let Some((processing, _)) = self.standing(id, into) else {
            return false;
        };
        match content_of(processing) {
            Some(of) => hash.starts_with(of),
            None => true,
        }
    }
}

/// The id of the processing of a content into a place: readable, and the same for the same. `key` follows from document
/// and place.
pub(super) fn processing_id(name: &str, key: &str, hash: &str, again: u32) -> String {
    let name: String = name
        .chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() || "._".contains(c) => c,
            _ => '-',
        })
        .take(NAME)
        .collect();
    let short = |hash: &str| hash.chars().take(DIGITS).collect::<String>();
    let (key, hash) = (short(key), short(hash));
    match again {
        0 => format!("{name}-{key}-{hash}"),
        again => format!("{name}-{again}-{key}-{hash}"),
    }
}

/// The content that an id of ours speaks of.
fn content_of(processing: &str) -> Option<&str> {
    let mut parts = processing.rsplit('-');
    let (hash, key) = (parts.next()?, parts.next()?);
    let is_hash = |part: &str| {
        part.len() == DIGITS
            && part
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    (parts.next().is_some() && is_hash(hash) && is_hash(key)).then_some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn into(collection: &str) -> Destination {
        Destination {
            flow: "f".to_owned(),
            collection: collection.to_owned(),
        }
    }

    fn shelf(processings: &[(&str, &str)]) -> Shelf {
        let documents = [
            json!({"id": "urn:a", "kind": "text/plain", "content-hash": "aaaaaaaa11"}),
            json!({"id": "urn:old", "kind": "text/plain"}),
        ];
        let processings: Vec<_> = processings
            .iter()
            .map(|(id, collection)| {
                json!({"id": id, "document-id": "urn:a", "flow": "f", "collection": collection, "status": "complete"})
            })
            .collect();
        Shelf::of(&documents, &processings)
    }

    #[test]
    fn only_what_is_new_or_other_is_added() {
        let mut shelf = shelf(&[]);
        let plan = |shelf: &Shelf, id: &str, mime: &str, hash: &str| shelf.plan(id, mime, hash);
        assert_eq!(
            plan(&shelf, "urn:a", "text/plain", "aaaaaaaa11"),
            Plan::Keep("urn:a".into())
        );
        assert_eq!(plan(&shelf, "urn:a", "text/plain", "b"), Plan::Replace);
        assert_eq!(
            plan(&shelf, "urn:a", "application/pdf", "b"),
            Plan::Exchange
        );
        assert_eq!(plan(&shelf, "urn:b", "text/plain", "b"), Plan::Add);
        // The same content from elsewhere.
        assert_eq!(
            plan(&shelf, "urn:b", "text/plain", "aaaaaaaa11"),
            Plan::Keep("urn:a".into())
        );
        // A library that tells no hashes has its documents' contents replaced.
        assert_eq!(
            plan(&shelf, "urn:old", "text/plain", ""),
            Plan::Keep("urn:old".into())
        );
        assert_eq!(plan(&shelf, "urn:old", "text/plain", "c"), Plan::Replace);
        shelf.hold("urn:a", "text/plain", "b");
        assert_eq!(plan(&shelf, "urn:b", "text/plain", "aaaaaaaa11"), Plan::Add);
        assert_eq!(
            plan(&shelf, "urn:b", "text/plain", "b"),
            Plan::Keep("urn:a".into())
        );
    }

    #[test]
    fn what_is_processed_is_not_processed_again_unless_it_changed() {
        let id = processing_id("My notes.md", "0123456789", "aaaaaaaa11", 0);
        assert_eq!(id, "My-notes.md-01234567-aaaaaaaa");
        let open = |processings: &[(&str, &str)], changed| -> Vec<String> {
            let found = shelf(processings).open("urn:a", "aaaaaaaa11", changed, &into("c"));
            found.into_iter().map(|into| into.collection).collect()
        };
        assert_eq!(open(&[], false), ["c"]);
        assert_eq!(open(&[(&id, "c")], false), [""; 0]);
        assert_eq!(open(&[(&id, "d")], false), ["c"]);
        assert_eq!(open(&[("by hand", "c")], false), [""; 0]);
        // It was replaced, and then something broke off.
        let stale = processing_id("n", "0123456789", "bbbbbbbb22", 0);
        assert_eq!(open(&[(&stale, "c")], false), ["c"]);
        assert_eq!(open(&[(&stale, "c"), (&id, "c")], false), [""; 0]);
        assert_eq!(open(&[(&stale, "d")], true), ["c", "d"]);
    }

    #[test]
    fn ids_of_others_say_nothing() {
        for id in [
            "p",
            "a-b",
            "12345678-12345678",
            "a-1234567-12345678",
            "a-12345678-1234567g",
        ] {
            assert_eq!(content_of(id), None, "{id}");
        }
        let again = processing_id("", "0123456789", "fedcba98", 2);
        assert_eq!(content_of(&again), Some("fedcba98"));
    }
}
