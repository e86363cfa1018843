//! Messages of an answer as any process of the broker may number them: parts that come joined, early, twice or last.

use std::sync::Arc;

use tg_bus::Envelope;
use tg_schemas::Headers;
use tg_testkit::fuzz::door;

use crate::joined::split;
use crate::reorder::Reorder;

/// Two numbers at the head of the bytes, then a body of lines.
fn message(bytes: &[u8]) -> Option<(u64, Envelope)> {
    let (seq, rest) = bytes.split_first_chunk::<8>()?;
    let (parts, body) = rest.split_first_chunk::<1>()?;
    let headers = Headers {
        parts: (parts[0] < 200).then_some(u32::from(parts[0])),
        ..Headers::default()
    };
    let envelope = Envelope {
        headers: Arc::new(headers),
        body: body.to_vec().into(),
        ..Envelope::default()
    };
    Some((u64::from_le_bytes(*seq), envelope))
}

#[test]
fn parts_of_answers() {
    let seeds: [&[u8]; 4] = [
        b"\0\0\0\0\0\0\0\0\x02a\nb\0\x01\0\0\0\0\0\0\0\x01c",
        b"\x01\0\0\0\0\0\0\0\xffd",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x03\n\n",
        b"\0\0\0\0\0\0\0\0\0",
    ];
    door("parts of answers", &seeds, |bytes, sayings| {
        let mut parts = Reorder::default();
        for (at, message) in bytes
            .split(|byte| *byte == 0)
            .filter_map(message)
            .enumerate()
        {
            let (seq, envelope) = message;
            for (seq, part, last) in split(seq, envelope, at % 3 == 0) {
                if sayings.of(parts.accept(seq, (part, last))).is_none() {
                    return;
                }
            }
            while parts.pop().is_some() {}
            let _ = (parts.credit_due(), parts.has_gap(), parts.next());
        }
        if let Some((seq, envelope)) = message(bytes) {
            let said = envelope.headers.parts;
            let found = split(seq, envelope, true);
            assert!(found.is_empty() || found.len() == said.unwrap_or(1) as usize);
        }
    });
}
