//! Turns a provider's events into ours. A dialect supplies a [`Dialect`] that reads one event at a time.

use std::collections::VecDeque;
use std::future::ready;

use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures::{Stream, StreamExt, stream};
use tg_provider_http::{Answer, HttpError};

use crate::engine::thinking::{Part, Thinking, apart};
use crate::error::LlmError;
use crate::model::{ChatEvent, ChatStream, Completion};

/// What one event of a dialect says.
pub(super) enum Said {
    /// Nothing for the asker.
    Nothing,
    /// The next piece.
    Piece(String),
    /// The next piece of what the model thinks, where its server tells it apart, and the piece of text that came with it.
    Thinking(String, String),
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

/// The bytes without the mark that a text in UTF-8 may begin with, behind an empty line that says nothing: `eventsource`
/// cuts one byte of a mark's three where a stream begins with one, and panics; what begins with a line break never does.
fn without_mark(
    bytes: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mut head = Some(Vec::new());
    let rest = bytes.filter_map(move |piece| {
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
    });
    stream::once(ready(Ok(Bytes::from_static(b"\n")))).chain(rest)
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
    let state = Reading {
        data: Box::pin(data),
        dialect,
        thinking: Thinking::default(),
        ready: VecDeque::new(),
    };
    stream::unfold(Some(state), |state| async move {
        let mut all = state?;
        loop {
            if let Some(event) = all.ready.pop_front() {
                let is_open = !matches!(event, Ok(ChatEvent::Done(_)) | Err(_));
                return Some((event, is_open.then_some(all)));
            }
            let Reading { data, dialect, .. } = &mut all;
            let said = match data.next().await {
                Some(Ok(data)) => dialect.read(&data),
                Some(Err(error)) => Err(error),
                None if dialect.complete() => Ok(Said::End),
                None => Err(LlmError::BrokenOff),
            };
            match said {
                Ok(Said::Nothing) => {}
                Ok(Said::Thinking(thought, text)) => {
                    let parts = all.thinking.push(text);
                    let thought = (!thought.is_empty()).then_some(Part::Thinking(thought));
                    let parts = thought.into_iter().chain(parts);
                    all.ready.extend(parts.map(event));
                }
                Ok(Said::Piece(text)) => {
                    let parts = all.thinking.push(text);
                    all.ready.extend(parts.into_iter().map(event));
                }
                Ok(Said::End) => {
                    let parts = all.thinking.finish();
                    all.ready.extend(parts.into_iter().map(event));
                    let done = all.dialect.completion();
                    all.ready.push_back(Ok(ChatEvent::Done(done)));
                }
                Err(error) => {
                    // What came before the fault is passed on before it.
                    let parts = all.thinking.finish();
                    all.ready.extend(parts.into_iter().map(event));
                    all.ready.push_back(Err(error));
                }
            }
        }
    })
    .boxed()
}

/// A stream that is read, and what is to be passed on before more of it.
struct Reading<S, D> {
    data: S,
    dialect: D,
    thinking: Thinking,
    ready: VecDeque<Result<ChatEvent, LlmError>>,
}

fn event(part: Part) -> Result<ChatEvent, LlmError> {
    Ok(match part {
        Part::Thinking(text) => ChatEvent::Thinking(text),
        Part::Text(text) => ChatEvent::Delta(text),
    })
}

/// An answer that came whole.
pub(super) fn at_once(thought: String, text: String, completion: Completion) -> ChatStream {
    let (within, text) = apart(text);
    let thought = thought + &within;
    let thought = (!thought.is_empty()).then_some(Ok(ChatEvent::Thinking(thought)));
    let piece = (!text.is_empty()).then_some(Ok(ChatEvent::Delta(text)));
    let events = thought.into_iter().chain(piece);
    stream::iter(events.chain([Ok(ChatEvent::Done(completion))])).boxed()
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn a_mark_before_the_text_is_no_part_of_it() {
        let mark = b"\xef\xbb\xbf".as_slice();
        for (marks, said) in [(0, vec!["a"]), (1, vec!["a"]), (2, vec![])] {
            let whole = [&mark.repeat(marks), b"data: a\n\n".as_slice()].concat();
            for size in 1..=whole.len() {
                let pieces: Vec<_> = whole.chunks(size).map(Bytes::copy_from_slice).collect();
                let read = without_mark(stream::iter(pieces.into_iter().map(Ok))).eventsource();
                let read: Vec<String> = block_on(read.collect::<Vec<_>>())
                    .into_iter()
                    .map(|event| event.expect("an event").data)
                    .collect();
                assert_eq!(read, said, "{marks} marks, pieces of {size}");
            }
        }
    }
}
