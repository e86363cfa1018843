//! What the operator says of agents of workspaces that say nothing themselves.

use tg_schemas::msg::{AgentRequest, AgentResponse, ModelService};
use tg_schemas::operations::{
    AgentChange, CreateAgent, CreateConversation, CreateLlmService, GetAgent,
    ListConversationMessages, NewAgent, NewConversation, NewLlmService, OneAgent,
    SendConversationMessage, SentContent, UpdateAgent, WhichPage,
};
use tg_testkit::fakes::Play;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{KEY, World, code, part};
use crate::options::Options;

/// An agent that says which model answered.
fn by_its_model(asked: &AgentRequest) -> Play<AgentResponse> {
    Play::of(vec![AgentResponse {
        model: Some(asked.model.clone()),
        finish_reason: "stop".to_owned(),
        end_of_message: true,
        end_of_dialog: true,
        ..part("answer", "it is so")
    }])
}

/// A message to a new agent of the workspace.
async fn message(world: &World, like: NewAgent) -> SentContent {
    let like = NewAgent {
        name: "r".to_owned(),
        ..like
    };
    let agent = world.call::<CreateAgent>(&like).await.unwrap();
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

/// The model that answered a message.
async fn answered_by(world: &World, sent: &SentContent) -> String {
    let done = world.call::<SendConversationMessage>(sent).await.unwrap();
    done.assistant.metadata["model"].clone()
}

/// The model `usual` of a provider with a key that this workspace may name.
fn provider(options: &mut Options) {
    let key = options.data_dir.join(KEY);
    options.chat_provider = "openai".to_owned();
    options.chat_model = "usual".to_owned();
    options.chat_url = "https://models.example/v1/".to_owned();
    options.chat_credential = format!("file:{}", key.display());
    options.chat_max_tokens = 77;
    assert!(options.faults().is_empty());
}

async fn line_064_without_a_model_that_the_workspace_may_use_nothing_is_sent(place: Place) {
    let world = World::start_bounded(&place, |options| {
        provider(options);
        options.credentials = None;
    })
    .await;
    let mut sent = message(&world, NewAgent::default()).await;
    for streaming in [false, true] {
        sent.streaming = streaming;
        let refused = world.call::<SendConversationMessage>(&sent).await;
        assert_eq!(code(refused), "chat_disabled");
    }
    let page = WhichPage {
        agent_id: sent.agent_id.clone(),
        conversation_id: sent.conversation_id.clone(),
        ..WhichPage::default()
    };
    let kept = world.call::<ListConversationMessages>(&page).await.unwrap();
    assert!(kept.items.is_empty() && world.asked().is_empty());
    let one = OneAgent {
        agent_id: sent.agent_id.clone(),
    };
    world.call::<GetAgent>(&one).await.unwrap();
    // An LLM service that needs no key answers.
    let near = NewLlmService {
        name: "near".to_owned(),
        provider: "ollama".to_owned(),
        model_name: "m9".to_owned(),
        ..NewLlmService::default()
    };
    let near = world.call::<CreateLlmService>(&near).await.unwrap();
    let change = AgentChange {
        agent_id: sent.agent_id.clone(),
        llm_service_id: Some(Some(near.llm_service_id)),
        ..AgentChange::default()
    };
    world.call::<UpdateAgent>(&change).await.unwrap();
    sent.streaming = false;
    world.call::<SendConversationMessage>(&sent).await.unwrap();
}

/// Without a model of the operator, where that of the flow is not to answer. With one the agent answers.
async fn line_064_without_a_model_of_anybody_nothing_is_sent(place: Place) {
    let alone = |options: &mut Options| options.chat_of_flow = false;
    let world = World::start_bounded(&place, alone).await;
    let mut sent = message(&world, NewAgent::default()).await;
    for streaming in [false, true] {
        sent.streaming = streaming;
        let refused = world.call::<SendConversationMessage>(&sent).await;
        assert_eq!(code(refused), "chat_disabled");
    }
    let page = WhichPage {
        agent_id: sent.agent_id.clone(),
        conversation_id: sent.conversation_id.clone(),
        ..WhichPage::default()
    };
    let kept = world.call::<ListConversationMessages>(&page).await.unwrap();
    assert!(kept.items.is_empty() && world.asked().is_empty());
    let change = AgentChange {
        agent_id: sent.agent_id.clone(),
        name: Some("q".to_owned()),
        ..AgentChange::default()
    };
    let changed = world.call::<UpdateAgent>(&change).await.unwrap();
    assert_eq!(changed.name, "q");
    let named = |options: &mut Options| {
        options.chat_of_flow = false;
        options.chat_model = "usual".to_owned();
    };
    let world = World::start_bounded(&place.another().await, named).await;
    world.plays(by_its_model);
    let sent = message(&world, NewAgent::default()).await;
    assert_eq!(answered_by(&world, &sent).await, "usual");
}

async fn line_067_the_service_of_the_agent_comes_before_the_operators_model(place: Place) {
    let world = World::start_bounded(&place, provider).await;
    world.plays(by_its_model);
    let sent = message(&world, NewAgent::default()).await;
    assert_eq!(answered_by(&world, &sent).await, "usual");
    let asked = world.asked().pop().unwrap();
    let expected = ModelService {
        provider: "openai".to_owned(),
        url: "https://models.example/v1".to_owned(),
        credential: format!("file:{}", world.dir.path().join(KEY).display()),
        timeout_ms: 0,
    };
    assert_eq!(
        (asked.service.as_ref(), asked.max_tokens),
        (Some(&expected), Some(77))
    );
    // Whichever way the agent is asked.
    let told = world.chat(&sent.agent_id, "x").await.unwrap();
    assert_eq!(told.model, "usual");
    let near = NewLlmService {
        name: "near".to_owned(),
        provider: "ollama".to_owned(),
        model_name: "m9".to_owned(),
        ..NewLlmService::default()
    };
    let near = world.call::<CreateLlmService>(&near).await.unwrap();
    let bound = NewAgent {
        llm_service_id: Some(near.llm_service_id),
        ..NewAgent::default()
    };
    let sent = message(&world, bound).await;
    assert_eq!(answered_by(&world, &sent).await, "m9");
    let asked = world.asked().pop().unwrap();
    assert_eq!(asked.service.unwrap().provider, "ollama");
    assert_eq!(asked.max_tokens, Some(77));
}

async fn a_model_without_a_provider_is_asked_of_the_flow(place: Place) {
    let model = |options: &mut Options| options.chat_model = "usual".to_owned();
    let world = World::start_bounded(&place, model).await;
    world.plays(by_its_model);
    let sent = message(&world, NewAgent::default()).await;
    assert_eq!(answered_by(&world, &sent).await, "usual");
    let asked = world.asked().pop().unwrap();
    assert_eq!((asked.service, asked.max_tokens), (None, Some(1024)));
}

async fn line_068_the_instructions_of_the_agent_come_before_the_operators(place: Place) {
    let say = |options: &mut Options| options.system_prompt = "Be terse.".to_owned();
    let world = World::start_bounded(&place, say).await;
    for (own, told) in [(Some("Be kind."), "Be kind."), (None, "Be terse.")] {
        let like = NewAgent {
            system_prompt: own.map(str::to_owned),
            ..NewAgent::default()
        };
        let sent = message(&world, like).await;
        world.call::<SendConversationMessage>(&sent).await.unwrap();
        assert_eq!(world.asked().pop().unwrap().framing, told);
    }
}

on_both_buses!(
    line_064_without_a_model_that_the_workspace_may_use_nothing_is_sent,
    line_064_without_a_model_of_anybody_nothing_is_sent,
    line_067_the_service_of_the_agent_comes_before_the_operators_model,
    a_model_without_a_provider_is_asked_of_the_flow,
    line_068_the_instructions_of_the_agent_come_before_the_operators,
);
