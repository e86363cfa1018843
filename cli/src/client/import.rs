//! The bulk import socket. What was sent before a clean close arrived; a gateway that is asked to may say on
//! the way how much of it is safe already, and what the stores made of it. It never sends anything twice.

use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tg_schemas::ErrorCode;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

use super::error::{Error, Result};
use super::http::segment;
use super::settled::Settled;
use super::socket::{Stream, broken, open, ws_url};
use crate::args::Options;
use crate::interrupt::Interrupt;

/// Payload of the ping behind the last frame.
const BARRIER: &[u8] = b"end";
/// How long to listen after the gateway hung up.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// An open import.
#[derive(Debug)]
pub struct Import {
    stream: Stream,
    timeout: Duration,
    interrupt: Interrupt,
    /// Frames sent.
    sent: u64,
    /// The other end has read all that was sent.
    passed: bool,
    /// Frames and items that the gateway has said are safe, if it says so at all.
    safe: Option<(u64, u64)>,
    settled: Settled,
    /// The gateway says what the stores make of it.
    settles: bool,
}

/// What a gateway is asked to report of the frames of an import. One that does not know it ignores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// Nothing but that all arrived.
    Nothing,
    /// That each is safe.
    Safe,
    /// What the stores made of each.
    Stored,
}

impl Import {
    /// Opens `/api/v1/flow/<flow>/import/<kind>`.
    ///
    /// # Errors
    /// As [`Export::open`](super::Export::open).
    pub async fn open(
        options: &Options,
        interrupt: Interrupt,
        flow: &str,
        kind: &str,
        tell: Tell,
    ) -> Result<Self> {
        let mut query = vec![("token", options.token.as_deref().unwrap_or(""))];
        if let Some(workspace) = &options.workspace {
            query.push(("workspace", workspace));
        }
        if tell != Tell::Nothing {
            query.push(("ack", "1"));
        }
        if tell == Tell::Stored {
            query.push(("settled", "1"));
        }
        let path = format!("api/v1/flow/{}/import/{kind}", segment(flow));
        let stream = open(&ws_url(options, &path, &query)?, options, &interrupt).await?;
        Ok(Self {
            stream,
            timeout: options.timeout,
            interrupt,
            sent: 0,
            passed: false,
            safe: None,
            settled: Settled::default(),
            settles: false,
        })
    }

    /// What the stores said of what was sent; `None` if this gateway does not say.
    pub fn settled(&self) -> Option<&Settled> {
        self.settles.then_some(&self.settled)
    }

    /// The same once the import has ended.
    pub fn into_settled(self) -> Option<Settled> {
        self.settles.then_some(self.settled)
    }

    /// Items that the gateway has said are safe, or stored where it says that; `None` if it says nothing.
    pub fn confirmed(&self) -> Option<u64> {
        match self.settles {
            true => Some(self.settled.stored()),
            false => self.safe.map(|(_, items)| items),
        }
    }

