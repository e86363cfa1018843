//! How much one workspace may keep in the library.

use tg_schemas::{Error, ErrorCode, limits};

/// Most that a workspace may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Documents, with the pages, sections and chunks cut from them.
    pub documents: u64,
    /// Bytes of content.
    pub bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            documents: 10_000_000,
            bytes: 256 << 30,
        }
    }
}

/// What a workspace keeps, or is to keep besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
}

impl Quota {
    /// Whether there is room for more.
    ///
    /// # Errors
    ///
    /// `too-large`, naming the quota.
    pub(crate) fn check(&self, used: Usage, more: Usage) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::new(ErrorCode::TooLarge, text));
        let documents = used.documents.saturating_add(more.documents);
        if more.documents > 0 && documents > self.documents {
            return refuse(format!(
                "the library of this workspace holds {} documents, with their parts; its quota of documents is {}",
                used.documents, self.documents
            ));
        }
        let bytes = used.bytes.saturating_add(more.bytes);
        if more.bytes > 0 && bytes > self.bytes {
            let human = |bytes: u64| limits::human(usize::try_from(bytes).unwrap_or(usize::MAX));
            return refuse(format!(
                "the library of this workspace holds {} and has no room for {} more; its quota of bytes is {}",
                human(used.bytes),
                human(more.bytes),
                human(self.bytes)
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_named_when_it_is_used_up() {
        let quota = Quota {
            documents: 3,
            bytes: 1000,
        };
        let used = Usage {
            documents: 2,
            bytes: 900,
        };
        let more = |documents, bytes| quota.check(used, Usage { documents, bytes });
        assert!(more(1, 100).is_ok() && more(0, 0).is_ok());
        let documents = more(2, 1).unwrap_err();
        assert_eq!(documents.code(), ErrorCode::TooLarge);
        assert!(documents.message.ends_with("quota of documents is 3"));
        let bytes = more(1, 101).unwrap_err().message;
        assert!(bytes.ends_with("quota of bytes is 1000 bytes"), "{bytes}");
        // What is over already may shrink.
        let full = Usage {
            documents: 9,
            bytes: 9000,
        };
        assert!(quota.check(full, Usage::default()).is_ok());
    }
}
