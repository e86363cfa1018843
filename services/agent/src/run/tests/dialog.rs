//! What the asker of a run gets, and what the run leaves behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tg_provenance::{Stored, Texts};
use tg_schemas::Error;
use tg_schemas::msg::{AgentResponse, AgentStep};
use tg_testkit::place::Place;

use crate::engine::usage::Scope;
use crate::run::day::today;
use crate::sessions::{Notification, SessionId, Sessions, Turn};
use crate::store::Days;

use super::world::{SOON, Say, World, question, rows, shown, triples, values};

const ADD: &str =
    "Thought: I need to add.\nIt is easy.\nAction: calculator\nArgs: {\"expression\": \"2+2\"}\n";
const END: &str = "Thought: I now know.\nFinal Answer: It is:\n- 4\n";

/// Type, id below the session, flags and content of each chunk.
pub(super) fn outline(chunks: &[AgentResponse]) -> Vec<String> {
    let below = |iri: &str| {
        if iri.is_empty() {
            return String::new();
        }
        let rest = iri
            .strip_prefix("urn:trustgraph:agent:")
            .expect("an IRI of the run");
        rest.get(36..).expect("a uuid").to_owned()
    };
    chunks
        .iter()
        .map(|c| {
            let id = c.explain_id.as_deref().unwrap_or(&c.message_id);
            let flag = |set: bool, name: &'static str| if set { name } else { "" };
            format!(
                "{} {}{}{} {}",
                c.message_type,
                below(id),
                flag(c.end_of_message, " eom"),
                flag(c.end_of_dialog, " eod"),
                c.content
            )
        })
        .collect()
}

/// The outline with the pieces of one message put together.
pub(super) fn joined(chunks: &[AgentResponse]) -> Vec<String> {
    let mut whole: Vec<AgentResponse> = Vec::new();
    for chunk in chunks {
        match whole.last_mut() {
            Some(last)
                if last.message_type == chunk.message_type
                    && last.message_id == chunk.message_id
                    && !last.end_of_message
                    && chunk.message_type != "explain" =>
            {
                last.content.push_str(&chunk.content);
                last.end_of_message = chunk.end_of_message;
                last.end_of_dialog = chunk.end_of_dialog;
            }
            _ => whole.push(chunk.clone()),
        }
    }
    outline(&whole)
}

const EXPECTED: &[&str] = &[
    "explain  ",
    "thought /i1/thought eom I need to add.\nIt is easy.",
    "action /i1 eom {\"name\": \"calculator\", \"arguments\": {\"expression\":\"2+2\"}}",
    "explain /i1 ",
    "explain /i1/thought ",
    "observation /i1/observation eom builtin:calculator says 4",
    "explain /i1/observation ",
    "thought /i2/thought eom I now know.",
];

async fn a_whole_reply_dialog_has_its_chunks_in_order(place: Place) {
    let world = World::new(&place, [Say::Text(ADD), Say::Text(END)]).await;
    let chunks = world.run(&question("2+2?", false)).await;
    let mut expected = EXPECTED.to_vec();
    expected.push("explain /final ");
    expected.push("answer /final eom eod It is:\n- 4");
    assert_eq!(outline(&chunks), expected);
    let last = chunks.last().unwrap();
    assert_eq!(
        (last.in_token, last.out_token),
        (Some(200), Some(20)),
        "both calls"
    );
    assert_eq!(last.model.as_deref(), Some("scripted"));
    assert!(
        chunks[..chunks.len() - 1]
            .iter()
            .all(|c| c.in_token.is_none())
    );
}

/// Sessions that count how often anybody uses them.
#[derive(Default)]
struct Counted(AtomicUsize);

