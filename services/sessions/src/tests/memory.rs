//! What is remembered of a user across sessions.

use std::fs;

use tg_schemas::msg::ChatCompletionRequest;
use tg_schemas::operations::{ForgetMemory, ListMemories, Memory, OneMemory, WhichMemories};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, said};

/// With an agent that remembers.
async fn remembering(place: &Place) -> World {
    let text = "name: rex\nmodel: m2\nmemory: true\n";
    World::start_with(place, |dir| {
        fs::write(dir.join("agents/d.yaml"), text).unwrap()
    })
    .await
}

async fn memories(world: &World, user: &str) -> Vec<Memory> {
    let which = WhichMemories {
        user_id: user.to_owned(),
        ..WhichMemories::default()
    };
    world.call::<ListMemories>(&which).await.unwrap().memories
}

async fn what_a_user_says_is_known_in_later_sessions_until_it_is_forgotten(place: Place) {
    let world = remembering(&place).await;
    world.sums_up(|asked| {
        Ok(match asked.messages[1].content.contains("Kassel") {
            true => "Bob | lives in | Kassel".to_owned(),
            false => "NONE".to_owned(),
        })
    });
    let first = world.session("rex", "bob").await;
    world.send(&first, "I live in Kassel").await.unwrap();
    let known = async || memories(&world, "bob").await.len() == 1;
    world.flow.until(known).await;
    let fact = memories(&world, "bob").await.remove(0);
    assert_eq!(
        (fact.predicate.as_str(), fact.object.as_str()),
        ("lives in", "Kassel")
    );
    assert_eq!((&fact.session_id, fact.agent.as_str()), (&first.id, "rex"));
    let message = said(&world, &first).await.remove(0);
    assert_eq!(message.content.as_deref(), Some("I live in Kassel"));
    assert_eq!(fact.message_id, message.id);
    let later = world.session("rex", "bob").await;
    world.send(&later, "where?").await.unwrap();
    let framing = world.asked().pop().unwrap().framing;
    assert!(framing.contains("Bob lives in Kassel"), "{framing}");
    // Nobody else knows, and an agent that is not asked to remember does not.
    assert!(memories(&world, "eve").await.is_empty());
    let other = world.session("rex", "eve").await;
    world.send(&other, "where?").await.unwrap();
    let plain = world.session("ann", "bob").await;
    world.send(&plain, "where?").await.unwrap();
    for asked in world.asked().iter().rev().take(2) {
        assert!(!asked.framing.contains("Kassel"), "{}", asked.framing);
    }
    let one = |user: &str| OneMemory {
        memory_id: fact.id.clone(),
        user_id: user.to_owned(),
    };
    let foreign = world.call::<ForgetMemory>(&one("eve")).await;
    assert_eq!(code(foreign), "memory_not_found");
    world.call::<ForgetMemory>(&one("bob")).await.unwrap();
    assert!(memories(&world, "bob").await.is_empty());
}

/// `list-memories`
async fn pages_of_what_is_remembered_are_oldest_first(place: Place) {
    let world = remembering(&place).await;
    world.sums_up(|_| Ok("Bob | likes | tea\nBob | likes | rye\nBob | plays | chess".to_owned()));
    let session = world.session("rex", "bob").await;
    world
        .send(&session, "I like tea and rye, and play chess")
        .await
        .unwrap();
    let known = async || memories(&world, "bob").await.len() == 3;
    world.flow.until(known).await;
    let mut which = WhichMemories {
        user_id: "bob".to_owned(),
        limit: Some(2),
        cursor: None,
    };
    let first = world.call::<ListMemories>(&which).await.unwrap();
    let objects: Vec<_> = first
        .memories
        .iter()
        .map(|one| one.object.as_str())
        .collect();
    assert_eq!(objects, ["tea", "rye"]);
    which.cursor = first.next_cursor;
    let second = world.call::<ListMemories>(&which).await.unwrap();
    assert_eq!(
        (second.memories[0].object.as_str(), second.next_cursor),
        ("chess", None)
    );
    which.cursor = Some("zzz".to_owned());
    assert_eq!(
        code(world.call::<ListMemories>(&which).await),
        "invalid_cursor"
    );
}

/// A search that failed, or that a killed process left, is made after the next turn, and facts are found once.
async fn what_nobody_found_yet_is_found_after_the_next_turn(place: Place) {
    let world = remembering(&place).await;
    let facts = |asked: &ChatCompletionRequest| {
        let text = &asked.messages[1].content;
        let town = text.strip_prefix("I live in ");
        Ok(town.map_or_else(
            || "NONE".to_owned(),
            |town| format!("Bob | lives in | {town}"),
        ))
    };
    world.sums_up(|_| Err(Error::new(ErrorCode::Provider, "away")));
    let session = world.session("rex", "bob").await;
    world.send(&session, "I live in Kassel").await.unwrap();
    let asked = async || world.model.asked.lock().len() == 1;
    world.flow.until(asked).await;
    // The next process finds it, and asks about each message once.
    let world = world.again(&place).await;
    world.sums_up(facts);
    world.send(&session, "I live in Jena").await.unwrap();
    let known = async || memories(&world, "bob").await.len() == 2;
    world.flow.until(known).await;
    let all = memories(&world, "bob").await;
    let towns: Vec<_> = all.iter().map(|one| one.object.as_str()).collect();
    assert_eq!(towns, ["Kassel", "Jena"]);
    let messages = said(&world, &session).await;
    let sources = [&messages[0].id, &messages[2].id];
    assert_eq!([&all[0].message_id, &all[1].message_id], sources);
    world.send(&session, "where?").await.unwrap();
    let asked = async || world.model.asked.lock().len() == 3;
    world.flow.until(asked).await;
    assert_eq!(memories(&world, "bob").await.len(), 2);
}

on_both_buses!(
    pages_of_what_is_remembered_are_oldest_first,
    what_a_user_says_is_known_in_later_sessions_until_it_is_forgotten,
    what_nobody_found_yet_is_found_after_the_next_turn,
);
