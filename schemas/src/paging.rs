//! Listings in pages, one idea for all of them. Who asks says how many entries a page may have (`limit`) and what it has
//! seen (`after`); the answer says how to go on (`next`), and nothing where nothing follows. A cursor holds the key of
//! the last entry seen, so entries that come or go between two pages neither repeat others nor hide them.
//!
//! Who names neither gets the whole listing in one answer, or an error where no answer holds it.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorCode};
use crate::limits;

/// What of a listing is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Which listing: a cursor of one is none of another.
    listing: String,
    /// Most entries; `None` for all.
    limit: Option<usize>,
    /// Key of the last entry that the asker has.
    after: Option<String>,
}

impl Asked {
    /// Reads `limit` and `after` of a request. A limit of 0 is none, or the usual one where `after` asks for a page; one
    /// that is too large is cut to the largest.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] for a negative limit, and for an `after` that no page of this listing gave out.
    pub fn read(listing: &str, limit: i64, after: &str) -> Result<Self, Error> {
        let limit = usize::try_from(limit)
            .map_err(|_| Error::new(ErrorCode::BadRequest, "limit: must not be negative"))?;
        let after = match after {
            "" => None,
            cursor => Some(key_of(listing, cursor).ok_or_else(no_cursor)?),
        };
        let limit = match (limit, &after) {
            (0, None) => None,
            (0, Some(_)) => Some(limits::PAGE_USUAL),
            (limit, _) => Some(limit.min(limits::PAGE_MOST)),
        };
        Ok(Self {
            listing: listing.to_owned(),
            limit,
            after,
        })
    }

    /// Key of the last entry that the asker has; `None` at the beginning.
    pub fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The same, of listings whose keys are no text.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] where it is no such key.
    pub fn after_as<K: FromStr>(&self) -> Result<Option<K>, Error> {
        let read = |key: &str| key.parse().map_err(|_| no_cursor());
        self.after().map(read).transpose()
    }
}

/// The one thing to say of a cursor that is none.
pub fn no_cursor() -> Error {
    let text = "after: is not the 'next' of an earlier page";
    Error::new(ErrorCode::BadRequest, text)
}

fn cursor(listing: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{listing}\n{key}"))
}

fn key_of(listing: &str, cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let (of, key) = text.split_once('\n')?;
    (of == listing).then(|| key.to_owned())
}

/// A page of a listing, or the whole of it. It ends at its limit, or when it is large enough.
#[derive(Debug)]
pub struct Page<T> {
    /// What is on it, in the order of the keys.
    pub entries: Vec<T>,
    /// `after` of the next page; empty if there is none.
    pub next: String,
    asked: Asked,
    last: String,
    bytes: usize,
}

impl<T> Page<T> {
    /// A page with nothing on it yet.
    pub fn new(asked: Asked) -> Self {
        Self {
            entries: Vec::new(),
            next: String::new(),
            asked,
            last: String::new(),
            bytes: 0,
        }
    }

    /// Whether another entry has no room, although there is one.
    pub fn is_full(&mut self) -> bool {
        let full = self
            .asked
            .limit
            .is_some_and(|limit| self.entries.len() >= limit || self.bytes >= limits::PAGE_BYTES);
        if full && self.next.is_empty() {
            self.next = cursor(&self.asked.listing, &self.last);
        }
        full
    }

    /// Adds an entry whose key is above all before, with the bytes that it takes in an answer at least. Asked whether
    /// it [is full](Self::is_full) before that.
    ///
    /// # Errors
    /// [`ErrorCode::TooLarge`] where the whole was asked for and no answer holds it.
    pub fn push(&mut self, key: impl Display, entry: T, bytes: usize) -> Result<(), Error> {
        self.bytes += bytes;
        if self.asked.limit.is_none() && self.bytes > limits::PART {
            let text = format!(
                "the listing is larger than an answer may be ({}); ask for it in pages (limit, after)",
                limits::human(limits::PART)
            );
            return Err(Error::new(ErrorCode::TooLarge, text));
        }
        // Only a page tells where it ends.
        if self.asked.limit.is_some() {
            self.last = key.to_string();
        }
        self.entries.push(entry);
        Ok(())
    }
}

impl<T: Serialize> Page<T> {
    /// Adds an entry whose key is above all before, as long as it is in JSON.
    ///
    /// # Errors
    /// As [`Page::push`].
    pub fn add(&mut self, key: impl Display, entry: T) -> Result<(), Error> {
        let bytes = length(&entry);
        self.push(key, entry, bytes)
    }

