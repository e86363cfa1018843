//! The bulk import socket. The gateway confirms nothing but the close: what was sent before a
//! clean close arrived. It never sends anything twice.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::error::{Error, Result};
use super::http::segment;
use super::socket::{Stream, broken, open, ws_url};
use crate::args::Options;
use crate::interrupt::Interrupt;

/// An open import.
#[derive(Debug)]
pub struct Import {
    stream: Stream,
    timeout: Duration,
    interrupt: Interrupt,
}

impl Import {
    /// Opens `/api/v1/flow/<flow>/import/<kind>`.
    pub async fn open(
        options: &Options,
        interrupt: Interrupt,
        flow: &str,
        kind: &str,
    ) -> Result<Self> {
        let mut query = vec![("token", options.token.as_deref().unwrap_or(""))];
        if let Some(workspace) = &options.workspace {
            query.push(("workspace", workspace));
        }
        let path = format!("api/v1/flow/{}/import/{kind}", segment(flow));
        let stream = open(&ws_url(options, &path, &query)?, &interrupt).await?;
        Ok(Self {
            stream,
            timeout: options.timeout,
            interrupt,
        })
    }

    /// Sends one frame. Fails when the gateway has ended the import.
    pub async fn send(&mut self, frame: &Value) -> Result<()> {
        let Self {
            stream,
            timeout,
            interrupt,
        } = self;
        let (mut sink, mut source) = stream.split();
        let mut sending = sink.send(Message::text(frame.to_string()));
        let deadline = tokio::time::sleep(*timeout);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                outcome = &mut sending => return outcome.map_err(broken),
                heard = source.next() => early_end(heard)?,
                () = &mut deadline => return Err(Error::Timeout(timeout.as_secs())),
                () = interrupt.wait() => return Err(Error::Interrupted),
            }
        }
    }

    /// Ends the import and waits until the gateway has taken everything.
    pub async fn finish(mut self) -> Result<()> {
        if let Some(Some(heard)) = futures::FutureExt::now_or_never(self.stream.next()) {
            early_end(Some(heard))?;
        }
        let goodbye = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        self.stream.close(Some(goodbye)).await.map_err(broken)?;
        let drained = tokio::time::timeout(self.timeout, async {
            loop {
                match self.stream.next().await {
                    Some(Ok(Message::Close(frame))) => return closed(frame.as_ref()),
                    Some(Ok(message)) => refused(&message)?,
                    Some(Err(_)) | None => return Ok(()),
                }
            }
        });
        tokio::select! {
            outcome = drained => outcome.unwrap_or(Err(Error::Timeout(self.timeout.as_secs()))),
            () = self.interrupt.wait() => Err(Error::Interrupted),
        }
    }
}

type Heard = Option<std::result::Result<Message, tokio_tungstenite::tungstenite::Error>>;

/// What the gateway says before we are done: pings are fine, an end is not.
fn early_end(heard: Heard) -> Result<()> {
    match heard {
        Some(Ok(Message::Close(frame))) => {
            closed(frame.as_ref())?;
            Err(ended("no reason given".to_owned()))
        }
        Some(Ok(message)) => refused(&message),
        Some(Err(error)) => Err(broken(error)),
        None => Err(ended("connection lost".to_owned())),
    }
}

fn ended(reason: String) -> Error {
    Error::Service {
        kind: "interrupted".to_owned(),
        message: format!("the gateway ended the import early ({reason})"),
    }
}

/// A close is clean with code 1000 or without a code.
fn closed(frame: Option<&CloseFrame>) -> Result<()> {
    match frame {
        Some(frame) if frame.code != CloseCode::Normal => {
            Err(ended(format!("{} {}", frame.code, frame.reason)))
        }
        _ => Ok(()),
    }
}

/// A frame from the gateway is an error, or of no interest.
fn refused(message: &Message) -> Result<()> {
    let Message::Text(text) = message else {
        return Ok(());
    };
    let body: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    match body.get("error") {
        Some(error) if !error.is_null() => Err(Error::from_body(error)),
        _ => Ok(()),
    }
}
