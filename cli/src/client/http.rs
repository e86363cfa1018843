//! The REST endpoints. It never retries and never prints.

use std::future::Future;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde_json::{Value, json};
use tg_provider_http::{Limits, client, client_with};

use super::error::{Error, Result};
use super::tls;
use crate::args::Options;
use crate::interrupt::Interrupt;

/// A gateway may stand behind a proxy that sends on.
const REDIRECTS: usize = 10;
/// More than any error body needs.
const MAX_ERROR_CHARS: usize = 2000;

/// A response whose bytes are still to come.
pub type Streamed = Response;

/// A client of the gateway's REST endpoints.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    base: Url,
    token: Option<String>,
    workspace: Option<String>,
    timeout: Duration,
    interrupt: Interrupt,
}

impl Http {
    /// A client for the gateway the options name. Opens no connection yet.
    ///
    /// # Errors
    /// [`Error::Usage`] where the address is no URL of a gateway, or the file of authorities cannot serve.
    pub fn new(options: &Options, interrupt: Interrupt) -> Result<Self> {
        let base = base_url(options.address())?;
        Ok(Self {
            client: trusting(&base, options)?,
            base,
            token: options.token.clone(),
            workspace: options.workspace.clone(),
            timeout: options.timeout,
            interrupt,
        })
    }

    /// `POST /api/v1/<service>` in the workspace of the session.
    ///
    /// # Errors
    /// [`Error::Service`] where the gateway or the service refuses or fails; [`Error::Unreachable`] and [`Error::Timeout`]
    /// where none answers; [`Error::Protocol`] for an answer that is not JSON; [`Error::Interrupted`].
    pub async fn service(&self, service: &str, mut request: Value) -> Result<Value> {
        self.add_workspace(&mut request);
        self.post(&format!("api/v1/{service}"), &request).await
    }

    /// `POST /api/v1/flow/<flow>/service/<service>`.
    ///
    /// # Errors
    /// As [`Http::service`].
    pub async fn flow_service(
        &self,
        flow: &str,
        service: &str,
        mut request: Value,
    ) -> Result<Value> {
        self.add_workspace(&mut request);
        let path = format!("api/v1/flow/{}/service/{service}", segment(flow));
        self.post(&path, &request).await
    }

    /// `POST /api/v1/iam`; a workspace in the body is a parameter of the operation.
    ///
    /// # Errors
    /// As [`Http::service`].
    pub async fn iam(&self, request: Value) -> Result<Value> {
        self.post("api/v1/iam", &request).await
    }

