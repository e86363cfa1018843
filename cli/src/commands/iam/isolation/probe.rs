//! Asks as somebody, and keeps what was said and how long it took.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::body::Request;
use crate::args::Options;
use crate::client::{Call, Error, Http, Result, Socket};
use crate::interrupt::Interrupt;

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status; of a frame, the one that its error would have had.
    pub status: u16,
    /// Its text.
    pub text: String,
    /// From the request to the end of the answer.
    pub took: Duration,
}

/// Somebody who asks.
pub struct Asker {
    /// What they may, as in reports.
    pub role: &'static str,
    options: Options,
    interrupt: Interrupt,
    http: Http,
    sockets: HashMap<Option<String>, Socket>,
}

impl Asker {
    /// With an API key, at the gateway of a session.
    ///
    /// # Errors
    /// As [`Http::new`].
    pub fn new(
        role: &'static str,
        key: String,
        options: &Options,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let options = Options {
            token: Some(key),
            workspace: None,
            timeout: PATIENCE,
            ..options.clone()
        };
        Ok(Self {
            role,
            http: Http::new(&options, interrupt.clone())?,
            options,
            interrupt,
            sockets: HashMap::new(),
        })
    }

    /// Over REST.
    ///
    /// # Errors
    /// As [`Http::exchange`].
    pub async fn rest(&self, request: &Request) -> Result<Answer> {
        let query: Vec<(&str, &str)> = request
            .query
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let begun = Instant::now();
        let body = request.body.clone();
        let said = self
            .http
            .exchange(request.method, &request.path, &query, body);
        let (status, text) = match said.await {
            // It was let in, and there is no end of it.
            Err(Error::Timeout(_)) => (200, String::new()),
            said => said?,
        };
        Ok(Answer {
            status,
            text,
            took: begun.elapsed(),
        })
    }

    /// As a frame of a socket; nothing where the request has no such form.
    ///
    /// # Errors
    /// As [`Socket::ask`], but for what the gateway or a service refuses.
    pub async fn frame(
        &mut self,
        request: &Request,
        workspace: Option<&str>,
    ) -> Result<Option<Answer>> {
        let Some((service, flow, body)) = request.frame.clone() else {
            return Ok(None);
        };
        let about = workspace.map(str::to_owned);
        if !self.sockets.contains_key(&about) {
            let options = Options {
                workspace: about.clone(),
                ..self.options.clone()
            };
            let socket = Socket::connect(&options, self.interrupt.clone()).await?;
            self.sockets.insert(about.clone(), socket);
        }
        let Some(socket) = self.sockets.get_mut(&about) else {
            return Ok(None);
        };
        let call = Call {
            service: service.into(),
            flow,
            request: body,
        };
        let begun = Instant::now();
        let (status, text) = match socket.ask(&call).await {
            Ok(reply) => (200, reply.to_string()),
            Err(Error::Service { kind, message }) => (status(&kind), format!("{kind}: {message}")),
            Err(Error::Protocol(what)) => (200, what),
            Err(error) => return Err(error),
        };
        Ok(Some(Answer {
            status,
            text,
            took: begun.elapsed(),
        }))
    }

    /// Says goodbye.
    pub async fn close(self) {
        for socket in self.sockets.into_values() {
            socket.close().await;
        }
    }
}

/// The status of an error's type.
fn status(kind: &str) -> u16 {
    match kind {
        "access-denied" => 403,
        "auth-failed" => 401,
        _ => 200,
    }
}

/// What an error of an answer says, if it is one.
pub fn error(answer: &Answer) -> Option<String> {
    if answer.status != 200 {
        return Some(answer.text.clone());
    }
    let said: Value = serde_json::from_str(&answer.text).ok()?;
    let error = said.get("error").filter(|error| !error.is_null())?;
    Some(error.to_string())
}
