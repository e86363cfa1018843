//! A picture comes in: to the model that reads pictures, and back what it says of it.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use tg_clients::model_calls::ModelCalls;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_provider_http::within;
use tg_schemas::Error;
use tg_schemas::msg::{ImageToTextRequest, ImageToTextResponse};
use tokio::time::Instant;

use super::counting::Counting;
use super::picture_room::PictureRoom;
use super::written::Written;
use super::{Rooms, usage};
use crate::error::LlmError;
use crate::model::{ChatEvent, ChatRequest, Completion};
use crate::picture::Picture;
use crate::provider_client::{self, ProviderClient};

/// What is asked of a picture when nothing is.
const USUAL_PROMPT: &str = "Describe this image";

/// Serves `request` of `image-to-text`.
pub(crate) struct ImageToText {
    pub(crate) provider_client: ProviderClient,
    /// Of all flows, and of chats.
    pub(crate) room: Arc<PictureRoom>,
    pub(crate) rooms: Arc<Rooms>,
    pub(crate) calls: ModelCalls,
}

#[async_trait]
impl RequestHandler<ImageToTextRequest, ImageToTextResponse> for ImageToText {
    async fn serve(
        &self,
        cx: Cx,
        question: ImageToTextRequest,
        mut out: Responder<ImageToTextResponse>,
    ) -> Result<(), Error> {
        let _place = self.room.take(&cx, question.image.len()).await?;
        let mut request = request(&cx, question)?;
        self.rooms.check(&cx, &self.provider_client, &mut request)?;
        let asked = request.model.as_deref();
        let began = Instant::now();
        let client = &self.provider_client;
        let mut counting = Counting::begin(&self.calls, &cx, client, &request).await?;
        let described = self.describe(&cx, &request, &mut counting).await;
        match &described {
            Ok((_, completion)) => counting.answered(completion).await,
            Err(error) => counting.failed(error).await,
        }
        metrics::histogram!("tg_image_to_text_duration_seconds")
            .record(began.elapsed().as_secs_f64());
        let (text, done) = match described {
            Ok((text, completion)) => (text, Ok(completion)),
            Err(error) => (String::new(), Err(error)),
        };
        usage::record(&cx, &self.provider_client, asked, began, &done).await;
        let completion = done?;
        out.send(ImageToTextResponse {
            error: None,
            description: text,
            in_token: completion.in_token,
            out_token: completion.out_token,
            model: Some(completion.model),
        })
        .await
    }
}

impl ImageToText {
    async fn describe(
        &self,
        cx: &Cx,
        request: &ChatRequest,
        counting: &mut Counting,
    ) -> Result<(String, Completion), Error> {
        let left = within(cx.deadline.left());
        let model = request.model.as_deref();
        let failed = |error| provider_client::failed(&self.provider_client, cx, model, error);
        let opening = self.provider_client.client.open(request, left, &cx.cancel);
        let mut events = opening.await.map_err(failed)?;
        let mut written = Written::default();
        while let Some(event) = events.next().await {
            let added = match event.map_err(failed)? {
                ChatEvent::Delta(piece) => written.add(&piece),
                ChatEvent::Thinking(piece) => written.think(&piece, false),
                ChatEvent::Done(mut completion) => {
                    completion.characters = written.thought + written.text.chars().count();
                    provider_client::note(true);
                    return Ok((written.take(), completion));
                }
            };
            counting.heard(written.characters);
            added.map_err(failed)?;
        }
        Err(failed(LlmError::BrokenOff))
    }
}

fn request(cx: &Cx, question: ImageToTextRequest) -> Result<ChatRequest, LlmError> {
    let prompt = match question.prompt.trim() {
        "" => USUAL_PROMPT.to_owned(),
        _ => question.prompt,
    };
    Ok(ChatRequest {
        system: question.system,
        prompt,
        model: cx.parameter("model").map(str::to_owned),
        picture: Some(Picture::read(question.image, &question.mime_type)?),
        workspace: cx.workspace().to_owned(),
        place: cx.place(),
        ..ChatRequest::default()
    })
}
