//! Texts of models that may be calls of tools; pictures as clients send them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tg_schemas::msg::ChatTool;
use tg_testkit::fuzz::run;

use super::repair::calls;
use crate::picture::Picture;
use tg_replies::may_be_calls;

#[test]
fn calls_that_models_write() {
    let tools = ["add", "now"].map(|name| ChatTool {
        name: name.to_owned(),
        ..ChatTool::default()
    });
    let seeds: [&[u8]; 7] = [
        br#"{"name": "add", "arguments": {"a": 1e400, "b": [null, -1]}}"#,
        br#" {"tool": "add", "parameters": "{\"a\": 1}"} "#,
        br#"{"type": "function", "function": {"name": "add", "arguments": "{}"}}"#,
        br#"[ {"tool_name": "now", "input": []}, {"function": "add", "args": null}]"#,
        b"```json\n{\"name\": \"add\", \"arguments\": {\"a\": \"\\ud83d\\ude00\"}}\n```",
        b"<tool_call>\n{\"name\": \"now\"}\n</tool_call>\n<tool_call>[{\"name\": \"add\"}]</tool_call>",
        b"the sum is {\"name\": \"add\"}",
    ];
    run("calls that models write", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Some(calls) = calls(&text, &tools) else {
            return;
        };
        // In pieces it would have been held back.
        assert!(may_be_calls(text.trim_end()), "it was said already");
        assert!(!calls.is_empty());
        for call in calls {
            assert!(tools.iter().any(|tool| tool.name == call.name));
            assert!(!call.id.is_empty());
        }
    });
}

/// A media type, a zero byte, a picture: as its bytes, and as the text in base64 that a client sends.
#[test]
fn pictures_of_clients() {
    let seeds: [&[u8]; 6] = [
        b"image/png\0\x89PNG\r\n\x1a\nrest",
        b" Image/JPG; q=1\0\xff\xd8\xff\xe0",
        b"\0GIF89a",
        b"image/webp\0RIFF\0\0\0\0WEBPVP8 ",
        b"image/svg+xml\0<svg/>",
        b"image/png\0iVBORw0KGgo=",
    ];
    run("pictures of clients", &seeds, |bytes| {
        let end = bytes.iter().position(|byte| *byte == 0);
        let (told, picture) = bytes.split_at(end.unwrap_or(0));
        let picture = picture.strip_prefix(b"\0").unwrap_or(picture);
        let told = String::from_utf8_lossy(told);
        let texts = [
            STANDARD.encode(picture),
            String::from_utf8_lossy(picture).into_owned(),
        ];
        for text in texts {
            if let Ok(read) = Picture::read(text.clone(), &told) {
                assert_eq!(read.base64, text, "it goes on as it came");
                assert!(read.media_type.starts_with("image/"));
            }
        }
    });
}
