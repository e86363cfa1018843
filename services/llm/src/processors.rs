//! The processors `text-completion`, `text-completion-rag` and `image-to-text`.

use std::sync::Arc;

use tg_clients::model_calls::{self, ModelCalls};
use tg_mesh::{Mesh, Processor, TaskKind};
use tg_schemas::processors::{image_to_text, text_completion, text_completion_rag};
use tg_settings::SettingError;

use crate::handlers::{
    ChatCompletion, ChatPictures, ImageToText, PictureRoom, Rooms, TextCompletion, WATCHED,
};
use crate::options::Options;
use crate::provider_client::{self, ProviderClient};
use crate::routing;

/// Completions in progress at once per flow: they only wait for a provider.
const CONCURRENCY: usize = 1024;

/// Config types by which it is known whether calls are bounded.
const BUDGETS: &[&str] = &[model_calls::WATCHED];

/// Pictures described at once per flow: each may be of several megabytes.
const PICTURES: usize = 16;

/// The processors of this service, to be hosted. Looks in the background whether the provider has the model, and logs
/// where it does not.
///
/// # Errors
/// The mistake in the options because of which the provider cannot be asked.
pub fn processors(mesh: &Mesh, options: Options) -> Result<Vec<Processor>, SettingError> {
    let completer = options.completer()?;
    // The builtin reader is in this process: it fails nobody else.
    if options.origin().is_some() {
        routing::share(mesh, completer.router());
    }
    let provider_client = ProviderClient {
        client: completer,
        origin: options.origin(),
        tells_address: options.tells_address,
    };
    let rooms = Arc::new(Rooms::of(options.context_window));
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
    let room = Arc::new(PictureRoom::default());
    let calls = ModelCalls::start(mesh);
    let pictures = Arc::new(ImageToText {
        provider_client: provider_client.clone(),
        room: room.clone(),
        rooms: rooms.clone(),
        calls: calls.clone(),
    });
    let chats = Arc::new(ChatCompletion {
        provider_client: provider_client.clone(),
        pictures: ChatPictures::new(room),
        rooms: rooms.clone(),
        calls: calls.clone(),
    });
    let handler = Arc::new(TextCompletion {
        provider_client,
        rooms,
        calls,
    });
    let both = [
        (text_completion::PROCESSOR, text_completion::REQUEST),
        (text_completion_rag::PROCESSOR, text_completion_rag::REQUEST),
    ];
    let [texts, retrieval] = both.map(|(processor, request)| {
        Processor::new(processor)
            .serves(request, handler.clone())
            .watches(WATCHED)
            .watches(BUDGETS)
            .concurrency(CONCURRENCY)
    });
    let texts = texts.serves(text_completion::CHAT, chats);
    let pictures = Processor::new(image_to_text::PROCESSOR)
        .serves(image_to_text::REQUEST, pictures)
        .watches(WATCHED)
        .watches(BUDGETS)
        .concurrency(PICTURES);
    Ok(vec![texts, retrieval, pictures])
}
