//! Passages that agents are given before they answer.

use std::fs;

use tg_schemas::operations::{
    CreateAgent, CreateConversation, Exchange, NewAgent, NewConversation, SendConversationMessage,
    SentContent,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::World;
use crate::engine::workspace_agent::TOOLS;

/// With a flow that finds passages, four collections of which one is bad, and two agents that read one each: `nell` the bad one.
async fn reading(place: &Place, retrieves: bool) -> World {
    let more = |dir: &std::path::Path| {
        for (name, of) in [("ned", "docs"), ("nell", "bad")] {
            let text = format!("name: {name}\nmodel: m1\nrag_index: {of}\nrag_top_k: 3\n");
            fs::write(dir.join(format!("agents/{name}.yaml")), text).unwrap();
        }
    };
    World::start_as(place, more, retrieves).await
}

async fn line_041_an_agent_is_given_the_passages_that_it_asks_for(place: Place) {
    let world = reading(&place, true).await;
    let answer = world.chat("ned", "what?").await.unwrap();
    assert_eq!(answer.content, "re what?");
    let framing = world.asked().pop().unwrap().framing;
    assert_eq!(framing.matches("text of docs-").count(), 3, "{framing}");
    let session = world.session("ned", "bob").await;
    let answer = world.send(&session, "what?").await.unwrap();
    assert_eq!(answer.context_chunks.len(), 3);
    // Chunk, collection and document.
    assert_eq!(answer.context_chunks[0], ["docs-0", "docs", "docs"]);
}

async fn line_041_an_agent_answers_without_passages_where_none_can_be_found(place: Place) {
    // Nothing finds any, or what finds them fails.
    for (agent, retrieves) in [("ned", false), ("nell", true)] {
        let world = reading(&place.another().await, retrieves).await;
        let answer = world.chat(agent, "what?").await.unwrap();
        assert_eq!(answer.content, "re what?", "{agent}");
        assert_eq!(world.asked().pop().unwrap().framing, "", "{agent}");
        assert_eq!(world.chunks.asked.lock().is_empty(), !retrieves);
    }
}

/// A turn of a conversation with these collections.
async fn turn(world: &World, own: &[&str], agents: &[&str], enabled: bool) -> Exchange {
    let list = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    let agent = NewAgent {
        name: "r".to_owned(),
        rag_enabled: enabled,
        knowledge_base_ids: list(agents),
        ..NewAgent::default()
    };
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    let new = NewConversation {
        agent_id: agent.agent_id.clone(),
        knowledge_base_ids: list(own),
        ..NewConversation::default()
    };
    let conversation = world.call::<CreateConversation>(&new).await.unwrap();
    let content = SentContent {
        agent_id: agent.agent_id,
        conversation_id: conversation.conversation_id,
        content: "what?".to_owned(),
        ..SentContent::default()
    };
    world
        .call::<SendConversationMessage>(&content)
        .await
        .unwrap()
}

/// The collections that were searched since the last look.
fn searched(world: &World) -> Vec<String> {
    let asked: Vec<_> = world.chunks.asked.lock().drain(..).collect();
    asked.into_iter().map(|one| one.collection).collect()
}

async fn line_076_the_collections_of_the_conversation_come_first(place: Place) {
    let world = reading(&place, true).await;
    turn(&world, &["k1"], &["k2"], true).await;
    assert_eq!(searched(&world), ["k1"]);
    turn(&world, &[], &["k2"], true).await;
    assert_eq!(searched(&world), ["k2"]);
    turn(&world, &[], &[], true).await;
    assert_eq!(searched(&world), ["bad", "k1", "k2"]);
    // 77: nothing is read where the agent is not to.
    let plain = turn(&world, &["k1"], &[], false).await;
    assert!(searched(&world).is_empty());
    assert!(!plain.assistant.metadata.contains_key("context_chunks"));
}

async fn line_077_four_collections_give_at_most_twelve_passages(place: Place) {
    let world = reading(&place, true).await;
    let four = turn(&world, &["a", "b", "c", "d"], &[], true).await;
    let told = &four.assistant.metadata["context_chunks"];
    let told: Vec<[String; 3]> = serde_json::from_slice(told.as_bytes()).unwrap();
    assert_eq!(told.len(), 12);
    let framing = world.asked().pop().unwrap().framing;
    assert_eq!(framing.matches("text of ").count(), 12, "{framing}");
    let ids = &four.assistant.metadata["context_document_ids"];
    assert_eq!(ids.split(',').count(), 12);
}

async fn line_078_a_collection_that_fails_is_left_out(place: Place) {
    let world = reading(&place, true).await;
    let done = turn(&world, &["bad", "k1"], &[], true).await;
    assert_eq!(done.assistant.metadata["finish_reason"], "stop");
    let framing = world.asked().pop().unwrap().framing;
    assert_eq!(framing.matches("text of k1-").count(), 6, "{framing}");
}

async fn the_reranker_of_the_flow_keeps_the_best_passages(place: Place) {
    let world = reading(&place, true).await;
    let agent = NewAgent {
        name: "r".to_owned(),
        rag_enabled: true,
        rerank_enabled: true,
        rerank_max_results: Some(2),
        knowledge_base_ids: vec!["k1".to_owned()],
        ..NewAgent::default()
    };
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    let new = NewConversation {
        agent_id: agent.agent_id.clone(),
        ..NewConversation::default()
    };
    let begun = world.call::<CreateConversation>(&new).await.unwrap();
    // Where it fails, the order of the searches decides.
    for (content, expected) in [("what?", "k1-5,k1-4"), ("fail", "k1-0,k1-1")] {
        let content = SentContent {
            agent_id: agent.agent_id.clone(),
            conversation_id: begun.conversation_id.clone(),
            content: content.to_owned(),
            ..SentContent::default()
        };
        let done = world
            .call::<SendConversationMessage>(&content)
            .await
            .unwrap();
        assert_eq!(
            done.assistant.metadata["context_document_ids"], expected,
            "{}",
            content.content
        );
    }
    // The agent is shown no others.
    let framing = world.asked().remove(0).framing;
    assert_eq!(framing.matches("text of k1-").count(), 2, "{framing}");
}

async fn the_tools_of_an_agent_look_into_the_collections_of_its_conversation(place: Place) {
    let world = reading(&place, true).await;
    let cases: [(&[&str], &[&str]); 2] = [(&["k1"], &["k1"]), (&[], &["bad", "k1", "k2"])];
    for (own, expected) in cases {
        turn(&world, own, &[], false).await;
        let asked = world.asked().pop().unwrap();
        assert_eq!(asked.collections, expected);
        assert_eq!(asked.tool_names.unwrap(), TOOLS);
        assert_eq!(asked.group.unwrap(), ["*"]);
    }
    // One of a file has the tools that the file names, and its own collection.
    world.chat("ned", "what?").await.unwrap();
    let asked = world.asked().pop().unwrap();
    assert_eq!(asked.collections, ["docs"]);
    assert!(asked.tool_names.unwrap().is_empty());
}

on_both_buses!(
    the_reranker_of_the_flow_keeps_the_best_passages,
    the_tools_of_an_agent_look_into_the_collections_of_its_conversation,
    line_041_an_agent_is_given_the_passages_that_it_asks_for,
    line_041_an_agent_answers_without_passages_where_none_can_be_found,
    line_076_the_collections_of_the_conversation_come_first,
    line_077_four_collections_give_at_most_twelve_passages,
    line_078_a_collection_that_fails_is_left_out,
);
