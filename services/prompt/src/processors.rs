//! The processors `prompt` and `prompt-rag`.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor};
use tg_schemas::determinants::PROMPTS;
use tg_schemas::processors::{prompt, prompt_rag};

use crate::handlers::{Measure, PromptHandler};
use crate::options::Options;

/// Prompts in progress at once per flow: they only wait for a model.
const CONCURRENCY: usize = 1024;

/// The processors of this service, to be hosted.
pub fn processors(_: &Mesh, options: Options) -> Vec<Processor> {
    let measure = Arc::new(Measure::new(&options));
    let handler = Arc::new(PromptHandler::new(options));
    let of = |processor, request| {
        Processor::new(processor)
            .watches(&[PROMPTS])
            .serves(request, handler.clone())
            .concurrency(CONCURRENCY)
    };
    vec![
        of(prompt::PROCESSOR, prompt::REQUEST).serves(prompt::MEASURE, measure),
        of(prompt_rag::PROCESSOR, prompt_rag::REQUEST),
    ]
}
