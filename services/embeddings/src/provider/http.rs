//! The HTTP client of the endpoint providers: TLS set-up, one JSON question and answer, bounded. Logs no
//! address, header or body.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, RequestBuilder, Response};
use serde::de::DeserializeOwned;

use crate::error::EmbedError;

const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(300);
const ANSWER_LIMIT: usize = 128 << 20;

/// A client for one provider.
pub(super) struct Http(Client);

impl Http {
    /// A client for an address. A plain-text address needs no certificates, so none are read for it.
    pub(super) fn new(base_url: &str) -> Result<Self, ()> {
        // Another part of the process may have chosen the provider already; both choose the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .connect_timeout(CONNECT)
                .read_timeout(SILENCE)
                .tcp_nodelay(true)
                .redirect(reqwest::redirect::Policy::none())
        };
        let system_store = if base_url.starts_with("https://") {
            builder().build().ok()
        } else {
            None
        };
        match system_store {
            Some(client) => Ok(Self(client)),
            // No certificates on this machine: the well-known roots that are compiled in.
            None => {
                let built = builder()
                    .tls_backend_preconfigured(compiled_roots()?)
                    .build();
                built.map(Self).map_err(drop)
            }
        }
    }

    /// A question to an address.
    pub(super) fn post(&self, url: &str) -> RequestBuilder {
        self.0.post(url)
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

/// Sends a request and reads its whole JSON answer.
pub(super) async fn json<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, EmbedError> {
    let response = request.send().await.map_err(|error| transport(&error))?;
    if !response.status().is_success() {
        return Err(refusal(&response));
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| transport(&error))?;
        if body.len() + chunk.len() > ANSWER_LIMIT {
            return Err(EmbedError::Malformed);
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).map_err(|_| EmbedError::Malformed)
}

fn refusal(response: &Response) -> EmbedError {
    let asked = response.headers().get(RETRY_AFTER);
    let seconds = asked.and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
    let retry_after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match response.status().as_u16() {
        401..=403 => EmbedError::Auth,
        404 => EmbedError::UnknownModel,
        413 => EmbedError::TooLarge("texts: are longer than the embeddings provider reads".into()),
        429 => EmbedError::RateLimited { retry_after },
        503 | 529 if retry_after.is_some() => EmbedError::RateLimited { retry_after },
        408 | 409 | 500..=599 => EmbedError::Unavailable,
        _ => EmbedError::Refused,
    }
}

fn transport(error: &reqwest::Error) -> EmbedError {
    if error.is_builder() {
        EmbedError::Refused
    } else if error.is_timeout() && !error.is_connect() {
        EmbedError::Timeout
    } else {
        EmbedError::Unavailable
    }
}
