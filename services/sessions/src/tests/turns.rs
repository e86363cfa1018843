//! Turns of sessions: what the agent is told, what is kept, and the order in which they follow.

use tg_schemas::ErrorCode;
use tg_schemas::operations::{ListMessages, SendMessage, SessionMessage, WhichMessages};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{TRACE, World, code, fails, said, sent};

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

async fn a_turn_that_fails_keeps_the_users_message_alone(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.answers(|_| fails(ErrorCode::Provider));
    assert_eq!(code(world.send(&session, "one").await), "upstream_error");
    assert_eq!(texts(&said(&world, &session).await), [("user", "one")]);
}

async fn line_043_turns_of_a_session_do_not_mix(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let turns = (0..8).map(|at| {
        let (world, session) = (&world, &session);
        async move { world.send(session, &format!("q{at}")).await.unwrap() }
    });
    // All at once.
    let mut turns: Vec<_> = turns.map(Box::pin).collect();
    let all = std::future::poll_fn(|cx| {
        turns.retain_mut(|turn| turn.as_mut().poll(cx).is_pending());
        match turns.is_empty() {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    });
    all.await;
    let all = said(&world, &session).await;
    let all = texts(&all);
    assert_eq!(all.len(), 16);
    for turn in all.chunks(2) {
        let [(asker, asked), (answerer, answered)] = turn else {
            panic!("pairs");
        };
        assert_eq!((*asker, *answerer), ("user", "assistant"));
        assert_eq!(format!("re {asked}"), *answered);
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
    a_turn_that_fails_keeps_the_users_message_alone,
    line_043_turns_of_a_session_do_not_mix,
    line_130_a_request_that_comes_twice_is_one_turn,
    a_message_has_its_bounds,
);
