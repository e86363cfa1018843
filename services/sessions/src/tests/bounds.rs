//! What one answer and one workspace may hold.

use tg_schemas::limits::{PAGE_BYTES, SESSION_TEXTS};
use tg_schemas::operations::{
    Chat, CompactSession, CreateSession, ExpandSummary, ExportSession, ListMessages, NewSession,
    OneSummary, Question, SendMessage, SentMessage, Session, WhichMessages,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, one, sent};

/// A session with more text than one answer holds: each turn has the same long answer.
async fn long(world: &World) -> Session {
    let new = NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        compact_strategy: Some(tg_schemas::operations::CompactStrategy::Manual),
        compact_keep_last_n: Some(0),
        ..NewSession::default()
    };
    let session = world.call::<CreateSession>(&new).await.unwrap();
    let answer = "word ".repeat(PAGE_BYTES / 5);
    world.answers(move |_| Ok(answer.clone()));
    world.fill(&session, 1, "turn").await;
    session
}

async fn pages_of_long_messages_end_early(place: Place) {
    let world = World::start(&place).await;
    let session = long(&world).await;
    world.fill(&session, 2, "turn").await;
    let mut which = WhichMessages {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        user_id: session.user_id.clone(),
        ..WhichMessages::default()
    };
    let (mut seen, mut pages) = (0, 0);
    loop {
        let page = world.call::<ListMessages>(&which).await.unwrap();
        seen += page.messages.len();
        pages += 1;
        which.cursor = page.next_cursor;
        if which.cursor.is_none() {
            break;
        }
    }
    assert_eq!((seen, pages), (6, 3));
    // The newest are read at once, from the end.
    for (newest, expected) in [(1, 1), (4, 4), (1_000, 6)] {
        which.newest = Some(newest);
        let read = world.call::<ListMessages>(&which).await.unwrap();
        assert_eq!((read.messages.len(), read.next_cursor), (expected, None));
        assert_eq!(read.messages.last().unwrap().role, "assistant");
    }
    for wrong in [0, 1_001] {
        which.newest = Some(wrong);
        let refused = world.call::<ListMessages>(&which).await;
        assert_eq!(code(refused), "validation_error");
    }
}

async fn a_session_that_no_answer_can_hold_is_refused_by_name(place: Place) {
    let world = World::start(&place).await;
    let session = long(&world).await;
    world.call::<ExportSession>(&one(&session)).await.unwrap();
    world
        .fill(&session, SESSION_TEXTS / PAGE_BYTES, "turn")
        .await;
    let refused = world.call::<ExportSession>(&one(&session)).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused["code"], "payload_too_large");
    let text = refused["message"].as_str().unwrap_or_default();
    assert!(
        text.starts_with("session_id: ") && text.contains("8 MiB"),
        "{text}"
    );
    // What is too long to be summed up at once is summed up as far as that goes, and the rest stays.
    let done = world.call::<CompactSession>(&one(&session)).await.unwrap();
    assert!(done.kept_count > 0, "{}", done.kept_count);
    let which = OneSummary {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        summary_id: done.summary_id,
        user_id: session.user_id.clone(),
    };
    let expanded = world.call::<ExpandSummary>(&which).await.unwrap();
    assert_eq!(expanded.messages.len() as i64, done.compacted_count);
}

async fn a_full_workspace_takes_no_more(place: Place) {
    let world = World::start_bounded(&place, |options| options.workspace_sessions = 2).await;
    let session = world.session("ann", "bob").await;
    world.session("ann", "bob").await;
    let new = NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        ..NewSession::default()
    };
    let refused = world.call::<CreateSession>(&new).await.unwrap_err();
    assert_eq!(refused["code"], "payload_too_large");
    let text = "the sessions of this workspace may hold at most 2 sessions";
    assert_eq!(refused["message"], text);
    // What is there goes on.
    world.send(&session, "one").await.unwrap();
}

async fn a_workspace_full_of_messages_takes_no_more(place: Place) {
    let world = World::start_bounded(&place, |options| options.workspace_mb = 1).await;
    let session = long(&world).await;
    let asked = world.asked().len();
    let refused = world.send(&session, "one").await;
    assert_eq!(code(refused), "payload_too_large");
    assert_eq!(world.asked().len(), asked);
}

async fn the_request_that_caused_another_has_a_short_id(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let parent = "x".repeat(129);
    let long = SentMessage {
        parent_request_id: parent.clone(),
        ..sent(&session, "one")
    };
    let refused = world.call::<SendMessage>(&long).await;
    assert_eq!(code(refused), "invalid_header");
    let long = Question {
        name: "ann".to_owned(),
        message: Some("one".to_owned()),
        parent_request_id: parent,
        ..Question::default()
    };
    assert_eq!(code(world.call::<Chat>(&long).await), "invalid_header");
    assert!(world.asked().is_empty());
}

on_both_buses!(
    pages_of_long_messages_end_early,
    a_session_that_no_answer_can_hold_is_refused_by_name,
    a_full_workspace_takes_no_more,
    a_workspace_full_of_messages_takes_no_more,
    the_request_that_caused_another_has_a_short_id,
);
