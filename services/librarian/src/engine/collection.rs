//! A collection as its config row says it.

use serde::{Deserialize, Serialize};
use tg_schemas::msg::CollectionMetadata;
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use crate::error::invalid;

/// Longest id in bytes.
const LONGEST: usize = 1024;
/// Most tags.
const TAGS: usize = 256;
/// Longest name in bytes.
const NAME: usize = 1024;
/// Longest description in bytes: the rows of all collections travel together.
const DESCRIPTION: usize = 16 << 10;
/// Longest tag in bytes.
const TAG: usize = 256;

/// Value of a row. Rows may have been written by hand: what cannot be read is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Row {
    collection: String,
    name: String,
    description: String,
    tags: Vec<String>,
    /// Grows each time the name is created again after a deletion. Rows keep its older name, by which all stores read it.
    #[serde(rename = "incarnation", skip_serializing_if = "is_zero")]
    generation: i64,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Checks an id.
pub(crate) fn check(id: &str) -> Result<(), Error> {
    let wrong = |why: &str| Err(invalid(format!("collection: {why}")));
    match id {
        "" => wrong("is required"),
        long if long.len() > LONGEST => {
            let text = format!("collection: is longer than {LONGEST} bytes");
            Err(Error::new(ErrorCode::TooLarge, text))
        }
        odd if odd.chars().any(char::is_control) => wrong("must not contain control characters"),
        _ => Ok(()),
    }
}

/// A collection as it is to be: an absent name is its id, tags are there once and not empty.
pub(crate) fn complete(
    id: &str,
    name: String,
    description: String,
    tags: Vec<String>,
) -> Result<CollectionMetadata, Error> {
    check(id)?;
    within("name", &name, NAME)?;
    within("description", &description, DESCRIPTION)?;
    let mut kept: Vec<String> = Vec::with_capacity(tags.len());
    for (at, tag) in tags.into_iter().enumerate() {
        within(&format!("tags[{at}]"), &tag, TAG)?;
        if !tag.is_empty() && !kept.contains(&tag) {
            kept.push(tag);
        }
        if kept.len() > TAGS {
            return Err(invalid(format!(
                "tags: must not have more than {TAGS} entries"
            )));
        }
    }
    Ok(CollectionMetadata {
        collection: id.to_owned(),
        name: if name.is_empty() { id.to_owned() } else { name },
        description,
        tags: kept,
    })
}

/// The error names the field.
fn within(field: &str, text: &str, most: usize) -> Result<(), Error> {
    if text.len() <= most {
        return Ok(());
    }
    let text = format!("{field}: is longer than {most} bytes");
    Err(Error::new(ErrorCode::TooLarge, text))
}

/// The row's value.
pub(crate) fn value(collection: &CollectionMetadata, generation: i64) -> String {
    let row = Row {
        collection: collection.collection.clone(),
        name: collection.name.clone(),
        description: collection.description.clone(),
        tags: collection.tags.clone(),
        generation,
    };
    serde_json::to_string(&row).unwrap_or_default()
}

/// Generation that a row's value says.
pub(crate) fn generation(value: &str) -> i64 {
    let row: Row = serde_json::from_slice(value.as_bytes()).unwrap_or_default();
    row.generation.max(0)
}

/// A collection from its row.
pub(crate) fn from_row(key: &str, value: &str) -> CollectionMetadata {
    let row: Row = serde_json::from_slice(value.as_bytes()).unwrap_or_default();
    CollectionMetadata {
        collection: key.to_owned(),
        name: if row.name.is_empty() {
            key.to_owned()
        } else {
            row.name
        },
        description: row.description,
        tags: row.tags,
    }
}

/// Those with any of the tags, no tags mean all: what is asked for of them. They come in the order of their ids.
pub(crate) fn select(
    all: impl IntoIterator<Item = CollectionMetadata>,
    tags: &[String],
    asked: Asked,
) -> Result<Page<CollectionMetadata>, Error> {
    let tagged =
        |one: &CollectionMetadata| tags.is_empty() || one.tags.iter().any(|tag| tags.contains(tag));
    let wanted = all.into_iter().filter(tagged);
    Page::of(asked, wanted, |one| one.collection.clone(), |one| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_leniently_and_selected_by_tag() {
        let rows = [
            from_row("a", r#"{"collection":"a","name":"A","tags":["x","y"]}"#),
            from_row("b", "not json"),
            from_row("c", ""),
        ];
        assert_eq!((rows[0].name.as_str(), rows[1].name.as_str()), ("A", "b"));
        let names = |tags: &[&str], limit, after: &str| -> (Vec<String>, String) {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            let asked = Asked::read("list-collections", limit, after).unwrap();
            let found = select(rows.iter().cloned(), &tags, asked).unwrap();
            let names = found.entries.into_iter().map(|one| one.collection);
            (names.collect(), found.next)
        };
        assert_eq!(names(&[], 0, "").0, ["a", "b", "c"]);
        let (first, next) = names(&[], 2, "");
        assert_eq!(first, ["a", "b"]);
        let (last, end) = names(&[], 2, &next);
        assert_eq!(
            (last.as_slice(), end.as_str()),
            (["c".to_owned()].as_slice(), "")
        );
        // What no page shows makes none.
        assert_eq!(
            names(&["y", "z"], 1, ""),
            (vec!["a".to_owned()], String::new())
        );
    }

    #[test]
    fn a_first_generation_is_not_written() {
        let tags = ["t", "", "t"].map(str::to_owned).to_vec();
        let one = complete("a:b", String::new(), String::new(), tags).unwrap();
        assert_eq!(
            value(&one, 0),
            r#"{"collection":"a:b","name":"a:b","description":"","tags":["t"]}"#
        );
        assert_eq!(generation(&value(&one, 3)), 3);
        assert!(value(&one, 3).ends_with(r#","incarnation":3}"#));
        assert_eq!((generation("{}"), generation("x")), (0, 0));
        assert_eq!(from_row("a:b", &value(&one, 3)), one);
    }

    #[test]
    fn what_is_said_of_a_collection_is_bounded() {
        let long = |bytes: usize| "x".repeat(bytes);
        let says = |name: usize, description: usize, tag: usize| {
            complete("c", long(name), long(description), vec![long(tag)])
        };
        assert!(says(NAME, DESCRIPTION, TAG).is_ok());
        for (wrong, field) in [
            (says(NAME + 1, 0, 0), "name: "),
            (says(0, DESCRIPTION + 1, 0), "description: "),
            (says(0, 0, TAG + 1), "tags[0]: "),
        ] {
            let error = wrong.unwrap_err();
            assert_eq!(error.code(), ErrorCode::TooLarge);
            assert!(error.message.starts_with(field), "{error}");
        }
    }

    #[test]
    fn ids_may_be_odd_but_not_empty_or_endless() {
        for good in ["a", "a_b", "a:b", "ü/\"'%☃", &"x".repeat(300)] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "a\nb", &"x".repeat(1025)] {
            assert!(check(bad).unwrap_err().message.starts_with("collection: "));
        }
    }
}
