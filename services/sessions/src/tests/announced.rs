//! What comes of tasks is said in the session that they were given in (C.9, C.16).

use std::sync::atomic::{AtomicUsize, Ordering};

use tg_mesh::{Answer, Ask, Deadline};
use tg_schemas::msg::{AgentResponse, OperationResponse, SessionNotice};
use tg_schemas::operations::{
    CompactSession, CreateAgent, CreateConversation, CreateSession, GetSession, NewAgent,
    NewConversation, NewSession, OneSession, PutTenantConfig, SessionMessage, TenantChange,
};
use tg_schemas::processors::sessions::NOTICES;
use tg_schemas::{Error, ErrorCode, WorkspaceId};
use tg_testkit::fakes::Play;
use tg_testkit::flow::SOON;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, fails, one, part, said};

/// Turns, and announcements, at the same time: no more than may wait for one session.
const AT_ONCE: usize = 6;

/// Announces something in a session, under an id.
async fn announce(world: &World, session: &str, id: &str) -> Result<OperationResponse, Error> {
    announce_by(world, session, (id, "")).await
}

/// The same by the agent of the session, if it can say it.
async fn announce_by(
    world: &World,
    session: &str,
    (id, notification): (&str, &str),
) -> Result<OperationResponse, Error> {
    let workspace = WorkspaceId::new("default").unwrap();
    let notice = SessionNotice {
        session_id: session.to_owned(),
        message_id: id.to_owned(),
        text: format!("**Bee**\n\n{id}"),
        kind: "announce".to_owned(),
        notification: notification.to_owned(),
    };
    let ask = Ask {
        deadline: Some(Deadline::after(SOON)),
        ..Ask::default()
    };
    let topic = NOTICES.of_workspace(&workspace);
    let answer: Answer<OperationResponse> = world.flow.mesh.ask(&topic, &notice, ask);
    answer.last().await
}

fn texts(all: &[SessionMessage]) -> Vec<(&str, bool)> {
    let text = |one: &SessionMessage| one.content.as_deref().unwrap_or_default().len();
    assert!(all.iter().all(|one| text(one) > 0));
    let all = all.iter();
    all.map(|one| (one.content.as_deref().unwrap_or_default(), one.synthetic))
        .collect()
}

async fn an_announcement_is_said_once_and_the_next_turn_knows_it(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("zoe", "bob").await;
    world.send(&session, "one").await.unwrap();
    for _ in 0..2 {
        announce(&world, &session.id, "n").await.unwrap();
    }
    let all = said(&world, &session).await;
    let expected = [("one", false), ("re one", false), ("**Bee**\n\nn", true)];
    assert_eq!(texts(&all), expected);
    assert_eq!(
        (all[2].id.as_str(), all[2].role.as_str()),
        ("n", "assistant")
    );
    world.send(&session, "two").await.unwrap();
    let asked = world.asked();
    let told = &asked.last().unwrap().framing;
    assert!(told.contains("Result of a task: **Bee**\n\nn"), "{told}");
    // A run without a session is announced, too, and nobody keeps that.
    announce(&world, "nobody", "o").await.unwrap();
    let refused = announce(&world, &session.id, "").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BadRequest);
}

/// C.16: an announcement waits for the turn in progress, so it never stands between a message and its answer.
async fn an_announcement_stands_within_no_turn(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("zoe", "bob").await;
    let both = async |at: usize| {
        let (text, id) = (at.to_string(), format!("n{at}"));
        let turn = world.send(&session, &text);
        let told = announce(&world, &session.id, &id);
        let (turn, told) = tokio::join!(turn, told);
        turn.unwrap();
        told.unwrap();
    };
    tokio::join!(both(0), both(1), both(2), both(3), both(4), both(5));
    let all = said(&world, &session).await;
    assert_eq!(all.len(), 3 * AT_ONCE);
    assert_eq!(all.iter().filter(|one| one.synthetic).count(), AT_ONCE);
    let turns = all.iter().filter(|one| !one.synthetic);
    assert_eq!(turns.filter(|one| one.role == "user").count(), AT_ONCE);
    for two in all.windows(2).filter(|two| two[0].role == "user") {
        let asked = two[0].content.as_deref().unwrap_or_default();
        assert_eq!(two[1].content.as_deref(), Some(&*format!("re {asked}")));
    }
}

