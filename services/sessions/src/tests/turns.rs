//! Turns of sessions: what the agent is told, what is kept, and the order in which they follow.

use std::sync::Arc;
use std::task::Poll;

use tg_clients::flow_records::ReadyFlows;
use tg_schemas::ErrorCode;
use tg_schemas::msg::{AgentResponse, LoopRecord};
use tg_schemas::operations::{
    CreateSession, DeleteSession, ListMessages, NewSession, SESSIONS as TOPIC, SendMessage,
    Session, SessionMessage, WhichMessages,
};
use tg_testkit::fakes::Play;
use tg_testkit::faults::FaultyBus;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::around;
use super::world::{TRACE, World, code, fails, one, part, said, sent};

/// A user whose name is found nowhere by chance.
const USER: &str = "bob-4711";
/// Sessions that have turns, and those that have them at the same time: no more turns wait than a workspace lets wait.
const SESSIONS: usize = 500;
const WAVE: usize = 100;
/// Turns that each of them has at once.
const TURNS: usize = 8;
/// What later ones may take more than the first, in KiB: finished answers are kept for a while.
const MORE: u64 = 64 << 10;

fn texts(all: &[SessionMessage]) -> Vec<(&str, &str)> {
    let text = |one: &SessionMessage| one.content.as_deref().map(str::len);
    assert!(all.iter().all(|one| text(one).is_some()));
    all.iter()
        .map(|one| {
            (
                one.role.as_str(),
                one.content.as_deref().unwrap_or_default(),
            )
        })
        .collect()
}

/// Line 128: a turn names the trace that explains it.
async fn line_128_a_turn_names_the_trace_that_explains_it(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("zoe", "bob").await;
    let turn = world.send(&session, "one").await.unwrap();
    assert_eq!(turn.explain_session, TRACE);
}

async fn line_013_the_second_turn_knows_the_first(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("zoe", "bob").await;
    let first = world.send(&session, "one").await.unwrap();
    assert_eq!(first.content, "re one");
    assert_eq!(first.session_id.as_deref(), Some(session.id.as_str()));
    world.send(&session, "two").await.unwrap();
    let asked = world.asked();
    assert_eq!(asked[0].framing, "Be brief.");
    let told = &asked[1].framing;
    let places: Vec<_> = ["Be brief.", "User: one", "Assistant: re one"]
        .map(|text| told.find(text))
        .into_iter()
        .collect::<Option<_>>()
        .unwrap_or_else(|| panic!("{told}"));
    assert!(places.is_sorted() && !told.contains("two"));
    assert_eq!(asked[1].question, "two");
    let all = said(&world, &session).await;
    let expected = [
        ("user", "one"),
        ("assistant", "re one"),
        ("user", "two"),
        ("assistant", "re two"),
    ];
    assert_eq!(texts(&all), expected);
    assert_eq!(all[1].usage.map(|used| used.total), Some(7));
}

/// What the agent was sent with the last question.
fn framing(world: &World) -> String {
    let asked = world.asked();
    asked.last().expect("it was asked").framing.clone()
}

async fn each_turn_is_told_all_that_was_said_before(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let mut before = String::from("This conversation so far:");
    for text in ["one", "two", "three"] {
        world.send(&session, text).await.unwrap();
        before.push_str(&format!("\n\nUser: {text}\n\nAssistant: re {text}"));
    }
    world.answers(|_| fails(ErrorCode::Provider));
    world.send(&session, "four").await.unwrap_err();
    assert_eq!(framing(&world), before);
    before.push_str("\n\nUser: four");
    world.answers(|asked| Ok(format!("re {}", asked.question)));
    world.send(&session, "five").await.unwrap();
    assert_eq!(framing(&world), before);
    before.push_str("\n\nUser: five\n\nAssistant: re five");
    // A process that had no turn of it reads the same.
    let world = world.again(&place).await;
    world.send(&session, "six").await.unwrap();
    assert_eq!(framing(&world), before);
}

async fn a_session_of_the_id_of_a_deleted_one_is_told_nothing_of_that(place: Place) {
    let world = World::start(&place).await;
    let new = NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        session_id: Some("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d71".to_owned()),
        ..NewSession::default()
    };
    let session = world.call::<CreateSession>(&new).await.unwrap();
    world.fill(&session, 3, "secret").await;
    world.call::<DeleteSession>(&one(&session)).await.unwrap();
    let session = world.call::<CreateSession>(&new).await.unwrap();
    for at in 0..4 {
        world.send(&session, &format!("open {at}")).await.unwrap();
        let told = framing(&world);
        assert!(!told.contains("secret"), "{told}");
        assert_eq!(told.matches("User: open").count(), at);
    }
}

