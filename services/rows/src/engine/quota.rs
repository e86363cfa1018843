//! What a workspace may keep, and what it keeps. Pure.

use tg_schemas::{Error, ErrorCode};

/// What one workspace may keep in all its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Rows.
    pub rows: u64,
    /// Bytes of the rows' fields as text.
    pub bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Quota {
    /// Where nobody sets another: 20 million rows, 64 GiB of text.
    pub const USUAL: Self = Self {
        rows: 20_000_000,
        bytes: 64 << 30,
    };
}

impl Quota {
    /// Whether a workspace may keep so many rows.
    ///
    /// # Errors
    /// `too-large`, naming the quota.
    pub fn check_rows(&self, rows: u64) -> Result<(), Error> {
        match rows > self.rows {
            true => Err(refused(&format!("{} rows", self.rows))),
            false => Ok(()),
        }
    }

    /// Whether its rows may have so many bytes.
    ///
    /// # Errors
    /// `too-large`, naming the quota.
    pub fn check_bytes(&self, bytes: u64) -> Result<(), Error> {
        match bytes > self.bytes {
            true => Err(refused(&format!("{} MiB of text", self.bytes >> 20))),
            false => Ok(()),
        }
    }
}

fn refused(most: &str) -> Error {
    let text = format!("the tables of this workspace may hold at most {most}");
    Error::new(ErrorCode::TooLarge, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_of_rows_and_of_bytes() {
        let quota = Quota {
            rows: 10,
            bytes: 5 << 20,
        };
        assert!(quota.check_rows(10).is_ok() && quota.check_bytes(5 << 20).is_ok());
        let told = [
            quota.check_rows(11).unwrap_err(),
            quota.check_bytes((5 << 20) + 1).unwrap_err(),
        ];
        assert!(told.iter().all(|error| error.code() == ErrorCode::TooLarge));
        assert!(told[0].message.ends_with("at most 10 rows"));
        assert!(told[1].message.ends_with("at most 5 MiB of text"));
    }
}
