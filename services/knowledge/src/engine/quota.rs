//! What a workspace may keep, and what it keeps. Pure.

use tg_schemas::{Error, ErrorCode};

/// What one workspace may keep in all its cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    /// Cores.
    pub(crate) cores: u64,
    /// Bytes of what they hold.
    pub(crate) bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Quota {
    /// Where nobody sets another: 200 thousand cores, 64 GiB.
    pub(crate) const USUAL: Self = Self {
        cores: 200_000,
        bytes: 64 << 30,
    };
}

/// What some cores are and hold, or what a change adds to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    /// Cores.
    pub(crate) cores: u64,
    /// Bytes of what they hold.
    pub(crate) bytes: u64,
}

impl Quota {
    /// Whether a workspace that keeps so much may keep more. What adds nothing is let through.
    ///
    /// # Errors
    /// `too-large`, naming the quota.
    pub(crate) fn check(&self, held: Usage, more: Usage) -> Result<(), Error> {
        let over = |held: u64, more: u64, most| more > 0 && held.saturating_add(more) > most;
        let most = if over(held.cores, more.cores, self.cores) {
            format!("this workspace may have at most {} cores", self.cores)
        } else if over(held.bytes, more.bytes, self.bytes) {
            let most = self.bytes >> 20;
            format!("those of this workspace may hold at most {most} MiB")
        } else {
            return Ok(());
        };
        let text = format!("knowledge cores: {most}");
        Err(Error::new(ErrorCode::TooLarge, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_of_cores_and_of_bytes_and_names_itself() {
        let quota = Quota {
            cores: 2,
            bytes: 3 << 20,
        };
        let usage = |cores, bytes| Usage { cores, bytes };
        assert_eq!(quota.check(usage(1, 1 << 20), usage(1, 2 << 20)), Ok(()));
        let cores = quota.check(usage(2, 0), usage(1, 9)).unwrap_err();
        assert_eq!(
            cores.message,
            "knowledge cores: this workspace may have at most 2 cores"
        );
        let bytes = quota.check(usage(2, 3 << 20), usage(0, 1)).unwrap_err();
        assert_eq!(
            bytes.message,
            "knowledge cores: those of this workspace may hold at most 3 MiB"
        );
        assert_eq!(quota.check(usage(9, 9 << 20), usage(0, 0)), Ok(()));
    }
}
