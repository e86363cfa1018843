//! What whoever starts the service decides, and how much an engine may do at once: times, places, memory and what a
//! workspace may keep. Every number has its default here.

use std::path::PathBuf;
use std::time::Duration;

use tg_collections::Quota;
use tg_storage::Durability;

tg_settings::options! {
    /// Options of the graphs.
    pub struct Options {
        /// Memory of graphs in this process, in MiB; one workspace may have three quarters of it. A graph that does not fit
        /// is refused when it is loaded. 0: its share.
        memory_mb: u64 = 0, Whole(0..=1 << 30);
        /// Memory of one SPARQL query, in MiB; at most half of that of all.
        query_memory_mb: usize = 256, Whole(8..=1 << 20);
        /// Memory of all SPARQL queries in progress, in MiB; a workspace may have half of it.
        queries_memory_mb: usize = 1_024, Whole(16..=1 << 20);
        /// Quads of one workspace at most.
        workspace_quads: u64 = 50_000_000, Whole(1..=1 << 40);
        /// Quads and texts of one workspace at most, in MiB, estimated at 200 bytes a quad and its text.
        workspace_mb: u64 = 16_384, Whole(1..=1 << 30);
    }
    given {
        /// Directory of the service's file.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
}

impl Options {
    /// The limits of the engine.
    pub(crate) fn limits(&self) -> Limits {
        let memory = match self.memory_mb {
            0 => u64::MAX,
            given => given << 20,
        };
        Limits {
            memory,
            // The rest is for others.
            memory_of_one: memory / 4 * 3,
            query_memory: self.query_memory_mb.min(self.queries_memory_mb / 2) << 20,
            queries_memory: self.queries_memory_mb << 20,
            quota: Quota {
                items: self.workspace_quads,
                bytes: self.workspace_mb << 20,
            },
            ..Limits::default()
        }
    }
}

/// Limits of an engine.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest evaluation of one SPARQL query. Waiting for a slow reader does not count.
    pub query_time: Duration,
    /// SPARQL queries being evaluated at the same time; others wait.
    pub queries: usize,
    /// How many of these places one workspace may take.
    pub queries_of_one: usize,
    /// SPARQL answers that are open at the same time: being evaluated, or waiting for their reader.
    pub answers: usize,
    /// How many of these one workspace may have.
    pub answers_of_one: usize,
    /// How long a reader may take nothing of an answer before the query is ended.
    pub stalled: Duration,
    /// Memory that one SPARQL query may use, in bytes.
    pub query_memory: usize,
    /// Memory that all SPARQL queries may use together, in bytes. One workspace may take half of it.
    pub queries_memory: usize,
    /// Pattern scans and loads at work at the same time; others wait.
    pub scans: usize,
    /// Most results of an answer in one piece. Streams have no such limit.
    pub single_answer: usize,
    /// Most memory of the results of a SPARQL answer in one piece, in bytes.
    pub single_answer_bytes: usize,
    /// What one workspace may keep.
    pub quota: Quota,
    /// Memory that all graphs of this engine may take, in bytes, as estimated by [`crate::engine::quota::Usage::memory`].
    pub memory: u64,
    /// How much of it the graphs of one workspace may take.
    pub memory_of_one: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            query_time: Duration::from_secs(30),
            queries: 8,
            queries_of_one: 4,
            answers: 128,
            answers_of_one: 32,
            stalled: Duration::from_secs(60),
            query_memory: 256 << 20,
            queries_memory: 1 << 30,
            scans: 16,
            single_answer: 200_000,
            single_answer_bytes: 64 << 20,
            quota: Quota::UNLIMITED,
            memory: u64::MAX,
            memory_of_one: u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_workspace_and_one_query_leave_room_to_others() {
        let of = |memory_mb, queries_memory_mb| {
            let options = Options {
                memory_mb,
                queries_memory_mb,
                ..Options::default()
            };
            let limits = options.limits();
            let queries = (limits.query_memory >> 20, limits.queries_memory >> 20);
            (limits.memory >> 20, limits.memory_of_one >> 20, queries)
        };
        assert_eq!(of(8_192, 1_024), (8_192, 6_144, (256, 1_024)));
        assert_eq!(of(512, 128), (512, 384, (64, 128)));
        assert_eq!(of(0, 1_024).0, u64::MAX >> 20);
    }
}
