//! Bounds of the service, and what whoever starts it decides.

use std::path::PathBuf;

use tg_storage::Durability;

use crate::engine::quota::Quota;

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
    /// Bytes of vectors in memory; above it the least recently used collection is thrown out.
    pub memory: usize,
    /// Threads that search at the same time.
    pub threads: usize,
    /// What a workspace may keep.
    pub quota: Quota,
}

impl Default for Limits {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            memory: MEMORY,
            threads,
            quota: Quota::default(),
        }
    }
}

tg_settings::options! {
    /// Options of the vectors and the keyword index.
    pub struct Options {
        /// Memory of vectors in this process, in MiB; collections that were searched least recently make room. 0: an
        /// eighth of what the process may take, as for graphs, and at most 4096.
        memory_mb: usize = 0, Whole(0..=1 << 20);
        /// Vectors of one workspace at most.
        workspace_points: u64 = Quota::USUAL.points, Whole(1..=1 << 40);
        /// Chunks of one workspace's keyword index at most.
        workspace_keywords: u64 = Quota::USUAL.keywords, Whole(1..=1 << 40);
    }
    given {
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// How hard a commit is.
        durability: Durability,
        /// Memory that the process may take in bytes, if it is known.
        process_memory: Option<u64>,
    }
}

impl Options {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            memory: match self.memory_mb {
                0 => share(self.process_memory),
                given => given << 20,
            },
            quota: Quota {
                points: self.workspace_points,
                keywords: self.workspace_keywords,
            },
            ..Limits::default()
        }
    }
}

/// What vectors take of the process's memory where nobody says it.
fn share(process: Option<u64>) -> usize {
    let share = process.and_then(|all| usize::try_from(all / 8).ok());
    share.map_or(MEMORY, |share| share.min(MEMORY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_process_keeps_fewer_vectors_in_memory() {
        assert_eq!((share(None), share(Some(1 << 40))), (MEMORY, MEMORY));
        assert_eq!(share(Some(1 << 30)), 128 << 20);
        let given = Options {
            memory_mb: 64,
            process_memory: Some(1 << 30),
            ..Options::default()
        };
        assert_eq!(given.limits().memory, 64 << 20);
    }
}
