//! Sessions of users: created, listed, shown and deleted, and hidden from everybody else.

use tg_schemas::operations::{
    CompactStrategy, CreateSession, DeleteSession, GetSession, ListMessages, ListSessions,
    NewSession, SendMessage, SentMessage, Session, WhichMessages, WhichSessions, write,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, one, said, sent};

fn which(session: &Session) -> WhichMessages {
    WhichMessages {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        user_id: session.user_id.clone(),
        ..WhichMessages::default()
    }
}

fn listed(agent: &str, user: &str) -> WhichSessions {
    WhichSessions {
        name: agent.to_owned(),
        user_id: user.to_owned(),
        ..WhichSessions::default()
    }
}

async fn line_008_routes_of_sessions_need_a_user(place: Place) {
    let world = World::start(&place).await;
    let mut session = world.session("ann", "bob").await;
    session.user_id = " ".to_owned();
    let required = "user_id_required";
    let new = NewSession {
        name: "ann".to_owned(),
        ..NewSession::default()
    };
    assert_eq!(code(world.call::<CreateSession>(&new).await), required);
    assert_eq!(
        code(world.call::<ListSessions>(&listed("ann", "")).await),
        required
    );
    assert_eq!(
        code(world.call::<GetSession>(&one(&session)).await),
        required
    );
    assert_eq!(
        code(world.call::<DeleteSession>(&one(&session)).await),
        required
    );
    assert_eq!(
        code(world.call::<ListMessages>(&which(&session)).await),
        required
    );
    assert_eq!(code(world.send(&session, "x").await), required);
    assert!(world.asked().is_empty());
}

async fn line_009_a_session_has_the_usual_settings(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    assert_eq!(session.id.len(), 36);
    assert_eq!(session.compact_strategy, CompactStrategy::Auto);
    assert_eq!(
        (
            session.compact_keep_last_n,
            session.compact_observation_mask
        ),
        (10, true)
    );
    assert_eq!(
        (session.message_count, session.archived_at.as_ref()),
        (0, None)
    );
    assert!(session.created_at.ends_with('Z') && session.created_at.len() == 24);
    // The same request again makes no second one.
    let id = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70";
    let new = NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        ..NewSession::default()
    };
    for _ in 0..2 {
        let made = world
            .call_as::<CreateSession>(Some(id), &new)
            .await
            .unwrap();
        assert_eq!(made.id, id);
    }
    let all = world
        .call::<ListSessions>(&listed("ann", "bob"))
        .await
        .unwrap();
    assert_eq!(all.sessions.len(), 2);
}

async fn line_012_the_settings_of_a_session_have_their_ranges(place: Place) {
    let world = World::start(&place).await;
    let asked = |keep| NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        compact_keep_last_n: Some(keep),
        ..NewSession::default()
    };
    for keep in [201, -1] {
        let made = world.call::<CreateSession>(&asked(keep)).await;
        assert_eq!(code(made), "validation_error");
    }
    // A number that is written as a text is none.
    let mut wrong = write(&asked(5)).unwrap();
    wrong.insert("compact_keep_last_n".to_owned(), "5".into());
    let made = world.told("default", None, "create-session", wrong).await;
    assert_eq!(code(made), "validation_error");
    for keep in [0, 200] {
        let made = world.call::<CreateSession>(&asked(keep)).await.unwrap();
        assert_eq!(made.compact_keep_last_n, keep);
    }
}

async fn line_014_a_session_is_hidden_from_other_users(place: Place) {
    let world = World::start(&place).await;
    let mut session = world.session("ann", "bob").await;
    world.send(&session, "secret").await.unwrap();
    session.user_id = "eve".to_owned();
    let hidden = "session_not_found";
    assert_eq!(code(world.call::<GetSession>(&one(&session)).await), hidden);
    assert_eq!(
        code(world.call::<DeleteSession>(&one(&session)).await),
        hidden
    );
    assert_eq!(
        code(world.call::<ListMessages>(&which(&session)).await),
        hidden
    );
    assert_eq!(code(world.send(&session, "x").await), hidden);
    let all = world
        .call::<ListSessions>(&listed("ann", "eve"))
        .await
        .unwrap();
    assert!(all.sessions.is_empty());
    assert_eq!(world.asked().len(), 1);
}

async fn line_017_a_session_belongs_to_its_agent(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let other = SentMessage {
        name: "zoe".to_owned(),
        ..sent(&session, "x")
    };
    let refused = world.call::<SendMessage>(&other).await;
    assert_eq!(code(refused), "session_agent_mismatch");
    let said = world.call::<ListMessages>(&which(&session)).await.unwrap();
    assert!(said.messages.is_empty() && world.asked().is_empty());
}

async fn line_018_a_deleted_session_is_gone_with_its_messages(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.send(&session, "x").await.unwrap();
    world.call::<DeleteSession>(&one(&session)).await.unwrap();
    let gone = "session_not_found";
    assert_eq!(code(world.call::<GetSession>(&one(&session)).await), gone);
    assert_eq!(
        code(world.call::<ListMessages>(&which(&session)).await),
        gone
    );
    assert_eq!(
        code(world.call::<DeleteSession>(&one(&session)).await),
        gone
    );
}

