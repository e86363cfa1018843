//! The service of a flow that says what pictures show.

use tg_mesh::Cx;
use tg_schemas::Error;
use tg_schemas::msg::{ImageToTextRequest, ImageToTextResponse};
use tg_schemas::processors::shared;

use crate::caller::Caller;
use crate::prompt::Spent;

/// Whoever describes pictures in the flow.
#[derive(Clone)]
pub struct Pictures {
    caller: Caller<ImageToTextRequest, ImageToTextResponse>,
}

/// What a picture shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// In words.
    pub text: String,
    /// What it took.
    pub spent: Spent,
}

impl Pictures {
    /// The service that the flow names; `None`: it names none.
    pub fn of_flow(cx: &Cx) -> Option<Self> {
        let has = cx.has(shared::IMAGE_TO_TEXT);
        has.then(|| Self {
            caller: Caller::of_flow(cx, shared::IMAGE_TO_TEXT),
        })
    }

    /// Questions are known by this id: one that is asked again is the same question.
    pub fn known_as(mut self, id: String) -> Self {
        self.caller = self.caller.known_as(id);
        self
    }

    /// Asks about a picture in base64; without a media type its first bytes say what it is.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn describe(
        &self,
        (base64, media_type): (String, &str),
        question: &str,
    ) -> Result<Shown, Error> {
        let request = ImageToTextRequest {
            image: base64,
            mime_type: media_type.to_owned(),
            prompt: question.to_owned(),
            ..ImageToTextRequest::default()
        };
        let answer = self.caller.last(&request).await?;
        Ok(Shown {
            text: answer.description,
            spent: Spent {
                in_token: answer.in_token,
                out_token: answer.out_token,
                model: answer.model,
                ..Spent::default()
            },
        })
    }
}