impl Counted {
    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Sessions for Counted {
    async fn turns(&self, _: &SessionId) -> Result<Vec<Turn>, Error> {
        self.one_more();
        Ok(Vec::new())
    }

    async fn add(&self, _: &SessionId, _: Turn) -> Result<(), Error> {
        self.one_more();
        Ok(())
    }

    async fn tell(&self, _: &Notification) -> Result<Option<String>, Error> {
        self.one_more();
        Ok(None)
    }
}

/// Line 126: a request without any key of ours has the chunks that it always had, and no session.
async fn line_126_a_plain_question_has_its_chunks_and_no_session(place: Place) {
    let sessions = Arc::new(Counted::default());
    let script = [Say::Text(ADD), Say::Text(END)];
    let world = World::with_sessions(&place, script, rows(), sessions.clone()).await;
    let chunks = world.run(&question("2+2?", false)).await;
    let mut expected = EXPECTED.to_vec();
    expected.extend(["explain /final ", "answer /final eom eod It is:\n- 4"]);
    assert_eq!(outline(&chunks), expected);
    assert_eq!(sessions.0.load(Ordering::Relaxed), 0);
    let days = Days {
        scope: Scope::Session,
        since: String::new(),
        until: "9999".into(),
        daily: false,
    };
    let of_sessions = world.ledger.usage("default", &days, "", 9).await.unwrap();
    assert!(of_sessions.is_empty(), "{of_sessions:?}");
}

async fn a_streamed_dialog_has_the_same_texts_in_pieces(place: Place) {
    let world = World::new(&place, [Say::Text(ADD), Say::Text(END)]).await;
    let chunks = world.run(&question("2+2?", true)).await;
    assert!(chunks.len() > 12, "pieces: {}", chunks.len());
    let mut expected = EXPECTED.to_vec();
    expected.push("answer /final It is:\n- 4");
    expected.push("explain /final ");
    expected.push("answer /final eom eod ");
    assert_eq!(joined(&chunks), expected);
    let thoughts: Vec<_> = chunks
        .iter()
        .filter(|c| c.message_id.ends_with("/i1/thought"))
        .collect();
    assert!(thoughts.len() > 1);
    let (end, before) = thoughts.split_last().unwrap();
    assert!(end.end_of_message && before.iter().all(|c| !c.end_of_message));
}

async fn the_trace_is_stored_before_the_end_and_equals_what_was_shown(place: Place) {
    let world = World::new(&place, [Say::Text(ADD), Say::Text(END)]).await;
    let chunks = world.run(&question("2+2?", true)).await;
    world.ended().await;
    let stored = triples(&world.store.until(|all| all.len() == 2).await);
    let shown = shown(&chunks);
    assert!(shown.is_subset(&stored));
    let hidden: BTreeSet<String> = stored
        .difference(&shown)
        .map(|t| format!("{:?}", t.s.as_ref().unwrap()))
        .collect();
    assert_eq!(
        hidden.len(),
        1,
        "only the last thought is not shown: {hidden:?}"
    );
    assert_eq!(world.store.count(), 2, "one record a step");
    for (predicate, expected) in [
        ("https://trustgraph.ai/ns/query", vec!["2+2?"]),
        ("https://trustgraph.ai/ns/action", vec!["calculator"]),
        (
            "https://trustgraph.ai/ns/toolCandidate",
            vec!["calculator", "llm", "remote"],
        ),
        (
            "https://trustgraph.ai/ns/terminationReason",
            vec!["final-answer"],
        ),
    ] {
        assert_eq!(values(&stored, predicate), expected);
    }
    let reflection = |chunk: &&AgentResponse| {
        let text = format!("{:?}", chunk.explain_triples);
        text.contains("ns/Reflection") && text.contains("ns/Analysis")
    };
    assert_eq!(chunks.iter().filter(reflection).count(), 0);
    let documents = world.library.holds(4).await;
    let titles: Vec<_> = documents
        .values()
        .map(|(title, _)| title.as_str())
        .collect();
    assert_eq!(
        titles,
        [
            "Agent Answer: 2+2?...",
            "Agent Observation",
            "Agent Thought: calculator",
            "Agent Thought: Final Answer"
        ]
    );
    let mut linked = values(&stored, "https://trustgraph.ai/ns/document");
    linked.sort();
    assert_eq!(linked, documents.keys().cloned().collect::<Vec<_>>());
    // The chain is that of the entities in their order, and of the texts that the library has.
    let texts = documents.into_iter();
    let texts: BTreeMap<_, _> = texts.map(|(id, (_, text))| (id, text)).collect();
    let chained: Stored = stored.into_iter().collect();
    let root = &chunks.last().unwrap().trace;
    let whole = chained.verify(root, &Texts::Known(&texts), None);
    let whole = whole.expect("it holds").expect("there is one");
    assert_eq!((whole.entities, whole.texts), (6, 4));
    // It is noted once the asker has the last part.
    let noted = async {
        loop {
            let ends = world.ledger.ended("default", &today(), 0, 9).await.unwrap();
            if !ends.is_empty() {
                return ends;
            }
            tokio::task::yield_now().await;
        }
    };
    let ends = tokio::time::timeout(SOON, noted).await.expect("an end");
    let ends: Vec<_> = ends.iter().map(|end| (&end.run, &end.hash)).collect();
    assert_eq!(ends, [(root, &whole.head)], "the ledger has noted it");
}

async fn texts_wait_for_a_library_that_is_away(place: Place) {
    let world = World::new(&place, [Say::Text(ADD), Say::Text(END)]).await;
    world.library.set_away(true);
    let chunks = world.run(&question("2+2?", false)).await;
    assert!(chunks.last().unwrap().end_of_dialog);
    world.ended().await;
    let document = "https://trustgraph.ai/ns/document";
    let trace = world.trace(|all| values(all, document).len() == 4).await;
    let mut linked = values(&trace, document);
    linked.sort();
    assert!(world.library.texts.lock().is_empty());
    world.library.set_away(false);
    let documents = world.library.holds(4).await;
    assert_eq!(linked, documents.into_keys().collect::<Vec<_>>());
}

async fn the_model_can_mend_what_it_got_wrong(place: Place) {
    let world = World::new(
        &place,
        [
            Say::Text("Action: calc\nArgs: {}"),
            Say::Text("Action: calculator\nArgs: {\"x\": 1}"),
            Say::Text("Action: calculator\nArgs: {\"expression\": \"1/0\"}"),
            Say::Text("Action: calculator\nArgs: {\"expression\": \"4\"}"),
            Say::Text(END),
        ],
    )
    .await;
    let chunks = world.run(&question("q", false)).await;
    let seen: Vec<_> = chunks
        .iter()
        .filter(|c| c.message_type == "observation")
        .map(|c| c.content.as_str())
        .collect();
    assert_eq!(
        seen[0],
        "Error: there is no tool 'calc'. Tools: calculator, llm, remote"
    );
    assert!(
        seen[1].starts_with("Error: there is no argument 'x'; argument 'expression' is required")
    );
    assert_eq!(seen[2], "Error: division by zero");
    assert_eq!(seen[3], "builtin:calculator says 4");
    assert!(chunks.last().unwrap().end_of_dialog && chunks.last().unwrap().error.is_none());
    assert_eq!(world.tools.asked.lock().len(), 2, "bad calls are not made");
    let asked = world.asked.lock();
    let history = asked[4]["history"].as_array().unwrap();
    assert_eq!(history.len(), 4);
    assert_eq!(history[2]["arguments"], json!({"expression": "1/0"}));
}

async fn an_unreadable_reply_is_asked_for_again_with_the_reason(place: Place) {
    let world = World::new(
        &place,
        [
            Say::Text("Thought: hm\nAction: calculator\nArgs: {expression 1}"),
            Say::Text(ADD),
            Say::Text("It is 4."),
            Say::Text("I said 4."),
            Say::Text("4!"),
            Say::Text(END),
        ],
    )
    .await;
    let chunks = world.run(&question("q", true)).await;
    let asked = world.asked.lock().clone();
    assert_eq!(asked.len(), 6);
    assert!(asked[0]["context"].is_null());
    assert!(
        asked[1]["context"]
            .as_str()
            .unwrap()
            .contains("cannot be read")
    );
    assert!(asked[2]["context"].is_null());
    let seen: Vec<_> = chunks
        .iter()
        .filter(|c| c.message_type == "observation")
        .map(|c| c.content.as_str())
        .collect();
    assert_eq!(
        seen,
        [
            "builtin:calculator says 4",
            "Error: LLM parse error: the reply has neither an Action nor a Final Answer"
        ]
    );
    let thoughts: String = chunks
        .iter()
        .filter(|c| c.message_id.ends_with("/i1/thought"))
        .map(|c| c.content.as_str())
        .collect();
    assert_eq!(thoughts, "hm", "what was said of the step stays said");
    let last = chunks.last().unwrap();
    assert_eq!(last.in_token, Some(600), "every call counts");
}

async fn tools_change_the_state_only_when_they_succeed_and_count_their_tokens(place: Place) {
    let world = World::new(
        &place,
        [
            Say::Text("Action: remote\nArgs: {\"x\": \"many\"}"),
            Say::Text("Action: remote\nArgs: {\"x\": 1}"),
            Say::Text("Action: llm\nArgs: {\"question\": \"hi\"}"),
            Say::Text(END),
        ],
    )
    .await;
    let later = json!({
        "name": "later", "type": "text-completion", "applicable-states": ["moved"],
    });
    world
        .config
        .apply(&world.mesh, "tool", "later", Some(&later))
        .await;
    let chunks = world.run(&question("q", false)).await;
    let names: Vec<_> = world
        .asked
        .lock()
        .iter()
        .map(|terms| terms["tool_names"].as_str().unwrap().to_owned())
        .collect();
    let before = "calculator, llm, remote";
    let after = "calculator, later, llm, remote";
    assert_eq!(names, [before, before, after, after]);
    assert_eq!(
        chunks.last().unwrap().in_token,
        Some(500),
        "the tool's model call too"
    );
    assert!(chunks.iter().any(|c| c.content == "You said \"hi\""));
}

async fn a_client_history_is_context_only(place: Place) {
    let world = World::new(&place, [Say::Text(END)]).await;
    let mut ask = question("q", false);
    ask.session_id = "00000000-0000-0000-0000-000000000000".into();
    ask.history = vec![
        AgentStep {
            thought: "before".into(),
            action: "calculator".into(),
            observation: "old".into(),
            step_type: "subagent-completion".into(),
            ..AgentStep::default()
        };
        12
    ];
    let chunks = world.run(&ask).await;
    assert_eq!(outline(&chunks)[0], "explain  ");
    assert_eq!(outline(&chunks)[1], "thought /i1/thought eom I now know.");
    assert!(
        !chunks[0]
            .explain_id
            .as_deref()
            .unwrap()
            .contains("00000000-0000")
    );
    let asked = world.asked.lock();
    assert_eq!(asked[0]["history"].as_array().unwrap().len(), 12);
}

tg_testkit::on_both_buses!(
    line_126_a_plain_question_has_its_chunks_and_no_session,
    a_whole_reply_dialog_has_its_chunks_in_order,
    a_streamed_dialog_has_the_same_texts_in_pieces,
    the_trace_is_stored_before_the_end_and_equals_what_was_shown,
    texts_wait_for_a_library_that_is_away,
    the_model_can_mend_what_it_got_wrong,
    an_unreadable_reply_is_asked_for_again_with_the_reason,
    tools_change_the_state_only_when_they_succeed_and_count_their_tokens,
    a_client_history_is_context_only,
);
