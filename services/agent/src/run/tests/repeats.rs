//! Steps that come a second time: after a crash, a redelivery, in another process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::{Ask, Cx, Processor, RequestHandler, Responder};
use tg_provenance::{Session, Stored, Texts};
use tg_schemas::msg::{AgentRequest, AgentResponse, AgentRun, Triples};
use tg_schemas::processors::agent_manager::STEP;
use tg_schemas::processors::{ProcessorSpec, Serves, Spec};
use tg_schemas::{Class, Error, Triple};
use tg_testkit::place::Place;
use tokio::sync::Notify;

use super::world::{SOON, Say, World, question, topic, triples, values};
use crate::engine::chunks;
use crate::engine::decision::{Decision, Observation, Taken, Usage};
use crate::engine::trace::Entries;
use crate::store::{IsOver, Piece, PieceKind, RunKey, Told};

pub(super) const RUN: &str = "7d0c3c58-0000-4000-8000-000000000000";

/// Stands in for a process that died: sends some chunks and leaves a step behind.
pub(super) struct Died {
    run: AgentRun,
    sent: Vec<AgentResponse>,
    /// How many of them the step record does not know of.
    unknown: u64,
    gone: Notify,
    asker: Mutex<String>,
}

#[async_trait]
impl RequestHandler<AgentRequest, AgentResponse> for Died {
    async fn serve(
        &self,
        cx: Cx,
        _: AgentRequest,
        mut out: Responder<AgentResponse>,
    ) -> Result<(), Error> {
        for chunk in &self.sent {
            out.send(chunk.clone()).await?;
        }
        let mut address = out.release();
        address.seq -= self.unknown;
        *self.asker.lock() = cx.id.to_string();
        let mut run = self.run.clone();
        run.reply = serde_json::to_string(&address).unwrap();
        cx.mesh
            .record(&topic(Class::Flow, STEP.name), &run, cx.ask_options())
            .await?;
        self.gone.notify_one();
        Ok(())
    }
}

pub(super) fn run(step: i64, streaming: bool) -> AgentRun {
    AgentRun {
        run: RUN.into(),
        step,
        question: "q".into(),
        streaming,
        started_at: "2026-08-01T09:00:00.120000Z".into(),
        ..AgentRun::default()
    }
}

pub(super) fn decision(taken: Taken) -> Decision {
    Decision {
        thought: vec!["I ".into(), "think".into(), String::new()],
        usage: Usage {
            in_token: 7,
            out_token: 3,
            model: "m".into(),
            duration_ms: 5,
            ..Usage::default()
        },
        candidates: vec!["calculator".into()],
        ..Decision::of(taken)
    }
}

pub(super) fn act(name: &str) -> Taken {
    let arguments = if name == "remote" {
        serde_json::json!({"x": 1})
    } else {
        serde_json::json!({"expression": "2+2"})
    };
    Taken::Action {
        name: name.into(),
        arguments: arguments.as_object().unwrap().clone(),
    }
}

/// Hosts the dead process's stand-in beside the agent and asks it.
pub(super) async fn continued(world: &World, died: Arc<Died>) -> Vec<AgentResponse> {
    continued_with(world, died, Ask::default()).await
}

async fn continued_with(world: &World, died: Arc<Died>, ask: Ask) -> Vec<AgentResponse> {
    const DIED: Spec<Serves<AgentRequest, AgentResponse>> = Spec::new("died").system();
    let processor = Processor::new(ProcessorSpec::unlisted("died")).serves(DIED, died);
    world.mesh.host(processor).await.unwrap();
    let at = DIED.of_system();
    let mut answer = world
        .mesh
        .ask::<_, AgentResponse>(&at, &question("q", true), ask);
    let mut chunks = Vec::new();
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        chunks.push(part.unwrap());
    }
    chunks
}

pub(super) fn of(run: &str) -> RunKey {
    RunKey {
        run: run.to_owned(),
        is_over: IsOver::when(|| false),
    }
}

