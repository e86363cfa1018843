//! What a workspace may keep, and what it keeps. Pure.

use tg_collections::{Quota, Words};

use crate::error::GraphError;

/// How the quota is told.
const WORDS: Words = Words {
    place: "the graphs",
    items: "quads",
    bytes: "of text",
};

/// What some graphs hold, or what a change adds to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Quads.
    pub quads: u64,
    /// Bytes of them as N-Quads text.
    pub bytes: u64,
}

impl Usage {
    /// Bytes of indexes for one quad in memory.
    const INDEX: u64 = 200;

    /// About how many bytes of memory the quads take. Never much too low: each text counts as often as it occurs,
    /// though memory holds it once.
    pub fn memory(&self) -> u64 {
        self.quads
            .saturating_mul(Self::INDEX)
            .saturating_add(self.bytes)
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            quads: self.quads.saturating_add(other.quads),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Without what another says.
    pub fn without(self, other: Self) -> Self {
        Self {
            quads: self.quads.saturating_sub(other.quads),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// Whether a workspace may keep so much.
///
/// # Errors
/// [`GraphError::Quota`].
pub fn check(quota: Quota, usage: Usage) -> Result<(), GraphError> {
    let all = tg_collections::Usage {
        items: usage.quads,
        bytes: usage.bytes,
    };
    let checked = quota.check(&WORDS, tg_collections::Usage::default(), all);
    checked.map_err(GraphError::Quota)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_of_quads_and_of_bytes() {
        let quota = Quota {
            items: 10,
            bytes: 5 << 20,
        };
        let usage = |quads, bytes| Usage { quads, bytes };
        assert_eq!(check(quota, usage(10, 5 << 20)), Ok(()));
        let quads = check(quota, usage(11, 0)).unwrap_err();
        assert_eq!(
            quads.to_string(),
            "the graphs of this workspace may hold at most 10 quads"
        );
        let bytes = check(quota, usage(1, (5 << 20) + 1)).unwrap_err();
        assert_eq!(
            bytes.to_string(),
            "the graphs of this workspace may hold at most 5 MiB of text"
        );
        assert_eq!(usage(2, 30).memory(), 430);
    }
}
