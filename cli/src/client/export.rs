//! The bulk export socket: what passes through an interface of a flow while we look on.

use std::time::Duration;

use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use futures::StreamExt;

use super::error::{Error, Result};
use super::http::segment;
use super::socket::{Stream, broken, open, ws_url};
use crate::args::Options;
use crate::interrupt::Interrupt;

/// How long a goodbye may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// An open export.
#[derive(Debug)]
pub struct Export {
    stream: Stream,
    interrupt: Interrupt,
    /// It ends by itself: whatever else ends it leaves it incomplete.
    stored: bool,
}

/// What an export says.
#[derive(Debug, Clone, PartialEq)]
pub enum Passed {
    /// A record.
    Record(Value),
    /// The gateway or the flow has ended it.
    Ended,
    /// The user wants it to end.
    Interrupted,
}

impl Export {
    /// Opens `/api/v1/flow/<flow>/export/<kind>`; `stored` asks for what is there instead of what passes.
    ///
    /// # Errors
    /// [`Error::Usage`] where the options name no gateway; [`Error::Unreachable`] where none answers; [`Error::Service`] where
    /// it refuses, with its reason; [`Error::Interrupted`].
    pub async fn open(
        options: &Options,
        interrupt: Interrupt,
        flow: &str,
        kind: &str,
        collection: Option<&str>,
        stored: bool,
    ) -> Result<Self> {
        let mut query = vec![("token", options.token.as_deref().unwrap_or(""))];
        if let Some(workspace) = &options.workspace {
            query.push(("workspace", workspace));
        }
        if let Some(collection) = collection {
            query.push(("collection", collection));
        }
        if stored {
            query.push(("stored", "1"));
        }
        let path = format!("api/v1/flow/{}/export/{kind}", segment(flow));
        let stream = open(&ws_url(options, &path, &query)?, options, &interrupt).await?;
        Ok(Self {
            stream,
            interrupt,
            stored,
        })
    }

    /// What comes next. Waits for as long as it takes: nothing may pass for hours. Safe to be dropped.
    ///
    /// # Errors
    /// [`Error::Service`] where the gateway says what failed or ends the export before its end, and where the connection
    /// breaks; [`Error::Protocol`] for a frame that is not JSON.
    pub async fn next(&mut self) -> Result<Passed> {
        loop {
            let heard = tokio::select! {
                heard = self.stream.next() => heard,
                () = self.interrupt.wait() => return Ok(Passed::Interrupted),
            };
            let text = match heard {
                Some(Ok(Message::Text(text))) => text.to_string(),
                Some(Ok(Message::Binary(bytes))) => String::from_utf8_lossy(&bytes).into_owned(),
                Some(Ok(Message::Close(frame))) => {
                    let is_end = match (&frame, self.stored) {
                        (Some(frame), true) => frame.code == CloseCode::Normal,
                        (Some(frame), false) => is_end(frame.code),
                        (None, stored) => !stored,
                    };
                    return match frame.filter(|_| !is_end) {
                        None if !is_end => Err(cut_off()),
                        None => Ok(Passed::Ended),
                        Some(frame) => Err(Error::Service {
                            kind: "interrupted".to_owned(),
                            message: format!("the gateway ended the export ({})", frame.reason),
                        }),
                    };
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Err(broken(error)),
                None if self.stored => return Err(cut_off()),
                None => return Ok(Passed::Ended),
            };
            let record: Value = serde_json::from_slice(text.as_bytes())
                .map_err(|error| Error::Protocol(format!("a frame is not JSON ({error})")))?;
            return match record.get("error") {
                Some(error) if !error.is_null() => Err(Error::from_body(error)),
                _ => Ok(Passed::Record(record)),
            };
        }
    }

    /// Says goodbye. Errors do not matter any more.
    pub async fn close(mut self) {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.stream.close(None)).await;
    }
}

/// It ended without a word.
fn cut_off() -> Error {
    Error::Service {
        kind: "interrupted".to_owned(),
        message: "the gateway ended the export".to_owned(),
    }
}

/// The other side is done: with everything, or because its flow or the gateway stops.
fn is_end(code: CloseCode) -> bool {
    matches!(code, CloseCode::Normal | CloseCode::Away)
}
