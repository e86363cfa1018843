//! Several tools that the model asks for at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_mesh::{Cx, Processor, RequestHandler, Responder};
use tg_provenance::{Stored, Texts};
use tg_schemas::msg::{
    AgentResponse, ToolHookRequest, ToolHookResponse, ToolServiceRequest, ToolServiceResponse,
};
use tg_schemas::processors::{ProcessorSpec, Serves, Spec};
use tg_schemas::{Class, Error, Term, Triple};
use tg_testkit::config::Config;
use tg_testkit::place::Place;
use tokio::sync::Barrier;

use super::delegated::{agents, observed};
use super::hooked;
use super::repeats::{RUN, continued, decision, died, of, run};
use super::replayed::{asks, run as run_recorded, same_again};
use super::world::*;
use crate::engine::confirmation::Answer;
use crate::engine::decision::{Chosen, Observation, Taken};
use crate::engine::usage::Scope;
use crate::options::Options;
use crate::store::{Days, Replied, Whose};

const MEET: Spec<Serves<ToolServiceRequest, ToolServiceResponse>> =
    Spec::pair("request", "response");
const END: &str = "Thought: known\nFinal Answer: done";

/// A tool that returns once as many of its calls are under way, the later sooner.
pub(super) struct Meet {
    all: Barrier,
    keys: Mutex<Vec<String>>,
}

impl Meet {
    /// The keys of its calls, in order.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys = self.keys.lock().clone();
        keys.sort_unstable();
        keys
    }
}

#[async_trait]
impl RequestHandler<ToolServiceRequest, ToolServiceResponse> for Meet {
    async fn serve(
        &self,
        cx: Cx,
        asked: ToolServiceRequest,
        mut out: Responder<ToolServiceResponse>,
    ) -> Result<(), Error> {
        self.keys.lock().push(cx.id.to_string());
        let given: Value = serde_json::from_str(&asked.arguments).expect("JSON");
        self.all.wait().await;
        let n = given["n"].as_u64().expect("a number");
        tokio::time::sleep(std::time::Duration::from_millis(60 - 20 * n)).await;
        let response = format!("met as {n}");
        out.send(ToolServiceResponse {
            response,
            end_of_stream: true,
            ..ToolServiceResponse::default()
        })
        .await
    }
}

fn actions(calls: &Value) -> Say {
    Say::Text(format!("Thought: all at once\nActions: {calls}").leak())
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

fn add() -> Value {
    call("calculator", json!({"expression": "2+2"}))
}

/// A world with the tool `meet`, whose calls wait for so many.
pub(super) async fn meeting(place: &Place, count: usize, script: Vec<Say>) -> (World, Arc<Meet>) {
    let config = rows();
    let request = topic(Class::Request, "tool-meet").to_string();
    let service = json!({"request-queue": request, "response-queue": "r"});
    config.put("tool-service", "meet", &service.to_string());
    let arguments = json!([{"name": "n", "type": "number"}]);
    let tool = json!({"name": "meet", "type": "tool-service", "service": "meet",
                      "arguments": arguments});
    config.put("tool", "meet", &tool.to_string());
    let flow = json!({"topics": {"request": request}, "parameters": {}, "epoch": 1});
    config.put("processor:tool-meet", "default", &flow.to_string());
    let meet = Arc::new(Meet {
        all: Barrier::new(count),
        keys: Mutex::default(),
    });
    let hosted = Processor::new(ProcessorSpec::unlisted("tool-meet")).serves(MEET, meet.clone());
    let world = World::among(place, script, config, vec![hosted]).await;
    world.attached(&["tool-meet"]).await;
    (world, meet)
}

pub(super) fn of_kind<'a>(chunks: &'a [AgentResponse], kind: &str) -> Vec<&'a AgentResponse> {
    let of_kind = chunks.iter().filter(|chunk| chunk.message_type == kind);
    of_kind.collect()
}