    /// A page of what is there in the order of its keys; `show` is asked for what goes onto it.
    ///
    /// # Errors
    /// As [`Page::push`].
    pub fn of<E, K: AsRef<str>>(
        asked: Asked,
        sorted: impl IntoIterator<Item = E>,
        key: impl Fn(&E) -> K,
        show: impl Fn(E) -> T,
    ) -> Result<Self, Error> {
        let mut page = Self::new(asked);
        for one in sorted {
            let key = key(&one);
            if page.asked.after().is_some_and(|seen| key.as_ref() <= seen) {
                continue;
            }
            if page.is_full() {
                break;
            }
            page.add(key.as_ref(), show(one))?;
        }
        Ok(page)
    }
}

/// Bytes that an object takes as JSON.
pub fn object_length(object: &Map<String, Value>) -> usize {
    length(object)
}

fn length(of: &impl Serialize) -> usize {
    let mut length = Length(0);
    // Never fails: nothing is written anywhere.
    let _ = serde_json::to_writer(&mut length, of);
    length.0
}

/// Counts bytes.
struct Length(usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(all: &[String], limit: i64, after: &str) -> Result<Page<String>, Error> {
        let asked = Asked::read("list-them", limit, after)?;
        Page::of(asked, all.iter(), |one| one.as_str(), String::clone)
    }

    fn walk(all: &[String], limit: i64) -> Vec<Vec<String>> {
        let (mut pages, mut after) = (Vec::new(), String::new());
        loop {
            let page = page(all, limit, &after).unwrap();
            pages.push(page.entries);
            if page.next.is_empty() {
                return pages;
            }
            after = page.next;
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn pages_hold_every_entry_once() {
        let all = names(&["a", "b", "c", "d", "e"]);
        assert_eq!(walk(&all, 0).concat(), all);
        assert_eq!(
            walk(&all, 2),
            [names(&["a", "b"]), names(&["c", "d"]), names(&["e"])]
        );
        assert_eq!(walk(&all, 1).len(), 5);
        // A page that ends with the listing says so.
        assert_eq!(walk(&all, 5).len(), 1);
        assert_eq!(walk(&[], 2), [names(&[])]);
        // A page ends where it is large, too.
        let large: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|one| one.repeat(limits::PAGE_BYTES))
            .collect();
        assert_eq!(walk(&large, 100).len(), 3);
    }

    #[test]
    fn who_comes_or_goes_between_pages_moves_nobody() {
        let first = page(&names(&["b", "d", "f", "h"]), 2, "").unwrap();
        assert_eq!(first.entries, names(&["b", "d"]));
        // The last one seen is gone, one came before it and one after.
        let second = page(&names(&["a", "b", "e", "f", "h"]), 2, &first.next).unwrap();
        assert_eq!(second.entries, names(&["e", "f"]));
        let last = page(&names(&["a"]), 2, &second.next).unwrap();
        assert!(last.entries.is_empty() && last.next.is_empty());
    }

    #[test]
    fn an_object_is_as_long_as_it_is_written() {
        let object = serde_json::json!({"a": ["\"\u{1}ü\n", 1.5, null], "b": {}});
        let map = object.as_object().unwrap();
        assert_eq!(object_length(map), object.to_string().len());
    }

    #[test]
    fn a_whole_that_no_answer_holds_is_refused() {
        let mut page = Page::new(Asked::default());
        assert!(page.push("a", (), limits::PART).is_ok());
        assert!(!page.is_full());
        let error = page.push("b", (), 1).unwrap_err();
        assert_eq!(error.code(), ErrorCode::TooLarge);
        assert!(error.message.contains("pages (limit, after)"), "{error}");
    }

    #[test]
    fn what_is_asked_is_checked() {
        let read = |limit, after: &str| Asked::read("list-them", limit, after);
        let error = |limit, after: &str| {
            let error = read(limit, after).unwrap_err();
            assert_eq!(error.code(), ErrorCode::BadRequest);
            error.message
        };
        assert_eq!(read(0, "").unwrap().limit, None);
        assert_eq!(error(-1, ""), "limit: must not be negative");
        let others = cursor("list-others", "a");
        for wrong in ["x", "-1", "a\nb", "bm9uZQ", &others] {
            assert_eq!(error(1, wrong), no_cursor().message, "{wrong}");
        }
        let own = cursor("list-them", "7\n8");
        let asked = read(0, &own).unwrap();
        assert_eq!(
            (asked.limit, asked.after()),
            (Some(limits::PAGE_USUAL), Some("7\n8"))
        );
        assert!(asked.after_as::<i64>().is_err());
        let asked = read(i64::MAX, &cursor("list-them", "7")).unwrap();
        assert_eq!(asked.limit, Some(limits::PAGE_MOST));
        assert_eq!(asked.after_as::<i64>(), Ok(Some(7)));
    }
}
