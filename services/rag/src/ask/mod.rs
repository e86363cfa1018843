//! Questions to other services, one file per service asked. They choose nothing: what to ask for and what
//! to do with the answer is the engine's.

mod concepts;
mod graph;
mod library;
mod model;
mod patterns;
mod rerank;
mod schemas;
mod search;

pub use concepts::concepts;
pub use graph::Graph;
pub use library::Library;
pub use model::{Prompts, Spent, object};
pub use rerank::{Judge, rerank};
pub use schemas::schemas_of;
pub use search::{by_meaning, by_words, entities};

use futures::{StreamExt, TryStreamExt, stream};

/// Runs questions, a few at a time; answers are in the order of the questions.
async fn few<F: Future>(asks: Vec<F>, at_once: usize) -> Vec<F::Output> {
    stream::iter(asks).buffered(at_once).collect().await
}

/// As [`few`], to the first failure.
async fn few_or_fault<T, E, F: Future<Output = Result<T, E>>>(
    asks: Vec<F>,
    at_once: usize,
) -> Result<Vec<T>, E> {
    stream::iter(asks).buffered(at_once).try_collect().await
}
