//! Runs whose task the router finds a type for.

use serde_json::json;
use tg_provenance::{Stored, Texts};
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use super::supervised::give;
use super::world::{Say, World, question, rows, values};
use crate::engine::phase::{PLAN, REACT, SUPERVISOR};
use crate::engine::router::SELECT;

const PATTERN: &str = "https://trustgraph.ai/ns/pattern";
const TASK_TYPE: &str = "https://trustgraph.ai/ns/taskType";

pub(super) fn with_types() -> Config {
    let config = rows();
    let put = |key: &str, value: serde_json::Value| {
        config.put("agent-task-type", key, &value.to_string());
    };
    put("general", json!({"description": "anything"}));
    put(
        "risk",
        json!({"description": "hazards", "framing": "Name each hazard."}),
    );
    config.put(
        "agent-pattern",
        "react",
        r#"{"description": "one step at a time"}"#,
    );
    config
}

/// A world whose configuration sorts questions.
async fn sorted(place: &Place) -> World {
    let says = [Say::Text("Final Answer: none")];
    World::among(place, says, with_types(), vec![]).await
}

async fn a_task_of_a_type_has_its_framing_and_a_decision(place: Place) {
    let world = sorted(&place).await;
    let mut asked = question("Which?", false);
    asked.framing = "About bridges.".into();
    let chunks = world.run(&asked).await;
    let explained: Vec<_> = chunks
        .iter()
        .filter_map(|c| c.explain_id.as_deref())
        .collect();
    let run = explained[1].to_owned();
    assert_eq!(
        explained,
        [
            format!("{run}/pattern-decision"),
            run.clone(),
            format!("{run}/final")
        ]
    );
    let terms = world.asked.lock()[0].clone();
    assert_eq!(terms["context"], "About bridges.\n\nName each hazard.");
    // The choice is part of what the run took.
    let last = chunks.last().unwrap();
    assert_eq!((last.in_token, last.out_token), (Some(200), Some(20)));
    let stored = world.trace(|all| !values(all, PATTERN).is_empty()).await;
    assert_eq!(values(&stored, PATTERN), ["react"]);
    assert_eq!(values(&stored, TASK_TYPE), ["risk"]);
    // It is a link of the trace's chain.
    let end = "https://trustgraph.ai/ns/terminationReason";
    let stored = world.trace(|all| !values(all, end).is_empty()).await;
    let chained: Stored = stored.into_iter().collect();
    let whole = chained.verify(&last.trace, &Texts::Unknown, None);
    let whole = whole.expect("it holds").expect("there is one");
    assert_eq!(whole.entities, 3);
}

/// The run proceeds by the pattern that the model selects; a reply that names none means the first.
async fn the_selected_pattern_is_the_one_that_runs(place: Place) {
    let supervised = [Say::Text(r#"["a?"]"#), Say::Text("both")];
    let planned = [
        Say::Text(r#"[{"goal": "one", "tool_hint": "calculator"}]"#),
        Say::Text(r#"{"tool": "calculator", "arguments": {"expression": "2+2"}}"#),
        Say::Text("put together"),
    ];
    let plainly = [Say::Text("Final Answer: plainly")];
    for (selects, pattern, script, begins, answer) in [
        (
            "Supervisor",
            SUPERVISOR,
            supervised.into_iter().collect::<Vec<_>>(),
            "Decomposed into 1",
            "both",
        ),
        (
            "`plan-then-execute`.",
            PLAN,
            planned.into_iter().collect(),
            "Created plan with 1",
            "put together",
        ),
        (
            "neither",
            REACT,
            plainly.into_iter().collect(),
            "",
            "plainly",
        ),
    ] {
        let config = with_types();
        let all = json!({"description": "hazards", "valid_patterns": [REACT, SUPERVISOR, PLAN]});
        config.put("agent-task-type", "risk", &all.to_string());
        for name in [SUPERVISOR, PLAN] {
            config.put("agent-pattern", name, r#"{"description": "several parts"}"#);
        }
        let world = World::among(&place.another().await, script, config, vec![]).await;
        give(&world, SELECT, [Say::Text(selects)]);
        give(&world, "a?", [Say::Text("Final Answer: A")]);
        let chunks = world.run(&question("Which?", false)).await;
        let last = chunks.last().expect("an end");
        assert_eq!(last.content, answer, "{selects}");
        let thoughts: Vec<&str> = chunks
            .iter()
            .filter(|chunk| chunk.message_type == "thought")
            .map(|chunk| chunk.content.as_str())
            .collect();
        let first = thoughts.first().copied().unwrap_or_default();
        assert!(first.starts_with(begins), "{selects}: {thoughts:?}");
        let stored = world.trace(|all| !values(all, PATTERN).is_empty()).await;
        assert!(
            values(&stored, PATTERN).contains(&pattern.to_owned()),
            "{selects}"
        );
    }
}

async fn who_names_a_pattern_is_not_routed(place: Place) {
    let world = sorted(&place).await;
    let mut asked = question("Which?", false);
    asked.pattern = "react".into();
    let chunks = world.run(&asked).await;
    assert!(!chunks.iter().any(|chunk| {
        let id = chunk.explain_id.as_deref().unwrap_or_default();
        id.ends_with("/pattern-decision")
    }));
    assert_eq!(world.asked.lock()[0]["context"], serde_json::Value::Null);
}

tg_testkit::on_both_buses!(
    the_selected_pattern_is_the_one_that_runs,
    a_task_of_a_type_has_its_framing_and_a_decision,
    who_names_a_pattern_is_not_routed,
);
