//! What was processed from the documents of a workspace before an import, and what is to be processed after it. The id of
//! a processing that an import begins says which content it was of. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::fields::text;

/// Where documents are processed to: a flow and a collection.
pub(super) type Destination = (String, String);

/// The latest processing of each document into each place.
#[derive(Debug, Default)]
pub(super) struct Processed {
    latest: BTreeMap<String, BTreeMap<Destination, String>>,
    /// Ids of the processings that imports began.
    taken: BTreeSet<String>,
}

impl Processed {
    /// Of a listing, in which the latest stand last.
    pub(super) fn of(processings: &[Value]) -> Self {
        let mut processed = Self::default();
        for one in processings {
            let place = (text(one, "flow"), text(one, "collection"));
            let (document, id) = (text(one, "document-id"), text(one, "id"));
            if id.starts_with(IMPORTED) {
                processed.taken.insert(id.clone());
            }
            let places = processed.latest.entry(document);
            places.or_default().insert(place, id);
        }
        processed
    }

    /// Whether anything was processed from a document.
    pub(super) fn has(&self, document: &str) -> bool {
        self.latest.contains_key(document)
    }

    /// Where a document of the bundle is to be processed to: to the place that was asked for, and wherever it was
    /// processed before if the import exchanged its content, or an import that was cut off did: then the processing
    /// there says another content.
    pub(super) fn places(
        &self,
        document: &str,
        content: &str,
        exchanged: bool,
        asked: &Destination,
    ) -> BTreeSet<Destination> {
        let (any, own) = (format!("{IMPORTED}{document} ("), stem(document, content));
        let other = |id: &String| id.starts_with(&any) && !id.starts_with(&own);
        let known = self.latest.get(document).into_iter().flatten();
        let mut places: BTreeSet<Destination> = known
            .filter(|(_, id)| exchanged || other(id))
            .map(|(place, _)| place.clone())
            .collect();
        places.insert(asked.clone());
        places
    }

    /// Whether the latest processing into a place was begun by an import of this content.
    pub(super) fn is_current(&self, document: &str, content: &str, place: &Destination) -> bool {
        let latest = self.latest.get(document).and_then(|it| it.get(place));
        latest.is_some_and(|id| id.starts_with(&stem(document, content)))
    }

    /// Ids for a new processing of a content that no listed processing has. An import asks for these only: a library takes
    /// a request with a known id for a repetition, if it has the same time in seconds, and starts nothing.
    pub(super) fn free_ids(
        &self,
        document: &str,
        content: &str,
        place: &Destination,
        asked: &Destination,
    ) -> impl Iterator<Item = String> {
        let all = (0..=u32::MAX).map(move |again| id(document, content, place, asked, again));
        all.filter(move |id| !self.taken.contains(id))
    }
}

/// How the ids of processings begin that imports began.
const IMPORTED: &str = "import of ";

fn stem(document: &str, content: &str) -> String {
    format!("{IMPORTED}{document} ({content})")
}

/// The id of a processing of a content: `again` counts those of the same that others came after.
fn id(
    document: &str,
    content: &str,
    place: &Destination,
    asked: &Destination,
    again: u32,
) -> String {
    let mut id = stem(document, content);
    if place != asked {
        id.push_str(&format!(" by {} into {}", place.0, place.1));
    }
    if again > 0 {
        id.push_str(&format!(" again {again}"));
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn place(collection: &str) -> Destination {
        ("f".to_owned(), collection.to_owned())
    }

    fn processed(ids: &[(&str, &str)]) -> Processed {
        let rows = ids.iter().map(
            |(id, into)| json!({"id": id, "document-id": "urn:d", "flow": "f", "collection": into}),
        );
        Processed::of(&rows.collect::<Vec<_>>())
    }

    #[test]
    fn what_an_import_processed_is_current_until_something_came_after_it() {
        let ours = id("urn:d", "abc", &place("c"), &place("c"), 0);
        assert_eq!(ours, "import of urn:d (abc)");
        let current = |ids: &[(&str, &str)]| processed(ids).is_current("urn:d", "abc", &place("c"));
        assert!(!current(&[]));
        assert!(current(&[("by hand", "c"), (&ours, "c")]));
        assert!(!current(&[(&ours, "c"), ("by hand", "c")]));
        assert!(!current(&[(&ours, "d")]));
        let again = id("urn:d", "abc", &place("c"), &place("c"), 1);
        assert!(current(&[(&ours, "c"), ("by hand", "c"), (&again, "c")]));
        assert!(!current(&[("import of urn:d (abd)", "c")]));
    }

    #[test]
    fn an_id_that_is_taken_is_not_asked_for_again() {
        let free = |ids: &[(&str, &str)]| {
            let of = processed(ids);
            of.free_ids("urn:d", "abc", &place("c"), &place("c")).next()
        };
        let nth = |again| id("urn:d", "abc", &place("c"), &place("c"), again);
        assert_eq!(free(&[("by hand", "c")]), Some(nth(0)));
        // Also where the processing of that id is not the latest.
        let (first, second) = (nth(0), nth(1));
        assert_eq!(free(&[(&first, "c"), ("by hand", "c")]), Some(nth(1)));
        let both = [
            (first.as_str(), "c"),
            (second.as_str(), "c"),
            ("by hand", "c"),
        ];
        assert_eq!(free(&both), Some(nth(2)));
    }

    #[test]
    fn other_content_is_processed_wherever_the_old_one_was() {
        let places = |exchanged| -> Vec<String> {
            let found = processed(&[("p", "a"), ("q", "b")]);
            let found = found.places("urn:d", "abc", exchanged, &place("c"));
            found.into_iter().map(|(_, into)| into).collect()
        };
        // An import that was cut off exchanged the content of what one before it had processed.
        let old = [
            ("import of urn:d (abd)", "a"),
            ("import of urn:d (abc)", "b"),
        ];
        let found = processed(&old).places("urn:d", "abc", false, &place("c"));
        let found: Vec<&str> = found.iter().map(|(_, into)| into.as_str()).collect();
        assert_eq!(found, ["a", "c"]);
        assert_eq!(places(false), ["c"]);
        assert_eq!(places(true), ["a", "b", "c"]);
        assert_ne!(
            id("urn:d", "abc", &place("a"), &place("c"), 0),
            id("urn:d", "abc", &place("b"), &place("c"), 0)
        );
    }
}
