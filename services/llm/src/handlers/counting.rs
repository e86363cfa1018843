//! What a question to a model counts for, in the budgets of its key and workspace: reserved before the model is asked, and counted
//! by what it took. What a run of the agent asks is counted by the run.

use tg_clients::model_calls::{ModelCall, ModelCalls, Took};
use tg_mesh::Cx;
use tg_schemas::{Error, ErrorCode};

use crate::engine::tokens::estimated;
use crate::model::{ChatRequest, Completion};
use crate::provider_client::ProviderClient;

/// Tokens that a reply is guessed to have, the most that are reserved for one whose bound is stated, and those of a picture.
const REPLY: i64 = 256;
const MOST_REPLY: i64 = 1_000_000;
const PICTURE: i64 = 1_000;

/// A question under way.
pub(super) struct Counting {
    /// `None`: nobody counts it here.
    call: Option<ModelCall>,
    /// Tokens that the model is likely to read.
    read: i64,
    /// Tokens that it is likely to write at least, however many it may.
    least: i64,
    /// The model has said something.
    heard: bool,
}

impl Counting {
    /// A model is about to be asked.
    ///
    /// # Errors
    /// A budget refuses the call, or one is set and nobody can say whether the call fits.
    pub(super) async fn begin(
        calls: &ModelCalls,
        cx: &Cx,
        client: &ProviderClient,
        request: &ChatRequest,
    ) -> Result<Self, Error> {
        let model = request.model.as_deref();
        let pictures = PICTURE.saturating_mul(pictures(request));
        let read = estimated(request.characters()).saturating_add(pictures);
        let out_token = request
            .max_tokens
            .map_or(REPLY, |most| most.clamp(1, MOST_REPLY));
        let likely = Took {
            model: model
                .unwrap_or(client.client.model().default_model())
                .to_owned(),
            in_token: read,
            out_token,
            ..Took::default()
        };
        let least = out_token.min(REPLY);
        let mut call = calls.begin(cx, likely).await?;
        // All of it is reserved; a call that comes to nothing counts the least.
        if let Some(call) = &mut call {
            call.wrote(least);
        }
        Ok(Self {
            call,
            read,
            least,
            heard: false,
        })
    }

    /// The model has said something, by now so many characters. A call that is left from here on counts for these.
    pub(super) fn heard(&mut self, characters: usize) {
        self.heard = true;
        if let Some(call) = &mut self.call {
            call.wrote(estimated(characters).max(self.least));
        }
    }

    /// Something failed before the model was asked: the call took nothing.
    pub(super) async fn unasked(&mut self) {
        if let Some(call) = &mut self.call {
            call.settle(Took::default()).await;
        }
    }

    /// The model has answered.
    pub(super) async fn answered(&mut self, completion: &Completion) {
        let Some(call) = &mut self.call else { return };
        let tokens = completion.counts.tokens();
        let took = Took {
            model: completion.model.clone(),
            in_token: completion.read(self.read),
            out_token: completion.written(),
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            nanodollars: completion.nanodollars,
        };
        call.settle(took).await;
    }

    /// There is no answer, or only a part of one. What nobody says of it counts as it was likely.
    pub(super) async fn failed(&mut self, error: &Error) {
        let Some(call) = &mut self.call else { return };
        match self.heard || matches!(error.code(), ErrorCode::Cancelled | ErrorCode::Timeout) {
            true => call.settle_as_likely().await,
            false => call.settle(Took::default()).await,
        }
    }
}

/// How many pictures a question has, those included that are yet to be fetched.
fn pictures(request: &ChatRequest) -> i64 {
    let of_chat = request.dialog.iter().flat_map(|dialog| &dialog.turns);
    let of_chat: usize = of_chat.map(|turn| turn.images.len()).sum();
    let all = usize::from(request.picture.is_some()) + of_chat;
    i64::try_from(all).unwrap_or(i64::MAX)
}