/// The entities that a reader of traces tells which walks from the session along what is derived from what, through what it knows:
/// as the released `tg-show-explain-trace` does.
fn walked(all: &BTreeSet<Triple>, root: &str) -> Vec<String> {
    let known =
        ["Analysis", "Observation"].map(|class| format!("https://trustgraph.ai/ns/{class}"));
    let object = |triple: &Triple, predicate: &str| match (&triple.p, &triple.o) {
        (Some(Term::Iri(p)), Some(Term::Iri(o))) if p == predicate => Some(o.clone()),
        _ => None,
    };
    let subject = |triple: &Triple| match &triple.s {
        Some(Term::Iri(iri)) => iri.clone(),
        _ => String::new(),
    };
    let derived = "http://www.w3.org/ns/prov#wasDerivedFrom";
    let kind = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
    let below = all
        .iter()
        .filter(|triple| object(triple, derived).as_deref() == Some(root));
    let mut told = Vec::new();
    for iri in below.map(subject) {
        let mut kinds = all.iter().filter(|triple| subject(triple) == iri);
        if kinds.any(|triple| object(triple, kind).is_some_and(|class| known.contains(&class))) {
            told.push(iri.clone());
            told.extend(walked(all, &iri));
        }
    }
    told
}

async fn several_tools_are_used_at_the_same_time_and_read_in_their_order(place: Place) {
    let calls = json!([
        call("meet", json!({"n": 0})),
        call("meet", json!({"n": 1})),
        add(),
        call("nothing", json!({})),
    ]);
    let script = vec![actions(&calls), Say::Text(ADD_ONE), Say::Text(END)];
    let (world, meet) = meeting(&place, 2, script).await;
    let chunks = world.run(&question("q", true)).await;
    assert_eq!(
        observed(&chunks),
        [
            "met as 0",
            "met as 1",
            "builtin:calculator says 4",
            "Error: there is no tool 'nothing'. Tools: calculator, llm, meet, remote",
            "builtin:calculator says 4",
        ]
    );
    let (chosen, seen) = (of_kind(&chunks, "action"), of_kind(&chunks, "observation"));
    let ids = |chunks: &[&AgentResponse]| -> Vec<(String, String)> {
        let ids = chunks.iter();
        ids.map(|chunk| (chunk.call_id.clone(), chunk.tool_name.clone()))
            .collect()
    };
    assert_eq!(ids(&chosen), ids(&seen));
    assert_eq!(chosen[1].args["n"], 1);
    assert_eq!(
        chosen[2].content,
        r#"{"name": "calculator", "arguments": {"expression":"2+2"}}"#
    );
    let keys = meet.keys();
    assert!(
        keys[0].ends_with("/1") && keys[1].ends_with("/1/1"),
        "{keys:?}"
    );

    let asked = world.asked.lock().clone();
    let step = &asked[1]["history"][0];
    let shown: Value = serde_json::from_str(step["calls"].as_str().unwrap()).unwrap();
    assert_eq!(shown, calls);
    let told = step["observation"].as_str().unwrap();
    let expected = "[1] meet:\nmet as 0\n\n[2] meet:\nmet as 1\n\n[3] calculator:\n";
    assert!(told.starts_with(expected), "{told}");

    let (root, all) = world.told(&chunks).await;
    let stored: Stored = all.iter().cloned().collect();
    let whole = stored.verify(&root, &Texts::Unknown, None);
    assert!(matches!(whole, Ok(Some(_))), "{whole:?}");
    let walked = walked(&all, &root);
    let once: BTreeSet<&String> = walked.iter().collect();
    assert_eq!((walked.len(), once.len()), (10, 10), "{walked:?}");
    let texts = world.texts(8).await;
    assert_eq!(texts[&format!("{root}/i1/call/2/observation")], "met as 1");
}

const ADD_ONE: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}";

