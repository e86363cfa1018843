//! Sending chat requests: the client of all providers, and which members of a request its models refuse.

use reqwest::RequestBuilder;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tg_provider_http::{Answer, HttpClient, Limits, NoClient, Reach};

use super::failure::Failure;
use super::fields::{Field, Refused};
use crate::error::LlmError;
use crate::model::ChatRequest;

/// How often a request is sent at most, each time without another member.
const TRIES: usize = 6;

/// The header of the span that a request is sent in, where providers are told of it.
const TRACE: &str = "traceparent";

/// Instructions and the user's message as the messages of a chat.
pub(super) fn messages(request: &ChatRequest, user: Value) -> Vec<Value> {
    let system = Some(&request.system).filter(|system| !system.is_empty());
    let system = system.map(|system| json!({"role": "system", "content": system}));
    system.into_iter().chain([user]).collect()
}

/// A client for one provider.
pub(super) struct Chats {
    client: HttpClient,
    refused: Refused,
}

impl Chats {
    pub(super) fn new(base_url: &str) -> Result<Self, NoClient> {
        Self::within(base_url, Reach::Anywhere)
    }

    /// One that goes nowhere else.
    pub(super) fn within(base_url: &str, reach: Reach) -> Result<Self, NoClient> {
        let limits = Limits {
            reach,
            ..Limits::default()
        };
        Ok(Self {
            client: HttpClient::new(base_url, limits)?,
            refused: Refused::default(),
        })
    }

    pub(super) fn get(&self, url: &str) -> RequestBuilder {
        self.client.get(url)
    }

    pub(super) fn post(&self, url: &str) -> RequestBuilder {
        self.client.post(url)
    }

    /// Sends a request and reads its whole JSON answer.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, LlmError> {
        Ok(self.client.json(request).await?)
    }

    /// Sends a chat request. Servers of one dialect know more or fewer of its members, and models fewer values: where one refuses
    /// the request because of such a member, it is sent again without, and from then on.
    pub(super) async fn chat(
        &self,
        model: &str,
        asked: &ChatRequest,
        request: impl Fn() -> (RequestBuilder, Value),
    ) -> Result<Answer, LlmError> {
        let told = asked.place.for_providers();
        let mut left = self.refused.by(model);
        let mut learnt = Vec::new();
        let mut tries = 0;
        loop {
            let (mut builder, mut body) = request();
            if let Some(context) = &told {
                builder = builder.header(TRACE, context);
            }
            // In their order: what one of them adds another may have to change.
            let fields = Field::ALL.iter().filter(|field| left.contains(field));
            fields.for_each(|field| field.leave(&mut body));
            let failure = match self.client.send(builder.json(&body)).await {
                Ok(answer) => {
                    self.refused.learn(model, &learnt);
                    return Ok(answer);
                }
                Err(error) => Failure::from(error),
            };
            tries += 1;
            match failure.about(&body) {
                Some(field) if tries < TRIES && !left.contains(&field) => {
                    left.push(field);
                    if failure.is_lasting() {
                        learnt.push(field);
                    }
                }
                _ => return Err(failure.error),
            }
        }
    }
}
