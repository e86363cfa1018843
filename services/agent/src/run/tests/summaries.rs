//! What a run summed up, after the fact: shown with its steps, and made again by another model.

use std::collections::BTreeSet;

use serde_json::json;
use tg_mesh::Ask;
use tg_provenance::{Stored, Texts};
use tg_schemas::msg::{
    AgentRequest, AgentResponse, AgentRunsRequest, AgentRunsResponse, AgentStep, RunSummary,
};
use tg_schemas::processors::agent_manager::RUNS;
use tg_schemas::{Class, Error, ErrorCode, Term, Topic, Triple};
use tg_testkit::place::Place;

use super::budgets::used;
use super::world::{SOON, Say, World, question, shown};
use crate::engine::usage::Scope;
use crate::store::Whose;

const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}";
const ANSWER: Say = Say::Text("Final Answer: it is 4");
/// The trace of a summary that was made again on behalf of the question `again`.
const OTHER: &str = "urn:trustgraph:summary:again";

fn too_long() -> Say {
    let told = "the request is longer than the model can read";
    Say::Fail(Error::new(ErrorCode::TooLarge, told))
}

fn no() -> Say {
    Say::Fail(Error::new(ErrorCode::Provider, "no"))
}

/// A step came with the question, and four are taken. Then it is too much: the first two are summed up.
fn script(then: impl IntoIterator<Item = Say>) -> Vec<Say> {
    let steps = (0..4).map(|_| Say::Text(ADD));
    let summed = [too_long(), Say::Text("Summed up.")];
    steps.chain(summed).chain(then).collect()
}

fn asked() -> AgentRequest {
    let before = AgentStep {
        thought: "look at /etc/hosts".to_owned(),
        action: "remote".to_owned(),
        observation: "it says 3".to_owned(),
        ..AgentStep::default()
    };
    AgentRequest {
        history: vec![before],
        ..question("q", false)
    }
}

fn by_ann(id: &str) -> Ask {
    Ask {
        id: Some(id.to_owned()),
        user_id: Some("ann".to_owned()),
        credential: Some("key:k".to_owned()),
        ..Ask::default()
    }
}

fn expand(step: i64) -> AgentRunsRequest {
    AgentRunsRequest {
        operation: "expand-summary".to_owned(),
        user: "ann".to_owned(),
        id: "q".to_owned(),
        step,
        ..AgentRunsRequest::default()
    }
}

fn remake(model: &str) -> AgentRunsRequest {
    AgentRunsRequest {
        operation: "remake-summary".to_owned(),
        model: model.to_owned(),
        ..expand(0)
    }
}

async fn told(
    world: &World,
    request: &AgentRunsRequest,
    id: &str,
) -> Result<AgentRunsResponse, Error> {
    let topic = Topic::system(Class::Request, RUNS.name);
    let answer = world
        .mesh
        .ask::<_, AgentRunsResponse>(&topic, request, by_ann(id));
    let last = tokio::time::timeout(SOON, answer.last()).await;
    last.expect("an answer in time")
}

/// All that a run is read to have told.
async fn parts(world: &World, request: &AgentRunsRequest) -> Vec<String> {
    let topic = Topic::system(Class::Request, RUNS.name);
    let mut answer = world
        .mesh
        .ask::<_, AgentRunsResponse>(&topic, request, Ask::default());
    let mut parts = Vec::new();
    while let Some(some) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        parts.extend(some.unwrap().parts);
    }
    parts
}

/// All parts of the run, as soon as it is over.
async fn ran(world: &World) -> Vec<AgentResponse> {
    let mut answer = world.ask_with(&asked(), by_ann("q"));
    let mut chunks = Vec::new();
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        chunks.push(part.unwrap());
    }
    let whose = Whose::User("ann".to_owned());
    let over = async {
        let known = || world.ledger.of_question(&whose, "q");
        while !known().await.unwrap().is_some_and(|run| run.over) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, over).await.expect("an end");
    chunks
}

