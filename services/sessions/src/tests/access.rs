//! Who may see what: each operation that names a session, an agent, a conversation or a fact, asked by its owner, by another user
//! and in another workspace. The list of operations is the one that they are declared in: a new one is held to it at once.

use serde_json::{Value, json};
use tg_schemas::operations::{
    ALL, CreateAgent, CreateConversation, CreateLlmService, CreateRerankingService, GetAgent,
    GetConversation, GetLlmService, GetRerankingService, GetSession, ListMemories, Meta, NewAgent,
    NewConversation, NewLlmService, NewRerankingService, Object, OneAgent, OneConversation,
    OneLlmService, OneRerankingService, Operation, WhichMemories,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, one};

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

fn names(meta: &Meta, field: &str) -> bool {
    meta.path_fields().any(|one| one == field)
}

/// How a request was refused.
async fn refused(world: &World, workspace: &str, meta: &Meta, request: &Object) -> String {
    let done = world
        .told(workspace, None, meta.name, request.clone())
        .await;
    let failure = done.expect_err(meta.name);
    failure["code"].as_str().unwrap_or_default().to_owned()
}

/// 14 and 15.
async fn line_014_a_session_is_nobody_elses(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.send(&session, "secret").await.unwrap();
    let request = |user: &str| {
        object(json!({
            "name": session.agent, "session_id": session.id, "user_id": user, "message": "x",
            "summary_id": "x",
        }))
    };
    let mut seen = 0;
    for meta in ALL.iter().filter(|meta| names(meta, "session_id")) {
        seen += 1;
        let eve = refused(&world, "default", meta, &request("eve")).await;
        assert_eq!(eve, "session_not_found", "{}", meta.name);
        let elsewhere = refused(&world, "other", meta, &request("bob")).await;
        assert_eq!(elsewhere, "session_not_found", "{}", meta.name);
        let nobody = refused(&world, "default", meta, &request(" ")).await;
        assert_eq!(nobody, "user_id_required", "{}", meta.name);
        let mut other = request("bob");
        other.insert("name".to_owned(), "zoe".into());
        let agent = refused(&world, "default", meta, &other).await;
        assert_eq!(agent, "session_agent_mismatch", "{}", meta.name);
    }
    assert!(seen >= 9, "{seen}");
    let same = world.call::<GetSession>(&one(&session)).await.unwrap();
    assert_eq!((same.message_count, same.archived_at), (2, None));
    assert_eq!(world.asked().len(), 1);
}

/// The same user, in another workspace.
async fn line_015_a_session_stays_in_its_workspace(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let asked = object(json!({
        "name": session.agent, "session_id": session.id, "user_id": session.user_id,
    }));
    let elsewhere = refused(&world, "other", &GetSession::META, &asked).await;
    assert_eq!(elsewhere, "session_not_found");
    world.call::<GetSession>(&one(&session)).await.unwrap();
}

/// 57 and 60.
async fn line_060_agents_and_conversations_stay_in_their_workspace(place: Place) {
    let world = World::start(&place).await;
    let mut agents = Vec::new();
    for name in ["a", "b"] {
        let new = NewAgent {
            name: name.to_owned(),
            ..NewAgent::default()
        };
        agents.push(world.call::<CreateAgent>(&new).await.unwrap().agent_id);
    }
    let new = NewConversation {
        agent_id: agents[0].clone(),
        ..NewConversation::default()
    };
    let conversation = world.call::<CreateConversation>(&new).await.unwrap();
    let request = |agent: &str| {
        object(json!({
            "agent_id": agent, "conversation_id": conversation.conversation_id, "content": "x",
        }))
    };
    let mut seen = 0;
    for meta in ALL.iter().filter(|meta| names(meta, "agent_id")) {
        seen += 1;
        let mut asked = request(&agents[0]);
        if !names(meta, "conversation_id") {
            asked.remove("conversation_id");
            asked.remove("content");
        } else if meta.method == "PATCH" {
            asked.remove("content");
        }
        let elsewhere = refused(&world, "other", meta, &asked).await;
        assert_eq!(elsewhere, "agent_not_found", "{}", meta.name);
        if names(meta, "conversation_id") {
            asked.insert("agent_id".to_owned(), agents[1].clone().into());
            let other = refused(&world, "default", meta, &asked).await;
            assert_eq!(other, "conversation_not_found", "{}", meta.name);
        }
    }
    assert!(seen >= 10, "{seen}");
    let agent = OneAgent {
        agent_id: agents[0].clone(),
    };
    world.call::<GetAgent>(&agent).await.unwrap();
    let conversation = OneConversation {
        agent_id: agents[0].clone(),
        conversation_id: conversation.conversation_id,
    };
    world.call::<GetConversation>(&conversation).await.unwrap();
}