pub(super) fn died(run: AgentRun, sent: Vec<AgentResponse>, unknown: u64) -> Arc<Died> {
    Arc::new(Died {
        run,
        sent,
        unknown,
        gone: Notify::new(),
        asker: Mutex::default(),
    })
}

/// The session's entry as the process that died sent it.
fn session_entry() -> tg_provenance::Event {
    let entries = Entries {
        run: &run(1, true),
        step: 1,
        library: true,
    };
    entries.session().remove(0)
}

/// The chain of what is stored of the run holds, also where a step was taken by two processes.
pub(super) async fn is_whole(world: &World) {
    world.ended().await;
    let root = Session::new(RUN).iri().to_owned();
    let whole = |all: &BTreeSet<Triple>| {
        let stored: Stored = all.iter().cloned().collect();
        matches!(stored.verify(&root, &Texts::Unknown, None), Ok(Some(_)))
    };
    world.trace(whole).await;
}

fn contents(chunks: &[AgentResponse], kind: &str) -> Vec<String> {
    let of_kind = chunks.iter().filter(|c| c.message_type == kind);
    of_kind.map(|c| c.content.clone()).collect()
}

async fn a_decided_step_goes_on_in_the_same_words(place: Place) {
    let world = World::new(&place, [Say::Text("Final Answer: 4")]).await;
    let decided = decision(act("calculator"));
    world
        .ledger
        .decide(&of(RUN), 1, &decided, &[], 1)
        .await
        .unwrap();
    let id = Session::new(RUN);
    // The session's entry and the first piece got through before the crash.
    let event = session_entry();
    let sent = vec![
        chunks::explain(&event),
        chunks::thought(id.thought(1), "I ", false),
    ];
    let chunks = continued(&world, died(run(1, true), sent, 2)).await;
    assert_eq!(
        contents(&chunks, "thought"),
        ["I ", "think", ""],
        "no piece twice"
    );
    assert_eq!(
        contents(&chunks, "observation"),
        ["builtin:calculator says 4"]
    );
    assert_eq!(contents(&chunks, "answer"), ["4", ""]);
    assert_eq!(world.calls(), 1, "only the second step asks the model");
    assert_eq!(chunks.last().unwrap().in_token, Some(107));
    world.ended().await;
    let took = "https://trustgraph.ai/ns/llmDurationMs";
    world.trace(|all| values(all, took).len() == 2).await;
    is_whole(&world).await;
}

async fn an_observed_step_does_not_use_its_tool_again(place: Place) {
    let world = World::new(&place, [Say::Text("Final Answer: 4")]).await;
    world
        .ledger
        .decide(&of(RUN), 1, &decision(act("remote")), &[], 1)
        .await
        .unwrap();
    let seen = Observation {
        text: "seen before".into(),
        state: "moved".into(),
        ..Observation::default()
    };
    world
        .ledger
        .observe(&of(RUN), 1, &seen, Told::default(), &[], 1)
        .await
        .unwrap();
    let chunks = continued(&world, died(run(1, false), Vec::new(), 0)).await;
    assert_eq!(contents(&chunks, "observation"), ["seen before"]);
    assert!(world.tools.asked.lock().is_empty());
    is_whole(&world).await;
}

async fn a_call_of_unknown_outcome_is_not_made_again(place: Place) {
    let world = World::new(&place, [Say::Text("Final Answer: 4")]).await;
    world
        .ledger
        .decide(&of(RUN), 1, &decision(act("remote")), &[], 1)
        .await
        .unwrap();
    let chunks = continued(&world, died(run(1, false), Vec::new(), 0)).await;
    assert!(contents(&chunks, "observation")[0].contains("outcome of this call is unknown"));
    assert!(world.tools.asked.lock().is_empty());
    assert!(chunks.last().unwrap().error.is_none());
}