async fn a_turn_that_fails_keeps_the_users_message_alone(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.answers(|_| fails(ErrorCode::Provider));
    assert_eq!(code(world.send(&session, "one").await), "upstream_error");
    assert_eq!(texts(&said(&world, &session).await), [("user", "one")]);
}

/// The record of a flow is read once, and not for each turn.
async fn a_turn_goes_by_the_record_of_its_flow_as_it_is_now(place: Place) {
    let world = World::start(&place).await;
    let (mesh, config) = (&world.flow.mesh, &world.flow.config);
    let flows = ReadyFlows::default();
    let ready = || flows.get(mesh.config(), "default", "default").unwrap();
    let known = ready();
    assert!(Arc::ptr_eq(&known, &ready()));
    assert!(flows.get(mesh.config(), "default", "none").is_none());
    let session = world.session("ann", "bob").await;
    world.send(&session, "one").await.unwrap();
    let mut record = around::record(false);
    let interfaces = record["interfaces"].take();
    config.apply(mesh, "flow", "default", Some(&record)).await;
    assert!(ready().interfaces.is_empty());
    assert_eq!(code(world.send(&session, "two").await), "agent_unavailable");
    record["interfaces"] = interfaces;
    config.apply(mesh, "flow", "default", Some(&record)).await;
    assert_eq!(ready(), known);
    assert_eq!(world.send(&session, "two").await.unwrap().content, "re two");
}

async fn line_043_turns_of_a_session_do_not_mix(place: Place) {
    let world = World::start(&place).await;
    let sessions = [world.session("ann", "bob").await];
    turns_at_once(&world, &sessions).await;
}

/// Does all of it at once.
async fn at_once<F: Future<Output = ()>>(all: impl Iterator<Item = F>) {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let done = std::future::poll_fn(|cx| {
        all.retain_mut(|one| one.as_mut().poll(cx).is_pending());
        match all.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    });
    done.await;
}

/// Each session has its own turns, whole and one after the other.
async fn turns_at_once(world: &World, sessions: &[Session]) {
    let all = sessions
        .iter()
        .flat_map(|session| (0..TURNS).map(move |at| (session, at)));
    let turns = all.map(|(session, at)| async move {
        let text = format!("{} {at}", session.id);
        world.send(session, &text).await.unwrap();
    });
    at_once(turns).await;
    for session in sessions {
        let all = said(world, session).await;
        let all = texts(&all);
        assert_eq!(all.len(), 2 * TURNS);
        let mut asked = Vec::new();
        for turn in all.chunks(2) {
            let [(asker, question), (answerer, answered)] = turn else {
                panic!("pairs");
            };
            assert_eq!((*asker, *answerer), ("user", "assistant"));
            assert_eq!(format!("re {question}"), *answered);
            asked.push((*question).to_owned());
        }
        asked.sort();
        let expected: Vec<String> = (0..TURNS)
            .map(|at| format!("{} {at}", session.id))
            .collect();
        assert_eq!(asked, expected);
    }
}

/// Set in a process that has one test alone.
const ALONE: &str = "TG_SESSIONS_TEST_ALONE";

/// Runs a test of this file once more, in a process of its own: other tests take memory, too, and more of them at a time where
/// there are more processors. cargo-nextest starts a process for each test. `false` in such a process.
fn has_run_alone(name: &str, place: &Place) -> bool {
    let is_alone = [ALONE, "NEXTEST"].map(|name| std::env::var_os(name).is_some());
    if is_alone.contains(&true) {
        return false;
    }
    let bus = match place {
        Place::Embedded(_) => "embedded",
        Place::RabbitMq(_) => "rabbitmq",
    };
    let told = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact"])
        .arg(format!("tests::turns::{bus}::{name}"))
        .env(ALONE, "yes")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(
        told.status.success() && text.contains(" 1 passed;"),
        "{told:?}"
    );
    true
}

/// The most memory that this process had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

async fn line_043_turns_of_many_sessions_do_not_mix(place: Place) {
    if has_run_alone("line_043_turns_of_many_sessions_do_not_mix", &place) {
        return;
    }
    let world = World::start_bounded(&place, |options| options.max_concurrent = 32).await;
    let mut first = None;
    for _ in 0..SESSIONS / WAVE {
        let mut sessions = Vec::new();
        for _ in 0..WAVE {
            sessions.push(world.session("ann", "bob").await);
        }
        turns_at_once(&world, &sessions).await;
        assert_eq!(world.asked().len(), WAVE * TURNS);
        world.agent.asked.lock().clear();
        first.get_or_insert_with(peak);
    }
    // Turns that are over hold nothing.
    let more = peak() - first.unwrap();
    assert!(more <= MORE, "{more} KiB more");
}

