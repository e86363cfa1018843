//! Bounds of the service, and what whoever starts it decides.

use std::path::PathBuf;

use tg_storage::Durability;

/// Records of a writer in progress: they share commits.
pub(crate) const WRITES: usize = 128;
/// Chunks being indexed: many share a segment of the full-text index.
pub(crate) const INDEXED: usize = 512;
/// Questions in progress; the searches themselves queue for the processors of the machine.
pub(crate) const QUESTIONS: usize = 256;

/// Bounds of the vectors in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of vectors in memory; above it the least recently used collection is thrown out.
    pub memory: usize,
    /// Threads that search at the same time.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            memory: 4 << 30,
            threads,
        }
    }
}

tg_settings::options! {
    /// Options of the vectors and the keyword index.
    pub struct Options {
        /// Memory of vectors in this process, in MiB.
        memory_mb: usize = 4096, Whole(16..=1 << 20);
    }
    given {
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// How hard a commit is.
        durability: Durability,
    }
}

impl Options {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            memory: self.memory_mb << 20,
            ..Limits::default()
        }
    }
}
