//! Requests that come again under their id after they succeeded: their process ended before it could answer. They succeed again.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tg_mesh::{Answer, Ask, Deadline};
use tg_schemas::msg::{OperationRequest, OperationResponse};
use tg_schemas::operations::{
    CompactSession, CreateAgent, CreateConversation, CreateLlmService, GetSession, NewAgent,
    NewConversation, NewLlmService, Object, SESSIONS, SentMessage, Session, WorkspaceAgent, write,
};
use tg_schemas::{Class, ErrorCode, Topic, WorkspaceId};
use tg_testkit::flow::SOON;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, fails, one, said, sent};

/// An operation under the id of its request.
struct Request {
    id: String,
    operation: &'static str,
    body: Object,
}

/// The same request gets the same id each time.
fn request(at: u32, operation: &'static str, body: Value) -> Request {
    Request {
        id: format!("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e{at:04}"),
        operation,
        body: body.as_object().cloned().unwrap(),
    }
}

async fn told(world: &World, request: &Request, id: Option<&str>) -> Result<Object, Value> {
    let body = request.body.clone();
    let told = world.told("default", id, request.operation, body).await?;
    Ok(told.last().expect("a reply").1.clone())
}

async fn agent(world: &World) -> WorkspaceAgent {
    let new = NewAgent {
        name: "r".to_owned(),
        ..NewAgent::default()
    };
    world.call::<CreateAgent>(&new).await.unwrap()
}

/// One of each that does something once.
async fn requests(world: &World) -> Vec<Request> {
    let (stays, goes) = (agent(world).await.agent_id, agent(world).await.agent_id);
    let new = NewConversation {
        agent_id: stays.clone(),
        ..NewConversation::default()
    };
    let begun = world.call::<CreateConversation>(&new).await.unwrap();
    let new = NewLlmService {
        name: "near".to_owned(),
        provider: "ollama".to_owned(),
        model_name: "m9".to_owned(),
        ..NewLlmService::default()
    };
    let service = world.call::<CreateLlmService>(&new).await.unwrap();
    let session = world.session("ann", "bob").await;
    let shortened = world.session("ann", "bob").await;
    world.fill(&shortened, 6, "turn").await;
    let of_bob = one(&shortened);
    world.call::<CompactSession>(&of_bob).await.unwrap();
    let of = |id: &str| json!({"name": "ann", "user_id": "bob", "session_id": id});
    let own = "0198a5c2-0000-7000-8000-000000000001";
    vec![
        request(1, "delete-session", of(&session.id)),
        request(
            2,
            "delete-conversation",
            json!({"agent_id": stays, "conversation_id": begun.conversation_id}),
        ),
        request(3, "delete-agent", json!({"agent_id": goes})),
        request(
            4,
            "delete-llm-service",
            json!({"llm_service_id": service.llm_service_id}),
        ),
        request(5, "undo-compaction", of(&shortened.id)),
        request(
            6,
            "create-conversation",
            json!({"agent_id": stays, "conversationId": own}),
        ),
    ]
}

async fn what_was_done_is_found_done(place: Place) {
    let world = World::start(&place).await;
    let all = requests(&world).await;
    let mut first = Vec::new();
    for request in &all {
        first.push(told(&world, request, Some(&request.id)).await.unwrap());
    }
    let world = world.again(&place).await;
    for (request, first) in all.iter().zip(&first) {
        let again = told(&world, request, Some(&request.id)).await;
        assert_eq!(again.as_ref(), Ok(first), "{}", request.operation);
    }
    // Another request finds what the first one left.
    let refused = [
        "session_not_found",
        "conversation_not_found",
        "agent_not_found",
        "llm_service_not_found",
        "session_compact_conflict",
        "conflict",
    ];
    for (request, refused) in all.iter().zip(refused) {
        let other = told(&world, request, None).await;
        assert_eq!(code(other), refused, "{}", request.operation);
    }
}

async fn a_fact_is_forgotten_once(place: Place) {
    let world = World::start_with(&place, |dir| {
        let text = "name: rex\nmodel: m2\nmemory: true\n";
        std::fs::write(dir.join("agents/d.yaml"), text).unwrap();
    })
    .await;
    world.sums_up(|_| Ok("Bob | lives in | Kassel".to_owned()));
    let session = world.session("rex", "bob").await;
    world.send(&session, "I live in Kassel").await.unwrap();
    let list = request(1, "list-memories", json!({"user_id": "bob"}));
    let known = async || {
        let all = told(&world, &list, None).await.unwrap();
        all["memories"][0]["id"].as_str().map(str::to_owned)
    };
    world.flow.until(async || known().await.is_some()).await;
    let body = json!({"user_id": "bob", "memory_id": known().await});
    let forget = request(2, "forget-memory", body);
    told(&world, &forget, Some(&forget.id)).await.unwrap();
    let world = world.again(&place).await;
    told(&world, &forget, Some(&forget.id)).await.unwrap();
    assert_eq!(code(told(&world, &forget, None).await), "memory_not_found");
}

