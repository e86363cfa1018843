//! What a reasoning model thinks before its reply: the asker is shown it as a thought, and nobody obeys it.

use tg_schemas::vocabulary::tg;
use tg_testkit::place::Place;

use super::dialog::joined;
use super::world::{Say, World, question, values};

/// What it thinks looks like a decision, and like an answer.
const THINKS: &str = "Shall I?\nAction: remote\nArgs: {\"x\": 1}\nFinal Answer: no\n";
const ADD: &str = "Thought: I add.\nAction: calculator\nArgs: {\"expression\": \"2+2\"}\n";

const ACTS: &str = "Action: calculator\nArgs: {\"expression\": \"2+2\"}\n";

async fn what_a_model_thinks_is_shown_and_no_decision(place: Place) {
    for streaming in [true, false] {
        let script = [
            Say::Thinks(THINKS, ADD),
            Say::Thinks("Done, I think.", "Final Answer: It is 4"),
        ];
        let world = World::new(&place.another().await, script).await;
        let chunks = world.run(&question("2+2?", streaming)).await;
        let told = joined(&chunks);
        let of = |kind: &str| -> Vec<&str> {
            let all = told.iter().filter(|told| told.starts_with(kind));
            all.map(String::as_str).collect()
        };
        let first = format!("thought /i1/thought eom {THINKS}I add.");
        assert_eq!(
            of("thought"),
            [&first, "thought /i2/thought eom Done, I think."]
        );
        let action =
            "action /i1 eom {\"name\": \"calculator\", \"arguments\": {\"expression\":\"2+2\"}}";
        assert_eq!(of("action"), [action]);
        assert_eq!(
            of("observation"),
            ["observation /i1/observation eom builtin:calculator says 4"]
        );
        let answers: Vec<&str> = chunks
            .iter()
            .filter(|chunk| chunk.message_type == "answer")
            .map(|chunk| chunk.content.as_str())
            .collect();
        assert_eq!(answers.concat(), "It is 4");
        // The thought is over before the answer begins.
        let at = |kind: &str| chunks.iter().position(|chunk| chunk.message_type == kind);
        let ends = |chunk: &tg_schemas::msg::AgentResponse| {
            chunk.message_id.ends_with("/i2/thought") && chunk.end_of_message
        };
        assert!(chunks.iter().position(ends) < at("answer"));
        assert_eq!(world.tools.asked.lock().len(), 1);
        // Nor is the model shown it again.
        let asked = world.asked.lock();
        let history = serde_json::to_string(&asked[1]).unwrap();
        assert!(
            history.contains("I add.") && !history.contains("Shall I"),
            "{history}"
        );
    }
}

/// Its entries are stored as they were shown: no second look says that the library has no thought.
async fn a_step_without_a_thought_is_stored_as_it_was_shown(place: Place) {
    let script = [Say::Text(ACTS), Say::Text("Final Answer: It is 4")];
    let world = World::new(&place, script).await;
    let chunks = world.run(&question("2+2?", true)).await;
    assert!(chunks.iter().all(|chunk| chunk.message_type != "thought"));
    let (root, stored) = world.told(&chunks).await;
    let texts = world.texts(2).await;
    let documents = values(&stored, tg::DOCUMENT);
    assert_eq!(documents.len(), 2, "{documents:?}");
    for document in documents {
        assert!(texts.contains_key(&document), "{root}: {document}");
    }
}

tg_testkit::on_both_buses!(
    what_a_model_thinks_is_shown_and_no_decision,
    a_step_without_a_thought_is_stored_as_it_was_shown,
);