async fn an_answer_decided_is_given(place: Place) {
    let world = World::new(&place, []).await;
    let mut decided = decision(Taken::Answer {
        text: "It is 4".into(),
    });
    decided.answer = vec!["It ".into(), "is 4".into()];
    world
        .ledger
        .decide(&of(RUN), 1, &decided, &[], 1)
        .await
        .unwrap();
    let chunks = continued(&world, died(run(1, true), Vec::new(), 0)).await;
    assert_eq!(contents(&chunks, "answer"), ["It ", "is 4", ""]);
    assert_eq!(world.calls(), 0);
    is_whole(&world).await;
}

/// Keeps where its asker is, and leaves.
#[derive(Default)]
struct Left {
    address: Mutex<String>,
    left: Notify,
}

#[async_trait]
impl RequestHandler<AgentRequest, AgentResponse> for Left {
    async fn serve(
        &self,
        _: Cx,
        _: AgentRequest,
        out: Responder<AgentResponse>,
    ) -> Result<(), Error> {
        *self.address.lock() = serde_json::to_string(&out.release()).unwrap();
        self.left.notify_one();
        Ok(())
    }
}

/// Its end may be in the trace already: that nobody hears of it any more is no reason for another.
async fn an_answer_decided_is_the_end_though_its_asker_is_gone(place: Place) {
    const LEFT: Spec<Serves<AgentRequest, AgentResponse>> = Spec::new("left").system();
    let world = World::new(&place, []).await;
    let mut decided = decision(Taken::Answer { text: "4".into() });
    decided.answer = vec!["4".into()];
    world
        .ledger
        .decide(&of(RUN), 1, &decided, &[], 1)
        .await
        .unwrap();
    let left = Arc::new(Left::default());
    let processor = Processor::new(ProcessorSpec::unlisted("left")).serves(LEFT, left.clone());
    world.mesh.host(processor).await.unwrap();
    let mut asking =
        world
            .mesh
            .ask::<_, AgentResponse>(&LEFT.of_system(), &question("q", true), Ask::default());
    tokio::select! {
        _ = asking.next() => panic!("nobody answers"),
        () = left.left.notified() => {}
    }
    drop(asking);
    let mut again = run(1, true);
    again.reply = left.address.lock().clone();
    let steps = topic(Class::Flow, STEP.name);
    let written = world.mesh.record(&steps, &again, Default::default());
    written.await.unwrap();
    let ended = tokio::time::timeout(SOON, world.ended()).await.unwrap();
    assert_eq!(ended, "final-answer");
}

async fn an_undecided_step_that_nobody_heard_is_taken_again(place: Place) {
    let world = World::new(&place, [Say::Text("Thought: t\nFinal Answer: yes")]).await;
    let event = session_entry();
    let died = died(run(1, true), vec![chunks::explain(&event)], 1);
    let asking = continued(&world, died.clone());
    let telling = async {
        died.gone.notified().await;
        world
            .agent
            .leases
            .asked_again(&died.asker.lock().clone(), 1);
    };
    let (chunks, ()) = tokio::join!(asking, telling);
    assert_eq!(contents(&chunks, "answer").concat(), "yes");
    assert_eq!(
        contents(&chunks, "explain").len(),
        2,
        "the session's entry comes once"
    );
}

async fn an_undecided_step_that_was_heard_is_interrupted(place: Place) {
    let world = World::new(
        &place,
        [Say::Text("Thought: other words\nFinal Answer: yes")],
    )
    .await;
    let id = Session::new(RUN);
    let event = session_entry();
    let sent = vec![
        chunks::explain(&event),
        chunks::thought(id.thought(1), "My words", false),
    ];
    let died = died(run(1, true), sent, 2);
    let asking = continued(&world, died.clone());
    let telling = async {
        died.gone.notified().await;
        world
            .agent
            .leases
            .asked_again(&died.asker.lock().clone(), 2);
    };
    let (chunks, ()) = tokio::join!(asking, telling);
    assert_eq!(contents(&chunks, "thought"), ["My words"]);
    assert_eq!(
        chunks.last().unwrap().error.clone().unwrap().kind,
        "interrupted"
    );
    assert_eq!(world.calls(), 0);
    assert_eq!(world.ended().await, "interrupted");
    is_whole(&world).await;
}

