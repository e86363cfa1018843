//! What whoever starts the service decides.

use std::path::PathBuf;

use tg_storage::Durability;

use crate::engine::quota::Quota;

tg_settings::options! {
    /// Options of the librarian.
    pub struct Options {
        /// Documents of one workspace at most, parts of documents included.
        documents: u64 = 10_000_000, Whole(1..=1 << 40);
        /// Content of the documents of one workspace at most, in MiB.
        content_mb: u64 = 262_144, Whole(1..=1 << 30);
    }
    given {
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
}

impl Options {
    /// What each workspace may keep.
    pub(crate) fn quota(&self) -> Quota {
        Quota {
            documents: self.documents,
            bytes: self.content_mb << 20,
        }
    }
}
