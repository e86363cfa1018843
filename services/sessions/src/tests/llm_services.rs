//! LLM services of a workspace, and agents that are bound to them.

use tg_schemas::msg::ModelService;
use tg_schemas::operations::{
    AgentChange, CreateAgent, CreateConversation, CreateLlmService, DeleteLlmService,
    GetLlmService, ListConversationMessages, ListLlmServices, LlmService, LlmServiceChange,
    NewAgent, NewConversation, NewLlmService, OneLlmService, SendConversationMessage, SentContent,
    UpdateAgent, UpdateLlmService, WhichLlmServices, WhichPage, write,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{KEY, World, code};

const UNKNOWN: &str = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70";

fn service(provider: &str) -> NewLlmService {
    NewLlmService {
        name: "near".to_owned(),
        provider: provider.to_owned(),
        model_name: "m9".to_owned(),
        ..NewLlmService::default()
    }
}

fn one(service: &LlmService) -> OneLlmService {
    OneLlmService {
        llm_service_id: service.llm_service_id.clone(),
    }
}

/// A service, and a message to an agent that is bound to it.
async fn bound(world: &World, like: NewLlmService) -> SentContent {
    let service = world.call::<CreateLlmService>(&like).await.unwrap();
    let agent = NewAgent {
        name: "r".to_owned(),
        llm_service_id: Some(service.llm_service_id),
        ..NewAgent::default()
    };
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    let new = NewConversation {
        agent_id: agent.agent_id.clone(),
        ..NewConversation::default()
    };
    let begun = world.call::<CreateConversation>(&new).await.unwrap();
    SentContent {
        agent_id: agent.agent_id,
        conversation_id: begun.conversation_id,
        content: "x".to_owned(),
        ..SentContent::default()
    }
}

/// `list-llm-services`
async fn services_are_kept_listed_and_changed(place: Place) {
    let world = World::start(&place).await;
    let made = world
        .call::<CreateLlmService>(&service("ollama"))
        .await
        .unwrap();
    assert_eq!(
        (
            made.workspace_id.as_str(),
            made.status.as_str(),
            made.auth_type.as_str()
        ),
        ("default", "active", "none")
    );
    assert_eq!(
        (made.max_output_tokens, made.credential_ref.as_ref()),
        (None, None)
    );
    for at in 0..2 {
        let other = NewLlmService {
            name: format!("far {at}"),
            ..service("ollama")
        };
        world.call::<CreateLlmService>(&other).await.unwrap();
    }
    let mut asked = WhichLlmServices {
        limit: Some(2),
        cursor: None,
    };
    let mut names = Vec::new();
    loop {
        let page = world.call::<ListLlmServices>(&asked).await.unwrap();
        names.extend(page.items.into_iter().map(|one| one.name));
        match page.next_cursor {
            Some(next) => asked.cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(names, ["near", "far 0", "far 1"]);
    asked.cursor = Some("zzz".to_owned());
    let refused = world.call::<ListLlmServices>(&asked).await;
    assert_eq!(code(refused), "invalid_cursor");
    let change = LlmServiceChange {
        llm_service_id: made.llm_service_id.clone(),
        model_name: Some("m2".to_owned()),
        max_output_tokens: Some(Some(9)),
        ..LlmServiceChange::default()
    };
    let changed = world.call::<UpdateLlmService>(&change).await.unwrap();
    assert_eq!(
        (
            changed.name.as_str(),
            changed.model_name.as_str(),
            changed.max_output_tokens
        ),
        ("near", "m2", Some(9))
    );
    let kept = world.call::<GetLlmService>(&one(&made)).await.unwrap();
    assert_eq!(kept, changed);
    // It is of its workspace alone.
    let asked = write(&one(&made)).unwrap();
    let elsewhere = world.told("other", None, "get-llm-service", asked).await;
    assert_eq!(code(elsewhere), "llm_service_not_found");
}

async fn line_053_an_agent_names_a_service_that_is_there(place: Place) {
    let world = World::start(&place).await;
    let agent = NewAgent {
        name: "r".to_owned(),
        llm_service_id: Some(UNKNOWN.to_owned()),
        ..NewAgent::default()
    };
    let refused = world.call::<CreateAgent>(&agent).await;
    assert_eq!(code(refused), "llm_service_not_found");
}

async fn line_065_another_provider_is_refused_before_the_message_is_kept(place: Place) {
    let world = World::start(&place).await;
    for (provider, expected) in [
        ("anthropic", "llm_provider_unsupported"),
        // 66: one that needs a credential.
        ("openai", "llm_credential_missing"),
    ] {
        let mut sent = bound(&world, service(provider)).await;
        for streaming in [false, true] {
            sent.streaming = streaming;
            let refused = world.call::<SendConversationMessage>(&sent).await;
            assert_eq!(code(refused), expected);
        }
        let page = WhichPage {
            agent_id: sent.agent_id.clone(),
            conversation_id: sent.conversation_id.clone(),
            ..WhichPage::default()
        };
        let kept = world.call::<ListConversationMessages>(&page).await;
        assert!(kept.unwrap().items.is_empty());
    }
    assert!(world.asked().is_empty());
}

async fn line_067_the_model_of_the_service_answers(place: Place) {
    let world = World::start(&place).await;
    // 66: one that needs none.
    let sent = bound(&world, service("ollama")).await;
    world.call::<SendConversationMessage>(&sent).await.unwrap();
    let reference = format!("file:{}", world.dir.path().join(KEY).display());
    let like = NewLlmService {
        credential_ref: Some(reference.clone()),
        endpoint_base_url: Some("https://models.example".to_owned()),
        endpoint_path: Some("/v1".to_owned()),
        max_output_tokens: Some(9),
        ..service("openai")
    };
    let sent = bound(&world, like).await;
    let done = world.call::<SendConversationMessage>(&sent).await.unwrap();
    // The played agent says what answered.
    assert_eq!(done.assistant.metadata["model"], "played");
    let asked = world.asked();
    let settings = asked[0].settings().unwrap();
    assert_eq!(
        (settings.model.as_str(), settings.max_tokens),
        ("m9", Some(1024))
    );
    let settings = asked[1].settings().unwrap();
    let expected = ModelService {
        provider: "openai".to_owned(),
        url: "https://models.example/v1".to_owned(),
        credential: reference,
        timeout_ms: 0,
    };
    assert_eq!(
        (settings.service, settings.max_tokens),
        (Some(expected.clone()), Some(9))
    );
    // Whichever way the agent is asked.
    world.chat(&sent.agent_id, "x").await.unwrap();
    let settings = world.asked().pop().unwrap().settings().unwrap();
    assert_eq!(settings.service, Some(expected));
    // The credential itself is nowhere.
    assert!(!serde_json::to_string(&asked).unwrap().contains("sk-played"));
}

async fn line_075_a_model_that_calls_no_tools_is_offered_none(place: Place) {
    let world = World::start(&place).await;
    let like = NewLlmService {
        supports_tools: Some(false),
        ..service("ollama")
    };
    let sent = bound(&world, like).await;
    let asked = SentContent {
        streaming: true,
        ..sent
    };
    let told = world.events::<SendConversationMessage>(&asked).await;
    let told = told.unwrap();
    let names: Vec<_> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["user-message", "token", "done"]);
    let asked = world.asked().remove(0);
    assert_eq!(
        (asked.group, asked.tool_names),
        (Some(Vec::new()), Some(Vec::new()))
    );
}

async fn line_081_a_service_that_an_agent_names_stays(place: Place) {
    let world = World::start(&place).await;
    let made = world
        .call::<CreateLlmService>(&service("ollama"))
        .await
        .unwrap();
    let agent = NewAgent {
        name: "Reader".to_owned(),
        llm_service_id: Some(made.llm_service_id.clone()),
        ..NewAgent::default()
    };
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    let refused = world.call::<DeleteLlmService>(&one(&made)).await;
    let told = refused.as_ref().unwrap_err().to_string();
    assert!(told.contains("Reader"), "{told}");
    assert_eq!(code(refused), "conflict");
    let change = AgentChange {
        agent_id: agent.agent_id,
        llm_service_id: Some(None),
        ..AgentChange::default()
    };
    world.call::<UpdateAgent>(&change).await.unwrap();
    world.call::<DeleteLlmService>(&one(&made)).await.unwrap();
    let gone = world.call::<GetLlmService>(&one(&made)).await;
    assert_eq!(code(gone), "llm_service_not_found");
}

async fn line_083_a_written_key_and_the_address_of_metadata_are_refused(place: Place) {
    let world = World::start(&place).await;
    let key = NewLlmService {
        credential_ref: Some("sk-proj-1".to_owned()),
        ..service("openai")
    };
    let refused = world.call::<CreateLlmService>(&key).await;
    assert!(
        !refused
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains("sk-proj-1")
    );
    assert_eq!(code(refused), "validation_error");
    for url in [
        "http://169.254.169.254/v1",
        "http://10.0.0.5:8080/admin?x=",
        "http://10.0.0.5:8080/admin#",
    ] {
        let other = NewLlmService {
            endpoint_base_url: Some(url.to_owned()),
            ..service("ollama")
        };
        let refused = world.call::<CreateLlmService>(&other).await;
        assert_eq!(code(refused), "validation_error", "{url}");
    }
    let which = WhichLlmServices::default();
    let none = world.call::<ListLlmServices>(&which).await.unwrap();
    assert!(none.items.is_empty());
}

on_both_buses!(
    services_are_kept_listed_and_changed,
    line_053_an_agent_names_a_service_that_is_there,
    line_065_another_provider_is_refused_before_the_message_is_kept,
    line_067_the_model_of_the_service_answers,
    line_075_a_model_that_calls_no_tools_is_offered_none,
    line_081_a_service_that_an_agent_names_stays,
    line_083_a_written_key_and_the_address_of_metadata_are_refused,
);
