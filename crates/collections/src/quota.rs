//! What a workspace may keep in a store, and what it keeps. Pure: stores count, and ask before they write.

use tg_schemas::{Error, ErrorCode};

/// What one workspace may keep in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Things: rows, vectors, chunks, cores.
    pub items: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// What a workspace keeps, or what a change adds to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Things.
    pub items: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// How a store's quota is reported to clients.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// Where things are kept, e.g. `the tables`.
    pub place: &'static str,
    /// What they are, e.g. `rows`.
    pub items: &'static str,
    /// What their bytes are of, e.g. `of text`.
    pub bytes: &'static str,
}

impl Quota {
    /// Whatever there is room for.
    pub const UNLIMITED: Self = Self {
        items: u64::MAX,
        bytes: u64::MAX,
    };

    /// Whether a workspace that keeps so much may keep more. What adds nothing is let through, however full it is.
    ///
    /// # Errors
    /// `too-large`, naming the quota.
    pub fn check(&self, words: &Words, held: Usage, more: Usage) -> Result<(), Error> {
        let over = |held: u64, more: u64, most| more > 0 && held.saturating_add(more) > most;
        let Words {
            place,
            items,
            bytes,
        } = words;
        let most = if over(held.items, more.items, self.items) {
            format!("{} {items}", self.items)
        } else if over(held.bytes, more.bytes, self.bytes) {
            format!("{} MiB {bytes}", self.bytes >> 20)
        } else {
            return Ok(());
        };
        let text = format!("{place} of this workspace may hold at most {most}");
        Err(Error::new(ErrorCode::TooLarge, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_of_things_and_of_bytes_and_names_itself() {
        let quota = Quota {
            items: 2,
            bytes: 3 << 20,
        };
        let words = Words {
            place: "the tables",
            items: "rows",
            bytes: "of text",
        };
        let usage = |items, bytes| Usage { items, bytes };
        let check = |held, more| quota.check(&words, held, more);
        assert_eq!(check(usage(1, 1 << 20), usage(1, 2 << 20)), Ok(()));
        let things = check(usage(2, 0), usage(1, 9)).unwrap_err();
        assert_eq!(things.code(), ErrorCode::TooLarge);
        let told = "the tables of this workspace may hold at most";
        assert_eq!(things.message, format!("{told} 2 rows"));
        let bytes = check(usage(2, 3 << 20), usage(0, 1)).unwrap_err();
        assert_eq!(bytes.message, format!("{told} 3 MiB of text"));
        assert_eq!(check(usage(9, 9 << 20), usage(0, 0)), Ok(()));
    }
}
