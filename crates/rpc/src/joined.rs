//! Several parts of an answer in one message: one body line each.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use tg_bus::{Envelope, Handover};

use crate::window::{JOINED_BYTES, MAX_PARTS};

/// Parts as messages: one for all where the asker reads that (`joinable`), unless it would be large. One that is not written has no
/// line.
pub(crate) fn join(mut parts: Vec<Envelope>, joinable: bool) -> Vec<Envelope> {
    let bytes: usize = parts.iter().map(|part| part.body.len() + 1).sum();
    let is_line = |part: &Envelope| !part.handover.is_unwritten() && !part.body.contains(&b'\n');
    let lines = parts.iter().all(is_line);
    if parts.len() < 2 || !joinable || bytes > JOINED_BYTES || !lines {
        return parts;
    }
    let mut body = Vec::with_capacity(bytes);
    for part in &parts {
        if !body.is_empty() {
            body.push(b'\n');
        }
        body.extend_from_slice(&part.body);
    }
    let (first, number) = (parts[0].headers.seq, parts.len());
    let handover = parts
        .iter_mut()
        .map(|part| std::mem::take(&mut part.handover));
    let handover = Handover::joined(handover.collect());
    let mut joined = parts.pop().unwrap_or_default();
    let headers = Arc::make_mut(&mut joined.headers);
    headers.seq = first;
    headers.parts = u32::try_from(number).ok();
    joined.body = body.into();
    joined.handover = handover;
    vec![joined]
}

/// The parts of a message, each with its number and whether it is the last. None if the message does not
/// hold as many as it says: they are asked for again like lost ones.
pub(crate) fn split(seq: u64, envelope: Envelope, last: bool) -> Vec<(u64, Envelope, bool)> {
    let Some(number) = envelope.headers.parts else {
        return vec![(seq, envelope, last)];
    };
    let handover = envelope.handover.split();
    let parts = match handover.iter().any(Handover::is_unwritten) {
        true => vec![Bytes::new(); handover.len()],
        false => lines(envelope.body),
    };
    let mut handover = handover.into_iter();
    if u32::try_from(parts.len()) != Ok(number) || parts.len() > MAX_PARTS {
        tracing::warn!("a message of an answer does not hold the parts it names");
        return Vec::new();
    }
    let Some(end) = seq.checked_add(parts.len() as u64 - 1) else {
        return Vec::new();
    };
    (seq..=end)
        .zip(parts)
        .map(|(seq, body)| {
            let part = Envelope {
                content_type: envelope.content_type,
                body,
                handover: handover.next().unwrap_or_default(),
                ..Envelope::default()
            };
            (seq, part, last && seq == end)
        })
        .collect()
}

fn lines(mut rest: Bytes) -> Vec<Bytes> {
    let mut lines = Vec::new();
    while let Some(at) = memchr::memchr(b'\n', &rest) {
        lines.push(rest.split_to(at));
        rest.advance(1);
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use tg_schemas::Headers;
    use tg_schemas::msg::AgentResponse;

    use super::*;

    fn part(seq: u64, text: &str) -> Envelope {
        Envelope {
            headers: Arc::new(Headers {
                seq: Some(seq),
                ..Headers::default()
            }),
            body: text.to_owned().into(),
            ..Envelope::default()
        }
    }

    #[test]
    fn what_is_joined_splits_into_the_same_parts() {
        let joined = join(vec![part(4, "a"), part(5, "b"), part(6, "c")], true);
        assert_eq!(joined.len(), 1);
        let parts = split(4, joined[0].clone(), true);
        let read: Vec<_> = parts
            .iter()
            .map(|(seq, part, last)| (*seq, &part.body[..], *last))
            .collect();
        assert_eq!(
            read,
            [(4, &b"a"[..], false), (5, b"b", false), (6, b"c", true)]
        );
    }

    #[test]
    fn parts_without_bodies_travel_together_as_they_are() {
        let unwritten = |text: &str| {
            let message = AgentResponse {
                content: text.to_owned(),
                ..AgentResponse::default()
            };
            Handover::unwritten(9, message)
        };
        let message = Envelope {
            headers: Arc::new(Headers {
                parts: Some(2),
                ..Headers::default()
            }),
            handover: Handover::joined(vec![unwritten("a"), unwritten("b")]),
            ..Envelope::default()
        };
        let parts = split(4, message.clone(), true);
        assert_eq!(parts.len(), 2);
        for ((at, part, last), (seq, text)) in parts.into_iter().zip([(4, "a"), (5, "b")]) {
            assert_eq!((at, part.size(), last), (seq, 9, seq == 5));
            assert_eq!(part.read::<AgentResponse>().unwrap().content, text);
        }
        assert!(split(4, message, true).is_empty(), "taken");
        let single = Envelope {
            handover: unwritten("a"),
            ..part(0, "")
        };
        assert_eq!(join(vec![single, part(1, "c")], true).len(), 2);
    }

    #[test]
    fn large_parts_lines_and_plain_readers_get_single_messages() {
        let large = "x".repeat(JOINED_BYTES / 2 + 1);
        assert_eq!(join(vec![part(0, &large), part(1, &large)], true).len(), 2);
        assert_eq!(join(vec![part(0, "a\nb"), part(1, "c")], true).len(), 2);
        assert_eq!(join(vec![part(0, "a"), part(1, "c")], false).len(), 2);
    }

    #[test]
    fn a_message_that_lies_about_its_parts_holds_none() {
        let mut message = part(0, "a\nb");
        Arc::make_mut(&mut message.headers).parts = Some(3);
        assert!(split(0, message.clone(), false).is_empty());
        Arc::make_mut(&mut message.headers).parts = Some(2);
        assert!(split(u64::MAX, message.clone(), true).is_empty());
        let parts = split(u64::MAX - 1, message, true);
        assert!(parts.len() == 2 && parts[1].0 == u64::MAX && parts[1].2);
    }
}
