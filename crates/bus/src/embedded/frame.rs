//! How the log's entries look on disk: `length, checksum, kind, fields`, little-endian.
//!
//! Knows no files and no queues. Whatever does not parse or whose checksum is wrong is the torn end of
//! a log, never a panic.

use std::sync::Arc;

use bytes::Bytes;
use crc32fast::hash as crc32;
use tg_schemas::Headers;
use tg_schemas::codec::ContentType;

use crate::bus::Envelope;

/// Length and checksum.
pub(super) const PREFIX: usize = 8;

/// Something that happened.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// A durable queue exists: number, topic id, subscription name.
    Queue(u32, String, String),
    /// It is gone, with all that was in it.
    QueueGone(u32),
    /// A topic exists.
    Topic(String),
    /// It is gone.
    TopicGone(String),
    /// A record, and the queues that want it.
    Record(u64, Vec<u32>, Envelope),
    /// A queue is done with a record.
    Done(u32, u64),
}

/// Appends a frame to `out`; returns how long it is.
pub(super) fn write(out: &mut Vec<u8>, entry: &Entry) -> usize {
    match entry {
        Entry::Queue(id, topic, name) => framed(out, 1, |out| {
            number(out, *id);
            text(out, topic);
            text(out, name);
        }),
        Entry::QueueGone(id) => framed(out, 2, |out| number(out, *id)),
        Entry::Topic(topic) => framed(out, 3, |out| text(out, topic)),
        Entry::TopicGone(topic) => framed(out, 4, |out| text(out, topic)),
        Entry::Record(seq, queues, envelope) => write_record(out, *seq, queues, envelope),
        Entry::Done(queue, seq) => framed(out, 6, |out| {
            number(out, *queue);
            out.extend_from_slice(&seq.to_le_bytes());
        }),
    }
}

/// Appends a record's frame without taking the envelope.
pub(super) fn write_record(
    out: &mut Vec<u8>,
    seq: u64,
    queues: &[u32],
    envelope: &Envelope,
) -> usize {
    framed(out, 5, |out| {
        out.extend_from_slice(&seq.to_le_bytes());
        number(out, queues.len() as u32);
        queues.iter().for_each(|id| number(out, *id));
        out.push(u8::from(envelope.content_type == ContentType::Avro));
        let pairs = envelope.headers.pairs();
        number(out, pairs.len() as u32);
        for (name, value) in pairs {
            text(out, name);
            text(out, &value);
        }
        number(out, envelope.body.len() as u32);
        out.extend_from_slice(&envelope.body);
    })
}

/// Reads the frame at the start of `data`: the entry and the frame's length.
pub(super) fn read(data: &[u8]) -> Option<(Entry, usize)> {
    let mut prefix = Fields(data);
    let length = prefix.number()? as usize;
    let checksum = prefix.number()?;
    let payload = prefix.0.get(..length)?;
    if crc32(payload) != checksum {
        return None;
    }
    let mut fields = Fields(payload);
    let entry = match fields.take(1)?[0] {
        1 => Entry::Queue(fields.number()?, fields.text()?, fields.text()?),
        2 => Entry::QueueGone(fields.number()?),
        3 => Entry::Topic(fields.text()?),
        4 => Entry::TopicGone(fields.text()?),
        5 => {
            let seq = fields.long()?;
            let queues = (0..fields.number()?)
                .map(|_| fields.number())
                .collect::<Option<_>>()?;
            Entry::Record(seq, queues, fields.envelope()?)
        }
        6 => Entry::Done(fields.number()?, fields.long()?),
        _ => return None,
    };
    Some((entry, PREFIX + length))
}

fn framed(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    out.push(kind);
    fill(out);
    let payload = start + PREFIX;
    let length = (out.len() - payload) as u32;
    let checksum = crc32(&out[payload..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..payload].copy_from_slice(&checksum.to_le_bytes());
    out.len() - start
}

fn number(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn text(out: &mut Vec<u8>, value: &str) {
    number(out, value.len() as u32);
    out.extend_from_slice(value.as_bytes());
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn envelope(&mut self) -> Option<Envelope> {
        let content_type = match self.take(1)?[0] {
            0 => ContentType::Json,
            _ => ContentType::Avro,
        };
        let mut headers = Headers::default();
        for _ in 0..self.number()? {
            let name = self.text()?;
            headers.set(&name, &self.text()?);
        }
        let length = self.number()? as usize;
        Some(Envelope {
            headers: Arc::new(headers),
            content_type,
            body: Bytes::copy_from_slice(self.take(length)?),
            ..Envelope::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-32 (IEEE): logs that were written by another version are read.
    #[test]
    fn checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn entries_survive_and_damage_is_noticed() {
        let envelope = Envelope {
            headers: Arc::new(Headers {
                id: Some("ä".into()),
                attempt: Some(3),
                ..Headers::default()
            }),
            content_type: ContentType::Avro,
            body: Bytes::from_static(b"\0body"),
            ..Envelope::default()
        };
        let entries = [
            Entry::Queue(7, "flow:tg:x".into(), "reader".into()),
            Entry::QueueGone(7),
            Entry::Topic("flow:tg:x".into()),
            Entry::TopicGone("flow:tg:x".into()),
            Entry::Record(99, vec![1, 2], envelope),
            Entry::Done(1, 99),
        ];
        for entry in entries {
            let mut data = Vec::new();
            let length = write(&mut data, &entry);
            let (back, read_length) = read(&data).unwrap();
            assert_eq!(length, read_length);
            assert_eq!(format!("{back:?}"), format!("{entry:?}"));
            assert!(read(&data[..length - 1]).is_none(), "torn");
            data[length - 1] ^= 1;
            assert!(read(&data).is_none(), "damaged");
        }
    }
}
