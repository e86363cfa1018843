//! What whoever starts the service decides: how the extractors work.

use std::path::PathBuf;

use tg_storage::Durability;

tg_settings::options! {
    /// Options of the extractors.
    pub struct Options {
        /// Chunks in progress per flow and extractor, and so the most model calls at once for each. What is more waits
        /// on the queue.
        parallel: usize = 16, Whole(1..=1_024);
        /// Elements of an ontology that one sentence can bring in by its meaning.
        top_k: usize = 10, Whole(1..=1_000);
        /// Minimum cosine similarity of a sentence and an element that it brings in.
        threshold: f32 = 0.3, Number(0.0..=1.0);
        /// Ontologies with fewer elements together are always used whole.
        bypass_below: usize = 5, Whole(0..=1_000_000);
        /// Replies of models that are kept of one workspace at most, in MiB, so that the same is not paid for again; the
        /// oldest of that workspace go first.
        workspace_mb: u64 = 4_096, Whole(16..=1 << 30);
        /// Statements that fit no ontology and are kept of one workspace at most; the oldest of that workspace go first.
        violations: u32 = 10_000, Whole(1..=1_000_000);
        /// The same in MiB.
        violations_mb: u64 = 16, Whole(1..=4_096);
    }
    given {
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
}