    /// Sends one frame. Fails when the gateway has ended the import.
    ///
    /// # Errors
    /// [`Error::Service`] where the gateway has ended the import, with its reason, and where the connection breaks;
    /// [`Error::Timeout`] where the gateway takes nothing; [`Error::Interrupted`].
    pub async fn send(&mut self, frame: &Value) -> Result<()> {
        self.settled.sends(frame);
        let (timeout, interrupt) = (self.timeout, self.interrupt.clone());
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(timeout, self.push(Message::text(frame.to_string()))) => outcome,
            () = interrupt.wait() => return Err(Error::Interrupted),
        };
        match outcome {
            Ok(Ok(Ok(()))) => {
                self.sent += 1;
                Ok(())
            }
            // Why the gateway hung up says more than that it did.
            Ok(Ok(Err(error))) => Err(self.last_words().await.unwrap_or_else(|| broken(error))),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::Timeout(timeout.as_secs())),
        }
    }

    /// Hands a message to the connection. What the gateway says is heard meanwhile: if each side waited for the
    /// other to listen, neither would go on. The outer error is the gateway's, the inner one the connection's.
    async fn push(&mut self, message: Message) -> Result<std::result::Result<(), WsError>> {
        let mut message = Some(message);
        poll_fn(|cx| {
            while let Poll::Ready(heard) = self.stream.poll_next_unpin(cx) {
                if let Err(error) = self.hear(heard) {
                    return Poll::Ready(Err(error));
                }
            }
            if message.is_some() {
                if let Err(error) = ready!(self.stream.poll_ready_unpin(cx)) {
                    return Poll::Ready(Ok(Err(error)));
                }
                if let Some(message) = message.take()
                    && let Err(error) = self.stream.start_send_unpin(message)
                {
                    return Poll::Ready(Ok(Err(error)));
                }
            }
            self.stream.poll_flush_unpin(cx).map(Ok)
        })
        .await
    }

    /// Takes in what the gateway says before we are done.
    fn hear(&mut self, heard: Heard) -> Result<()> {
        match &heard {
            Some(Ok(Message::Text(text))) => {
                let said = serde_json::from_slice(text.as_bytes()).unwrap_or(Value::Null);
                self.settles |= self.settled.hear(&said);
                self.safe = safe(&said).or(self.safe);
            }
            Some(Ok(Message::Pong(payload))) => self.passed |= payload.as_ref() == BARRIER,
            _ => {}
        }
        early_end(heard)
    }

    /// The error in what the gateway still says.
    async fn last_words(&mut self) -> Option<Error> {
        let listening = async {
            loop {
                match self.stream.next().await {
                    Some(Err(_)) | None => return None,
                    heard => {
                        if let Err(error) = early_end(heard) {
                            return Some(error);
                        }
                    }
                }
            }
        };
        tokio::time::timeout(LAST_WORDS, listening).await.ok()?
    }

    /// Ends the import and waits until the gateway has taken everything.
    ///
    /// A gateway may end an import in the same words as it answers our end. So before we say the
    /// end, a ping goes behind the last frame: what answers it has read that frame.
    ///
    /// # Errors
    /// As [`Self::send`]. It is not known then whether what was sent before is safe.
    pub async fn finish(mut self) -> Result<()> {
        self.end().await
    }

    /// As [`Self::finish`] for who wants to know what was confirmed. Nothing may be sent any more.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn end(&mut self) -> Result<()> {
        let interrupt = self.interrupt.clone();
        let ending = async {
            self.pass().await?;
            self.part().await
        };
        tokio::select! {
            outcome = ending => outcome,
            () = interrupt.wait() => Err(Error::Interrupted),
        }
    }

    /// What the gateway says next. Where stores are waited for it says much, each word in its own time.
    async fn next_word(&mut self) -> Result<Heard> {
        let heard = tokio::time::timeout(self.timeout, self.stream.next()).await;
        heard.map_err(|_| Error::Timeout(self.timeout.as_secs()))
    }

    /// Waits until all frames are read at the other end.
    async fn pass(&mut self) -> Result<()> {
        let ping = Message::Ping(BARRIER.into());
        if let Err(error) = self.push(ping).await? {
            return Err(self.last_words().await.unwrap_or_else(|| broken(error)));
        }
        while !self.passed {
            let heard = self.next_word().await?;
            self.hear(heard)?;
        }
        // Who confirms frames says so of all of them, or why not.
        while self.lacks_word() {
            let heard = self.next_word().await?;
            self.hear(heard)?;
        }
        Ok(())
    }

    /// Whether the gateway is still to say something of a frame.
    fn lacks_word(&self) -> bool {
        match self.settles {
            true => self.settled.frames() < self.sent,
            false => self.safe.is_some_and(|(frames, _)| frames < self.sent),
        }
    }

    /// Says the end and waits for the answer.
    async fn part(&mut self) -> Result<()> {
        let goodbye = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        self.stream.close(Some(goodbye)).await.map_err(broken)?;
        loop {
            match self.next_word().await? {
                Some(Ok(Message::Close(frame))) => return closed(frame.as_ref()),
                Some(Ok(message)) => refused(&message)?,
                Some(Err(_)) | None => return Ok(()),
            }
        }
    }
}

type Heard = Option<std::result::Result<Message, WsError>>;

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

/// Frames and items in `{"confirmed": {"frames": …, "<items>": …}}`.
fn safe(body: &Value) -> Option<(u64, u64)> {
    let counts = body.get("confirmed")?.as_object()?;
    let items = counts.iter().find(|(name, _)| *name != "frames");
    Some((counts.get("frames")?.as_u64()?, items?.1.as_u64()?))
}

/// A close is clean with code 1000 or without a code. The reason may begin with the wire type.
fn closed(frame: Option<&CloseFrame>) -> Result<()> {
    let Some(frame) = frame.filter(|frame| frame.code != CloseCode::Normal) else {
        return Ok(());
    };
    if let Some((kind, message)) = frame.reason.split_once(": ")
        && ErrorCode::from_wire(kind) != ErrorCode::Internal
    {
        return Err(Error::Service {
            kind: kind.to_owned(),
            message: message.to_owned(),
        });
    }
    Err(ended(format!("{} {}", frame.code, frame.reason)))
}

/// A frame from the gateway is an error, or of no interest.
fn refused(message: &Message) -> Result<()> {
    let Message::Text(text) = message else {
        return Ok(());
    };
    let body: Value = serde_json::from_slice(text.as_bytes()).unwrap_or(Value::Null);
    match body.get("error") {
        Some(error) if !error.is_null() => Err(Error::from_body(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn confirmations_are_counted() {
        let said = json!({"confirmed": {"frames": 2, "rows": 80}});
        assert_eq!(safe(&said), Some((2, 80)));
        for other in [
            Value::Null,
            json!(3),
            json!({}),
            json!({"confirmed": 3}),
            json!({"confirmed": {"rows": 1}}),
        ] {
            assert_eq!(safe(&other), None, "{other}");
        }
    }
}
