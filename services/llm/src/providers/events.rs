//! Server-sent events of model providers. Reads a little more than the standard: an event that the end of the stream cuts off but
//! whose data is whole, data lines that no empty line separates, JSON without a field name, and the field `error`.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use serde::de::IgnoredAny;
use tg_provider_http::HttpError;

use crate::error::LlmError;

const MARK: char = '\u{feff}';

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Whether it says of itself that it is an error.
    pub(super) is_error: bool,
    /// Its data.
    pub(super) data: String,
}

/// The events of a body.
pub(super) fn events<S>(bytes: S) -> impl Stream<Item = Result<Event, LlmError>> + Send + 'static
where
    S: Stream<Item = Result<Bytes, HttpError>> + Send + 'static,
{
    let state = (bytes.boxed(), Reader::default(), false);
    stream::unfold(state, |(mut bytes, mut reader, mut over)| async move {
        loop {
            if let Some(event) = reader.ready.pop_front() {
                return Some((Ok(event), (bytes, reader, over)));
            }
            if over {
                return None;
            }
            match bytes.next().await {
                Some(Ok(piece)) => reader.push(&piece),
                Some(Err(error)) => return Some((Err(error.into()), (bytes, reader, true))),
                None => {
                    over = true;
                    if !reader.finish() {
                        return Some((Err(LlmError::Malformed), (bytes, reader, over)));
                    }
                }
            }
        }
    })
}

/// Takes a body piece by piece. What it holds is bounded by the longest body that is read.
#[derive(Default)]
struct Reader {
    /// The line that is open.
    line: Vec<u8>,
    /// The last line ended with a carriage return: a line feed belongs to it.
    returned: bool,
    is_begun: bool,
    /// Some line was of events.
    is_known: bool,
    /// Some line was not.
    is_strange: bool,
    event: Event,
    has_data: bool,
    ready: VecDeque<Event>,
}

impl Reader {
    fn push(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            let (line, end) = rest.split_at(at);
            self.add_to_line(line);
            let returned = std::mem::replace(&mut self.returned, end[0] == b'\r');
            if !returned || self.returned {
                self.end_line();
            }
            rest = &end[1..];
        }
        self.add_to_line(rest);
    }

    fn add_to_line(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.returned = false;
            self.line.extend_from_slice(bytes);
        }
    }

    /// The body is over; `false`: nothing of it is what events consist of.
    fn finish(&mut self) -> bool {
        if !self.line.is_empty() {
            self.end_line();
        }
        // An event that was cut off within its data says nothing.
        if is_whole(&self.event.data) {
            self.end_event();
        }
        self.is_known || !self.is_strange
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        // A provider that cuts a character in two loses that one only.
        let line = String::from_utf8_lossy(&line);
        let mut line = line.as_ref();
        if !std::mem::replace(&mut self.is_begun, true) {
            line = line.strip_prefix(MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.end_event();
            return;
        }
        if line.starts_with('{') {
            self.add(line, false);
            self.is_known = true;
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.add(value, false),
            "error" => self.add(value, true),
            "event" => self.event.is_error |= value.trim() == "error",
            _ => {}
        }
        match field {
            "" | "data" | "error" | "event" | "id" | "retry" => self.is_known = true,
            _ => self.is_strange = true,
        }
    }

    fn add(&mut self, data: &str, is_error: bool) {
        if self.has_data && is_whole(&self.event.data) {
            self.end_event();
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.event.data.push('\n');
        }
        self.event.is_error |= is_error;
        self.event.data.push_str(data);
    }

    fn end_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            self.ready.push_back(event);
        }
    }
}

/// Whether data needs no further line.
fn is_whole(data: &str) -> bool {
    data.trim() == "[DONE]" || serde_json::from_slice::<IgnoredAny>(data.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    fn read(body: &[u8], size: usize) -> Vec<Event> {
        let pieces: Vec<_> = body.chunks(size).map(Bytes::copy_from_slice).collect();
        let events = events(stream::iter(pieces.into_iter().map(Ok)));
        let events: Vec<_> = block_on(events.collect());
        events.into_iter().filter_map(Result::ok).collect()
    }

    fn told(data: &[&str]) -> Vec<Event> {
        let event = |data: &&str| Event {
            is_error: data.contains("wrong"),
            data: (*data).to_owned(),
        };
        data.iter().map(event).collect()
    }

    /// Wherever the pieces are cut.
    #[test]
    fn events_are_read_as_servers_write_them() {
        for (body, data) in [
            ("data: a\n\ndata:b\n\ndata:  c\n\n", vec!["a", "b", " c"]),
            ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", vec!["a", "b", "c"]),
            (
                ": keep-alive\n\n:\n\nid: 1\nretry: 9\nevent: x\ndata: a\n\n\n\n",
                vec!["a"],
            ),
            ("data: a\ndata: b\n\ndata\n\n", vec!["a\nb", ""]),
            ("data: {\"a\":\ndata: 1}\n\n", vec!["{\"a\":\n1}"]),
            ("data: Grüße ✓😀\n\n", vec!["Grüße ✓😀"]),
            // What the standard does not know.
            (
                "data: {\"a\": 1}\ndata: {\"b\": 1}\ndata: [DONE]\n",
                vec!["{\"a\": 1}", "{\"b\": 1}", "[DONE]"],
            ),
            ("data: 1\n\ndata: [DONE]", vec!["1", "[DONE]"]),
            ("data: 1\n\ndata: {\"cut", vec!["1"]),
            ("{\"a\": 1}\n{\"b\": 1}\n", vec!["{\"a\": 1}", "{\"b\": 1}"]),
            (
                "event: error\ndata: {\"wrong\": 1}\n\ndata: 1\n\n",
                vec!["{\"wrong\": 1}", "1"],
            ),
            (
                "data: 1\n\nerror: {\"wrong\": 1}\n\n",
                vec!["1", "{\"wrong\": 1}"],
            ),
        ] {
            for size in 1..=body.len() {
                assert_eq!(
                    read(body.as_bytes(), size),
                    told(&data),
                    "{body:?} by {size}"
                );
            }
        }
        assert_eq!(read(b"data: \xff!\n\n", 3), told(&["\u{fffd}!"]));
    }

    #[test]
    fn a_mark_before_the_text_is_no_part_of_it() {
        let mark = b"\xef\xbb\xbf".as_slice();
        for (marks, said) in [(0, vec!["a"]), (1, vec!["a"]), (2, vec![])] {
            let whole = [&mark.repeat(marks), b"data: a\n\n".as_slice()].concat();
            for size in 1..=whole.len() {
                assert_eq!(
                    read(&whole, size),
                    told(&said),
                    "{marks} marks, pieces of {size}"
                );
            }
        }
    }
}
