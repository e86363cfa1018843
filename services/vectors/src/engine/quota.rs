//! What a workspace may keep. Pure.

use crate::error::VectorError;

/// What one workspace may keep in all its collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Vectors.
    pub points: u64,
    /// Chunks of the keyword index.
    pub keywords: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Quota {
    /// Where nobody sets another: 20 million of each: vectors of 384 numbers then have 30 GB.
    pub const USUAL: Self = Self {
        points: 20_000_000,
        keywords: 20_000_000,
    };
}

impl Quota {
    /// Whether a workspace may keep so many vectors.
    ///
    /// # Errors
    /// [`VectorError::PointQuota`].
    pub fn check_points(&self, points: u64) -> Result<(), VectorError> {
        match points > self.points {
            true => Err(VectorError::PointQuota(self.points)),
            false => Ok(()),
        }
    }

    /// Whether its keyword index may have so many chunks.
    ///
    /// # Errors
    /// [`VectorError::KeywordQuota`].
    pub fn check_keywords(&self, chunks: u64) -> Result<(), VectorError> {
        match chunks > self.keywords {
            true => Err(VectorError::KeywordQuota(self.keywords)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_of_vectors_and_of_chunks() {
        let quota = Quota {
            points: 10,
            keywords: 5,
        };
        assert_eq!(
            (quota.check_points(10), quota.check_keywords(5)),
            (Ok(()), Ok(()))
        );
        let told = quota.check_points(11).unwrap_err().to_string();
        assert_eq!(
            told,
            "the collections of this workspace may hold at most 10 vectors"
        );
        let told = quota.check_keywords(6).unwrap_err().to_string();
        assert_eq!(
            told,
            "the keyword index of this workspace may hold at most 5 chunks"
        );
    }
}
