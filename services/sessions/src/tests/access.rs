//! Who may see what: each operation that names a session, an agent, a conversation or a fact, asked by its owner, by another user
//! and in another workspace. The list of operations is the one that they are declared in: a new one is held to it at once.

use serde_json::{Value, json};
use tg_schemas::operations::{
    ALL, CreateAgent, CreateConversation, CreateLlmService, CreateRerankingService, GetAgent,
    GetConversation, GetLlmService, GetRerankingService, GetSession, GetTenantConfig, ListMemories,
    Meta, NewAgent, NewConversation, NewLlmService, NewRerankingService, Object, OneAgent,
    OneConversation, OneLlmService, OneRerankingService, Operation, PutTenantConfig, WhichMemories,
    write,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, one};

/// Listings that are the same in every workspace.
const EVERYWHERE: [&str; 2] = ["list-named-agents", "list-templates"];

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

fn names(meta: &Meta, field: &str) -> bool {
    meta.path_fields().any(|one| one == field)
}

/// Whether it is asked for a user.
fn of_user(meta: &Meta) -> bool {
    meta.headers.iter().any(|one| one.field == "user_id")
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

/// What an operation answers.
async fn answered(world: &World, workspace: &str, meta: &Meta, request: Value) -> Object {
    let request = object(request);
    let told = world.told(workspace, None, meta.name, request).await;
    let (_, reply) = told.expect(meta.name).pop().expect("a reply");
    reply
}

/// How many entries a listing has.
async fn entries(world: &World, workspace: &str, meta: &Meta, request: Value) -> usize {
    let reply = answered(world, workspace, meta, request).await;
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
    let of = |user: &str| json!({"name": "rex", "user_id": user});
    let known = async || entries(&world, "default", &ListMemories::META, of("bob")).await == 1;
    world.flow.until(known).await;
    let lists = ALL.iter().filter(|meta| meta.name.starts_with("list-"));
    let mut seen = 0;
    for meta in lists.filter(|meta| of_user(meta) && !names(meta, "session_id")) {
        seen += 1;
        for (workspace, user, count) in [
            ("default", "bob", 1),
            ("default", "eve", 0),
            ("other", "bob", 0),
        ] {
            let found = entries(&world, workspace, meta, of(user)).await;
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
    let kept = entries(&world, "default", &ListMemories::META, of("bob")).await;
    assert_eq!(kept, 1);
}

fn llm_service() -> NewLlmService {
    NewLlmService {
        name: "n".to_owned(),
        provider: "ollama".to_owned(),
        model_name: "m".to_owned(),
        ..NewLlmService::default()
    }
}

fn reranking_service() -> NewRerankingService {
    NewRerankingService {
        name: "n".to_owned(),
        provider: "tei".to_owned(),
        model_name: "m".to_owned(),
        endpoint_base_url: "https://order.example".to_owned(),
        ..NewRerankingService::default()
    }
}

/// 57, of what is listed. Another workspace has an agent of the same id, which is another agent.
async fn line_057_a_list_has_what_its_workspace_has(place: Place) {
    let world = World::start(&place).await;
    let named = |name: &str| NewAgent {
        name: name.to_owned(),
        ..NewAgent::default()
    };
    let own = world.call::<CreateAgent>(&named("a")).await.unwrap();
    world.call::<CreateAgent>(&named("b")).await.unwrap();
    let same = NewAgent {
        agent_id: Some(own.agent_id.clone()),
        ..named("c")
    };
    let same = world.told("other", None, "create-agent", write(&same).unwrap());
    same.await.unwrap();
    let new = NewConversation {
        agent_id: own.agent_id.clone(),
        ..NewConversation::default()
    };
    world.call::<CreateConversation>(&new).await.unwrap();
    let services = (llm_service(), reranking_service());
    world.call::<CreateLlmService>(&services.0).await.unwrap();
    let made = world.call::<CreateRerankingService>(&services.1).await;
    made.unwrap();
    let lists = ALL.iter().filter(|meta| {
        let of_less = of_user(meta) || names(meta, "session_id") || names(meta, "conversation_id");
        meta.name.starts_with("list-") && !of_less && !EVERYWHERE.contains(&meta.name)
    });
    let mut seen = 0;
    for meta in lists {
        seen += 1;
        let there = usize::from(meta.name == "list-agents");
        for (workspace, count) in [("default", there + 1), ("other", there)] {
            let request = json!({"agent_id": own.agent_id});
            let found = entries(&world, workspace, meta, request).await;
            assert_eq!(found, count, "{} {workspace}", meta.name);
        }
    }
    assert!(seen >= 4, "{seen}");
}

/// 57, of settings.
async fn line_057_settings_stay_in_their_workspace(place: Place) {
    let world = World::start(&place).await;
    let kept = async |workspace: &str| {
        let config = answered(&world, workspace, &GetTenantConfig::META, json!({})).await;
        config["levels"]["db"]["compact_keep_last_n"].clone()
    };
    for (workspace, keep, expected) in [
        ("default", 3, [json!(3), Value::Null]),
        ("other", 4, [json!(3), json!(4)]),
    ] {
        let change = json!({"compact_keep_last_n": keep});
        let put = answered(&world, workspace, &PutTenantConfig::META, change).await;
        assert_eq!(put["tenant"], workspace);
        assert_eq!([kept("default").await, kept("other").await], expected);
    }
}

/// 57, of LLM services.
async fn line_057_llm_services_stay_in_their_workspace(place: Place) {
    let world = World::start(&place).await;
    let made = world
        .call::<CreateLlmService>(&llm_service())
        .await
        .unwrap();
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
    let new = reranking_service();
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
    line_057_a_list_has_what_its_workspace_has,
    line_057_settings_stay_in_their_workspace,
    line_057_reranking_services_stay_in_their_workspace,
    what_is_a_users_own_is_listed_and_forgotten_by_nobody_else,
    line_015_a_session_stays_in_its_workspace,
    line_057_llm_services_stay_in_their_workspace,
    line_014_a_session_is_nobody_elses,
    line_060_agents_and_conversations_stay_in_their_workspace,
);
