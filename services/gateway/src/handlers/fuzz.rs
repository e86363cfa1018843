//! What a stranger may send through the endpoints: headers, frames of the socket and their heads, lines of imports,
//! forms of SPARQL, requests to authorize, selectors and expositions of metrics.

use axum::body::Body as HttpBody;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use bytes::Bytes;
use futures::executor::block_on;
use futures::stream;
use tg_core_file::msgpack;
use tg_testkit::fuzz::{beside_doors, door, run};

use super::frame_heads::heads;
use super::oauth::fields;
use super::socket_frame::{parse, question};
use super::sparql::Asked;
use super::{cores, edge, intake, read};
use crate::auth::guard::{is_foreign_page, is_local};
use crate::budget::{Budget, Reader, Users};
use crate::engine::oauth::{self, Refused, origin};
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
    door("frames of the socket", &seeds, |bytes, sayings| {
        for known in [false, true] {
            if let Err(refused) = parse(bytes, known) {
                sayings.say(refused.fault.frame(refused.id.as_ref()));
            }
        }
        if let Err(fault) = question(bytes) {
            sayings.say(fault.error());
        }
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
    let seeds: [&[u8]; 5] = [
        b"authorization\0Bearer tg_x\nx-timeout\x0030\nx-detach\0true",
        b"last-event-id\0r:7\nx-on-disconnect\0grace=30",
        b"host\0localhost:8088\norigin\0http://localhost:8088\nsec-fetch-site\0cross-site\ncontent-type\0text/plain",
        b"x-request-id\0a-b_c.1\ntraceparent\x0000-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
        b"connection\0keep-alive, Upgrade\nupgrade\0WebSocket\nhost\0[::1]:99999",
    ];
    beside_doors("headers of requests", &seeds, |bytes, sayings| {
        let mut headers = HeaderMap::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let end = line.iter().position(|byte| *byte == 0).unwrap_or(0);
            let name = HeaderName::from_bytes(&line[..end]);
            let value = HeaderValue::from_bytes(line.get(end + 1..).unwrap_or_default());
            if let (Ok(name), Ok(value)) = (name, value) {
                let _ = headers.try_append(name, value);
            }
        }
        let _ = (read::bearer(&headers), is_foreign_page(&headers));
        let faults = [
            read::timeout(&headers).err(),
            read::leave(&headers).err(),
            read::last_event(&headers).err(),
        ];
        for fault in faults.into_iter().flatten() {
            sayings.say(fault.error());
        }
        let _ = edge::told(&headers);
        if let Ok(uri) = Uri::try_from(bytes) {
            let _ = is_local(&headers, &uri);
        }
    });
}

/// Parts are a query string and a form.
#[test]
fn forms_of_sparql() {
    let seeds: [&[u8]; 5] = [
        b"query=ASK+%7B%7D&default-graph-uri=urn%3Aa&named-graph-uri=urn:b&workspace=acme\0format=xml",
        b"query=a\0query=b",
        b"workspace=%ff&&=&%3d=%",
        b"update=DROP+ALL",
        b"que%72y=%F0%9F%98%80&named-graph-uri\0%C3%28=x",
    ];
    beside_doors("forms of SPARQL", &seeds, |bytes, sayings| {
        let mut asked = Asked::default();
        for part in bytes.split(|byte| *byte == 0) {
            match asked.with(&String::from_utf8_lossy(part)) {
                Ok(more) => asked = more,
                Err(fault) => return sayings.say(fault.error()),
            }
        }
    });
}

#[test]
fn requests_to_authorize() {
    let seeds: [&[u8]; 3] = [
        b"response_type=code&client_id=eyJuIjoiVCIsInIiOlsiaHR0cDovLzEyNy4wLjAuMS9jYiJdfQ&redirect_uri=http%3A%2F%2F127.0.0.1%2Fcb&code_challenge_method=S256&state=s",
        b"client_id=%7B%7D&redirect_uri=https://evil.example/cb&resource=",
        b"a=b&a=c&%ff",
    ];
    run("requests to authorize", &seeds, |bytes| {
        let Some(given) = fields(&String::from_utf8_lossy(bytes)) else {
            return;
        };
        let to = match oauth::Asked::read(&given, "http://gate:1", |_| false) {
            Ok((_, asked)) => asked.back("code", "c"),
            Err(Refused::Back(to)) => to,
            Err(Refused::Here(_)) => return,
        };
        // Nobody is sent to another machine.
        let host = origin(&to).unwrap().trim_start_matches("http://");
        let is_here = ["127.0.0.1", "[::1]", "localhost"].iter().any(|name| {
            let port = host.strip_prefix(name);
            port.is_some_and(|port| port.is_empty() || port.starts_with(':'))
        });
        assert!(is_here, "{to}");
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
    door("heads of frames", &seeds, |bytes, _| {
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
    door("lines of imports", &seeds, |bytes, sayings| {
        if let Some(control) = intake::control(bytes) {
            assert!(bytes.len() <= 4096, "{control:?}");
        }
        for kind in BulkKind::ALL {
            let _ = sayings.of(intake::read(kind, bytes));
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
    door("uploads of cores", &[&seed], |bytes, sayings| {
        let pieces = bytes.chunks(bytes.len() % 301 + 1);
        let pieces: Vec<Result<Bytes, std::io::Error>> = pieces
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        let body = HttpBody::from_stream(stream::iter(pieces));
        let budget = Budget::new(1 << 20, 1 << 20, Users::One);
        let received = Received::new(&budget, Reader::stranger(), None);
        let mut records = cores::Records::new(body, 16 << 10, received);
        while let Some(Some(record)) = sayings.of(block_on(records.next())) {
            let _ = sayings.of(cores::put_of(&record, "core", 1));
        }
    });
}
