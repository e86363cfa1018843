//! Compaction: a dialog that is longer than its model can read goes on with a summary in place of its older rows.
//!
//! [`window`] is how much a model reads · [`Row`] is what is compacted · [`tokens`] how much that is, about · [`split_point`] which rows stay as they are ·
//! [`pruned`] shortens what tools returned · [`summarise`] has a model sum up the others, chunk by chunk, with what may go
//! wrong on the way · [`identifiers`] are kept to the letter.
//!
//! Keeps nothing, and knows no service: whoever asks gives the model as a [`Summariser`], and stores what comes of it.

mod chunks;
mod identifiers;
mod rows;
mod split;
mod summary;
mod window;

pub use chunks::{budget, chunk_budget, chunks, ratio};
pub use identifiers::{identifiers, keep};
pub use rows::{Call, GATE, Role, Row, is_full, surely_fit, tokens};
pub use split::{KEPT, pruned, split_point};
pub use summary::{Asked, Failure, NOTE, Summariser, Summary, Tier, summarise};
pub use window::{MODEL_TYPE, USUAL, said, window};

/// Compactions of one turn that its model calls too long.
pub const RECOVERIES: u32 = 3;

/// What providers say of a request that is longer than their model can read, in small letters.
const OVERFLOWS: [&str; 15] = [
    "context_length_exceeded",
    "contextwindowexceeded",
    "context length",
    "context size",
    "context the overflows",
    "maximum model length",
    "maximum number of tokens",
    "input is too long",
    "token limit",
    "too many tokens",
    "context window",
    "prompt is too long",
    "request too large",
    "max_new_tokens` must be",
    // Of our own service.
    "longer than the model can read",
];

/// How our own service says that a model reads too few tokens at once to be asked.
const SMALL: &str = "context_window: ";

/// Whether an error says that the model reads too few tokens at once to be asked.
pub fn is_small(error: &str) -> bool {
    error.starts_with(SMALL)
}

/// Whether an error says that the request is longer than the model can read.
pub fn is_overflow(error: &str) -> bool {
    let error = error.to_lowercase();
    OVERFLOWS.iter().any(|words| error.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_providers_say_of_too_much_is_known() {
        let told = "This model's Maximum Context Length is 8192 tokens.";
        assert!(is_overflow(told) && is_overflow("error: context_length_exceeded"));
        for told in [
            "the request exceeds the available context size (4096 tokens), try increasing it",
            "input length exceeds the context length",
            "The input token count (1190000) exceeds the maximum number of tokens allowed (1048576).",
            "Input is too long for requested model.",
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
            "Trying to keep the first 6000 tokens when context the overflows.",
            "litellm.ContextWindowExceededError: too long",
        ] {
            assert!(is_overflow(told), "{told}");
        }
        assert!(!is_overflow("the model does not answer"));
    }
}
