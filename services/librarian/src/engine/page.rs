//! Listings in pages. A listing that is asked for as a whole must fit one message; a page ends at its limit or
//! when it is large enough, and says where the next one begins.

use serde::Serialize;
use tg_schemas::{Error, ErrorCode, limits};

use crate::error::invalid;

/// Most bytes of a listing that is asked for as a whole: with what its fields are called it fits a message.
const WHOLE: usize = limits::CONTENT;
/// Bytes after which a page ends; its last entry may exceed them.
const PAGE: usize = 2 << 20;
/// Most entries of a page.
const MOST: usize = 10_000;
/// Entries of a page whose asker names no limit.
const USUAL: usize = 1000;

/// Which part of a listing is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Most entries; `None` for all.
    limit: Option<usize>,
    /// Number of the last entry that the asker has.
    pub(crate) after: i64,
}

impl Asked {
    /// Reads `limit` and `after` of a request.
    pub(crate) fn read(limit: i64, after: &str) -> Result<Self, Error> {
        let limit = usize::try_from(limit).map_err(|_| invalid("limit: must not be negative"))?;
        let number = match after {
            "" => 0,
            after => after
                .parse()
                .ok()
                .filter(|number| *number > 0)
                .ok_or_else(|| invalid("after: is not the 'next' of an earlier page"))?,
        };
        Ok(Self {
            limit: match (limit, number) {
                (0, 0) => None,
                (0, _) => Some(USUAL),
                (limit, _) => Some(limit.min(MOST)),
            },
            after: number,
        })
    }
}

/// A listing, or a page of one.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) entries: Vec<T>,
    /// `after` of the next page; empty if there is none.
    pub(crate) next: String,
    asked: Asked,
    last: i64,
    bytes: usize,
}

impl<T: Serialize> Page<T> {
    pub(crate) fn new(asked: Asked) -> Self {
        Self {
            entries: Vec::new(),
            next: String::new(),
            asked,
            last: 0,
            bytes: 0,
        }
    }

    /// Whether another entry has no room, although there is one.
    pub(crate) fn is_full(&mut self) -> bool {
        let full = self
            .asked
            .limit
            .is_some_and(|limit| self.entries.len() >= limit || self.bytes >= PAGE);
        if full && self.next.is_empty() {
            self.next = self.last.to_string();
        }
        full
    }

    /// Adds the entry of a number, above all before. Asked whether it [is full](Self::is_full) before that.
    pub(crate) fn push(&mut self, number: i64, entry: T) -> Result<(), Error> {
        let mut length = Length(0);
        // Never fails: nothing is written anywhere.
        let _ = serde_json::to_writer(&mut length, &entry);
        self.bytes += length.0;
        if self.asked.limit.is_none() && self.bytes > WHOLE {
            let text = "the listing is larger than a message; ask for it in pages (limit, after)";
            return Err(Error::new(ErrorCode::TooLarge, text));
        }
        self.last = number;
        self.entries.push(entry);
        Ok(())
    }
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

    fn walk(all: &[(i64, String)], limit: i64) -> Vec<Vec<i64>> {
        let (mut pages, mut after) = (Vec::new(), String::new());
        loop {
            let asked = Asked::read(limit, &after).unwrap();
            let mut page = Page::new(asked);
            for (number, text) in all.iter().filter(|(number, _)| *number > asked.after) {
                if page.is_full() {
                    break;
                }
                page.push(*number, text.clone()).unwrap();
            }
            let of = |text: &String| all.iter().find(|one| one.1 == *text).unwrap().0;
            pages.push(page.entries.iter().map(of).collect());
            if page.next.is_empty() {
                return pages;
            }
            after = page.next;
        }
    }

    #[test]
    fn pages_hold_every_entry_once() {
        let all: Vec<_> = (1..=5).map(|at| (at * 10, format!("{at}"))).collect();
        assert_eq!(walk(&all, 0), [vec![10, 20, 30, 40, 50]]);
        assert_eq!(walk(&all, 2), [vec![10, 20], vec![30, 40], vec![50]]);
        assert_eq!(walk(&all, 5), [vec![10, 20, 30, 40, 50]]);
        let none: Vec<i64> = Vec::new();
        assert_eq!(walk(&[], 2), [none]);
        // A page ends where it is large, too.
        let large: Vec<_> = (1..=3)
            .map(|at| (at, format!("{at}").repeat(PAGE)))
            .collect();
        assert_eq!(walk(&large, 100), [vec![1], vec![2], vec![3]]);
    }

    #[test]
    fn a_whole_that_no_message_carries_is_refused() {
        let mut page = Page::new(Asked::default());
        assert!(page.push(1, "x".repeat(WHOLE / 2)).is_ok());
        assert!(!page.is_full());
        let error = page.push(2, "x".repeat(WHOLE / 2)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::TooLarge);
        assert!(error.message.contains("limit, after"), "{error}");
    }

    #[test]
    fn what_is_asked_is_checked() {
        assert_eq!(Asked::read(0, ""), Ok(Asked::default()));
        let error = |limit, after| Asked::read(limit, after).unwrap_err().message;
        assert_eq!(error(-1, ""), "limit: must not be negative");
        for wrong in ["x", "-1", "0", "1.5"] {
            let says = "after: is not the 'next' of an earlier page";
            assert_eq!(error(1, wrong), says);
        }
        assert_eq!(Asked::read(0, "7").unwrap().limit, Some(USUAL));
        assert_eq!(Asked::read(i64::MAX, "").unwrap().limit, Some(MOST));
    }
}
