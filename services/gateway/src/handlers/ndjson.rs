//! Bulk data as lines of JSON over plain HTTP: a POST for imports, a GET for exports.

use std::sync::Arc;

use axum::body::Body as HttpBody;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::stream::{self, Peekable, StreamExt};
use serde_json::{Value, json};
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::export::Export;
use super::intake::{Control, Intake, Way, control};
use super::read::MARK;
use super::stored::Frames;
use crate::auth::Lapse;
use crate::budget::Reader;
use crate::engine::translate::{Body, error_value};
use crate::error::json_response;
use crate::flows::{self, Flow};
use crate::received::Received;
use crate::state::{App, SocketRoom};

/// Reads lines, each a frame, and answers with counters. A faulty line is passed over and told, unless the
/// request says `errors=stop`.
pub(super) async fn import(app: &App, body: HttpBody, mut way: Way) -> Response {
    let mut lapse = way.lapse.take();
    let received = Received::new(&app.budget, Reader::known(&way.identity), None);
    let mut lines = Lines::new(body, app.options.settings.frame_bytes, received);
    let mut intake = Intake::new(app, &way);
    let skips = way.skips.unwrap_or(true);
    let fault = loop {
        let room = intake.has_room();
        let line = tokio::select! {
            biased;
            () = way.flow.stopped.cancelled() => break Some(flows::stopped()),
            () = app.closing.cancelled() => break Some(closing()),
            error = &mut lapse => break Some(error),
            Some(outcome) = intake.next() => {
                let news = intake.settle(outcome);
                if let Some(error) = intake.stops(news, true) {
                    break Some(error);
                }
                continue;
            }
            line = lines.next(), if room => line,
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        match control(&line) {
            None => {
                if let Err(error) = intake.take(line).await
                    && !skips
                {
                    break Some(error);
                }
            }
            Some(Control::End) => break None,
            Some(Control::Status | Control::Ignored) => {}
        }
    };
    let mut fault = fault;
    while let Some(outcome) = intake.next().await {
        let news = intake.settle(outcome);
        let stopped = intake.stops(news, true);
        fault = fault.or(stopped);
    }
    let mut reply = intake.counts.show(way.kind);
    if let Some(error) = fault {
        reply.insert("error".to_owned(), error_value(&error));
    }
    reply.insert("complete".to_owned(), true.into());
    json_response(StatusCode::OK, &reply)
}

/// Sends frames as lines; the last says `complete`, how many there were, and how many records could not be read.
pub(super) fn export(
    app: &App,
    export: Export,
    flow: Arc<Flow>,
    lapse: Lapse,
    room: SocketRoom,
) -> Response {
    let (unreadable, outlet) = (export.unreadable(), export.outlet);
    let state = (Sending::new(app, export.frames, flow, lapse, room), 0_u64);
    let lines = stream::unfold(state, move |(mut sending, mut sent)| {
        let unreadable = unreadable.clone();
        async move {
            if sending.over() {
                return None;
            }
            let line = match sending.next().await {
                Some(Ok(body)) => {
                    sent += 1;
                    Value::Object(body)
                }
                Some(Err(error)) => {
                    let mut last = last(sent, unreadable.count());
                    last["error"] = error_value(&error);
                    last
                }
                None => last(sent, unreadable.count()),
            };
            let line = Bytes::from(format!("{line}\n"));
            Some((Ok::<_, std::convert::Infallible>(line), (sending, sent)))
        }
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (kind, outlet.body(lines)).into_response()
}

/// The last line.
fn last(frames: u64, unreadable: u64) -> Value {
    let mut last = json!({"frames": frames, "complete": true});
    if unreadable > 0 {
        last["unreadable"] = unreadable.into();
    }
    last
}

/// An export over plain HTTP. It ends with its flow, and when its caller may not see it any more.
pub(super) struct Sending {
    /// `None` after the last.
    frames: Option<Peekable<Frames>>,
    flow: Arc<Flow>,
    closing_down: CancellationToken,
    lapse: Lapse,
    _room: SocketRoom,
}

impl Sending {
    pub(super) fn new(
        app: &App,
        frames: Frames,
        flow: Arc<Flow>,
        lapse: Lapse,
        room: SocketRoom,
    ) -> Self {
        Self {
            frames: Some(frames.peekable()),
            flow,
            closing_down: app.closing.clone(),
            lapse,
            _room: room,
        }
    }

    /// Whether the last was given.
    pub(super) fn over(&self) -> bool {
        self.frames.is_none()
    }

    /// The next frame; an error, or nothing, is the last.
    pub(super) async fn next(&mut self) -> Option<Result<Body, Error>> {
        let frames = self.frames.as_mut()?;
        let doubt = self.lapse.doubt();
        let frame = tokio::select! {
            biased;
            () = self.flow.leaving.cancelled() => Some(Err(flows::stopped())),
            () = self.closing_down.cancelled() => Some(Err(closing())),
            error = &mut self.lapse => Some(Err(error)),
            frame = doubt.next(frames) => frame,
        };
        if !matches!(frame, Some(Ok(_))) {
            self.frames = None;
        }
        frame
    }
}

fn closing() -> Error {
    Error::new(ErrorCode::Unavailable, "the gateway is closing")
}

/// Cuts a body into lines of bounded length; empty ones are left out.
struct Lines {
    body: axum::body::BodyDataStream,
    buffer: BytesMut,
    /// Bytes of the buffer that hold no line end.
    seen: usize,
    limit: usize,
    /// What the buffer counts.
    received: Received,
    /// No line was found yet.
    fresh: bool,
    ended: bool,
}

impl Lines {
    fn new(body: HttpBody, limit: usize, received: Received) -> Self {
        Self {
            body: body.into_data_stream(),
            buffer: BytesMut::new(),
            seen: 0,
            limit,
            received,
            fresh: true,
            ended: false,
        }
    }

    /// The next line, the first without a byte order mark. Loses nothing when it is dropped half-way.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let line = self.raw().await?;
        let first = std::mem::take(&mut self.fresh);
        Ok(line.map(|line| match first && line.starts_with(MARK) {
            true => line.slice(MARK.len()..),
            false => line,
        }))
    }

    async fn raw(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let fresh = &self.buffer[self.seen..];
            if let Some(at) = fresh.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.seen + at + 1).freeze();
                self.seen = 0;
                self.received.need(self.buffer.len());
                let line = line.slice(..line.len() - 1);
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            self.seen = self.buffer.len();
            if self.seen > self.limit {
                let text = format!("a line is longer than {} bytes", self.limit);
                return Err(Error::new(ErrorCode::TooLarge, text));
            }
            if self.ended {
                self.seen = 0;
                let line = self.buffer.split().freeze();
                return Ok((!line.trim_ascii().is_empty()).then_some(line));
            }
            match self.body.next().await {
                Some(Ok(bytes)) => {
                    self.buffer.extend_from_slice(&bytes);
                    let kept = self.received.hold_in_time(self.buffer.len());
                    kept.await.map_err(|fault| fault.error())?;
                }
                Some(Err(_)) => {
                    return Err(Error::new(
                        ErrorCode::Interrupted,
                        "the request is incomplete",
                    ));
                }
                None => self.ended = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Users};

    async fn lines(chunks: &[&'static str], limit: usize) -> Vec<Result<String, String>> {
        let chunks: Vec<_> = chunks
            .iter()
            .map(|chunk| Ok::<_, std::io::Error>(Bytes::from_static(chunk.as_bytes())))
            .collect();
        let budget = Budget::new(1 << 20, 1 << 20, Users::One);
        let received = Received::new(&budget, Reader::stranger(), None);
        let body = HttpBody::from_stream(stream::iter(chunks));
        let mut lines = Lines::new(body, limit, received);
        let mut all = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => all.push(Ok(String::from_utf8(line.to_vec()).unwrap())),
                Ok(None) => return all,
                Err(error) => {
                    all.push(Err(error.message));
                    return all;
                }
            }
        }
    }

    #[tokio::test]
    async fn lines_are_found_wherever_the_body_is_cut() {
        let all = lines(&["{\"a\"", ":1}\n\n{\"b\":2}\r\n ", "\n{\"c\"", ":3}"], 100).await;
        let all: Vec<_> = all.into_iter().map(Result::unwrap).collect();
        assert_eq!(all, ["{\"a\":1}", "{\"b\":2}\r", "{\"c\":3}"]);
        let marked = lines(&["\u{feff}{\"a\":1}\r\n", "\u{feff}{}"], 100).await;
        let marked: Vec<_> = marked.into_iter().map(Result::unwrap).collect();
        assert_eq!(marked, ["{\"a\":1}\r", "\u{feff}{}"], "the first only");
    }

    #[tokio::test]
    async fn a_line_without_end_is_refused() {
        let all = lines(&["0123456789", "0123456789"], 15).await;
        assert_eq!(all, [Err("a line is longer than 15 bytes".to_owned())]);
    }
}