async fn line_130_a_turn_whose_session_was_shortened_since_has_its_answer(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.fill(&session, 6, "turn").await;
    let sent = json!({"name": "ann", "user_id": "bob", "session_id": session.id, "message": "on"});
    let sent = request(1, "send-message", sent);
    let first = told(&world, &sent, Some(&sent.id)).await.unwrap();
    world.call::<CompactSession>(&one(&session)).await.unwrap();
    let world = world.again(&place).await;
    let again = told(&world, &sent, Some(&sent.id)).await;
    assert_eq!(again, Ok(first));
    assert!(world.asked().is_empty());
    // Any other message goes to the session that continues it.
    assert_eq!(code(told(&world, &sent, None).await), "session_archived");
}

/// A request of a client that calls it so.
async fn called(world: &World, name: &str, operation: &str, body: Object) -> Object {
    let part = part_of(world, name, operation, body).await;
    assert!(
        part.last && part.error.is_none(),
        "{operation}: {:?}",
        part.error
    );
    part.data
}

/// The first part of its answer, which may be that it failed.
async fn part_of(world: &World, name: &str, operation: &str, body: Object) -> OperationResponse {
    let workspace = WorkspaceId::new("default").unwrap();
    let topic = Topic::workspace(Class::Request, SESSIONS, &workspace);
    let question = OperationRequest {
        operation: operation.to_owned(),
        request: body,
    };
    let ask = Ask {
        deadline: Some(Deadline::after(SOON)),
        request_id: Some(name.to_owned()),
        ..Ask::default()
    };
    let mut answer: Answer<OperationResponse> = world.flow.mesh.ask(&topic, &question, ask);
    answer.next().await.expect("an answer").unwrap()
}

/// A message.
async fn says(world: &World, session: &Session, name: &str, text: &str) -> Object {
    let body = write(&sent(session, text)).unwrap();
    called(world, name, "send-message", body).await
}

async fn what_a_client_asks_again_is_done_once(place: Place) {
    let world = World::start(&place).await;
    let body = |body: Value| body.as_object().cloned().unwrap();
    let new = |name: &str| body(json!({"name": name}));
    let first = called(&world, "r-1", "create-agent", new("r")).await;
    let world = world.again(&place).await;
    let again = called(&world, "r-1", "create-agent", new("r")).await;
    assert_eq!(again, first);
    // Another text, and another request, make agents of their own.
    for (request, name) in [("r-1", "s"), ("r-2", "r")] {
        let other = called(&world, request, "create-agent", new(name)).await;
        assert_ne!(other["agentId"], first["agentId"]);
    }
    // A session of another user is another one, under whatever request.
    let of = |user: &str| body(json!({"name": "ann", "user_id": user}));
    let session = called(&world, "r-1", "create-session", of("bob")).await;
    let other = called(&world, "r-1", "create-session", of("eve")).await;
    assert_ne!(other["id"], session["id"]);
    let gone = body(json!({"agent_id": first["agentId"]}));
    for _ in 0..2 {
        called(&world, "r-3", "delete-agent", gone.clone()).await;
    }
}

async fn line_130_what_a_client_asks_again_is_one_turn(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let first = says(&world, &session, "r-1", "one").await;
    assert_eq!(says(&world, &session, "r-1", "one").await, first);
    assert_eq!(world.asked().len(), 1);
    // Another text, and another request, are turns of their own.
    says(&world, &session, "r-1", "two").await;
    says(&world, &session, "r-2", "one").await;
    let world = world.again(&place).await;
    assert_eq!(says(&world, &session, "r-1", "one").await, first);
    assert!(world.asked().is_empty());
    assert_eq!(said(&world, &session).await.len(), 6);
}

