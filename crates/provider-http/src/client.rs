//! Making clients and sending requests.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response};
use serde::de::DeserializeOwned;

use crate::answer::Answer;
use crate::egress::{Reach, Within};
use crate::error::{HttpError, NoClient, Refusal};
use crate::outage::Cause;
use crate::retry_after::retry_after;
use crate::settings::is_loopback;

/// Most bytes that are read of a refusal.
const REFUSAL: usize = 16 << 10;
/// Longest wait for them.
const REFUSAL_WAIT: Duration = Duration::from_secs(5);

/// Bounds of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest wait for a connection.
    pub connect: Duration,
    /// Longest silence of the server, before and within an answer; `None` where whoever asks bounds the whole.
    pub silence: Option<Duration>,
    /// Idle connections that are kept to one server.
    pub idle: usize,
    /// Redirects that are followed. Servers of others get none: they could lead a key elsewhere.
    pub redirects: usize,
    /// Longest answer in bytes.
    pub answer: usize,
    /// Which addresses it goes to. Who sends to an address without a name looks at it first ([`Reach::check`]).
    pub reach: Reach,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Some(Duration::from_secs(300)),
            idle: 64,
            redirects: 0,
            answer: tg_schemas::limits::PROVIDER_ANSWER,
            reach: Reach::Anywhere,
        }
    }
}

/// A bare client for the server at an address. Opens no connection.
///
/// An address in plain text needs no certificates, so none are read for it; a machine that has none is given
/// the well-known roots that are compiled in.
///
/// # Errors
/// [`NoClient`] if TLS cannot be set up at all.
pub fn client(url: &str, limits: Limits) -> Result<Client, NoClient> {
    // Another part of the process may have chosen the provider already; both choose the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    let encrypted = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    let of_the_machine = match encrypted {
        true => builder(url, limits).build().ok(),
        false => None,
    };
    match of_the_machine {
        Some(client) => Ok(client),
        None => with_tls(builder(url, limits), compiled_roots()?),
    }
}

/// A bare client that trusts whom the caller names.
///
/// # Errors
/// [`NoClient`] if TLS cannot be set up so.
pub fn client_with(tls: rustls::ClientConfig, limits: Limits) -> Result<Client, NoClient> {
    with_tls(bounded("", limits), tls)
}

fn with_tls(builder: ClientBuilder, tls: rustls::ClientConfig) -> Result<Client, NoClient> {
    builder
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|_| NoClient)
}

/// A proxy that the environment names is for what is elsewhere: another machine's loopback is not the one that is meant,
/// and whoever runs the proxy would answer for it.
fn builder(url: &str, limits: Limits) -> ClientBuilder {
    match is_loopback(url) {
        true => bounded(url, limits).no_proxy(),
        false => bounded(url, limits),
    }
}

fn bounded(url: &str, limits: Limits) -> ClientBuilder {
    let within = Arc::new(Within::of(limits.reach, url));
    let builder = Client::builder()
        .connect_timeout(limits.connect)
        .pool_max_idle_per_host(limits.idle)
        .tcp_nodelay(true)
        .redirect(match (limits.redirects, limits.reach) {
            (0, _) => Policy::none(),
            (most, Reach::Anywhere) => Policy::limited(most),
            (most, _) => within.clone().redirects(most),
        });
    let builder = match limits.reach {
        Reach::Anywhere => builder,
        // A proxy that the environment names resolves names itself: whoever runs the system has chosen it.
        Reach::BeyondLink | Reach::Outward => builder.dns_resolver(within),
        Reach::Public => builder.no_proxy().dns_resolver(within),
    };
    match limits.silence {
        Some(silence) => builder.read_timeout(silence),
        None => builder,
    }
}

fn compiled_roots() -> Result<rustls::ClientConfig, NoClient> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| NoClient)?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// A client that reads bounded answers.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client,
    answer: usize,
}

impl HttpClient {
    /// A client for the server at an address. Opens no connection.
    ///
    /// # Errors
    /// As [`client`].
    pub fn new(url: &str, limits: Limits) -> Result<Self, NoClient> {
        Ok(Self {
            client: client(url, limits)?,
            answer: limits.answer,
        })
    }

    /// A `GET` of an address.
    pub fn get(&self, url: &str) -> RequestBuilder {
        self.client.get(url)
    }

    /// A `POST` to an address.
    pub fn post(&self, url: &str) -> RequestBuilder {
        self.client.post(url)
    }

    /// Sends a request; the answer is still to be read.
    ///
    /// # Errors
    /// [`HttpError`]; a status other than success is [`HttpError::Refused`].
    pub async fn send(&self, request: RequestBuilder) -> Result<Answer, HttpError> {
        let response = request.send().await;
        let response = response
            .map_err(|error| HttpError::of(&error, HttpError::Unreachable(Cause::of(&error))))?;
        if response.status().is_success() {
            return Ok(Answer::new(response, self.answer));
        }
        Err(HttpError::Refused(Refusal {
            status: response.status().as_u16(),
            retry_after: retry_after(response.headers()),
            body: head(response).await,
        }))
    }

    /// Sends a request and reads its whole JSON answer.
    ///
    /// # Errors
    /// As [`HttpClient::send`] and [`Answer::json`].
    pub async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, HttpError> {
        self.send(request).await?.json().await
    }
}

/// The beginning of a refusal's body, as far as it comes soon.
async fn head(response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        let mut chunks = response.bytes_stream();
        while let Some(Ok(chunk)) = chunks.next().await {
            let room = REFUSAL - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == REFUSAL {
                break;
            }
        }
    };
    // What came before the wait was over is enough.
    let _ = tokio::time::timeout(REFUSAL_WAIT, reading).await;
    body
}
