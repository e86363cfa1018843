//! Segments of the log as a disk may give them back.

use std::sync::Arc;

use bytes::Bytes;
use crc32fast::hash as crc32;
use tg_schemas::Headers;
use tg_testkit::fuzz::run;

use super::frame::{self, Entry, PREFIX};
use super::recovery::Found;
use crate::bus::Envelope;

fn entries() -> Vec<u8> {
    let mut out = Vec::new();
    let envelope = Envelope {
        headers: Arc::new(Headers {
            id: Some("ä".into()),
            ..Headers::default()
        }),
        body: Bytes::from_static(b"{}"),
        ..Envelope::default()
    };
    for entry in [
        Entry::Topic("flow:tg:x".into()),
        Entry::Queue(7, "flow:tg:x".into(), "reader".into()),
        Entry::Record(1, vec![7], envelope),
        Entry::Done(7, 1),
        Entry::QueueGone(7),
        Entry::TopicGone("flow:tg:x".into()),
    ] {
        frame::write(&mut out, &entry);
    }
    out
}

/// Checksums that fit whatever the frames hold now: else nothing behind them is ever read.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 0;
    while let Some(prefix) = out.get(at..at + 4) {
        let length = u32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]) as usize;
        let Some(payload) = out.get(at + PREFIX..at + PREFIX + length) else {
            break;
        };
        let checksum = crc32(payload);
        out[at + 4..at + PREFIX].copy_from_slice(&checksum.to_le_bytes());
        at += PREFIX + length;
    }
    out
}

#[test]
fn segments() {
    let seed = entries();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("segment");
    run("segments of the log", &[&seed], |bytes| {
        for bytes in [bytes.to_vec(), sealed(bytes)] {
            std::fs::write(&path, &bytes).expect("written");
            let mut found = Found::default();
            let length = found.replay_segment(1, &path).expect("read");
            assert_eq!(length, bytes.len() as u64);
            found.settle();
            let mut out = Vec::new();
            found.catalogue.write(&mut out);
        }
    });
}
