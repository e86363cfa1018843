//! What a question says of its model, and of how far its run may go.

use tg_provenance::{Stored, Texts};
use tg_schemas::msg::AgentRequest;
use tg_testkit::place::Place;

use super::world::{Say, World, question, shown, values};

const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}";
const END: &str = "Final Answer: 4";

async fn what_a_question_says_of_its_model_reaches_each_call(place: Place) {
    let world = World::new(&place, [Say::Text(ADD), Say::Text(END), Say::Text(END)]).await;
    let asked = AgentRequest {
        model: "m1".into(),
        models: vec!["m2".into()],
        max_tokens: Some(9),
        temperature: Some(0.5),
        ..question("q", false)
    };
    let chunks = world.run(&asked).await;
    assert_eq!(chunks.last().unwrap().finish_reason, "stop");
    let told = || -> Vec<_> {
        let asked = world.model.asked.lock();
        asked.iter().map(|one| one.settings.clone()).collect()
    };
    // Also of the step that another process could have taken: they travel with the run.
    assert_eq!(told(), vec![asked.settings(); 2]);
    world.run(&question("r", false)).await;
    assert_eq!(told().last(), Some(&None));
}

async fn line_036_a_tool_is_told_the_depth_of_what_it_asks(place: Place) {
    let remote = "Action: remote\nArgs: {\"x\": 1}";
    let script = [remote, END, remote, END].map(Say::Text);
    let world = World::new(&place, script).await;
    let asked = AgentRequest {
        caller_depth: 2,
        ..question("q", false)
    };
    world.run(&asked).await;
    world.run(&question("r", false)).await;
    let told: Vec<i64> = {
        let asked = world.tools.asked.lock();
        asked.iter().map(|one| one.caller_depth).collect()
    };
    assert_eq!(told, [2, 0]);
}

async fn a_run_of_a_thread_names_it_in_its_trace(place: Place) {
    let world = World::new(&place, [Say::Text(ADD), Say::Text(END), Say::Text(END)]).await;
    let asked = AgentRequest {
        thread: "t2".into(),
        parent_thread: "t1".into(),
        ..question("q", false)
    };
    let (root, stored) = world.told(&world.run(&asked).await).await;
    let of = |name: &str| values(&stored, &format!("https://trustgraph.ai/ns/{name}"));
    assert_eq!(of("thread"), ["t2"]);
    assert_eq!(of("parentThread"), ["t1"]);
    // The chain of hashes covers them.
    let chained: Stored = stored.into_iter().collect();
    let whole = chained.verify(&root, &Texts::Unknown, None);
    whole.expect("it holds").expect("there is one");
    // What is asked without a thread has none.
    let chunks = world.run(&question("r", false)).await;
    assert!(values(&shown(&chunks), "https://trustgraph.ai/ns/thread").is_empty());
}

async fn a_run_with_a_bound_of_its_own_is_stopped_with_what_it_has(place: Place) {
    let world = World::new(&place, [Say::Text(ADD), Say::Text(ADD)]).await;
    let asked = AgentRequest {
        max_iterations: 2,
        ..question("q", false)
    };
    let chunks = world.run(&asked).await;
    let last = chunks.last().unwrap();
    assert!(last.stopped && last.end_of_dialog, "{last:?}");
    assert_eq!(last.finish_reason, "max_iterations");
    assert!(last.content.contains("says 4"), "{}", last.content);
    assert_eq!(world.calls(), 2);
}

tg_testkit::on_both_buses!(
    what_a_question_says_of_its_model_reaches_each_call,
    line_036_a_tool_is_told_the_depth_of_what_it_asks,
    a_run_with_a_bound_of_its_own_is_stopped_with_what_it_has,
    a_run_of_a_thread_names_it_in_its_trace,
);
