//! The processors `prompt` and `prompt-rag`.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor};

use crate::handlers::PromptHandler;
use crate::options::Options;
use crate::ready::CONFIG;

/// Prompts in progress at once per flow: they only wait for a model.
const CONCURRENCY: usize = 1024;

/// The processors of this service, to be hosted.
pub fn processors(_: &Mesh, options: Options) -> Vec<Processor> {
    let handler = Arc::new(PromptHandler::new(options));
    let both = ["prompt", "prompt-rag"].map(|id| {
        Processor::new(id)
            .watches(&[CONFIG])
            .serves("request", handler.clone())
            .concurrency(CONCURRENCY)
    });
    both.into()
}