/// The session goes on in another one since, which has the turn.
async fn line_130_a_message_that_shortened_its_session_is_one_turn(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.fill(&session, 6, &"x".repeat(4_400)).await;
    let first = says(&world, &session, "r-1", "on").await;
    assert_ne!(first["session_id"], json!(session.id));
    assert_eq!(says(&world, &session, "r-1", "on").await, first);
    let repeated = SentMessage {
        repeats: true,
        ..sent(&session, "on")
    };
    let repeated = write(&repeated).unwrap();
    let found = called(&world, "r-1", "send-message", repeated.clone()).await;
    assert_eq!(found, first);
    // Another request repeats nothing, though its session was shortened.
    let refused = part_of(&world, "r-2", "send-message", repeated).await;
    assert_eq!(refused.failure["code"], "conflict");
    let body = write(&sent(&session, "on")).unwrap();
    let other = part_of(&world, "r-2", "send-message", body).await;
    assert_eq!(other.failure["code"], "session_archived");
}

/// It is kept behind that message alone, and once.
async fn a_message_follows_the_one_that_it_names(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    says(&world, &session, "r-0", "zero").await;
    let newest = async || {
        let all = said(&world, &session).await;
        let asked = all.into_iter().rfind(|one| one.role == "user");
        asked.map(|one| one.id)
    };
    let behind = |follows: Option<String>| {
        let asked = SentMessage {
            follows,
            ..sent(&session, "one")
        };
        write(&asked).unwrap()
    };
    let body = behind(newest().await);
    let first = called(&world, "r-1", "send-message", body.clone()).await;
    let again = called(&world, "r-1", "send-message", body.clone()).await;
    assert_eq!(again, first);
    // Another request comes too late.
    let late = part_of(&world, "r-2", "send-message", body.clone()).await;
    assert_eq!(late.failure["code"], "conflict");
    // The same text behind another message is another one.
    let other = behind(newest().await);
    called(&world, "r-1", "send-message", other).await;
    let world = world.again(&place).await;
    let again = called(&world, "r-1", "send-message", body).await;
    assert_eq!(again, first);
    assert!(world.asked().is_empty());
    assert_eq!(said(&world, &session).await.len(), 6);
}

/// A message that has to be a repetition is one, or nothing happens.
async fn a_repetition_finds_its_turn_and_begins_none(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let again = SentMessage {
        repeats: true,
        ..sent(&session, "one")
    };
    let again = write(&again).unwrap();
    let refused = part_of(&world, "r-1", "send-message", again.clone()).await;
    assert_eq!(refused.failure["code"], "conflict");
    assert!(said(&world, &session).await.is_empty());
    let first = says(&world, &session, "r-1", "one").await;
    says(&world, &session, "r-2", "two").await;
    let world = world.again(&place).await;
    let found = called(&world, "r-1", "send-message", again.clone()).await;
    assert_eq!(found, first);
    let refused = part_of(&world, "r-2", "send-message", again).await;
    assert_eq!(refused.failure["code"], "conflict");
    assert!(world.asked().is_empty());
    assert_eq!(said(&world, &session).await.len(), 4);
}

/// A client may send one request id with all its requests.
async fn what_is_shortened_again_is_taken_back_again(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.fill(&session, 6, "turn").await;
    let body = write(&one(&session)).unwrap();
    let archived = async || {
        let now = world.call::<GetSession>(&one(&session)).await.unwrap();
        now.archived_at.is_some()
    };
    for _ in 0..2 {
        called(&world, "r", "compact-session", body.clone()).await;
        assert!(archived().await);
        for _ in 0..2 {
            called(&world, "r", "undo-compaction", body.clone()).await;
            assert!(!archived().await);
        }
    }
}

/// The answer to the first question may have been that the model failed.
async fn a_request_that_is_asked_again_asks_the_model_another_question(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.fill(&session, 6, "turn").await;
    let body = write(&one(&session)).unwrap();
    world.sums_up(|_| fails(ErrorCode::Provider));
    let failed = part_of(&world, "r", "compact-session", body.clone()).await;
    assert_eq!(failed.failure["code"], "compact_summary_failed");
    world.sums_up(|_| Ok("in short".to_owned()));
    called(&world, "r", "compact-session", body).await;
    let ids = world.model.ids.lock().clone();
    let different: BTreeSet<_> = ids.iter().collect();
    assert!(ids.len() > 1);
    assert_eq!(different.len(), ids.len(), "{ids:?}");
}

on_both_buses!(
    what_is_shortened_again_is_taken_back_again,
    a_request_that_is_asked_again_asks_the_model_another_question,
    line_130_what_a_client_asks_again_is_one_turn,
    line_130_a_message_that_shortened_its_session_is_one_turn,
    a_message_follows_the_one_that_it_names,
    a_repetition_finds_its_turn_and_begins_none,
    what_a_client_asks_again_is_done_once,
    what_was_done_is_found_done,
    a_fact_is_forgotten_once,
    line_130_a_turn_whose_session_was_shortened_since_has_its_answer,
);