/// A process died after the first had returned: it is not made again, and of one that it may have begun nobody knows.
async fn what_has_returned_is_not_called_again(place: Place) {
    let world = World::new(&place, [Say::Text("Final Answer: 4")]).await;
    let chosen = |name: &str, arguments: Value| Chosen {
        name: name.into(),
        arguments: arguments.as_object().unwrap().clone(),
        guard: None,
        place: None,
    };
    let calls = vec![
        chosen("remote", json!({"x": 1})),
        chosen("remote", json!({"x": 2})),
        chosen("calculator", json!({"expression": "2+2"})),
    ];
    let decided = decision(Taken::Actions { calls });
    world
        .ledger
        .decide(&of(RUN), 1, &decided, &[], 1)
        .await
        .unwrap();
    let seen = Observation {
        text: "seen before".into(),
        state: "moved".into(),
        called: true,
        ..Observation::default()
    };
    let key = of(RUN);
    let kept = world.ledger.observe_call(&key, (1, 0), &seen, 1);
    assert!(kept.await.unwrap());
    let chunks = continued(&world, died(run(1, true), Vec::new(), 0)).await;
    let told = of_kind(&chunks, "observation");
    assert_eq!(told[0].content, "seen before");
    assert!(told[1].content.contains("outcome of this call is unknown"));
    assert_eq!(told[2].content, "builtin:calculator says 4");
    assert_eq!(world.tools.asked.lock().len(), 1);
    assert_eq!(
        used(&world, Scope::Tool).await,
        [("calculator".into(), 1), ("remote".into(), 1)]
    );
}

/// How often what was called.
async fn used(world: &World, scope: Scope) -> Vec<(String, u64)> {
    let days = Days {
        scope,
        since: String::new(),
        until: "9999".into(),
        daily: false,
    };
    let sums = world.ledger.usage("default", &days, "", 99).await.unwrap();
    sums.into_iter()
        .map(|(name, sum)| (name, sum.tool_calls))
        .collect()
}

async fn guards_count_each_call(place: Place) {
    let options = Options {
        loop_warning: 2,
        loop_critical: 3,
        ..Options::default()
    };
    let script = [actions(&json!([
        add(),
        add(),
        call("llm", json!({"question": "x"}))
    ]))];
    let both = script.into_iter().chain([Say::Text(ADD_ONE)]);
    let world = World::with(&place, both, options.clone()).await;
    let chunks = world.run(&question("q", false)).await;
    let seen = observed(&chunks);
    assert_eq!(seen[0], "builtin:calculator says 4");
    assert!(seen[1].contains("\n\nWarning: "), "{seen:?}");
    assert!(!seen[2].contains("Warning"), "{seen:?}");
    let last = chunks.last().unwrap();
    assert_eq!((last.finish_reason.as_str(), last.stopped), ("loop", true));
    assert_eq!(last.loop_window.len(), 4);

    // One that is one too many has none of them made.
    let script = [actions(&json!([add(), add(), add()]))];
    let world = World::with(&place.another().await, script, options).await;
    let chunks = world.run(&question("q", false)).await;
    let last = chunks.last().unwrap();
    assert_eq!(
        (last.finish_reason.as_str(), world.ended().await.as_str()),
        ("loop", "loop")
    );
    assert_eq!(of_kind(&chunks, "action").len(), 3);
    assert!(world.tools.asked.lock().is_empty());
}