/// What a session has of its turns: its last calls of tools, and the name by which budgets count.
async fn the_last_calls_travel_with_their_session(place: Place) {
    let world = World::start(&place).await;
    world.plays(|asked| {
        let mut window = asked.loop_window.clone();
        window.push(LoopRecord {
            t: "search".to_owned(),
            a: asked.question.clone(),
            ..LoopRecord::default()
        });
        let last = AgentResponse {
            loop_window: window,
            end_of_message: true,
            end_of_dialog: true,
            ..part("answer", "ok")
        };
        Play::of(vec![last])
    });
    let session = world.session("ann", "bob").await;
    for text in ["one", "two", "three"] {
        world.send(&session, text).await.unwrap();
    }
    let other = world.session("ann", "bob").await;
    world.send(&other, "else").await.unwrap();
    let asked = world.asked();
    let windows: Vec<Vec<&str>> = asked
        .iter()
        .map(|one| one.loop_window.iter().map(|call| call.a.as_str()).collect())
        .collect();
    assert_eq!(windows, [vec![], vec!["one"], vec!["one", "two"], vec![]]);
    let count = |id: &str| asked.iter().filter(|one| one.conversation_id == id).count();
    assert_eq!((count(&session.id), count(&other.id)), (3, 1));
    // In another process, too.
    let world = world.again(&place).await;
    world.send(&session, "four").await.unwrap();
    assert_eq!(world.asked()[0].loop_window.len(), 3);
}

/// Line 129: neither what the agent is asked nor anything that has a name on the bus says whose session it is.
async fn line_129_no_question_and_no_queue_names_the_user(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let world = World::start_over(Arc::new(bus.clone())).await;
    let session = world.session("zoe", USER).await;
    for text in ["one", "two"] {
        world.send(&session, text).await.unwrap();
    }
    let asked = world.asked();
    assert_eq!(asked.len(), 2);
    let bodies = asked.iter().map(|one| serde_json::to_string(one).unwrap());
    let names = bus.names();
    assert!(names.iter().any(|name| name.contains(TOPIC)), "{names:?}");
    for told in bodies.chain(names) {
        assert!(!told.contains(USER), "{told}");
    }
}

async fn line_130_a_request_that_comes_twice_is_one_turn(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let message = sent(&session, "one");
    let id = Some("0d8a3c5e-7f60-4d0b-9d0e-6a2f1f0c9b11");
    let first = world.call_as::<SendMessage>(id, &message).await.unwrap();
    let again = world.call_as::<SendMessage>(id, &message).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(said(&world, &session).await.len(), 2);
    assert_eq!(world.asked().len(), 1);
}

async fn a_message_has_its_bounds(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    for text in ["", "  ", &"x".repeat(32_001)] {
        assert_eq!(code(world.send(&session, text).await), "validation_error");
    }
    assert!(world.send(&session, &"x".repeat(32_000)).await.is_ok());
}

/// `list-messages`
async fn pages_of_messages_are_oldest_first(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    for text in ["one", "two"] {
        world.send(&session, text).await.unwrap();
    }
    let mut which = WhichMessages {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        user_id: session.user_id.clone(),
        limit: Some(3),
        ..WhichMessages::default()
    };
    let first = world.call::<ListMessages>(&which).await.unwrap();
    assert_eq!(first.messages.len(), 3);
    which.cursor = first.next_cursor;
    let second = world.call::<ListMessages>(&which).await.unwrap();
    assert_eq!(texts(&second.messages), [("assistant", "re two")]);
    assert_eq!(second.next_cursor, None);
}

on_both_buses!(
    line_128_a_turn_names_the_trace_that_explains_it,
    pages_of_messages_are_oldest_first,
    line_013_the_second_turn_knows_the_first,
    each_turn_is_told_all_that_was_said_before,
    a_session_of_the_id_of_a_deleted_one_is_told_nothing_of_that,
    a_turn_that_fails_keeps_the_users_message_alone,
    a_turn_goes_by_the_record_of_its_flow_as_it_is_now,
    line_043_turns_of_a_session_do_not_mix,
    line_043_turns_of_many_sessions_do_not_mix,
    the_last_calls_travel_with_their_session,
    line_129_no_question_and_no_queue_names_the_user,
    line_130_a_request_that_comes_twice_is_one_turn,
    a_message_has_its_bounds,
);
