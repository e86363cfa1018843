//! What programs say.

use tg_testkit::fuzz::run;

use super::output::Turn;

#[test]
fn lines_of_programs() {
    let seeds: [&[u8]; 4] = [
        br#"{"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}}"#,
        br#"{"type": "assistant", "message": {"content": [{"type": "text", "text": "b"}]}, "error": null}"#,
        br#"{"type": "result", "is_error": false, "result": "c", "total_cost_usd": 1e300, "usage": {"input_tokens": -1}}"#,
        br#"{"type": "system", "subtype": "init"}"#,
    ];
    run("lines of programs", &seeds, |bytes| {
        let mut turn = Turn::default();
        let ends = bytes.split(|byte| *byte == b'\n');
        for reply in ends.filter_map(|line| turn.line(line)).flatten() {
            assert!(reply.usage.in_token >= 0 && reply.usage.out_token >= 0);
        }
    });
}
