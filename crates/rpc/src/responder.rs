//! The writing end of an answer.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use tg_bus::Handover;
use tg_schemas::codec::{self, ContentType};
use tg_schemas::{Error, ErrorCode, Reply};
use tokio_util::sync::CancellationToken;

use crate::address::ReplyAddress;
use crate::server::ReplyServer;
use crate::stream::ReplyStream;
use crate::window::TOGETHER;

/// Sends the parts of one answer.
pub struct Responder<R> {
    server: ReplyServer,
    stream: Arc<ReplyStream>,
    ended: bool,
    kind: PhantomData<fn(R)>,
}

impl<R: Reply> Responder<R> {
    /// Sends the parts of an answer that was taken on.
    pub fn new(server: ReplyServer, stream: Arc<ReplyStream>) -> Self {
        Self {
            server,
            stream,
            ended: false,
            kind: PhantomData,
        }
    }

    /// Sends one part; the answer ends with the part whose own flag says so. Waits while the asker is
    /// more than a window behind (backpressure).
    ///
    /// # Errors
    /// When nobody wants the answer any more, or when the part is larger than a message may be: the asker was
    /// told so, and the answer has ended.
    pub async fn send(&mut self, part: R) -> Result<(), Error> {
        self.send_all(vec![part]).await
    }

    /// Sends parts that are there together; like [`Responder::send`], but in one message where that can be. The
    /// asker gets them one by one.
    ///
    /// # Errors
    /// As [`Responder::send`].
    pub async fn send_all(&mut self, parts: Vec<R>) -> Result<(), Error> {
        let end = parts.iter().position(Reply::is_last);
        let parts = parts.into_iter().map(|part| (part, None));
        self.send_each(end, parts).await
    }

    /// Sends parts like [`Responder::send_all`], each with its JSON, which the caller has written for another reason.
    ///
    /// # Errors
    /// As [`Responder::send`].
    pub async fn send_written(&mut self, parts: Vec<(R, String)>) -> Result<(), Error> {
        let end = parts.iter().position(|(part, _)| part.is_last());
        let parts = parts.into_iter();
        let parts = parts.map(|(part, written)| (part, Some(written)));
        self.send_each(end, parts).await
    }

    async fn send_each(
        &mut self,
        end: Option<usize>,
        parts: impl ExactSizeIterator<Item = (R, Option<String>)> + Send,
    ) -> Result<(), Error> {
        if self.ended {
            return Err(Error::new(ErrorCode::Internal, "the answer has ended"));
        }
        let most = self.server.largest_part();
        let count = end.map_or(parts.len(), |end| end + 1);
        let mut parts = parts.take(count).peekable();
        while parts.peek().is_some() {
            let together: Vec<_> = parts.by_ref().take(TOGETHER).collect();
            let mut group = Vec::with_capacity(together.len());
            let sizes = self.unwritten(&together);
            for (nth, (part, written)) in together.into_iter().enumerate() {
                if let Some(size) = sizes.get(nth) {
                    group.push((Bytes::new(), Handover::unwritten(*size, part)));
                    continue;
                }
                let body = match written {
                    Some(written) => Bytes::from(written),
                    None => codec::encode(&part, ContentType::Json)?,
                };
                if body.len() > most {
                    return self.end_too_large(group, most).await;
                }
                let here = self.server.hands_over(&self.stream);
                let handover = Handover::new(here, &body, || part);
                group.push((body, handover));
            }
            let last = end.is_some() && parts.peek().is_none();
            self.server.send(&self.stream, group, last).await?;
            self.ended = last;
        }
        Ok(())
    }

    /// How long parts that are sent together are at most, where nobody needs them as bytes: their asker is in this process. Else
    /// nothing: all of them are written.
    fn unwritten(&self, parts: &[(R, Option<String>)]) -> Vec<usize> {
        if !self.server.in_process() || self.stream.plain {
            return Vec::new();
        }
        let size = |(part, written): &(R, Option<String>)| match written {
            Some(_) => None,
            None => {
                let most = Handover::LONGEST_UNWRITTEN.min(self.server.largest_part());
                part.longest().filter(|size| *size <= most)
            }
        };
        let sizes: Option<Vec<usize>> = parts.iter().map(size).collect();
        sizes.unwrap_or_default()
    }

    /// A part that no message can hold ends the answer with an error part: silence would have the asker ask
    /// again, and the work done again.
    async fn end_too_large(
        &mut self,
        before: Vec<(Bytes, Handover)>,
        most: usize,
    ) -> Result<(), Error> {
        metrics::counter!("tg_answers_too_large_total").increment(1);
        let error = Error::new(
            ErrorCode::TooLarge,
            format!(
                "the answer is larger than a message may be ({} MiB); ask for it streamed, or in pages (limit, after)",
                most >> 20
            ),
        );
        let mut parts = before;
        parts.push((failure::<R>(error.clone())?, Handover::default()));
        self.ended = true;
        self.server.send(&self.stream, parts, true).await?;
        self.stream.cancelled().cancel();
        Err(error)
    }

    /// Whether the last part was sent.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Number of the next part.
    pub fn next_seq(&self) -> u64 {
        self.stream.next_seq()
    }

    /// Cancelled when the asker gave up, unless the answer is detached.
    pub fn cancelled(&self) -> CancellationToken {
        self.stream.cancelled().clone()
    }

    /// Where another process is to answer. Until one has the question ([`Responder::hand_over`]), this one speaks for
    /// it and hears when the asker gives up.
    pub fn offer(&mut self) -> ReplyAddress {
        self.ended = true;
        self.stream.pass_on()
    }

    /// Gives the answer up here for good: another process answers. A cancel from now on is that one's to hear.
    pub fn hand_over(self) {
        self.server.forget(&self.stream);
    }

    /// Gives the answer up here, to be continued with [`crate::Peer::resume`].
    pub fn release(mut self) -> ReplyAddress {
        self.ended = true;
        self.stream.release()
    }
}

/// Encodes a failure reply of a type that only the handler knows.
///
/// # Errors
/// When the reply cannot be encoded.
pub fn failure<R: Reply>(error: Error) -> Result<Bytes, Error> {
    Ok(codec::encode(&R::failure(error), ContentType::Json)?)
}
