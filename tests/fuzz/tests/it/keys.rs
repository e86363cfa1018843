//! Short texts that name something: keys, ids, places in a body, pauses, addresses.

use reqwest::header::{DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use tg_provider_http::{Secret, address, ollama_address, retry_after, sendable};
use tg_runs::JobId;
use tg_schemas::WorkspaceKey;
use tg_schemas::codec::ContentType;
use tg_schemas::flow_record::RowKey;
use tg_schemas::msg::{AgentRun, LibraryTexts};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::sections;
use tg_testkit::fuzz::run;

#[test]
fn keys() {
    let seeds: [&[u8]; 5] = [
        b"acme#7",
        b"acme#9223372036854775807",
        b"run.12.0123456789abcdef0123456789abcdef",
        b"graph-rag:default",
        b"application/AVRO",
    ];
    run("keys", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let key = WorkspaceKey::parse(&text);
        assert_eq!(WorkspaceKey::parse(key.as_str()), key);
        assert!(key.as_str().starts_with(key.name()) && key.generation() >= 0);
        if let Some(id) = JobId::parse(&text) {
            assert_eq!(id.as_str(), text);
        }
        if let Ok(row) = RowKey::try_from(text.to_string()) {
            assert_eq!(String::from(row), text);
        }
        let _ = ContentType::parse(&text);
    });
}

#[test]
fn sections_of_a_body() {
    let seeds: [&[u8]; 3] = [
        b"AgentRun=3,LibraryTexts=4\nabcdefg",
        b"LibraryTexts=18446744073709551615,AgentRun=1\n",
        b"AgentRun=,=1\n",
    ];
    run("sections of a body", &seeds, |bytes| {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (header, body) = bytes.split_at(end.unwrap_or(bytes.len()));
        let header = String::from_utf8_lossy(header);
        let _ = sections::of::<AgentRun>(&header, body);
        let _ = sections::of::<LibraryTexts>(&header, body);
    });
}

/// A line is a header's value, whichever it is.
#[test]
fn pauses_that_providers_ask_for() {
    let seeds: [&[u8]; 4] = [
        b"Wed, 21 Oct 2015 07:28:30 GMT\nWed, 21 Oct 2015 07:28:00 GMT\n",
        b"1e308\n\n",
        b"7\n\n18446744073709551615",
        b"Sat, 31 Dec 999999 23:59:60 +9999\nMon, 1 Jan 0000 00:00:00 -9999",
    ];
    run("pauses that providers ask for", &seeds, |bytes| {
        let names = [RETRY_AFTER, DATE, HeaderName::from_static("retry-after-ms")];
        let mut headers = HeaderMap::new();
        for (name, line) in names.into_iter().zip(bytes.split(|byte| *byte == b'\n')) {
            if let Ok(value) = HeaderValue::from_bytes(line) {
                headers.insert(name, value);
            }
        }
        let _ = retry_after(&headers);
    });
}

#[test]
fn addresses_of_providers() {
    let seeds: [&[u8]; 4] = [
        b"https://user:pass@h.example:8443/v1/?q#f",
        b"[::1]:11434",
        b"0.0.0.0",
        "http://ü.example/%zz".as_bytes(),
    ];
    run("addresses of providers", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = address("url", &text);
        let _ = address("url", &ollama_address(&text));
        let _ = sendable("key", Some(&Secret::new(text.as_ref())));
    });
}

#[test]
fn cursors_of_listings() {
    let seeds: [&[u8]; 3] = [b"bGlzdApr", b"-1", b"bGlzdC11c2VycwphbGljZQ"];
    run("cursors of listings", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let limit = i64::try_from(bytes.len()).unwrap_or_default() - 3;
        let Ok(asked) = Asked::read("list", limit, &text) else {
            return;
        };
        let _ = asked.after_as::<u64>();
        let mut page = Page::new(asked);
        for number in 0..4 {
            if page.is_full() {
                break;
            }
            page.add(number, text.to_string()).expect("it fits");
        }
    });
}