/// How many entries a listing has.
async fn entries(world: &World, workspace: &str, meta: &Meta, user: &str) -> usize {
    let request = object(json!({"name": "rex", "user_id": user}));
    let told = world.told(workspace, None, meta.name, request).await;
    let told = told.expect(meta.name);
    let (_, reply) = told.last().expect("a reply");
    let lists = reply.values().filter_map(Value::as_array);
    lists.map(Vec::len).sum()
}

/// What is listed of a user and what is remembered of one, for that user alone and in that workspace alone.
async fn what_is_a_users_own_is_listed_and_forgotten_by_nobody_else(place: Place) {
    let world = World::start_with(&place, |dir| {
        let text = "name: rex\nmodel: m2\nmemory: true\n";
        std::fs::write(dir.join("agents/d.yaml"), text).unwrap();
    })
    .await;
    world.sums_up(|_| Ok("Bob | lives in | Kassel".to_owned()));
    let session = world.session("rex", "bob").await;
    world.send(&session, "I live in Kassel").await.unwrap();
    let known = async || entries(&world, "default", &ListMemories::META, "bob").await == 1;
    world.flow.until(known).await;
    let of_user = |meta: &&Meta| meta.headers.iter().any(|one| one.field == "user_id");
    let lists = ALL.iter().filter(|meta| meta.name.starts_with("list-"));
    let mut seen = 0;
    for meta in lists.filter(|meta| of_user(meta) && !names(meta, "session_id")) {
        seen += 1;
        for (workspace, user, count) in [
            ("default", "bob", 1),
            ("default", "eve", 0),
            ("other", "bob", 0),
        ] {
            let found = entries(&world, workspace, meta, user).await;
            assert_eq!(found, count, "{} {workspace} {user}", meta.name);
        }
    }
    assert!(seen >= 2, "{seen}");
    let which = WhichMemories {
        user_id: "bob".to_owned(),
        ..WhichMemories::default()
    };
    let all = world.call::<ListMemories>(&which).await.unwrap().memories;
    let request = |user: &str| object(json!({"memory_id": all[0].id, "user_id": user}));
    for meta in ALL.iter().filter(|meta| names(meta, "memory_id")) {
        let eve = refused(&world, "default", meta, &request("eve")).await;
        assert_eq!(eve, "memory_not_found", "{}", meta.name);
        let elsewhere = refused(&world, "other", meta, &request("bob")).await;
        assert_eq!(elsewhere, "memory_not_found", "{}", meta.name);
    }
    let kept = entries(&world, "default", &ListMemories::META, "bob").await;
    assert_eq!(kept, 1);
}

/// 57, of LLM services.
async fn line_057_llm_services_stay_in_their_workspace(place: Place) {
    let world = World::start(&place).await;
    let new = NewLlmService {
        name: "n".to_owned(),
        provider: "ollama".to_owned(),
        model_name: "m".to_owned(),
        ..NewLlmService::default()
    };
    let made = world.call::<CreateLlmService>(&new).await.unwrap();
    let request = object(json!({"llm_service_id": made.llm_service_id}));
    let mut seen = 0;
    for meta in ALL.iter().filter(|meta| names(meta, "llm_service_id")) {
        seen += 1;
        let elsewhere = refused(&world, "other", meta, &request).await;
        assert_eq!(elsewhere, "llm_service_not_found", "{}", meta.name);
    }
    assert_eq!(seen, 3);
    let one = OneLlmService {
        llm_service_id: made.llm_service_id.clone(),
    };
    assert_eq!(world.call::<GetLlmService>(&one).await.unwrap(), made);
}

/// 57, of reranking services.
async fn line_057_reranking_services_stay_in_their_workspace(place: Place) {
    let world = World::start(&place).await;
    let new = NewRerankingService {
        name: "n".to_owned(),
        provider: "tei".to_owned(),
        model_name: "m".to_owned(),
        endpoint_base_url: "https://order.example".to_owned(),
        ..NewRerankingService::default()
    };
    let made = world.call::<CreateRerankingService>(&new).await.unwrap();
    let id = "reranking_service_id";
    let request = object(json!({"reranking_service_id": made.reranking_service_id}));
    let mut seen = 0;
    for meta in ALL.iter().filter(|meta| names(meta, id)) {
        seen += 1;
        let elsewhere = refused(&world, "other", meta, &request).await;
        assert_eq!(elsewhere, "reranking_service_not_found", "{}", meta.name);
    }
    assert_eq!(seen, 3);
    let one = OneRerankingService {
        reranking_service_id: made.reranking_service_id.clone(),
    };
    let kept = world.call::<GetRerankingService>(&one).await.unwrap();
    assert_eq!(kept, made);
}

on_both_buses!(
    line_057_reranking_services_stay_in_their_workspace,
    what_is_a_users_own_is_listed_and_forgotten_by_nobody_else,
    line_015_a_session_stays_in_its_workspace,
    line_057_llm_services_stay_in_their_workspace,
    line_014_a_session_is_nobody_elses,
    line_060_agents_and_conversations_stay_in_their_workspace,
);