/// A session that was shortened meanwhile is told in the one that continues it.
async fn an_announcement_follows_its_session(place: Place) {
    let world = World::start(&place).await;
    let new = NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        compact_keep_last_n: Some(0),
        ..NewSession::default()
    };
    let session = world.call::<CreateSession>(&new).await.unwrap();
    world.fill(&session, 1, "text").await;
    let done = world.call::<CompactSession>(&one(&session)).await.unwrap();
    announce(&world, &session.id, "n").await.unwrap();
    let next = OneSession {
        session_id: done.successor_session_id,
        ..one(&session)
    };
    let next = world.call::<GetSession>(&next).await.unwrap();
    let all = said(&world, &next).await;
    assert_eq!(texts(&all).last(), Some(&("**Bee**\n\nn", true)));
    assert_eq!(said(&world, &session).await.len(), 2);
}

/// Line 116: the agent of the session says what came of a task, in its own words. One that fails is asked again; where there is none, it
/// is said as it is.
async fn line_116_the_agent_of_the_session_says_what_came_of_a_task(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("zoe", "bob").await;
    world.send(&session, "one").await.unwrap();
    let tried = AtomicUsize::new(0);
    world.answers(move |asked| match tried.fetch_add(1, Ordering::SeqCst) {
        0 => fails(ErrorCode::Provider),
        _ => Ok(format!("so {}", asked.question)),
    });
    let told = announce_by(&world, &session.id, ("n", "Bee is done")).await;
    assert_eq!(told.unwrap().data["text"], "so Bee is done");
    let all = said(&world, &session).await;
    let expected = [("one", false), ("re one", false), ("so Bee is done", true)];
    assert_eq!(texts(&all), expected);
    let asked = world.asked();
    let asked = &asked[asked.len() - 2..];
    for one in asked {
        assert_eq!(one.question, "Bee is done");
        assert!(one.framing.contains("User: one"), "{}", one.framing);
        assert_eq!(one.tool_names, Some(Vec::new()));
    }
    // So does the agent of a conversation.
    let new = NewAgent {
        name: "r".to_owned(),
        ..NewAgent::default()
    };
    let agent = world.call::<CreateAgent>(&new).await.unwrap();
    let new = NewConversation {
        agent_id: agent.agent_id,
        ..NewConversation::default()
    };
    let begun = world.call::<CreateConversation>(&new).await.unwrap();
    let told = announce_by(&world, &begun.conversation_id, ("m", "Bee is done")).await;
    assert_eq!(told.unwrap().data["text"], "so Bee is done");
    // Why a guard stopped it is not what came of the task.
    world.plays(|_| {
        Play::of(vec![AgentResponse {
            end_of_message: true,
            end_of_dialog: true,
            finish_reason: "budget".to_owned(),
            stopped: true,
            ..part("answer", "Stopped: the budget is used up")
        }])
    });
    let told = announce_by(&world, &session.id, ("p", "Bee is done")).await;
    assert_eq!(told.unwrap().data["text"], "**Bee**\n\np");
    // Without a flow nobody can be asked.
    let flow = TenantChange {
        agent_flow: Some(Some("none".to_owned())),
        ..TenantChange::default()
    };
    world.call::<PutTenantConfig>(&flow).await.unwrap();
    announce_by(&world, &session.id, ("o", "Bee is done"))
        .await
        .unwrap();
    let all = said(&world, &session).await;
    assert_eq!(texts(&all).last(), Some(&("**Bee**\n\no", true)));
}

on_both_buses!(
    line_116_the_agent_of_the_session_says_what_came_of_a_task,
    an_announcement_is_said_once_and_the_next_turn_knows_it,
    an_announcement_stands_within_no_turn,
    an_announcement_follows_its_session,
);
