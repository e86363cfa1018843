//! Bounds of the service.

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
