//! Settings of the extractors.

/// How the extractors work.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtractSettings {
    /// Chunks in progress per flow and extractor, and so the most model calls at once for each. What is more
    /// waits on the queue.
    pub parallel: usize,
    /// Elements of an ontology that one sentence can bring in by its meaning.
    pub top_k: usize,
    /// Least likeness (cosine) of a sentence and an element that it brings in.
    pub threshold: f32,
    /// Ontologies with fewer elements together are always used whole.
    pub bypass_below: usize,
}

impl Default for ExtractSettings {
    fn default() -> Self {
        Self {
            parallel: 16,
            top_k: 10,
            threshold: 0.3,
            bypass_below: 5,
        }
    }
}
