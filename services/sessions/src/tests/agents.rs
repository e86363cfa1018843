//! Agents as their files describe them, and questions outside of sessions.

use std::fs;
use std::path::Path;

use tg_schemas::msg::ModelSettings;
use tg_schemas::operations::{
    Chat, CreateAgent, EarlierMessage, Empty, GetNamedAgent, ListNamedAgents, ListSessions,
    NamedAgent, NewAgent, Question, WhichSessions,
};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, fails, said};

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
    let named = NamedAgent {
        name: "zoe".to_owned(),
    };
    let agent = world.call::<GetNamedAgent>(&named).await.unwrap();
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
}

async fn line_003_an_agent_that_no_file_describes_is_not_found(place: Place) {
    let world = World::start(&place).await;
    for unknown in ["eve", "", "a b"] {
        let named = NamedAgent {
            name: unknown.to_owned(),
        };
        let found = world.call::<GetNamedAgent>(&named).await;
        assert_eq!(code(found), "agent_not_found", "{unknown}");
        let chat = world.chat(unknown, "x").await;
        assert_eq!(code(chat), "agent_not_found", "{unknown}");
    }
    assert!(world.asked().is_empty());
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
    let world = world.again(&place).await;
    let agent = world.call::<GetNamedAgent>(&named).await.unwrap();
    assert_eq!(agent.model, "other");
}

async fn line_006_a_chat_is_answered_and_nothing_of_it_is_kept(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("hi".to_owned()));
    let question = Question {
        name: "zoe".to_owned(),
        message: Some("x".to_owned()),
        user_id: "ann".to_owned(),
        ..Question::default()
    };
    let answer = world.call::<Chat>(&question).await.unwrap();
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
    // Whoever it might be of: with its first row a workspace gets a file.
    let files = || {
        let files = fs::read_dir(world.dir.path().join("agent_sessions")).unwrap();
        files.count()
    };
    assert_eq!(files(), 0);
    world.session("zoe", "ann").await;
    assert!(files() > 0);
}

async fn what_a_file_says_of_the_model_reaches_the_agent(place: Place) {
    let text =
        "name: eva\nmodel: m1\nmodels: [m2]\nmax_tokens: 9\ntemperature: 0.5\nmax_iterations: 3\n";
    let file = |dir: &Path| fs::write(dir.join("agents/e.yaml"), text).unwrap();
    let world = World::start_with(&place, file).await;
    world.chat("eva", "x").await.unwrap();
    let session = world.session("eva", "ann").await;
    world.send(&session, "y").await.unwrap();
    for asked in world.asked() {
        let settings = ModelSettings {
            model: "m1".to_owned(),
            models: vec!["m2".to_owned()],
            max_tokens: Some(9),
            temperature: Some(0.5),
            service: None,
        };
        assert_eq!(
            (asked.settings(), asked.max_iterations),
            (Some(settings), 3)
        );
        // Also of what tools search.
        assert_eq!(asked.top_k, 5);
    }
    world.chat("zoe", "x").await.unwrap();
    let asked = world.asked().pop().unwrap();
    assert_eq!((asked.model.as_str(), asked.max_iterations), ("m1", 10));
    assert_eq!((asked.max_tokens, asked.temperature), (None, None));
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

/// A tool is told the depth of what it asks, and asks so.
async fn line_036_the_third_nesting_through_a_tool_is_refused(place: Place) {
    let world = World::start(&place).await;
    let mut depth = 0;
    let refused = loop {
        let question = Question {
            name: "ann".to_owned(),
            message: Some("x".to_owned()),
            caller_depth: depth,
            ..Question::default()
        };
        match world.call::<Chat>(&question).await {
            Ok(_) => depth = world.asked().last().unwrap().caller_depth,
            refused => break refused,
        }
    };
    assert_eq!(code(refused), "recursion_depth_exceeded");
    assert_eq!((world.asked().len(), depth), (3, 3));
    // In a session, too.
    let session = world.session("ann", "bob").await;
    world.send(&session, "x").await.unwrap();
    assert_eq!(world.asked().last().unwrap().caller_depth, 1);
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

/// Where the workspace says how much its model reads at once.
async fn line_095_a_model_that_reads_too_little_is_not_asked(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("zoe", "bob").await;
    let says = async |window: u64| {
        let row = format!(r#"{{"context_window": {window}}}"#);
        let rows = [("llm-model", "m1", Some(row.as_str()))];
        let config = &world.flow.config;
        config.apply_all(&world.flow.mesh, "default", &rows).await;
    };
    says(15_999).await;
    let small = "context_window_too_small";
    assert_eq!(code(world.chat("zoe", "x").await), small);
    assert_eq!(code(world.send(&session, "x").await), small);
    assert!(said(&world, &session).await.is_empty() && world.asked().is_empty());
    says(16_000).await;
    world.chat("zoe", "x").await.unwrap();
    world.send(&session, "x").await.unwrap();
}

/// All models rest, which the agent reports with the shortest pause.
async fn line_109_an_agent_whose_models_rest_is_told_with_the_pause(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Err(Error::new(ErrorCode::Unavailable, "resting").after(90)));
    let failed = world.chat("ann", "x").await;
    let told = failed.as_ref().unwrap_err();
    assert_eq!(told["retry_after"], 90, "{told}");
    assert_eq!(code(failed), "agent_unavailable");
}

on_both_buses!(
    line_095_a_model_that_reads_too_little_is_not_asked,
    line_109_an_agent_whose_models_rest_is_told_with_the_pause,
    line_001_agents_are_listed_in_the_order_of_their_names,
    line_002_an_agent_is_shown_with_its_instructions,
    line_003_an_agent_that_no_file_describes_is_not_found,
    line_005_a_file_that_changes_is_read_at_the_next_start,
    line_006_a_chat_is_answered_and_nothing_of_it_is_kept,
    what_a_file_says_of_the_model_reaches_the_agent,
    a_chat_knows_what_was_said_before_and_is_streamed,
    line_007_a_chat_without_a_message_asks_nobody,
    line_036_the_third_nesting_through_a_tool_is_refused,
    an_agent_that_fails_is_reported_by_its_kind,
);
