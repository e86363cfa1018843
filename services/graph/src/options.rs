//! How much an engine may do at once: times, places, memory and what a workspace may keep. Every number has its
//! default here.

use std::time::Duration;

use crate::engine::quota::Quota;

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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            query_time: Duration::from_secs(30),
            queries: 8,
            queries_of_one: 4,
            answers: 64,
            answers_of_one: 8,
            stalled: Duration::from_secs(60),
            query_memory: 256 << 20,
            queries_memory: 1 << 30,
            scans: 16,
            single_answer: 200_000,
            single_answer_bytes: 64 << 20,
            quota: Quota::default(),
            memory: u64::MAX,
        }
    }
}
