//! What a stranger may send through the endpoints: frames of the socket, selectors and expositions of metrics.

use tg_testkit::fuzz::run;

use super::socket_frame::parse;
use crate::engine::promql::{Selector, parse_text};

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
