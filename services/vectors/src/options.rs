//! Bounds of the service, and what whoever starts it decides.

use std::path::PathBuf;

use tg_collections::Quota;
use tg_storage::Durability;

/// Records of a writer in progress: they share commits.
pub(crate) const WRITES: usize = 128;
/// Chunks being indexed: many share a segment of the full-text index.
pub(crate) const INDEXED: usize = 512;
/// Questions in progress; the searches themselves queue for the processors of the machine.
pub(crate) const QUESTIONS: usize = 256;

/// Memory of vectors where there is plenty.
const MEMORY: usize = 4 << 30;

/// Bounds of what is kept, and of the vectors in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of vectors in memory; above it the least recently used collection is thrown out of a workspace that has more than
    /// its part. One that would be larger alone is refused.
    pub memory: usize,
    /// Threads that search at the same time.
    pub threads: usize,
    /// Vectors that a workspace may keep.
    pub quota: Quota,
}

impl Default for Limits {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            memory: MEMORY,
            threads,
            quota: Quota::UNLIMITED,
        }
    }
}

tg_settings::options! {
    /// Options of the vectors and the keyword index.
    pub struct Options {
        /// Memory of vectors in this process, in MiB; collections that were searched least recently make room, those of a
        /// workspace with more than an equal part first. A collection takes no vectors beyond it. 0: its share.
        memory_mb: usize = 0, Whole(0..=1 << 20);
        /// Vectors of one workspace at most.
        workspace_points: u64 = 20_000_000, Whole(1..=1 << 40);
        /// Vectors of one workspace at most, in MiB, with what they stand for; those of 20 million of 384 numbers have 30 GB.
        workspace_mb: u64 = 65_536, Whole(1..=1 << 30);
        /// Chunks of one workspace's keyword index at most.
        workspace_keywords: u64 = 20_000_000, Whole(1..=1 << 40);
        /// Chunks of one workspace's keyword index at most, in MiB of their text.
        workspace_keywords_mb: u64 = 65_536, Whole(1..=1 << 30);
    }
    given {
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
}

impl Options {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            memory: match self.memory_mb {
                0 => MEMORY,
                given => given << 20,
            },
            quota: Quota {
                items: self.workspace_points,
                bytes: self.workspace_mb << 20,
            },
            ..Limits::default()
        }
    }

    /// What a workspace may keep in the keyword index.
    pub(crate) fn keywords(&self) -> Quota {
        Quota {
            items: self.workspace_keywords,
            bytes: self.workspace_keywords_mb << 20,
        }
    }
}
