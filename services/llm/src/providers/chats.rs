//! Sending chat requests: the client of all providers, and which models refuse a temperature.

use std::collections::HashSet;

use parking_lot::Mutex;
use reqwest::RequestBuilder;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tg_provider_http::{Answer, HttpClient, Limits, NoClient};

use super::failure::Failure;
use crate::error::LlmError;
use crate::model::ChatRequest;

const REMEMBERED_MODELS: usize = 64;

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
    /// Models that were seen to refuse a temperature.
    fixed_temperature: Mutex<HashSet<String>>,
}

impl Chats {
    pub(super) fn new(base_url: &str) -> Result<Self, NoClient> {
        Ok(Self {
            client: HttpClient::new(base_url, Limits::default())?,
            fixed_temperature: Mutex::default(),
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

    /// Sends a chat request. Newer models accept only their own temperature: when one refuses the
    /// request because of it, it is sent again without, and from then on.
    pub(super) async fn chat(
        &self,
        model: &str,
        asked: &ChatRequest,
        request: impl Fn(Option<f64>) -> (RequestBuilder, Value),
    ) -> Result<Answer, LlmError> {
        let told = asked.place.for_providers();
        let request = |temperature| {
            let (builder, body) = request(temperature);
            match &told {
                Some(context) => (builder.header(TRACE, context), body),
                None => (builder, body),
            }
        };
        let known = self.fixed_temperature.lock().contains(model);
        let temperature = asked.temperature.filter(|_| !known);
        let (builder, body) = request(temperature);
        let failure = match self.client.send(builder.json(&body)).await {
            Ok(answer) => return Ok(answer),
            Err(error) => Failure::from(error),
        };
        if !failure.about_temperature || temperature.is_none() {
            return Err(failure.error);
        }
        self.remember(model);
        let (builder, body) = request(None);
        Ok(self.client.send(builder.json(&body)).await?)
    }

    fn remember(&self, model: &str) {
        let mut models = self.fixed_temperature.lock();
        if models.len() < REMEMBERED_MODELS {
            models.insert(model.to_owned());
        }
    }
}
