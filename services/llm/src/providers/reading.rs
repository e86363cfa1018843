//! Turns a provider's events into ours. A dialect supplies a [`Dialect`] that reads one event at a time.

use std::collections::VecDeque;
use std::future::ready;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt, stream};
use tg_provider_http::{Answer, HttpError};
use tg_replies::{Part, Thinking, apart};

use super::events::{self, Event};
use super::failure;
use crate::error::LlmError;
use crate::model::{ChatEvent, ChatStream, Completion};

/// Longest wait for the end of a body after the end of the answer in it. Many servers write the two apart. The connection of a body
/// that is dropped between them is closed, and the next question to the model would open another one. It is longer than the ticks of a
/// process: the runtime wakes a sleeping thread for a timer that is due before all others.
const REST: Duration = Duration::from_millis(150);
/// Turns that the connection's task gets before that: where the server wrote the two together, it has both by then.
const TURNS: u32 = 2;

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
    let data = events::events(bytes).map(|event| match event? {
        Event {
            is_error: true,
            data,
        } => Err(failure::event(&data)),
        event => Ok(event.data),
    });
    read(data, dialect)
}

/// A body whose beginning has come.
pub(super) enum Begun {
    /// It is JSON, all of it.
    Whole(Bytes),
    /// It is something else, such as events.
    Pieces(BoxStream<'static, Result<Bytes, HttpError>>),
}

/// Waits for the beginning of a body: not every server heeds whether pieces were asked for.
pub(super) async fn begun(response: Answer) -> Result<Begun, LlmError> {
    let mut rest = response.bytes().boxed();
    let mut body = Vec::new();
    let first = |body: &[u8]| {
        let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        text.iter()
            .copied()
            .find(|byte| !byte.is_ascii_whitespace())
    };
    loop {
        match first(&body) {
            Some(b'{' | b'[') => break,
            // A mark of three bytes may be cut.
            Some(_) if body.len() > 2 => {
                let begun = stream::once(ready(Ok(Bytes::from(body))));
                return Ok(Begun::Pieces(begun.chain(rest).boxed()));
            }
            _ => match rest.next().await {
                Some(piece) => body.extend_from_slice(&piece?),
                None => return Ok(Begun::Whole(body.into())),
            },
        }
    }
    while let Some(piece) = rest.next().await {
        body.extend_from_slice(&piece?);
    }
    Ok(Begun::Whole(body.into()))
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
        // Not every body ends by itself, and one that has ended is not asked again.
        data: Box::pin(data.fuse()),
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
                    rest(&mut all.data).await;
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

/// Reads a body to its end, if that comes soon.
async fn rest<T>(data: &mut (impl Stream<Item = Result<T, LlmError>> + Unpin)) {
    let mut end = pin!(async { while let Some(Ok(_)) = data.next().await {} });
    for _ in 0..TURNS {
        if end.as_mut().now_or_never().is_some() {
            return;
        }
        tokio::task::yield_now().await;
    }
    // An end that does not come costs a connection.
    let _ = tokio::time::timeout(REST, end).await;
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
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Poll;

    use super::*;
    use crate::providers::openai;

    const WHOLE: &str = "data: {\"choices\": [{\"delta\": {\"content\": \"yes\"}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";

    /// A body with an answer, and then the end when that comes.
    fn answer(end: impl Future<Output = ()> + Send + 'static) -> ChatStream {
        let whole: Result<_, HttpError> = Ok(Bytes::from_static(WHOLE.as_bytes()));
        let end = stream::once(end).filter_map(|()| ready(None));
        let body = stream::iter([whole]).chain(end);
        events_of(body, openai::Answer::new("m"))
    }

    async fn is_answered(mut chat: ChatStream) -> bool {
        while let Some(event) = chat.next().await {
            if matches!(event, Ok(ChatEvent::Done(_))) {
                return true;
            }
        }
        false
    }

    /// The end of the body comes a turn after the end of the answer, as from servers that write the two apart.
    #[tokio::test]
    async fn a_body_is_read_to_its_end() {
        let ended = Arc::new(AtomicBool::new(false));
        let (end, mut looked) = (ended.clone(), false);
        let later = poll_fn(move |cx| match std::mem::replace(&mut looked, true) {
            true => {
                end.store(true, Ordering::Relaxed);
                Poll::Ready(())
            }
            false => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        });
        assert!(is_answered(answer(later)).await);
        assert!(ended.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_needs_no_end_of_its_body() {
        assert!(is_answered(answer(std::future::pending())).await);
    }
}
