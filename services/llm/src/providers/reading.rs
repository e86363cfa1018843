//! Turns a provider's events into ours. A dialect supplies a [`Dialect`] that reads one event at a time.

use std::future::ready;

use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures::{Stream, StreamExt, stream};
use tg_provider_http::{Answer, HttpError};

use crate::error::LlmError;
use crate::model::{ChatEvent, ChatStream, Completion};

/// What one event of a dialect says.
pub(super) enum Said {
    /// Nothing for the asker.
    Nothing,
    /// The next piece.
    Piece(String),
    /// The end.
    End,
}

/// One answer being read.
pub(super) trait Dialect: Send + 'static {
    /// Reads one event.
    fn read(&mut self, data: &str) -> Result<Said, LlmError>;
    /// Whether the answer is complete although no end was told.
    fn complete(&self) -> bool;
    /// What is known about the call.
    fn completion(&mut self) -> Completion;
}

/// Reads server-sent events.
pub(super) fn events(response: Answer, dialect: impl Dialect) -> ChatStream {
    events_of(response.bytes(), dialect)
}

/// Reads one JSON object a line.
pub(super) fn lines(response: Answer, dialect: impl Dialect) -> ChatStream {
    lines_of(response.bytes(), dialect)
}

pub(super) fn events_of<S>(bytes: S, dialect: impl Dialect) -> ChatStream
where
    S: Stream<Item = Result<Bytes, HttpError>> + Send + 'static,
{
    let data = without_mark(bytes).eventsource().map(|event| {
        event.map(|event| event.data).map_err(|error| match error {
            eventsource_stream::EventStreamError::Transport(error) => LlmError::from(error),
            _ => LlmError::Malformed,
        })
    });
    read(data, dialect)
}

/// The bytes without the mark that a text in UTF-8 may begin with: `eventsource` would cut one byte of its three, and
/// panic.
fn without_mark(
    bytes: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mut head = Some(Vec::new());
    bytes.filter_map(move |piece| {
        let piece = match (piece, head.take()) {
            (Ok(piece), Some(mut begun)) => {
                begun.extend_from_slice(&piece);
                if begun.len() < MARK.len() && MARK.starts_with(&begun) {
                    head = Some(begun);
                    return ready(None);
                }
                let rest = begun.strip_prefix(MARK).unwrap_or(&begun);
                Ok(Bytes::copy_from_slice(rest))
            }
            (piece, _) => piece,
        };
        ready(Some(piece))
    })
}

pub(super) fn lines_of<S>(bytes: S, dialect: impl Dialect) -> ChatStream
where
    S: Stream<Item = Result<Bytes, HttpError>> + Send + 'static,
{
    let chunks = bytes.boxed();
    let data = stream::unfold(Some((chunks, Vec::<u8>::new())), |state| async move {
        let (mut chunks, mut rest) = state?;
        loop {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let tail = rest.split_off(end + 1);
                rest.pop();
                let line = String::from_utf8(rest).map_err(|_| LlmError::Malformed);
                return Some((line, Some((chunks, tail))));
            }
            match chunks.next().await {
                Some(Ok(chunk)) => rest.extend_from_slice(&chunk),
                Some(Err(error)) => return Some((Err(error.into()), None)),
                None if rest.is_empty() => return None,
                None => {
                    let line = String::from_utf8(rest).map_err(|_| LlmError::Malformed);
                    return Some((line, None));
                }
            }
        }
    });
    read(data, dialect)
}

fn read(
    data: impl Stream<Item = Result<String, LlmError>> + Send + 'static,
    dialect: impl Dialect,
) -> ChatStream {
    let state = Some((Box::pin(data), dialect));
    stream::unfold(state, |state| async move {
        let (mut data, mut dialect) = state?;
        loop {
            let said = match data.next().await {
                Some(Ok(data)) => dialect.read(&data),
                Some(Err(error)) => Err(error),
                None if dialect.complete() => Ok(Said::End),
                None => Err(LlmError::BrokenOff),
            };
            match said {
                Ok(Said::Nothing) => {}
                Ok(Said::Piece(text)) if text.is_empty() => {}
                Ok(Said::Piece(text)) => {
                    return Some((Ok(ChatEvent::Delta(text)), Some((data, dialect))));
                }
                Ok(Said::End) => {
                    return Some((Ok(ChatEvent::Done(dialect.completion())), None));
                }
                Err(error) => return Some((Err(error), None)),
            }
        }
    })
    .boxed()
}

/// An answer that came whole.
pub(super) fn at_once(text: String, completion: Completion) -> ChatStream {
    let piece = (!text.is_empty()).then_some(Ok(ChatEvent::Delta(text)));
    stream::iter(piece.into_iter().chain([Ok(ChatEvent::Done(completion))])).boxed()
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn a_mark_before_the_text_is_no_part_of_it() {
        let whole = b"\xef\xbb\xbfdata: a\n\n";
        for size in 1..=whole.len() {
            let pieces: Vec<_> = whole.chunks(size).map(Bytes::copy_from_slice).collect();
            let read = without_mark(stream::iter(pieces.into_iter().map(Ok)));
            let read: Vec<u8> = block_on(read.collect::<Vec<_>>())
                .into_iter()
                .flat_map(|piece| piece.expect("a piece"))
                .collect();
            assert_eq!(read, b"data: a\n\n", "{size}");
        }
    }
}