/// Both records of a run's steps come again; the second has the answer already when the first comes.
async fn two_steps_that_come_again_together_do_not_wait_for_each_other(place: Place) {
    let world = World::new(&place, [Say::Text("Final Answer: 4")]).await;
    let decided = decision(act("calculator"));
    world
        .ledger
        .decide(&of(RUN), 1, &decided, &[], 1)
        .await
        .unwrap();
    let seen = Observation {
        text: "4".into(),
        ..Observation::default()
    };
    world
        .ledger
        .observe(&of(RUN), 1, &seen, Told::default(), &[], 1)
        .await
        .unwrap();
    let died = died(run(2, true), Vec::new(), 0);
    let asking = continued(&world, died.clone());
    let first = async {
        died.gone.notified().await;
        // By then the second holds its lease: else the first, which nobody reads, would answer in its place.
        let asked = async {
            while world.calls() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, asked).await.unwrap();
        let mut again = run(1, true);
        let address = tg_mesh::ReplyAddress {
            id: died.asker.lock().clone(),
            ..Default::default()
        };
        again.reply = serde_json::to_string(&address).unwrap();
        let steps = topic(Class::Flow, STEP.name);
        let written = world.mesh.record(&steps, &again, Default::default());
        written.await.unwrap();
    };
    let (chunks, ()) = tokio::join!(asking, first);
    assert!(chunks.last().unwrap().end_of_dialog);
    let action = "https://trustgraph.ai/ns/action";
    let told = |records: &[Triples]| !values(&triples(records), action).is_empty();
    world.store.until(told).await;
}

/// Whether the asker got all that was said, or lacks the last of it, it hears every word once.
async fn a_detached_step_that_was_heard_goes_on_after_what_was_heard(place: Place) {
    for got in [2, 3] {
        let reply = "Thought: My words are few\nFinal Answer: yes";
        let world = World::new(&place.another().await, [Say::Text(reply)]).await;
        let id = Session::new(RUN);
        let event = session_entry();
        let said = ["My ", "words"];
        let mut sent = vec![chunks::explain(&event)];
        sent.extend(said.map(|piece| chunks::thought(id.thought(1), piece, false)));
        let pieces = said.map(|text| Piece {
            kind: PieceKind::Thought,
            text: text.to_owned(),
        });
        let pieces = pieces.to_vec();
        world.ledger.say(&of(RUN), 1, 1, pieces, 1).await.unwrap();
        sent.truncate(got);
        let detached = Ask {
            detach: true,
            ..Ask::default()
        };
        let died = died(run(1, true), sent, got as u64);
        let chunks = continued_with(&world, died, detached).await;
        let thought = contents(&chunks, "thought");
        assert_eq!(thought[..got - 1], said[..got - 1]);
        assert_eq!(thought.concat(), "My words are few");
        assert_eq!(contents(&chunks, "answer").concat(), "yes");
        let entries = contents(&chunks, "explain").len();
        assert_eq!(entries, 2, "the session's entry comes once");
        assert_eq!(world.ended().await, "final-answer");
        let left = world.ledger.said(RUN, 1).await.unwrap();
        assert!(left.is_empty(), "what was said is not kept for longer");
    }
}

async fn a_step_whose_asker_is_gone_is_interrupted_at_once(place: Place) {
    // It may have begun before the asker's leave is known: nothing else ends it then.
    let world = World::new(&place, [Say::Hang("Thought: this will take lo")]).await;
    let event = session_entry();
    let died = died(run(1, true), vec![chunks::explain(&event)], 1);
    let asking = continued(&world, died.clone());
    tokio::select! {
        _ = asking => panic!("the asker went away first"),
        () = died.gone.notified() => {}
    }
    let ended = tokio::time::timeout(SOON, world.ended()).await.unwrap();
    assert!(ended == "interrupted" || ended == "cancelled", "{ended}");
}

