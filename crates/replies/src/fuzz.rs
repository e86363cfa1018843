//! Replies as models, or whoever stands where they should, may write them.

use tg_testkit::fuzz::run;

use crate::{Scan, Scanner, answer, apart, array, calls, candidates, lines, may_be_calls, object};

#[test]
fn replies_of_models() {
    let seeds: [&[u8]; 7] = [
        b"<think>Maybe {\"a\": 1}?</think>\n```json\n{\"a\": [1, 2,], 'b': None}\n```\nDone.",
        "{“a”： “x”，“b”: \"C:\\_ \\ud83d\\u12\"}".as_bytes(),
        b"[\n{\"n\": 1},\n{\"n\": /* no */ 2\n} trailing [1]\n</think>\n",
        b"<tool_call>{\"name\": \"add\", \"arguments\": \"{}\"}</tool_call><function=x>{}",
        b"```\n[[[[{\"a\": \"b\"c\",\n\"d\": +1}]]]]\n```",
        b"<tool_call>\n<function=x>\n<parameter=a>\n[1]\n</parameter>\n</function>\n</tool_call><function=y></function>",
        b"[TOOL_CALLS][{\"function\": {\"function\": {\"name\": \"x\"}}}]",
    ];
    run("replies of models", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let (_, said) = apart(text.clone().into_owned());
        assert!(said.len() <= text.len() && answer(&text).len() <= text.len());
        let read = lines(&text);
        assert!(read.values.len() <= text.len());
        if let Ok(found) = candidates(&text) {
            assert!(!found.is_empty());
        }
        let _ = (object(&text), array(&text), may_be_calls(&text));
        for call in calls(&text).into_iter().flatten() {
            let _ = call.object();
        }
        let mut scanner = Scanner::default();
        let _ = text.chars().any(|c| scanner.push(c) == Scan::Closed);
    });
}
