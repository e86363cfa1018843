//! The HTTP client of all providers: TLS set-up, sending, bounded bodies. No provider's vocabulary and
//! no logging of addresses, headers or bodies.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use reqwest::{Client, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::{self, Failure};
use crate::error::LlmError;

const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(300);
const IDLE_CONNECTIONS: usize = 64;
const ANSWER_LIMIT: usize = 32 << 20;
const FAILURE_LIMIT: usize = 16 << 10;
const FAILURE_WAIT: Duration = Duration::from_secs(5);
const REMEMBERED_MODELS: usize = 64;

/// A client for one provider.
pub(super) struct Http {
    client: Client,
    /// Models that were seen to refuse a temperature.
    fixed_temperature: Mutex<HashSet<String>>,
}

impl Http {
    /// A client for an address. A plain-text address needs no certificates, so none are read for it.
    pub(super) fn new(base_url: &str) -> Result<Self, ()> {
        // Another part of the process may have chosen the provider already; both choose the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .connect_timeout(CONNECT)
                .read_timeout(SILENCE)
                .pool_max_idle_per_host(IDLE_CONNECTIONS)
                .tcp_nodelay(true)
                .redirect(reqwest::redirect::Policy::none())
        };
        let system_store = if base_url.starts_with("https://") {
            builder().build().ok()
        } else {
            None
        };
        let client = match system_store {
            Some(client) => client,
            // No certificates on this machine: the well-known roots that are compiled in.
            None => builder()
                .tls_backend_preconfigured(compiled_roots()?)
                .build()
                .map_err(drop)?,
        };
        Ok(Self {
            client,
            fixed_temperature: Mutex::new(HashSet::new()),
        })
    }

    /// A client to build requests with.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request and reads its whole JSON answer.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, LlmError> {
        let response = send(request).await.map_err(|failure| failure.error)?;
        whole(response).await
    }

    /// Sends a chat request. Newer models accept only their own temperature: when one refuses the
    /// request because of it, it is sent again without, and from then on.
    pub(super) async fn chat(
        &self,
        model: &str,
        temperature: Option<f64>,
        request: impl Fn(Option<f64>) -> (RequestBuilder, Value),
    ) -> Result<Response, LlmError> {
        let known = self.fixed_temperature.lock().contains(model);
        let temperature = temperature.filter(|_| !known);
        let (builder, body) = request(temperature);
        match send(builder.json(&body)).await {
            Err(failure) if failure.about_temperature && temperature.is_some() => {
                self.remember(model);
                let (builder, body) = request(None);
                send(builder.json(&body))
                    .await
                    .map_err(|failure| failure.error)
            }
            other => other.map_err(|failure| failure.error),
        }
    }
}

impl Http {
    fn remember(&self, model: &str) {
        let mut models = self.fixed_temperature.lock();
        if models.len() < REMEMBERED_MODELS {
            models.insert(model.to_owned());
        }
    }
}

fn compiled_roots() -> Result<rustls::ClientConfig, ()> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(drop)?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

async fn send(request: RequestBuilder) -> Result<Response, Failure> {
    let response = request
        .send()
        .await
        .map_err(|error| Failure::of(transport(&error, LlmError::Unavailable)))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status().as_u16();
    let pause = failure::retry_after(response.headers());
    let reading = tokio::time::timeout(FAILURE_WAIT, head(response, FAILURE_LIMIT));
    let body: Vec<u8> = reading.await.unwrap_or_default();
    Err(failure::classify(status, pause, &body))
}

/// The answer as a stream of bytes with a bound on the whole.
pub(super) fn bytes(
    response: Response,
) -> impl Stream<Item = Result<bytes::Bytes, LlmError>> + Send + 'static {
    let mut left = ANSWER_LIMIT;
    response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| transport(&error, LlmError::BrokenOff))?;
        left = left.checked_sub(chunk.len()).ok_or(LlmError::Malformed)?;
        Ok(chunk)
    })
}

/// The whole answer as JSON.
pub(super) async fn whole<T: DeserializeOwned>(response: Response) -> Result<T, LlmError> {
    let mut chunks = std::pin::pin!(bytes(response));
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk?);
    }
    serde_json::from_slice(&body).map_err(|_| LlmError::Malformed)
}

async fn head(response: Response, limit: usize) -> Vec<u8> {
    let mut chunks = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = chunks.next().await {
        let room = limit - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == limit {
            break;
        }
    }
    body
}

fn transport(error: &reqwest::Error, otherwise: LlmError) -> LlmError {
    if error.is_builder() {
        LlmError::BadRequest
    } else if error.is_timeout() && !error.is_connect() {
        LlmError::Timeout
    } else {
        otherwise
    }
}
