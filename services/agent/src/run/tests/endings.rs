//! Every way a run can end leaves an end in its trace and tells the asker why.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tg_mesh::{Ask, Cx, Deadline, Processor};
use tg_schemas::msg::{AgentResponse, PromptRequest, PromptResponse};
use tg_schemas::processors::{ProcessorSpec, Serves, Spec};
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::fakes::{Play, Played};
use tg_testkit::place::Place;

use super::world::{SOON, Say, World, ask_for, question, rows, topic, values};
use crate::options::Options;

const LATE: Spec<Serves<PromptRequest, PromptResponse>> = Spec::pair("request", "response");
/// Longer than a question waits for a process by itself.
const AWAY: Duration = Duration::from_millis(1500);
pub(super) const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}";

fn failed(chunks: &[AgentResponse]) -> Error {
    let last = chunks.last().unwrap();
    assert_eq!(last.message_type, "error");
    assert!(last.end_of_message && last.end_of_dialog);
    let error = last.error.clone().unwrap();
    assert_eq!(last.content, error.message);
    let conclusion = &chunks[chunks.len() - 2];
    assert!(
        conclusion
            .explain_id
            .as_deref()
            .unwrap()
            .ends_with("/final")
    );
    error
}

async fn too_many_iterations(place: Place) {
    let settings = Options {
        max_iterations: 2,
        ..Options::default()
    };
    let script = [
        Say::Text("Action: calculator\nArgs: {\"expression\": \"1\"}"),
        Say::Text("Action: calculator\nArgs: {\"expression\": \"2\"}"),
    ];
    let world = World::with(&place, script, settings).await;
    let error = failed(&world.run(&question("q", true)).await);
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("agent-error", "Too many agent iterations")
    );
    assert_eq!(world.ended().await, "max-iterations");
    assert_eq!(world.calls(), 2);
    let number = "https://trustgraph.ai/ns/stepNumber";
    let stored = world.trace(|all| values(all, number).len() > 1).await;
    assert_eq!(values(&stored, number), ["1", "2"]);
}

/// After four fifths of its steps, in the next question alone.
async fn the_model_is_sent_once_how_few_steps_are_left(place: Place) {
    let script = (0..9).map(|_| Say::Text(ADD));
    let script = script.chain([Say::Text("Final Answer: 4")]);
    let world = World::new(&place, script).await;
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(chunks.last().unwrap().finish_reason, "stop");
    let asked = world.asked.lock();
    let nudges = |terms: &BTreeMap<String, Value>| {
        let context = terms["context"].as_str().unwrap_or_default();
        context.contains("Only 2 of 10 steps")
    };
    let nudged: Vec<bool> = asked.iter().map(nudges).collect();
    let expected: Vec<bool> = (0..10).map(|nth| nth == 8).collect();
    assert_eq!(nudged, expected);
}

async fn replies_that_cannot_be_read_end_the_run(place: Place) {
    let settings = Options {
        repairs: 0,
        ..Options::default()
    };
    let script = [
        Say::Text("I would"),
        Say::Text("I could"),
        Say::Text("I"),
        Say::Text("And"),
    ];
    let world = World::with(&place, script, settings).await;
    let error = failed(&world.run(&question("q", false)).await);
    assert_eq!(error.kind, "agent-error");
    assert!(error.message.contains("cannot be read"), "{error}");
    assert_eq!((world.calls(), world.ended().await.as_str()), (4, "error"));
}

async fn a_model_that_fails(place: Place) {
    let fault = Error::typed("llm-error", "the provider said no");
    let world = World::new(&place, [Say::Text(ADD), Say::Fail(fault)]).await;
    let error = failed(&world.run(&question("q", true)).await);
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("llm-error", "the provider said no")
    );
    assert_eq!(world.ended().await, "error");
}

async fn a_model_that_breaks_off_unheard_is_asked_again(place: Place) {
    let fault = || Say::Fail(Error::new(ErrorCode::Interrupted, "broke off"));
    let world = World::new(&place, [fault(), fault(), Say::Text("Final Answer: yes")]).await;
    let chunks = world.run(&question("q", true)).await;
    assert!(chunks.last().unwrap().error.is_none());
    assert_eq!(world.calls(), 3);
}

/// Nobody serves it when it is asked; its process is there later. It counts as asked once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_whose_process_comes_back_is_asked_again_over_a_broker() {
    for streaming in [false, true] {
        let rows = rows();
        let request = topic(Class::Request, "late-prompt").to_string();
        ask_for(&rows, "prompt-request", "late-prompt", &request);
        let world = World::among(&Place::rabbitmq().await, [], rows, Vec::new()).await;
        let model: Arc<Played<PromptRequest, PromptResponse>> = Played::new(|_: &Cx, _| {
            Ok(Play::of(vec![PromptResponse {
                text: "Final Answer: yes".into(),
                end_of_stream: true,
                in_token: Some(7),
                out_token: Some(3),
                ..PromptResponse::default()
            }]))
        });
        let late = ProcessorSpec::unlisted("late-prompt");
        let late = Processor::new(late).serves(LATE, model.clone());
        let back = async {
            tokio::time::sleep(AWAY).await;
            world.mesh.host(late).await.unwrap();
        };
        let asked = question("q", streaming);
        let (chunks, ()) = tokio::join!(world.run(&asked), back);
        let last = chunks.last().unwrap();
        assert_eq!((&last.error, last.in_token), (&None, Some(7)));
        assert_eq!(model.asked.lock().len(), 1);
    }
}