    /// `POST` of a JSON body to a path below the base.
    ///
    /// # Errors
    /// As [`Http::service`].
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self.client.post(self.url(path, &[])?).json(body);
        let response = self.send(request).await?;
        let status = response.status().as_u16();
        let text = self.body(response).await?;
        if status != 200 {
            return Err(Error::from_status(status, &text));
        }
        let reply: Value = serde_json::from_slice(text.as_bytes())
            .map_err(|error| Error::Protocol(format!("not JSON ({error})")))?;
        match reply.get("error") {
            Some(error) if !error.is_null() => Err(Error::from_body(error)),
            _ => Ok(reply),
        }
    }

    /// `GET` of a path below the base: status and body text, whatever the status is.
    ///
    /// # Errors
    /// [`Error::Unreachable`] and [`Error::Timeout`] where no gateway answers; [`Error::Interrupted`].
    pub async fn get_text(&self, path: &str, query: &[(&str, &str)]) -> Result<(u16, String)> {
        let url = self.url(path, query)?;
        let response = self.send(self.client.get(url)).await?;
        let status = response.status().as_u16();
        Ok((status, self.body(response).await?))
    }

    /// Any request, with headers and the type and text of its body: status and body text, whatever the status is.
    ///
    /// # Errors
    /// As [`Http::get_text`]; [`Error::Usage`] for a method that is none.
    pub async fn exchange(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: Option<(&str, String)>,
    ) -> Result<(u16, String)> {
        let method = Method::from_bytes(method.as_bytes());
        let method = method.map_err(|error| Error::Usage(error.to_string()))?;
        let mut request = self.client.request(method, self.url(path, query)?);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some((kind, text)) = body {
            request = request.header(CONTENT_TYPE, kind).body(text);
        }
        let response = self.send(request).await?;
        let status = response.status().as_u16();
        Ok((status, self.body(response).await?))
    }

    /// `GET` of a stream of bytes; anything but 200 is an error.
    ///
    /// # Errors
    /// As [`Http::get_text`], and [`Error::Service`] for another status than 200.
    pub async fn get_stream(&self, path: &str, query: &[(&str, &str)]) -> Result<Response> {
        let mut url = self.url(path, query)?;
        if let Some(workspace) = &self.workspace {
            url.query_pairs_mut().append_pair("workspace", workspace);
        }
        let response = self.send(self.client.get(url)).await?;
        let status = response.status().as_u16();
        if status == 200 {
            return Ok(response);
        }
        let text = self.body(response).await?;
        Err(Error::from_status(status, &text))
    }

    /// `POST` of a JSON text with headers: a response, whatever its status is, whose bytes are read one by one.
    ///
    /// # Errors
    /// As [`Http::get_text`].
    pub async fn post_stream(
        &self,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Response> {
        let mut request = self.client.post(self.url(path, query)?);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        self.send(request).await
    }

    /// The next bytes of a stream.
    ///
    /// # Errors
    /// As [`Http::get_text`]: the connection broke, or nothing came for as long as the session waits.
    pub async fn next_bytes(&self, response: &mut Response) -> Result<Option<Vec<u8>>> {
        let chunk = self.guarded(response.chunk()).await?;
        Ok(chunk.map(|bytes| bytes.to_vec()))
    }

    /// A metrics query; `url` replaces `<base>/api/metrics` when given.
    ///
    /// # Errors
    /// [`Error::Usage`] where `url` is none; [`Error::Protocol`] where the answer is no result of a query; else as
    /// [`Http::service`].
    pub async fn metrics(&self, url: Option<&str>, query: &str) -> Result<Vec<Value>> {
        let (client, url) = match url {
            Some(url) => {
                let url = base_url(url)?;
                (of(&url, self.timeout)?, url.join("query"))
            }
            None => (self.client.clone(), self.base.join("api/metrics/query")),
        };
        let mut url = url.map_err(|error| Error::Usage(format!("metrics URL: {error}")))?;
        url.query_pairs_mut().append_pair("query", query);
        let response = self.send(client.get(url)).await?;
        let status = response.status().as_u16();
        let text = self.body(response).await?;
        if status != 200 {
            return Err(Error::from_status(status, &text));
        }
        let body: Value = serde_json::from_slice(text.as_bytes())
            .map_err(|error| Error::Protocol(format!("metrics are not JSON ({error})")))?;
        match body.pointer("/data/result").and_then(Value::as_array) {
            Some(samples) => Ok(samples.clone()),
            None => Err(Error::Protocol("metrics without data.result".to_owned())),
        }
    }

    /// The gateway's address.
    pub fn base(&self) -> &Url {
        &self.base
    }

    fn add_workspace(&self, request: &mut Value) {
        if let (Some(workspace), Some(map)) = (&self.workspace, request.as_object_mut()) {
            map.insert("workspace".to_owned(), json!(workspace));
        }
    }

    fn url(&self, path: &str, query: &[(&str, &str)]) -> Result<Url> {
        let mut url = self
            .base
            .join(path)
            .map_err(|error| Error::Usage(format!("{path}: {error}")))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        self.guarded(request.send()).await
    }

    async fn body(&self, response: Response) -> Result<String> {
        self.guarded(response.text()).await
    }

    async fn guarded<T>(&self, work: impl Future<Output = reqwest::Result<T>>) -> Result<T> {
        tokio::select! {
            outcome = work => outcome.map_err(|error| self.transport(&error)),
            () = self.interrupt.wait() => Err(Error::Interrupted),
        }
    }

    fn transport(&self, error: &reqwest::Error) -> Error {
        if error.is_timeout() && !error.is_connect() {
            return Error::Timeout(self.timeout.as_secs());
        }
        Error::Unreachable {
            url: self.base.to_string(),
            reason: tls::reason(error).unwrap_or_else(|| root_cause(error)),
        }
    }
}

/// A client for the gateway.
fn trusting(base: &Url, options: &Options) -> Result<Client> {
    if base.scheme() != "https" {
        return of(base, options.timeout);
    }
    let made = client_with(tls::config(options)?, limits(options.timeout));
    made.map_err(|error| Error::Protocol(error.to_string()))
}

/// A client for any server.
fn of(base: &Url, timeout: Duration) -> Result<Client> {
    let made = client(base.as_str(), limits(timeout));
    made.map_err(|error| Error::Protocol(error.to_string()))
}

fn limits(timeout: Duration) -> Limits {
    Limits {
        silence: Some(timeout),
        redirects: REDIRECTS,
        ..Limits::default()
    }
}

/// The innermost cause: the outer layers only say that a request failed.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    text.chars().take(MAX_ERROR_CHARS).collect()
}

/// The base address with exactly one slash at its end. `ws` schemes mean their `http` twins, none means `http`; the path
/// of the API may be there or not.
///
/// # Errors
/// [`Error::Usage`] when it is no address of a host.
pub fn base_url(text: &str) -> Result<Url> {
    let text = text.trim().trim_end_matches('/');
    let text = text.strip_suffix("/api/v1").unwrap_or(text);
    let text = match text.split_once("://") {
        Some(("ws", rest)) => format!("http://{rest}/"),
        Some(("wss", rest)) => format!("https://{rest}/"),
        Some(_) => format!("{text}/"),
        None => format!("http://{text}/"),
    };
    let url = Url::parse(&text).map_err(|error| Error::Usage(format!("--url {text}: {error}")))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(Error::Usage(format!(
            "--url {text}: must start with http:// or https://"
        ))),
    }
}

/// A flow id as a path segment: everything but unreserved characters is escaped.
pub(super) fn segment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
