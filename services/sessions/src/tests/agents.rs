//! Agents as their files describe them, and questions outside of sessions.

use std::fs;

use tg_schemas::ErrorCode;
use tg_schemas::operations::{
    Chat, CreateAgent, EarlierMessage, Empty, GetNamedAgent, ListNamedAgents, ListSessions,
    NamedAgent, NewAgent, Question, WhichSessions,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, fails};

async fn line_001_agents_are_listed_in_the_order_of_their_names(place: Place) {
    let world = World::start(&place).await;
    let found = world.call::<ListNamedAgents>(&Empty {}).await.unwrap();
    let names: Vec<_> = found.agents.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["ann", "mia", "zoe"]);
    let shown = serde_json::to_string(&found).unwrap();
    assert!(!shown.contains("system_prompt") && !shown.contains("Be brief"));
}

async fn line_002_an_agent_is_shown_with_its_instructions(place: Place) {
    let world = World::start(&place).await;
    let named = |name: &str| NamedAgent {
        name: name.to_owned(),
    };
    let agent = world.call::<GetNamedAgent>(&named("zoe")).await.unwrap();
    assert_eq!(
        (agent.system_prompt.as_str(), agent.model.as_str()),
        ("Be brief.", "m1")
    );
    assert_eq!(
        (agent.tools, agent.rag_top_k),
        (vec!["calculator".to_owned()], 5)
    );
    assert_eq!(agent.rag_index.as_deref(), Some("docs"));
    assert_eq!(agent.engine, "router");
    // 3: one that no file describes.
    for unknown in ["eve", "", "a b"] {
        let found = world.call::<GetNamedAgent>(&named(unknown)).await;
        assert_eq!(code(found), "agent_not_found");
    }
}

async fn line_005_a_file_that_changes_is_read_at_the_next_start(place: Place) {
    let world = World::start(&place).await;
    let file = world.dir.path().join("agents/a.yaml");
    fs::write(file, "name: ann\nmodel: other\n").unwrap();
    let named = NamedAgent {
        name: "ann".to_owned(),
    };
    let agent = world.call::<GetNamedAgent>(&named).await.unwrap();
    assert_eq!(agent.model, "m2");
}

async fn line_006_a_chat_is_answered_and_nothing_of_it_is_kept(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("hi".to_owned()));
    let answer = world.chat("zoe", "x").await.unwrap();
    assert_eq!((answer.content.as_str(), answer.session_id), ("hi", None));
    assert_eq!((answer.usage.total, answer.model.as_str()), (7, "played"));
    assert_eq!(
        (answer.cost.sub_calls, answer.finish_reason.as_str()),
        (1, "stop")
    );
    let asked = world.asked().remove(0);
    assert_eq!(
        (asked.framing.as_str(), asked.collection.as_str()),
        ("Be brief.", "docs")
    );
    assert_eq!(asked.tool_names, Some(vec!["calculator".to_owned()]));
    let which = WhichSessions {
        name: "zoe".to_owned(),
        user_id: "ann".to_owned(),
        ..WhichSessions::default()
    };
    let kept = world.call::<ListSessions>(&which).await.unwrap();
    assert!(kept.sessions.is_empty() && kept.next_cursor.is_none());
}

/// Clients that keep their conversations themselves, and agents of a workspace.
async fn a_chat_knows_what_was_said_before_and_is_streamed(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("hi".to_owned()));
    let said = |role: &str, content: &str| EarlierMessage {
        role: role.to_owned(),
        content: content.to_owned(),
    };
    let mut asked = Question {
        name: "zoe".to_owned(),
        message: Some("and?".to_owned()),
        earlier: vec![said("user", "one"), said("assistant", "two")],
        streaming: true,
        ..Question::default()
    };
    let told = world.events::<Chat>(&asked).await.unwrap();
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.last(), Some(&"done"));
    assert!(names.contains(&"token"), "{names:?}");
    let framing = &world.asked()[0].framing;
    assert!(
        framing.ends_with("User: one\n\nAssistant: two"),
        "{framing}"
    );
    asked.earlier = vec![said("nobody", "x")];
    asked.streaming = false;
    let refused = world.call::<Chat>(&asked).await;
    assert_eq!(code(refused), "validation_error");
    let agent = NewAgent {
        name: "r".to_owned(),
        system_prompt: Some("Read code.".to_owned()),
        user_prompt: Some("Look at this.".to_owned()),
        ..NewAgent::default()
    };
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    world.chat(&agent.agent_id, "x").await.unwrap();
    let last = world.asked().pop().unwrap();
    assert_eq!(last.framing, "Read code.");
    assert_eq!(last.question, "Look at this.\n\nx");
    // Line 151: its usage counts for it by its name.
    assert_eq!(last.agent, "r");
}

async fn line_007_a_chat_without_a_message_asks_nobody(place: Place) {
    let world = World::start(&place).await;
    let question = Question {
        name: "ann".to_owned(),
        ..Question::default()
    };
    assert_eq!(
        code(world.call::<Chat>(&question).await),
        "validation_error"
    );
    let deep = Question {
        message: Some("x".to_owned()),
        caller_depth: 3,
        ..question
    };
    // 35: the third nesting.
    assert_eq!(
        code(world.call::<Chat>(&deep).await),
        "recursion_depth_exceeded"
    );
    assert!(world.asked().is_empty());
}

async fn an_agent_that_fails_is_reported_by_its_kind(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| fails(ErrorCode::Provider));
    let failed = world.chat("ann", "x").await;
    let told = failed.as_ref().unwrap_err().to_string();
    assert!(!told.contains("10.0.0.1"), "{told}");
    assert_eq!(code(failed), "upstream_error");
    // 127: its flow does not run.
    assert_eq!(code(world.chat("mia", "x").await), "agent_unavailable");
}

on_both_buses!(
    line_001_agents_are_listed_in_the_order_of_their_names,
    line_002_an_agent_is_shown_with_its_instructions,
    line_005_a_file_that_changes_is_read_at_the_next_start,
    line_006_a_chat_is_answered_and_nothing_of_it_is_kept,
    a_chat_knows_what_was_said_before_and_is_streamed,
    line_007_a_chat_without_a_message_asks_nobody,
    an_agent_that_fails_is_reported_by_its_kind,
);