/// The backend goes away in the middle of a thought: no text comes twice.
async fn a_model_that_is_cut_in_its_thought_is_asked_again(place: Place) {
    let fault = Error::new(ErrorCode::Provider, "the connection broke off");
    let whole = "Thought: this is known\nFinal Answer: yes";
    let script = [Say::Cut("Thought: this is", fault), Say::Text(whole)];
    let world = World::new(&place, script).await;
    let chunks = world.run(&question("q", true)).await;
    let said = |kind: &str| -> String {
        let of = chunks.iter().filter(|one| one.message_type == kind);
        of.map(|one| one.content.as_str()).collect()
    };
    assert_eq!(
        (said("thought").trim(), said("answer").trim()),
        ("this is known", "yes")
    );
    assert_eq!(
        (world.calls(), world.ended().await.as_str()),
        (2, "final-answer")
    );
}

/// Of an answer that was begun nothing is said again.
async fn a_model_that_is_cut_in_its_answer_ends_the_run(place: Place) {
    let fault = Error::new(ErrorCode::Provider, "the connection broke off");
    let begun = "Thought: this is known\nFinal Answer: yes, and that is so since";
    let script = [Say::Cut(begun, fault), Say::Text("Final Answer: no")];
    let world = World::new(&place, script).await;
    let error = failed(&world.run(&question("q", true)).await);
    assert_eq!((error.kind.as_str(), world.calls()), ("llm-error", 1));
}

async fn an_asker_who_leaves_stops_the_model(place: Place) {
    let world = World::new(&place, [Say::Hang("Thought: this will take lo")]).await;
    let mut answer = world.ask(&question("q", true));
    answer.next().await.unwrap().unwrap();
    tokio::time::timeout(SOON, world.model.hanging.notified())
        .await
        .unwrap();
    drop(answer);
    tokio::time::timeout(SOON, world.model.cancelled.notified())
        .await
        .unwrap();
    assert_eq!(world.ended().await, "cancelled");
}

async fn an_asker_who_leaves_stops_the_tool(place: Place) {
    let world = World::new(&place, [Say::Text(ADD)]).await;
    *world.hang.lock() = true;
    let mut answer = world.ask(&question("q", false));
    answer.next().await.unwrap().unwrap();
    tokio::time::timeout(SOON, world.tools.hanging.notified())
        .await
        .unwrap();
    drop(answer);
    assert_eq!(world.ended().await, "cancelled");
    let action = "https://trustgraph.ai/ns/action";
    let stored = world.trace(|all| !values(all, action).is_empty()).await;
    assert_eq!(values(&stored, action), ["calculator"]);
    let from = values(&stored, "http://www.w3.org/ns/prov#wasDerivedFrom");
    assert!(
        from.iter().any(|iri| iri.ends_with("/i1")),
        "the end follows the decision: {from:?}"
    );
}

async fn a_deadline_that_passes(place: Place) {
    let world = World::new(&place, [Say::Hang("Thought: this will take lo")]).await;
    let ask = Ask {
        // On a busy machine the run needs a moment to be begun before that.
        deadline: Some(Deadline::after(Duration::from_secs(5))),
        ..Ask::default()
    };
    let mut answer = world.ask_with(&question("q", true), ask);
    let mut last = None;
    while let Some(part) = answer.next().await {
        last = Some(part);
    }
    match last.unwrap() {
        Ok(chunk) => assert_eq!(chunk.error.unwrap().kind, "timeout"),
        Err(error) => assert_eq!(error.code(), ErrorCode::Timeout),
    }
    assert_eq!(world.ended().await, "cancelled");
}

async fn a_detached_run_goes_on_alone(place: Place) {
    let world = World::new(&place, [Say::Text(ADD), Say::Text("Final Answer: yes")]).await;
    let ask = Ask {
        detach: true,
        ..Ask::default()
    };
    let mut answer = world.ask_with(&question("q", true), ask);
    answer.next().await.unwrap().unwrap();
    drop(answer);
    assert_eq!(world.ended().await, "final-answer");
}

async fn bad_questions_are_answered_at_once(place: Place) {
    let world = World::new(&place, []).await;
    let chunks = world.run(&question(" ", false)).await;
    let error = chunks[0].error.clone().unwrap();
    assert_eq!(error.code(), ErrorCode::BadRequest);
    assert!(error.message.starts_with("question: "));
    let mut odd = question("q", false);
    odd.pattern = "odd".into();
    let chunks = world.run(&odd).await;
    let error = chunks[0].error.clone().unwrap();
    assert_eq!(error.code(), ErrorCode::BadRequest);
    assert!(error.message.starts_with("pattern: "));
    assert_eq!(world.calls(), 0);
}

tg_testkit::on_both_buses!(
    too_many_iterations,
    the_model_is_sent_once_how_few_steps_are_left,
    replies_that_cannot_be_read_end_the_run,
    a_model_that_fails,
    a_model_that_breaks_off_unheard_is_asked_again,
    a_model_that_is_cut_in_its_thought_is_asked_again,
    a_model_that_is_cut_in_its_answer_ends_the_run,
    an_asker_who_leaves_stops_the_model,
    an_asker_who_leaves_stops_the_tool,
    a_deadline_that_passes,
    a_detached_run_goes_on_alone,
    bad_questions_are_answered_at_once,
);
