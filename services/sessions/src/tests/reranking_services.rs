//! Reranking services of a workspace, and agents that are bound to them.

use tg_schemas::operations::{
    AgentChange, CreateAgent, CreateConversation, CreateRerankingService, DeleteRerankingService,
    GetRerankingService, ListRerankingServices, NewAgent, NewConversation, NewRerankingService,
    OneRerankingService, RerankingService, RerankingServiceChange, SendConversationMessage,
    SentContent, UpdateAgent, UpdateRerankingService, WhichRerankingServices,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::around::ORDER;
use super::world::{KEY, World, code};

const UNKNOWN: &str = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70";

fn service(url: &str) -> NewRerankingService {
    NewRerankingService {
        name: "near".to_owned(),
        provider: "tei".to_owned(),
        model_name: "m9".to_owned(),
        endpoint_base_url: url.to_owned(),
        ..NewRerankingService::default()
    }
}

fn one(service: &RerankingService) -> OneRerankingService {
    OneRerankingService {
        reranking_service_id: service.reranking_service_id.clone(),
    }
}

async fn made(world: &World) -> RerankingService {
    let new = service("https://order.example");
    world.call::<CreateRerankingService>(&new).await.unwrap()
}

/// An agent that is bound to a service.
fn bound(service: &str) -> NewAgent {
    NewAgent {
        name: "Reader".to_owned(),
        rag_enabled: true,
        rerank_enabled: true,
        rerank_max_results: Some(2),
        knowledge_base_ids: vec!["k1".to_owned()],
        reranking_service_id: Some(service.to_owned()),
        ..NewAgent::default()
    }
}

/// `list-reranking-services`
async fn reranking_services_are_kept_listed_and_changed(place: Place) {
    let world = World::start(&place).await;
    let made = made(&world).await;
    assert_eq!(
        (made.workspace_id.as_str(), made.name.as_str()),
        ("default", "near")
    );
    let far = service("https://far.example");
    let other = world.call::<CreateRerankingService>(&far).await.unwrap();
    let mut which = WhichRerankingServices {
        limit: Some(1),
        cursor: None,
    };
    for (expected, more) in [(&made, true), (&other, false)] {
        let listed = world.call::<ListRerankingServices>(&which).await.unwrap();
        assert_eq!(&listed.items[..], std::slice::from_ref(expected));
        assert_eq!(listed.next_cursor.is_some(), more);
        which.cursor = listed.next_cursor;
    }
    which.cursor = Some("zzz".to_owned());
    let refused = world.call::<ListRerankingServices>(&which).await;
    assert_eq!(code(refused), "invalid_cursor");
    let change = RerankingServiceChange {
        reranking_service_id: made.reranking_service_id.clone(),
        model_name: Some("m2".to_owned()),
        endpoint_path: Some(Some("/v2/rerank".to_owned())),
        ..RerankingServiceChange::default()
    };
    let changed = world.call::<UpdateRerankingService>(&change).await.unwrap();
    assert_eq!(
        (changed.name.as_str(), changed.model_name.as_str()),
        ("near", "m2")
    );
    let kept = world.call::<GetRerankingService>(&one(&made)).await;
    assert_eq!(kept.unwrap(), changed);
}

async fn a_written_key_another_provider_and_the_address_of_metadata_are_refused(place: Place) {
    let world = World::start(&place).await;
    let good = service("https://order.example");
    for wrong in [
        NewRerankingService {
            credential_ref: Some("sk-proj-1".to_owned()),
            ..good.clone()
        },
        NewRerankingService {
            provider: "odd".to_owned(),
            ..good.clone()
        },
        service("http://169.254.169.254/rerank"),
        service(""),
    ] {
        let refused = world.call::<CreateRerankingService>(&wrong).await;
        let told = refused.as_ref().unwrap_err().to_string();
        assert!(!told.contains("sk-proj-1"), "{told}");
        assert_eq!(code(refused), "validation_error");
    }
    let which = WhichRerankingServices::default();
    let none = world.call::<ListRerankingServices>(&which).await.unwrap();
    assert!(none.items.is_empty());
}

async fn line_053_an_agent_names_a_reranking_service_that_is_there(place: Place) {
    let world = World::start(&place).await;
    let refused = world.call::<CreateAgent>(&bound(UNKNOWN)).await;
    assert_eq!(code(refused), "reranking_service_not_found");
}

async fn line_081_a_reranking_service_that_an_agent_names_stays(place: Place) {
    let world = World::start(&place).await;
    let made = made(&world).await;
    let agent = bound(&made.reranking_service_id);
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    let refused = world.call::<DeleteRerankingService>(&one(&made)).await;
    let told = refused.as_ref().unwrap_err().to_string();
    assert!(told.contains("Reader"), "{told}");
    assert_eq!(code(refused), "conflict");
    let change = AgentChange {
        agent_id: agent.agent_id,
        reranking_service_id: Some(None),
        ..AgentChange::default()
    };
    world.call::<UpdateAgent>(&change).await.unwrap();
    let gone = world.call::<DeleteRerankingService>(&one(&made)).await;
    gone.unwrap();
    let missing = world.call::<GetRerankingService>(&one(&made)).await;
    assert_eq!(code(missing), "reranking_service_not_found");
}

/// The service is asked through the reranker of the flow, by a reference of its credential.
async fn the_service_of_an_agent_puts_its_passages_in_order(place: Place) {
    let world = World::start_as(&place, |_| {}, true).await;
    let reference = format!("file:{}", world.dir.path().join(KEY).display());
    let new = NewRerankingService {
        credential_ref: Some(reference),
        ..service(ORDER)
    };
    let made = world.call::<CreateRerankingService>(&new).await.unwrap();
    let agent = bound(&made.reranking_service_id);
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    let new = NewConversation {
        agent_id: agent.agent_id.clone(),
        ..NewConversation::default()
    };
    let begun = world.call::<CreateConversation>(&new).await.unwrap();
    let content = SentContent {
        agent_id: agent.agent_id,
        conversation_id: begun.conversation_id,
        content: "what?".to_owned(),
        ..SentContent::default()
    };
    let done = world.call::<SendConversationMessage>(&content).await;
    // The reranker of the flow would say k1-5,k1-4.
    let chunks = &done.unwrap().assistant.metadata["context_document_ids"];
    assert_eq!(chunks, "k1-1,k1-2");
}

on_both_buses!(
    reranking_services_are_kept_listed_and_changed,
    a_written_key_another_provider_and_the_address_of_metadata_are_refused,
    line_053_an_agent_names_a_reranking_service_that_is_there,
    line_081_a_reranking_service_that_an_agent_names_stays,
    the_service_of_an_agent_puts_its_passages_in_order,
);
