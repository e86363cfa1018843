//! Chunks of documents that are taken for text; and what a child says of others.

use tg_testkit::fuzz::{run, run_few};

use super::outline::{Outline, Start};
use super::structure::Structure;
use super::{recursive, structure, tokens};
use crate::decode::{HEADER, frame, header};

#[test]
fn chunks_of_texts() {
    let seeds: [&[u8]; 4] = [
        b"one two\n\nthree four five\nsix\n\n\n",
        "漢字かな交じり文𝄞 e\u{301}\u{200d}".as_bytes(),
        b"                    ",
        b"0123456789012345678901234567890123456789",
    ];
    run("chunks of texts", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let (size, overlap) = (bytes.len() % 97 + 1, bytes.len() % 13);
        let overlap = overlap.min(size - 1);
        for slice in recursive::split(&text, size, overlap) {
            assert_eq!(text[slice.bytes].chars().count(), slice.length);
            // The kept tail, a blank line between, and a piece shorter than `size`.
            assert!(slice.length < overlap + "\n\n".len() + size);
        }
        // Of a long run of letters each merge of tokens is looked for: a part is enough.
        let end = (0..=text.len().min(2048)).rev();
        let end = end.into_iter().find(|at| text.is_char_boundary(*at));
        let part = &text[..end.unwrap_or(0)];
        for slice in tokens::split(part, size, overlap) {
            assert!(!part[slice.bytes].is_empty());
        }
    });
}

#[test]
fn frames_of_children() {
    let seeds: [&[u8]; 3] = [
        b"\x01\0\0\0\x07\0\0\0\x01a",
        b"\x03\0\0\0\0\xff\xff\xff\xff",
        b"\x0c\0\x01\0\0\0\0\0\0",
    ];
    run("frames of children", &seeds, |bytes| {
        let mut rest = bytes;
        while let Some((head, body)) = rest.split_first_chunk::<HEADER>() {
            let Some((tag, number, length)) = header(head) else {
                break;
            };
            let Some((text, after)) = body.split_at_checked(length) else {
                break;
            };
            let _ = frame(tag, number, text.to_vec());
            rest = after;
        }
    });
}

/// Cut by its structure, and followed by its outline; also where it begins in the middle of something.
#[test]
fn structures_of_texts() {
    let seeds: [&[u8]; 7] = [
        b"> a\n> : b\n\nc\n:   d\n    :   e\n\n[^f]: g\n\n- [x] $h$\n",
        b"---\ntitle: a\n---\n# b\n\n## c #\n\nd\n===\n\n```rust\n# e\n```\n\n| f | g |\n| --- | --- |\n| 1 | 2 |\n",
        b"- a\n  - b\n    1. c\n> > d\n\n<div>\n\n[e]: f\n\n***\n",
        b"use a::b;\n\n/// C.\nfn d(e: u8) {\n    f();\n\n}\n\nclass G:\n\tdef h(self):\n\t\tpass\n",
        b"name;price\r\na;1,50\r\n\"b\nc\";2\r\n",
        "# Ü𝄞\u{2028}\n\n漢字かな交じり文\n\n~~~~\n``` \n".as_bytes(),
        b"a\tb\tc\n\n\n\n|\n|-\n",
    ];
    run_few("structures of texts", &seeds, 100, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let (size, overlap) = (bytes.len() % 197 + 1, bytes.len() % 13);
        let overlap = overlap.min(size - 1);
        structure::tests::check(&text, size, overlap);
        for mime in ["text/plain", "text/markdown", "text/x-rust", "text/csv"] {
            let structure = Structure::of(mime);
            let start = Start {
                title: "t".to_owned(),
                ..Start::default()
            };
            let mut outline = Outline::new(structure, start);
            let slices = structure.split(&text, size, overlap);
            assert_eq!(outline.contexts(&text, &slices).len(), slices.len());
            let mut on = Outline::new(structure, outline.here());
            on.pass(&text);
            assert!(on.here().headings.len() <= 6);
        }
    });
}