async fn a_session_has_the_id_that_it_was_created_with(place: Place) {
    let world = World::start(&place).await;
    let new = NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        session_id: Some("0198A5C2-0000-7000-8000-000000000001".to_owned()),
        ..NewSession::default()
    };
    let made = world.call::<CreateSession>(&new).await.unwrap();
    assert_eq!(made.id, "0198a5c2-0000-7000-8000-000000000001");
    let again = world.call::<CreateSession>(&new).await.unwrap();
    assert_eq!(again, made);
    let taken = |name: &str, user: &str| NewSession {
        name: name.to_owned(),
        user_id: user.to_owned(),
        ..new.clone()
    };
    for other in [taken("zoe", "bob"), taken("ann", "eve")] {
        assert_eq!(code(world.call::<CreateSession>(&other).await), "conflict");
    }
    // Whoever knows only the id learns the agent, if the session is theirs.
    let mut asked = one(&made);
    asked.name = String::new();
    let found = world.call::<GetSession>(&asked).await.unwrap();
    assert_eq!(found.agent, "ann");
    asked.user_id = "eve".to_owned();
    let hidden = world.call::<GetSession>(&asked).await;
    assert_eq!(code(hidden), "session_not_found");
}

/// Whoever sends the first message of a session decides who answers; nobody takes it from them.
async fn an_empty_session_is_given_to_another_agent(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let taking = |name: &str, user: &str| NewSession {
        name: name.to_owned(),
        user_id: user.to_owned(),
        session_id: Some(session.id.clone()),
        takes_empty: true,
        ..NewSession::default()
    };
    let other = world.call::<CreateSession>(&taking("zoe", "eve")).await;
    assert_eq!(code(other), "conflict");
    let given = world.call::<CreateSession>(&taking("zoe", "bob")).await;
    let given = given.unwrap();
    assert_eq!((&given.id, given.agent.as_str()), (&session.id, "zoe"));
    assert_eq!(
        code(world.send(&session, "for ann").await),
        "session_agent_mismatch"
    );
    world.send(&given, "for zoe").await.unwrap();
    let late = world.call::<CreateSession>(&taking("ann", "bob")).await;
    assert_eq!(code(late), "conflict");
    let again = world.call::<CreateSession>(&taking("zoe", "bob")).await;
    assert_eq!(again.unwrap().message_count, 2);
}

/// It was made for this message. One in which another request said something stays, and so does one of another user.
async fn a_session_that_a_refused_message_was_to_start_is_deleted(place: Place) {
    let world = World::start(&place).await;
    for (starts, stays) in [(false, true), (true, false)] {
        // No flow runs that could answer.
        let session = world.session("mia", "bob").await;
        let mut asked = SentMessage {
            starts,
            user_id: "eve".to_owned(),
            ..sent(&session, "x")
        };
        let other = world.call::<SendMessage>(&asked).await;
        assert_eq!(code(other), "session_not_found");
        asked.user_id.clone_from(&session.user_id);
        let refused = world.call::<SendMessage>(&asked).await;
        assert_eq!(code(refused), "agent_unavailable");
        let found = world.call::<GetSession>(&one(&session)).await;
        assert_eq!(found.is_ok(), stays, "{starts}");
    }
    let session = world.session("ann", "bob").await;
    world.send(&session, "first").await.unwrap();
    let late = SentMessage {
        starts: true,
        follows: Some("none".to_owned()),
        ..sent(&session, "x")
    };
    let refused = world.call::<SendMessage>(&late).await;
    assert_eq!(code(refused), "conflict");
    assert_eq!(said(&world, &session).await.len(), 2);
}

/// `list-sessions`
async fn pages_of_sessions_have_no_gaps_and_no_repeats(place: Place) {
    let world = World::start(&place).await;
    let mut first = Vec::new();
    for _ in 0..5 {
        first.push(world.session("ann", "bob").await.id);
    }
    let mut asked = WhichSessions {
        limit: Some(2),
        ..listed("ann", "bob")
    };
    let mut seen = Vec::new();
    for _ in 0..10 {
        let page = world.call::<ListSessions>(&asked).await.unwrap();
        seen.extend(page.sessions.into_iter().map(|one| one.id));
        world.session("ann", "bob").await;
        match page.next_cursor {
            Some(next) => asked.cursor = Some(next),
            None => break,
        }
    }
    assert!(first.iter().all(|id| seen.contains(id)));
    let whole = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(whole, seen.len());
    asked.cursor = Some("zzz".to_owned());
    assert_eq!(
        code(world.call::<ListSessions>(&asked).await),
        "invalid_cursor"
    );
}

on_both_buses!(
    line_008_routes_of_sessions_need_a_user,
    line_009_a_session_has_the_usual_settings,
    line_012_the_settings_of_a_session_have_their_ranges,
    line_014_a_session_is_hidden_from_other_users,
    line_017_a_session_belongs_to_its_agent,
    line_018_a_deleted_session_is_gone_with_its_messages,
    a_session_has_the_id_that_it_was_created_with,
    an_empty_session_is_given_to_another_agent,
    a_session_that_a_refused_message_was_to_start_is_deleted,
    pages_of_sessions_have_no_gaps_and_no_repeats,
);