fn entities(all: &BTreeSet<Triple>, iri: &str) -> bool {
    all.iter().any(|one| one.s == Some(Term::iri(iri)))
}

/// The trace has both, and the chain of the run holds.
async fn is_told_of(world: &World, chunks: &[AgentResponse], summary: &RunSummary) {
    let trace = world.trace(|all| entities(all, OTHER)).await;
    let links = |predicate: &str| -> Vec<String> {
        let said = trace
            .iter()
            .filter(|one| one.s == Some(Term::iri(OTHER)) && one.p == Some(Term::iri(predicate)));
        let said = said.filter_map(|one| match &one.o {
            Some(Term::Iri(iri)) => Some(iri.clone()),
            _ => None,
        });
        said.collect()
    };
    assert_eq!(
        links("http://www.w3.org/ns/prov#alternateOf"),
        std::slice::from_ref(&summary.trace)
    );
    let root = chunks.last().unwrap().trace.clone();
    assert_eq!(
        links("http://www.w3.org/ns/prov#wasDerivedFrom"),
        [format!("{root}/i1/observation")]
    );
    let holds = |all: &BTreeSet<Triple>| {
        let stored: Stored = all.iter().cloned().collect();
        matches!(stored.verify(&root, &Texts::Unknown, None), Ok(Some(_)))
    };
    assert!(holds(
        &world.trace(|all| entities(all, OTHER) && holds(all)).await
    ));
}

/// Item 5: the steps stay, a summary can be expanded, and another model can sum the same steps up; the run stays as it was, and the
/// trace says both.
async fn line_103_a_summary_is_expanded_and_made_again_by_another_model(place: Place) {
    let world = World::new(&place, script([ANSWER, Say::Text("Better.")])).await;
    let chunks = ran(&world).await;
    let read = AgentRunsRequest {
        operation: "read-run".to_owned(),
        ..expand(0)
    };
    let before = parts(&world, &read).await;
    assert_eq!(before.len(), chunks.len());

    let expanded = told(&world, &expand(5), "first").await.unwrap();
    assert_eq!(told(&world, &expand(0), "last").await.unwrap(), expanded);
    let [summary] = expanded.summaries.as_slice() else {
        panic!("{expanded:?}");
    };
    assert_eq!(
        (
            summary.step,
            &*summary.tier,
            &*summary.text,
            &*summary.model
        ),
        (5, "full", "Summed up.\nIdentifiers: /etc/hosts", "scripted")
    );
    let steps = expanded.summed.iter();
    let steps: Vec<_> = steps
        .map(|one| (one.step, &*one.thought, &*one.action, &*one.observation))
        .collect();
    assert_eq!(
        steps,
        [
            (0, "look at /etc/hosts", "remote", "it says 3"),
            (1, "add", "calculator", "builtin:calculator says 4")
        ]
    );
    // It is the one that the run told of.
    assert!(
        entities(&shown(&chunks), &summary.trace),
        "{}",
        summary.trace
    );

    let (calls, models) = (world.calls(), used(&world, Scope::Run).await);
    let again = told(&world, &remake("large"), "again").await.unwrap();
    let [made] = again.summaries.as_slice() else {
        panic!("{again:?}");
    };
    assert_eq!(
        (made.step, &*made.text, &*made.trace),
        (5, "Better.\nIdentifiers: /etc/hosts", OTHER)
    );
    assert!(made.created_ms > 0 && made.tokens_before == summary.tokens_before);
    let settings = world.model.asked.lock().last().unwrap().settings.clone();
    assert_eq!(settings.unwrap().model, "large");
    let dialog = world.asked.lock().last().unwrap()["dialog"].clone();
    let dialog = dialog.as_str().expect("text");
    assert!(
        dialog.starts_with("[assistant]: look at /etc/hosts"),
        "{dialog}"
    );
    assert!(dialog.contains("\n[assistant]: add"), "{dialog}");
    // The same question again asks nobody.
    assert_eq!(
        told(&world, &remake("large"), "again").await.unwrap(),
        again
    );
    assert_eq!(world.calls(), calls + 1);
    // It counts for the run, and for the key that asked.
    let counted = used(&world, Scope::Run).await;
    assert_eq!(counted[0].1[0], models[0].1[0] + 1);
    assert_eq!(
        used(&world, Scope::Key).await[0],
        ("key:k".to_owned(), counted[0].1)
    );

    // Both stand side by side; the run tells what it told, and its chain holds.
    let both = told(&world, &expand(5), "both").await.unwrap();
    assert_eq!(both.summaries, [summary.clone(), made.clone()]);
    assert_eq!(both.summed, expanded.summed);
    assert_eq!(parts(&world, &read).await, before);
    is_told_of(&world, &chunks, summary).await;
}

