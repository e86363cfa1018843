//! What a workspace may keep, and what it keeps. Pure.

use crate::error::GraphError;

/// What one workspace may keep in all its graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Quads.
    pub quads: u64,
    /// Bytes of the quads as N-Quads text.
    pub bytes: u64,
}

impl Default for Quota {
    /// 50 million quads, 16 GiB of text: 14 GB of memory for quads of the usual size (0.28 KB each).
    fn default() -> Self {
        Self {
            quads: 50_000_000,
            bytes: 16 << 30,
        }
    }
}

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

impl Quota {
    /// Whether a workspace may keep so much.
    ///
    /// # Errors
    /// [`GraphError::QuadQuota`] or [`GraphError::ByteQuota`].
    pub fn check(&self, usage: Usage) -> Result<(), GraphError> {
        if usage.quads > self.quads {
            return Err(GraphError::QuadQuota(self.quads));
        }
        if usage.bytes > self.bytes {
            return Err(GraphError::ByteQuota(self.bytes >> 20));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_of_quads_and_of_bytes() {
        let quota = Quota {
            quads: 10,
            bytes: 5 << 20,
        };
        let usage = |quads, bytes| Usage { quads, bytes };
        assert_eq!(quota.check(usage(10, 5 << 20)), Ok(()));
        let quads = quota.check(usage(11, 0)).unwrap_err();
        assert_eq!(
            quads.to_string(),
            "the graphs of this workspace may hold at most 10 quads"
        );
        let bytes = quota.check(usage(1, (5 << 20) + 1)).unwrap_err();
        assert_eq!(
            bytes.to_string(),
            "the graphs of this workspace may hold at most 5 MiB of text"
        );
        assert_eq!(usage(2, 30).memory(), 430);
    }
}
