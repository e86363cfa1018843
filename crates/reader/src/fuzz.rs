//! Prompts as users and documents fill them.

use tg_testkit::fuzz::run;

use super::{Shape, pieces, reply};

/// Prompts as the templates of the prompt service render them.
const RENDERED: [&str; 6] = [
    include_str!("../../templates/fixtures/agent-react.txt"),
    include_str!("../../templates/fixtures/extract-definitions.txt"),
    include_str!("../../templates/fixtures/extract-relationships.txt"),
    include_str!("../../templates/fixtures/extract-rows.txt"),
    include_str!("../../templates/fixtures/kg-synthesis.txt"),
    include_str!("../../templates/fixtures/document-prompt.txt"),
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
        let text = reply(&String::from_utf8_lossy(bytes), Shape::Text);
        assert_eq!(pieces(&text).concat(), text, "nothing is lost in pieces");
    });
}