async fn those_that_fit_a_budget_are_made(place: Place) {
    let config = rows();
    config.put("agent", "budget", r#"{"tool_calls": 2}"#);
    let three = actions(&json!([add(), add(), add()]));
    let world = World::among(&place, [three, Say::Text(ADD_ONE)], config, Vec::new()).await;
    let chunks = world.run(&question("q", false)).await;
    let seen = observed(&chunks);
    let told = "Error: this call was not made. Stopped by its budget (tool-calls): ";
    assert_eq!(seen[..2], ["builtin:calculator says 4"; 2]);
    assert!(seen[2].starts_with(told), "{seen:?}");
    assert_eq!(world.tools.asked.lock().len(), 2);
    assert_eq!(used(&world, Scope::Tool).await, [("calculator".into(), 2)]);
    assert_eq!(
        chunks.last().unwrap().finish_reason,
        "budget",
        "the next does not fit"
    );
}

async fn hooks_decide_on_each(place: Place) {
    let says = |asked: &ToolHookRequest| {
        let given: Value = serde_json::from_str(&asked.arguments).unwrap();
        let deny = given["expression"] == "1+1";
        Ok(ToolHookResponse {
            decision: if deny { "deny" } else { "allow" }.into(),
            ..ToolHookResponse::default()
        })
    };
    let other = call("calculator", json!({"expression": "1+1"}));
    let script = vec![actions(&json!([other, add()])), Say::Text(END)];
    let (world, heard) = hooked::world(&place, rows(), script, says).await;
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(
        observed(&chunks),
        [
            "Error: 'calculator' was not used: the hook of the flow denies it",
            "builtin:calculator says 4",
        ]
    );
    assert_eq!(heard.lock().len(), 3);
}

/// Rows with a tool that asks first.
fn asking() -> Config {
    let config = rows();
    let tool = json!({"name": "mail", "type": "mcp-tool", "mcp-tool": "far", "confirm": true,
                      "arguments": [{"name": "to", "type": "string"}]});
    config.put("tool", "mail", &tool.to_string());
    config
}

/// The user is asked before each, one after the other, and none is made before all are answered.
async fn a_user_is_asked_before_each(place: Place) {
    let mail = |to: &str| call("mail", json!({"to": to}));
    let script = [
        actions(&json!([mail("a"), mail("b"), add()])),
        Say::Text(END),
    ];
    let world = World::among(&place, script, asking(), Vec::new()).await;
    let mut answer = world.ask_with(&question("q", true), asks("q", true));
    let mut chunks = Vec::new();
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        let part = part.unwrap();
        if part.message_type == "confirm" {
            assert!(world.tools.asked.lock().is_empty());
            let said = if part.content.contains("\"a\"") {
                Answer::Yes
            } else {
                Answer::No
            };
            let whose = Whose::User("ann".into());
            let reply = async |asked: &str| {
                let noted = world
                    .ledger
                    .answer_user(&whose, ("q", asked), (said, "ann"), 1);
                noted.await.unwrap()
            };
            // Only the first question takes an answer that names none.
            let bare = match said {
                Answer::Yes => Replied::Noted,
                _ => Replied::Several,
            };
            assert_eq!(reply("").await, bare);
            if bare == Replied::Several {
                assert_eq!(reply(&part.message_id).await, Replied::Noted);
            }
            world.agent.answers.notify_waiters();
        }
        chunks.push(part);
    }
    let asked = of_kind(&chunks, "confirm");
    assert_eq!(asked.len(), 2);
    assert!(asked[1].message_id.ends_with("/i1/call/2/confirmation"));
    let seen = observed(&chunks);
    assert_eq!(
        (seen[0].as_str(), seen[2].as_str()),
        ("far says 4", "builtin:calculator says 4")
    );
    assert!(seen[1].starts_with("Error: "), "{seen:?}");
    assert_eq!(world.tools.asked.lock().len(), 2);
    let (root, all) = world.told(&chunks).await;
    let stored: Stored = all.iter().cloned().collect();
    assert!(matches!(
        stored.verify(&root, &Texts::Unknown, None),
        Ok(Some(_))
    ));
}

async fn who_gives_work_does_so_alone(place: Place) {
    let delegate = call("delegate", json!({"agent_id": "a", "message": "a?"}));
    let script = [actions(&json!([delegate, add()])), Say::Text(END)];
    let world = World::among(&place, script, agents(), Vec::new()).await;
    let chunks = world.run(&question("q", false)).await;
    let seen = observed(&chunks);
    assert!(
        seen[0].starts_with("Error: 'delegate' has other agents do something"),
        "{seen:?}"
    );
    assert_eq!(seen[1], "builtin:calculator says 4");
    assert_eq!(world.calls(), 2);
}

async fn they_are_told_again(place: Place) {
    let mail = call("mail", json!({"to": "a"}));
    let fails = call("calculator", json!({"expression": "1/0"}));
    let script = [actions(&json!([add(), fails, mail, add()])), Say::Text(END)];
    let world = World::among(&place, script, asking(), Vec::new()).await;
    let mut asked = question("q", true);
    asked.grant = vec!["mail".into()];
    let heard = run_recorded(&world, asked, asks("q", false)).await;
    assert_eq!(of_kind(&heard, "observation").len(), 4);
    same_again(&world, "q", &heard).await;
}

tg_testkit::on_both_buses!(
    several_tools_are_used_at_the_same_time_and_read_in_their_order,
    what_has_returned_is_not_called_again,
    guards_count_each_call,
    those_that_fit_a_budget_are_made,
    hooks_decide_on_each,
    a_user_is_asked_before_each,
    who_gives_work_does_so_alone,
    they_are_told_again,
);
