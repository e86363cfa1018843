//! What a stranger may send through the endpoints: headers, frames of the socket and their heads, lines of imports,
//! selectors and expositions of metrics.

use axum::body::Body as HttpBody;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use bytes::Bytes;
use futures::executor::block_on;
use futures::stream;
use tg_core_file::msgpack;
use tg_core_file::record::to_put;
use tg_testkit::fuzz::run;

use super::frame_heads::heads;
use super::socket_frame::parse;
use super::{cores, edge, intake, read};
use crate::auth::guard::{is_foreign_page, is_local};
use crate::budget::{Budget, Reader, Users};
use crate::engine::promql::{Selector, parse_text};
use crate::engine::translate::bulk::BulkKind;
use crate::received::Received;

#[test]
fn frames_of_the_socket() {
    let seeds: [&[u8]; 4] = [
        br#"{"id": "1", "service": "agent", "flow": "default", "request": {"question": "q"}, "timeout": 5}"#,
        br#"{"type": "auth", "token": "t"}"#,
        br#"{"type": "cancel", "id": [1, {"a": null}]}"#,
        br#"{"id": 1e999, "service": "config", "workspace": "w", "request": {"operation": "get"}, "detach": true}"#,
    ];
    run("frames of the socket", &seeds, |bytes| {
        let _ = parse(bytes, false);
        let _ = parse(bytes, true);
    });
}

#[test]
fn selectors_of_metrics() {
    let seeds: [&[u8]; 3] = [
        br#"consumer_state{processor="a", flow!="b\"c\\", x=~"d.*", y!~"e"}"#,
        b"# HELP a b\n# TYPE tg_a counter\ntg_a{x=\"y\"} 1\na 2.5e3\na NaN",
        b"processor_info",
    ];
    run("selectors of metrics", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let samples = parse_text(&text, "a");
        if let Some(selector) = Selector::parse(&text) {
            let _ = (
                selector.name(),
                samples
                    .iter()
                    .filter(|sample| selector.matches(sample))
                    .count(),
            );
        }
    });
}

/// A line is a header: its name, a zero byte, its value.
#[test]
fn headers_of_requests() {
    let seeds: [&[u8]; 4] = [
        b"authorization\0Bearer tg_x\nx-timeout\x0030\nx-detach\0true",
        b"host\0localhost:8088\norigin\0http://localhost:8088\nsec-fetch-site\0cross-site\ncontent-type\0text/plain",
        b"x-request-id\0a-b_c.1\ntraceparent\x0000-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
        b"connection\0keep-alive, Upgrade\nupgrade\0WebSocket\nhost\0[::1]:99999",
    ];
    run("headers of requests", &seeds, |bytes| {
        let mut headers = HeaderMap::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let end = line.iter().position(|byte| *byte == 0).unwrap_or(0);
            let name = HeaderName::from_bytes(&line[..end]);
            let value = HeaderValue::from_bytes(line.get(end + 1..).unwrap_or_default());
            if let (Ok(name), Ok(value)) = (name, value) {
                let _ = headers.try_append(name, value);
            }
        }
        let _ = (read::bearer(&headers), read::timeout(&headers));
        let _ = (read::detach(&headers), is_foreign_page(&headers));
        let _ = edge::told(&headers);
        if let Ok(uri) = Uri::try_from(bytes) {
            let _ = is_local(&headers, &uri);
        }
    });
}

#[test]
fn heads_of_frames() {
    let seeds: [&[u8]; 4] = [
        b"\x81\x85abcdhello\x89\x00",
        b"\x01\x7e\x01\x00",
        b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x02\x7f\0\0\0\0\0\0\x10\0",
    ];
    run("heads of frames", &seeds, |bytes| {
        let whole = heads([bytes]);
        // However the bytes are cut, the same is found.
        let pieces = bytes.chunks(bytes.len() % 7 + 1);
        assert_eq!(heads(pieces), whole);
    });
}

#[test]
fn lines_of_imports() {
    let seeds: [&[u8]; 4] = [
        br#"{"type": "end"}"#,
        br#"{"complete": true, "frames": 3}"#,
        br#"{"metadata": {"id": "m"}, "triples": [{"s": {"t": "i", "i": "a"}}]}"#,
        b"[[[[",
    ];
    run("lines of imports", &seeds, |bytes| {
        if let Some(control) = intake::control(bytes) {
            assert!(bytes.len() <= 4096, "{control:?}");
        }
        for kind in BulkKind::ALL {
            let _ = intake::read(kind, bytes);
        }
    });
}

#[test]
fn uploads_of_cores() {
    let mut seed = Vec::new();
    for record in [
        serde_json::json!(["t", {"m": {"i": "id", "c": "c"}, "t": [[["i", "urn:a"], 1, -2, 0.5, null, true]]}]),
        serde_json::json!(["lb", {"i": "urn:d", "d": "aGVsbG8="}]),
    ] {
        msgpack::encode(&record, &mut seed);
    }
    run("uploads of cores", &[&seed], |bytes| {
        let pieces = bytes.chunks(bytes.len() % 301 + 1);
        let pieces: Vec<Result<Bytes, std::io::Error>> = pieces
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        let body = HttpBody::from_stream(stream::iter(pieces));
        let budget = Budget::new(1 << 20, 1 << 20, Users::One);
        let received = Received::new(&budget, Reader::stranger(), None);
        let mut records = cores::Records::new(body, 16 << 10, received);
        while let Ok(Some(record)) = block_on(records.next()) {
            let _ = to_put(record, "core");
        }
    });
}
