//! Prompts as users and documents fill them, to the reader that serves without a provider.

use futures::StreamExt;
use futures::executor::block_on;
use tg_testkit::fuzz::run;

use super::builtin::Builtin;
use crate::model::{ChatModel, ChatRequest};

/// Prompts as the templates of the prompt service render them.
const RENDERED: [&str; 6] = [
    include_str!("../../../prompt/fixtures/agent-react.txt"),
    include_str!("../../../prompt/fixtures/extract-definitions.txt"),
    include_str!("../../../prompt/fixtures/extract-relationships.txt"),
    include_str!("../../../prompt/fixtures/extract-rows.txt"),
    include_str!("../../../prompt/fixtures/kg-synthesis.txt"),
    include_str!("../../../prompt/fixtures/document-prompt.txt"),
];

#[test]
fn prompts_of_others() {
    let mut seeds: Vec<&[u8]> = RENDERED.iter().map(|text| text.as_bytes()).collect();
    seeds.push(b"A bridge is a road over water. Anna built the Old Bridge in 1429, and owns 3.5 m of it.\n");
    seeds.push(
        b"Thought: x\nAction: graph_about\nArgs: {\"name\": \"a\"}\nObservation: {\"a\": [1]}\n",
    );
    run("prompts of others", &seeds, |bytes| {
        // Each word of the question is looked for in every sentence: a part is enough.
        let bytes = &bytes[..bytes.len().min(16 << 10)];
        let request = ChatRequest {
            prompt: String::from_utf8_lossy(bytes).into_owned(),
            ..ChatRequest::default()
        };
        let mut chat = block_on(Builtin.chat(&request)).expect("an answer");
        while let Some(event) = block_on(chat.next()) {
            assert!(event.is_ok());
        }
    });
}
