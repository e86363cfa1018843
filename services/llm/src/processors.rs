//! The processors `text-completion` and `text-completion-rag`.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor, TaskKind};
use tg_schemas::processors::{text_completion, text_completion_rag};
use tg_settings::SettingError;

use crate::completer::Completer;
use crate::handlers::TextCompletion;
use crate::options::Options;
use crate::provider_client::{self, ProviderClient};

/// Completions in progress at once per flow: they only wait for a provider.
const CONCURRENCY: usize = 1024;

/// The processors of this service, to be hosted. Looks in the background whether the provider has the model, and logs
/// where it does not.
///
/// # Errors
/// The mistake in the options because of which the provider cannot be asked.
pub fn processors(mesh: &Mesh, options: Options) -> Result<Vec<Processor>, SettingError> {
    let completer = Completer::new(options.model()?).with_backoff(options.backoff);
    let provider_client = ProviderClient {
        client: completer,
        origin: options.origin(),
        tells_address: options.tells_address,
    };
    let first = provider_client.clone();
    let stopping = mesh.stopping().clone();
    // Nothing waits for it: a provider that is away holds up no start.
    mesh.spawn(TaskKind::Background, async move {
        match first.look_at_start(&stopping).await {
            Ok(()) if first.origin.is_none() => provider_client::note(true),
            Ok(()) => {}
            Err(wrong) => tracing::warn!("{wrong}"),
        }
    });
    let handler = Arc::new(TextCompletion { provider_client });
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
