//! The processors `text-completion` and `text-completion-rag`.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor};
use tg_schemas::processors::{text_completion, text_completion_rag};
use tg_settings::Fault;

use crate::completer::Completer;
use crate::handlers::TextCompletion;
use crate::options::Options;

/// Completions in progress at once per flow: they only wait for a provider.
const CONCURRENCY: usize = 1024;

/// The processors of this service, to be hosted.
///
/// # Errors
/// The mistake in the options because of which the provider cannot be asked.
pub fn processors(_: &Mesh, options: Options) -> Result<Vec<Processor>, Fault> {
    let completer = Completer::new(options.model()?).with_backoff(options.backoff);
    let handler = Arc::new(TextCompletion { completer });
    let both = [
        (text_completion::PROCESSOR, text_completion::REQUEST),
        (text_completion_rag::PROCESSOR, text_completion_rag::REQUEST),
    ];
    let both = both.map(|(processor, request)| {
        Processor::new(processor)
            .serves(request, handler.clone())
            .concurrency(CONCURRENCY)
    });
    Ok(both.into())
}