async fn a_step_that_is_past_is_dropped(place: Place) {
    let world = World::new(&place, [Say::Text("Final Answer: yes")]).await;
    let chunks = continued(&world, died(run(1, false), Vec::new(), 0)).await;
    assert!(chunks.last().unwrap().end_of_dialog);
    world.ended().await;
    let records = world.store.count();
    // The same record comes again, and then a question whose run shows that it was dealt with.
    let mut again = run(1, false);
    again.reply = serde_json::to_string(&tg_mesh::ReplyAddress::default()).unwrap();
    world
        .mesh
        .record(&topic(Class::Flow, STEP.name), &again, Default::default())
        .await
        .unwrap();
    let other = world.run(&question("other", false)).await;
    assert_eq!(contents(&other, "answer"), ["out of script"]);
    assert_eq!(world.calls(), 2, "one call for each question");
    world.store.until(|all| all.len() > records).await;
    assert_eq!(world.store.count(), records + 1);
}

async fn a_step_whose_run_went_on_gives_the_trace_what_it_lacks(place: Place) {
    let world = World::new(&place, []).await;
    let decided = decision(act("calculator"));
    world
        .ledger
        .decide(&of(RUN), 1, &decided, &[], 1)
        .await
        .unwrap();
    let seen = Observation {
        text: "4".into(),
        ..Observation::default()
    };
    world
        .ledger
        .observe(&of(RUN), 1, &seen, Told::default(), &[], 1)
        .await
        .unwrap();
    let answered = decision(Taken::Answer { text: "4".into() });
    world
        .ledger
        .decide(&of(RUN), 2, &answered, &[], 2)
        .await
        .unwrap();
    let mut again = run(1, false);
    again.reply = serde_json::to_string(&tg_mesh::ReplyAddress::default()).unwrap();
    let steps = topic(Class::Flow, STEP.name);
    world
        .mesh
        .record(&steps, &again, Default::default())
        .await
        .unwrap();
    let action = "https://trustgraph.ai/ns/action";
    let told = |records: &[Triples]| !values(&triples(records), action).is_empty();
    world.store.until(told).await;
    assert!(world.tools.asked.lock().is_empty() && world.calls() == 0);
    world.library.holds(2).await;
}

/// It is not said when each is done: a record that comes again while the run goes on finds a later step.
async fn the_end_of_a_run_says_that_its_earlier_steps_are_done(place: Place) {
    let remote = "Thought: look\nAction: remote\nArgs: {\"x\": 1}";
    let script = [Say::Text(remote), Say::Text("Final Answer: 4")];
    let world = World::new(&place, script).await;
    let chunks = continued(&world, died(run(1, false), Vec::new(), 0)).await;
    assert!(chunks.last().unwrap().end_of_dialog);
    let row = async |step: u32| world.ledger.load(RUN.into(), step).await.unwrap();
    let over = async {
        while !row(2).await.done {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, over).await.unwrap();
    assert!(row(1).await.done);
    is_whole(&world).await;
}

tg_testkit::on_both_buses!(
    a_decided_step_goes_on_in_the_same_words,
    an_observed_step_does_not_use_its_tool_again,
    a_call_of_unknown_outcome_is_not_made_again,
    an_answer_decided_is_given,
    an_answer_decided_is_the_end_though_its_asker_is_gone,
    an_undecided_step_that_nobody_heard_is_taken_again,
    an_undecided_step_that_was_heard_is_interrupted,
    two_steps_that_come_again_together_do_not_wait_for_each_other,
    a_detached_step_that_was_heard_goes_on_after_what_was_heard,
    a_step_whose_asker_is_gone_is_interrupted_at_once,
    a_step_that_is_past_is_dropped,
    a_step_whose_run_went_on_gives_the_trace_what_it_lacks,
    the_end_of_a_run_says_that_its_earlier_steps_are_done,
);
