//! Runs that split their question among subagents.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tg_mesh::{Ask, Deadline};
use tg_provenance::{Session, Stored, Texts};
use tg_schemas::msg::{AgentRequest, AgentResponse, AgentRun};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::config::Config;
use tg_testkit::place::Place;
use tokio::sync::Barrier;

use super::repeats::{RUN, continued, decision, died, is_whole, of, run};
use super::world::{SOON, Say, World, question, rows, values};
use crate::engine::chunks;
use crate::engine::decision::{Decision, Finding, Observation, Taken};
use crate::engine::phase::SUPERVISOR;
use crate::engine::splitting;
use crate::engine::trace::{Entries, Left, Stored as Kept};
use crate::store::{Asked, Began, IsOver, Piece, PieceKind, Told};

const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}\n";

pub(super) fn split(text: &str, streaming: bool) -> AgentRequest {
    AgentRequest {
        pattern: SUPERVISOR.into(),
        ..question(text, streaming)
    }
}

fn wide() -> Config {
    let config = rows();
    config.put("agent-pattern", SUPERVISOR, r#"{"max_subagents": 8}"#);
    config
}

pub(super) fn give(world: &World, goal: &str, says: impl IntoIterator<Item = Say>) {
    let says: VecDeque<Say> = says.into_iter().collect();
    world.goals.lock().insert(goal.to_owned(), says);
}

/// Kind and id of each chunk: below the run itself, or below `sub` for one of its subagents.
fn outline(chunks: &[AgentResponse]) -> Vec<String> {
    let root = chunks[0].explain_id.clone().expect("the session's entry");
    let told = chunks.iter().map(|chunk| {
        let id = chunk.explain_id.as_ref().unwrap_or(&chunk.message_id);
        let id = match id.strip_prefix(&root) {
            Some(own) => own.to_owned(),
            None => format!("sub{}", &id["urn:trustgraph:agent:".len() + 36..]),
        };
        format!("{} {id}", chunk.message_type)
    });
    told.collect()
}

async fn a_question_is_split_and_answered_once(place: Place) {
    let script = [Say::Text(r#"["a?", "b?"]"#), Say::Text("both")];
    let world = World::new(&place, script).await;
    give(&world, "a?", [Say::Text(ADD), Say::Text("Final Answer: A")]);
    give(&world, "b?", [Say::Text("Thought: hm\nFinal Answer: B")]);
    let chunks = world.run(&split("a and b?", true)).await;
    let told = outline(&chunks);
    assert_eq!(
        told[..3],
        ["explain ", "thought /decompose", "explain /decompose"]
    );
    assert_eq!(
        chunks[1].content,
        "Decomposed into 2 sub-goals: [\"a?\",\"b?\"]"
    );
    let count = |line: &str| told.iter().filter(|other| *other == line).count();
    for (line, times) in [
        ("explain sub/pattern-decision", 2),
        ("explain sub", 2),
        ("thought sub/i1/thought", 2),
        ("explain sub/i1", 1),
        ("observation sub/i1/observation", 1),
        ("explain sub/final", 2),
        ("explain /finding/0", 1),
        ("explain /finding/1", 1),
        ("thought /synthesis", 1),
        ("answer sub/final", 0),
    ] {
        assert_eq!(count(line), times, "{line}: {told:#?}");
    }
    let end = told.len() - 2;
    assert_eq!(told[end..], ["explain /synthesis", "answer /synthesis"]);
    let last = chunks.last().unwrap();
    assert!(last.end_of_dialog && chunks.iter().filter(|c| c.end_of_dialog).count() == 1);
    // Two calls of the run, three of its subagents.
    assert_eq!((last.in_token, last.out_token), (Some(500), Some(50)));
    // In the order of the goals, though the second was found first.
    let results = world.asked.lock().last().unwrap()["results"].clone();
    let expected = [("a?", "A"), ("b?", "B")];
    let expected = expected.map(|(goal, result)| json!({"goal": goal, "result": result}));
    assert_eq!(results, json!(expected));
}

/// All traces are stored, one chain with those of the subagents; no text is lacking.
async fn the_trace_of_all_is_whole(place: Place) {
    let script = [Say::Text(r#"["a?", "b?"]"#), Say::Text("both")];
    let world = World::new(&place, script).await;
    give(&world, "a?", [Say::Text(ADD), Say::Text("Final Answer: A")]);
    give(
        &world,
        "b?",
        [Say::Fail(Error::new(ErrorCode::Provider, "away"))],
    );
    let chunks = world.run(&split("a and b?", false)).await;
    let (root, stored) = world.told(&chunks).await;
    let texts = world.texts(5).await;
    let chained: Stored = stored.iter().cloned().collect();
    let whole = chained.verify(&root, &Texts::Known(&texts), None);
    let whole = whole.expect("it holds").expect("there is one");
    // Session, split, two findings, synthesis; session, choice, analysis, thought, observation, end; session, choice, end.
    assert_eq!(whole.entities, 14);
    assert_eq!(
        chained.roots(),
        std::slice::from_ref(&root),
        "subagents are no traces of their own"
    );
    let reasons = values(&stored, "https://trustgraph.ai/ns/terminationReason");
    let reasons: BTreeSet<&str> = reasons.iter().map(String::as_str).collect();
    assert_eq!(
        reasons,
        ["subagents-complete", "final-answer", "error"].into()
    );
    let id = Session::new(root.rsplit(':').next().unwrap());
    let rests_on = values(&stored, "http://www.w3.org/ns/prov#used");
    assert_eq!(rests_on, [id.finding(0), id.finding(1)]);
}

async fn eight_go_on_side_by_side(place: Place) {
    let goals = ["0?", "1?", "2?", "3?", "4?", "5?", "6?", "7?"];
    let script = [
        Say::Slowly(r#"["0?", "1?", "2?", "3?", "4?", "5?", "6?", "7?"]"#),
        Say::Slowly("all"),
    ];
    let world = World::among(&place, script, wide(), Vec::new()).await;
    let all = Arc::new(Barrier::new(goals.len()));
    for goal in goals {
        let adds = Say::Meets(all.clone(), ADD);
        give(&world, goal, [adds, Say::Slowly("Final Answer: x")]);
    }
    let chunks = world.run(&split("?", false)).await;
    assert_eq!(chunks.last().unwrap().content, "all");
    let asked = world.asked.lock().clone();
    assert_eq!(asked.len(), 1 + 8 * 2 + 1);
    let first: BTreeSet<&str> = asked[1..9]
        .iter()
        .filter_map(|terms| terms["question"].as_str())
        .collect();
    assert_eq!(first, goals.into(), "all are asked before one goes on");
}

async fn one_that_fails_or_is_slow_stops_no_other(place: Place) {
    let script = [
        Say::Text(r#"["a?", "b?", "c?"]"#),
        Say::Text("what there is"),
    ];
    let world = World::new(&place, script).await;
    give(&world, "a?", [Say::Text("Final Answer: A")]);
    give(
        &world,
        "b?",
        [Say::Fail(Error::new(ErrorCode::Provider, "away"))],
    );
    give(&world, "c?", [Say::Hang("Thought: this will take lo")]);
    let ask = Ask {
        deadline: Some(Deadline::after(Duration::from_secs(4))),
        ..Ask::default()
    };
    let mut answer = world.ask_with(&split("?", false), ask);
    let mut chunks = Vec::new();
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        chunks.push(part.unwrap());
    }
    assert_eq!(chunks.last().unwrap().content, "what there is");
    let results = world.asked.lock().last().unwrap()["results"].clone();
    let results: Vec<String> = results
        .as_array()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let with = |goal: &str, said: &str| {
        let fits = |result: &&String| result.contains(goal) && result.contains(said);
        assert!(
            results.iter().any(|result| fits(&result)),
            "{goal}: {results:?}"
        );
    };
    with("a?", "\"A\"");
    with("b?", "Error: away");
    with("c?", "deadline");
}

async fn where_none_finds_anything_the_run_fails(place: Place) {
    let world = World::new(&place, [Say::Text(r#"["a?"]"#)]).await;
    give(
        &world,
        "a?",
        [Say::Fail(Error::new(ErrorCode::Provider, "away"))],
    );
    let chunks = world.run(&split("?", true)).await;
    let error = chunks.last().unwrap().error.clone().unwrap();
    assert!(error.message.contains("away"), "{error:?}");
    assert!(world.ended().await.contains("error"));
    // What was shown of it is in the trace, and the chain holds.
    let (_, stored) = world.told(&chunks).await;
    let ids: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| chunk.explain_id.clone())
        .collect();
    assert!(ids.iter().any(|id| id.ends_with("/finding/0")), "{ids:?}");
    let root = ids.iter().find(|id| !id.contains('/')).unwrap().clone();
    let chained: Stored = stored.into_iter().collect();
    let whole = chained.verify(&root, &Texts::Unknown, None);
    whole.expect("it holds").expect("there is one");
}

async fn an_asker_who_leaves_stops_all_subagents(place: Place) {
    let script = [Say::Text(r#"["a?", "b?"]"#)];
    let world = World::new(&place, script).await;
    give(&world, "a?", [Say::Hang("Thought: lo")]);
    give(&world, "b?", [Say::Hang("Thought: lo")]);
    let mut answer = world.ask(&split("?", true));
    answer.next().await.unwrap().unwrap();
    let stopped = async {
        world.model.hanging.notified().await;
        drop(answer);
        world.model.cancelled.notified().await;
    };
    tokio::time::timeout(SOON, stopped).await.unwrap();
    assert!(world.ended().await.contains("cancelled"));
}

fn supervised() -> AgentRun {
    AgentRun {
        pattern: SUPERVISOR.into(),
        named: true,
        ..run(1, true)
    }
}

/// One subagent was done, another had used its tool, the third had not begun; the asker heard some of it.
async fn a_run_taken_up_goes_on_with_what_is_not_done(place: Place) {
    for heard in [3, 4, 5] {
        let script = [Say::Text("all three")];
        let world = World::new(&place.another().await, script).await;
        give(&world, "b?", [Say::Text("Final Answer: B")]);
        give(&world, "c?", [Say::Text("Final Answer: C")]);
        let goals = ["a?", "b?", "c?"].map(str::to_owned).to_vec();
        let mut decided = decision(Taken::Goals {
            goals: goals.clone(),
        });
        decided.thought = vec![splitting::decomposed(&goals)];
        world
            .ledger
            .decide(&of(RUN), 1, &decided, &[], 1)
            .await
            .unwrap();
        let finding = Finding {
            goal: "a?".into(),
            run: "a0000000-0000-4000-8000-000000000000".into(),
            text: "A".into(),
            ..Finding::default()
        };
        world.ledger.found(&of(RUN), &finding, 1).await.unwrap();
        let begun = begin(&world, 1, "b?").await;
        let tool = decision(Taken::Action {
            name: "remote".into(),
            arguments: json!({"x": 1}).as_object().unwrap().clone(),
        });
        world
            .ledger
            .decide(&of(&begun), 1, &tool, &[], 1)
            .await
            .unwrap();
        let seen = Observation {
            text: "seen before".into(),
            ..Observation::default()
        };
        world
            .ledger
            .observe(&of(&begun), 1, &seen, Told::default(), &[], 1)
            .await
            .unwrap();
        let mut sent = said_before(&world, &decided, &begun).await;
        sent.truncate(heard);
        let chunks = continued(&world, died(supervised(), sent, heard as u64)).await;
        let told = outline(&chunks);
        let mut once = BTreeSet::new();
        for chunk in chunks.iter().filter(|c| c.message_type != "answer") {
            let id = chunk.explain_id.as_ref().unwrap_or(&chunk.message_id);
            let new = once.insert((&chunk.message_type, id));
            assert!(new, "nothing is said twice: {told:#?}");
        }
        assert_eq!(chunks[3].content, "I think");
        assert_eq!(chunks[4].content, "of it");
        for line in [
            "explain /finding/0",
            "explain /finding/2",
            "explain /synthesis",
        ] {
            assert!(told.iter().any(|other| other == line), "{line}: {told:#?}");
        }
        let answer: String = chunks
            .iter()
            .filter(|chunk| chunk.message_type == "answer")
            .map(|chunk| chunk.content.as_str())
            .collect();
        assert_eq!(answer, "all three");
        assert_eq!(
            world.calls(),
            3,
            "one step of each subagent that was not done, and the answer"
        );
        assert!(world.tools.asked.lock().is_empty(), "no tool twice");
    }
}

/// What was said before the process died, the parts of subagents noted.
async fn said_before(world: &World, decided: &Decision, begun: &str) -> Vec<AgentResponse> {
    let run = supervised();
    let id = Session::new(RUN);
    let entries = Entries {
        run: &run,
        step: 1,
        library: true,
    };
    let left = Left {
        decision: Some(decided),
        ..Left::default()
    };
    let kept = Kept {
        thought: true,
        text: true,
    };
    let opening = entries.of(&left, kept);
    let thought = chunks::thought(id.decomposition(), &decided.thought[0], true);
    let sub = Session::new(begun);
    let relayed = ["I think", "of it"].map(|text| AgentResponse {
        message_id: format!("{}/{text}", sub.iri()),
        ..chunks::thought(String::new(), text, true)
    });
    let mut sent = vec![
        chunks::explain(&opening[0]),
        thought,
        chunks::explain(&opening[1]),
    ];
    sent.extend(relayed.clone());
    let pieces = relayed.iter().map(|part| Piece {
        kind: PieceKind::Part,
        text: serde_json::to_string(part).unwrap(),
    });
    let pieces = pieces.collect();
    world.ledger.say(&of(RUN), 1, 3, pieces, 1).await.unwrap();
    sent
}

async fn begin(world: &World, number: u32, goal: &str) -> String {
    let asked = Asked {
        workspace: "default".into(),
        is_over: IsOver::when(|| false),
        key: format!("subagent/{RUN}/{number}"),
        text: goal.into(),
        asker: None,
    };
    let new = Began {
        run: "b0000000-0000-4000-8000-000000000000".into(),
        started_at: "t".into(),
        route: None,
    };
    world
        .ledger
        .begin(asked, new, 1)
        .await
        .unwrap()
        .unwrap()
        .run
}

/// Everything was found when the process died: nothing is done again, the record of the answer comes.
async fn a_run_whose_subagents_are_done_only_answers(place: Place) {
    let world = World::new(&place, [Say::Text("all")]).await;
    let mut decided = decision(Taken::Goals {
        goals: vec!["a?".into()],
    });
    decided.thought = vec!["Decomposed".into()];
    world
        .ledger
        .decide(&of(RUN), 1, &decided, &[], 1)
        .await
        .unwrap();
    let seen = Observation {
        findings: vec![Finding {
            goal: "a?".into(),
            run: "a0000000-0000-4000-8000-000000000000".into(),
            text: "A".into(),
            ..Finding::default()
        }],
        ..Observation::default()
    };
    world
        .ledger
        .observe(&of(RUN), 1, &seen, Told::default(), &[], 1)
        .await
        .unwrap();
    let chunks = continued(&world, died(supervised(), Vec::new(), 0)).await;
    assert_eq!(world.calls(), 1);
    assert!(chunks.last().unwrap().end_of_dialog);
    assert_eq!(world.asked.lock()[0]["results"][0]["result"], "A");
    is_whole(&world).await;
}

tg_testkit::on_both_buses!(
    a_question_is_split_and_answered_once,
    the_trace_of_all_is_whole,
    eight_go_on_side_by_side,
    one_that_fails_or_is_slow_stops_no_other,
    where_none_finds_anything_the_run_fails,
    an_asker_who_leaves_stops_all_subagents,
    a_run_taken_up_goes_on_with_what_is_not_done,
    a_run_whose_subagents_are_done_only_answers,
);