/// Each mistake is named, and nothing is kept of a summary that was not made.
async fn what_cannot_be_made_again_is_said(place: Place) {
    let world = World::new(&place, script([ANSWER, no(), no(), no()])).await;
    ran(&world).await;
    let fails = async |request: AgentRunsRequest, id: &str| {
        let error = told(&world, &request, id).await.unwrap_err();
        (error.code(), error.message)
    };
    let (code, text) = fails(expand(3), "a").await;
    assert_eq!(code, ErrorCode::NotFound);
    assert_eq!(text, "step: the run summed nothing up before step 3");
    let bob = AgentRunsRequest {
        user: "bob".to_owned(),
        ..remake("large")
    };
    assert_eq!(fails(bob, "b").await.0, ErrorCode::NotFound);
    let (code, text) = fails(remake(""), "c").await;
    assert_eq!(code, ErrorCode::BadRequest);
    assert!(text.starts_with("model: "), "{text}");
    assert_eq!(fails(expand(-1), "d").await.0, ErrorCode::BadRequest);
    assert_eq!(fails(remake("large"), "e").await.0, ErrorCode::Provider);
    let expanded = told(&world, &expand(0), "f").await.unwrap();
    assert_eq!(expanded.summaries.len(), 1);
}

/// What the key may take binds it; the run's own budget does not.
async fn a_summary_that_is_made_again_fits_the_budget_of_its_key(place: Place) {
    let world = World::new(&place, script([ANSWER, Say::Text("Better.")])).await;
    ran(&world).await;
    let calls = world.calls();
    let budget = json!({"tokens": 1, "key": {"tokens": 1}});
    let config = &world.config;
    config
        .apply(&world.mesh, "agent", "budget", Some(&budget))
        .await;
    let error = told(&world, &remake("large"), "again").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Busy);
    assert!(error.message.contains("the budget of its key"), "{error}");
    assert_eq!(world.calls(), calls);
}

/// While a run goes on its summary can be read, and is not made again.
async fn a_run_under_way_is_left_as_it_is(place: Place) {
    let hangs = Say::Hang("Thought: hm");
    let world = World::new(&place, script([Say::Text(ADD), hangs])).await;
    let mut answer = world.ask_with(&asked(), by_ann("q"));
    let hanging = world.model.hanging.notified();
    let reads = async { while answer.next().await.is_some() {} };
    tokio::select! {
        () = reads => panic!("it ended"),
        hangs = tokio::time::timeout(SOON, hanging) => hangs.expect("the model hangs"),
    }
    let expanded = told(&world, &expand(0), "a").await.unwrap();
    assert_eq!((expanded.summaries.len(), expanded.summed.len()), (1, 2));
    let error = told(&world, &remake("large"), "b").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
}

tg_testkit::on_both_buses!(
    line_103_a_summary_is_expanded_and_made_again_by_another_model,
    what_cannot_be_made_again_is_said,
    a_summary_that_is_made_again_fits_the_budget_of_its_key,
    a_run_under_way_is_left_as_it_is,
);
