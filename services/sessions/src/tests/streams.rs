//! Turns whose answers are read as they come, and turns that end others.

use serde_json::{Value, json};
use tg_schemas::ErrorCode;
use tg_schemas::msg::AgentResponse;
use tg_schemas::operations::{
    AgentChange, CancelTurn, CancelledTurn, ChatMessage, Conversation, CreateAgent,
    CreateConversation, DeleteAgent, GetAgent, ListConversationMessages, NewAgent, NewConversation,
    Object, OneAgent, Operation, PutTenantConfig, SendConversationMessage, SendMessage,
    SentContent, SentMessage, TenantChange, UpdateAgent, WhenBusy, WhichPage, write,
};
use tg_testkit::fakes::Play;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, answer, code, fails, part, said, sent, with_tools};

/// A conversation with an agent of the workspace that has these instructions.
async fn conversation(world: &World, prompt: Option<&str>) -> Conversation {
    let agent = NewAgent {
        name: "r".to_owned(),
        system_prompt: prompt.map(str::to_owned),
        ..NewAgent::default()
    };
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    let new = NewConversation {
        agent_id: agent.agent_id,
        ..NewConversation::default()
    };
    world.call::<CreateConversation>(&new).await.unwrap()
}

fn content(to: &Conversation, text: &str, streaming: bool) -> SentContent {
    SentContent {
        agent_id: to.agent_id.clone(),
        conversation_id: to.conversation_id.clone(),
        content: text.to_owned(),
        streaming,
        ..SentContent::default()
    }
}

async fn streamed(world: &World, to: &Conversation, text: &str) -> Vec<(String, Object)> {
    let asked = content(to, text, true);
    world
        .events::<SendConversationMessage>(&asked)
        .await
        .unwrap()
}

/// Asks, and leaves once so many tokens have come.
async fn leaves<O: Operation>(world: &World, request: &O::Request, after: usize) {
    let asked = write(request).unwrap();
    let mut answer = world.ask("default", None, O::META.name, asked);
    let mut tokens = 0;
    while tokens < after {
        let part = answer.next().await.unwrap().unwrap();
        tokens += usize::from(part.event == "token");
    }
}

fn names(told: &[(String, Object)]) -> Vec<&str> {
    told.iter().map(|(name, _)| name.as_str()).collect()
}

async fn messages(world: &World, of: &Conversation) -> Vec<ChatMessage> {
    let page = WhichPage {
        agent_id: of.agent_id.clone(),
        conversation_id: of.conversation_id.clone(),
        ..WhichPage::default()
    };
    let all = world.call::<ListConversationMessages>(&page).await;
    all.unwrap().items
}

async fn listed(world: &World, of: &Conversation) -> Vec<String> {
    let all = messages(world, of).await.into_iter();
    all.map(|one| one.content.unwrap_or_default()).collect()
}

async fn line_069_a_stream_begins_with_the_message_and_ends_with_the_answer(place: Place) {
    let world = World::start(&place).await;
    let to = conversation(&world, None).await;
    let told = streamed(&world, &to, "hi").await;
    assert_eq!(names(&told), ["user-message", "token", "done"]);
    assert_eq!(told[0].1["content"], "hi");
    let deltas = told.iter().filter_map(|(_, data)| data.get("delta"));
    let deltas: String = deltas.filter_map(Value::as_str).collect();
    assert_eq!(told[2].1["content"], *deltas);
    assert_eq!(told[2].1["metadata"]["finish_reason"], "stop");
    assert!(world.asked()[0].streaming);
}

async fn line_070_calls_of_tools_are_told_in_their_order(place: Place) {
    let world = World::start(&place).await;
    let to = conversation(&world, None).await;
    world.plays(|_| with_tools(1));
    let told = streamed(&world, &to, "look").await;
    let expected = [
        "user-message",
        "token",
        "token-reset",
        "tool-call",
        "tool-result",
        "token",
        "token",
        "done",
    ];
    assert_eq!(names(&told), expected);
    let call = json!({"toolName": "search", "args": {"q": "frask"}, "callId": "c0"});
    assert_eq!(Value::Object(told[3].1.clone()), call);
    let result = json!({"toolName": "search", "callId": "c0", "result": "found"});
    assert_eq!(Value::Object(told[4].1.clone()), result);
    assert_eq!(told[7].1["content"], "it is there");
}

async fn line_074_a_listing_hides_calls_of_tools_and_the_next_prompt_has_them(place: Place) {
    let world = World::start(&place).await;
    let to = conversation(&world, None).await;
    world.plays(|_| with_tools(1));
    streamed(&world, &to, "look").await;
    assert_eq!(listed(&world, &to).await, ["look", "it is there"]);
    let mut page = WhichPage {
        agent_id: to.agent_id.clone(),
        conversation_id: to.conversation_id.clone(),
        limit: Some(1),
        ..WhichPage::default()
    };
    for text in ["look", "it is there"] {
        let told = world.call::<ListConversationMessages>(&page).await.unwrap();
        assert_eq!(told.items.len(), 1, "a page is full of what is shown");
        assert_eq!(told.items[0].content.as_deref(), Some(text));
        page.cursor = told.next_cursor;
    }
    assert_eq!(page.cursor, None);
    streamed(&world, &to, "again").await;
    let framing = world.asked().pop().unwrap().framing;
    assert!(
        framing.contains("Assistant calls: search {\"q\":\"frask\"}"),
        "{framing}"
    );
    assert!(framing.contains("Result of search: found"), "{framing}");
}

async fn line_071_a_seventh_call_of_a_tool_ends_the_turn(place: Place) {
    let world = World::start(&place).await;
    let to = conversation(&world, None).await;
    world.plays(|_| with_tools(7));
    let told = streamed(&world, &to, "look").await;
    let calls = names(&told)
        .iter()
        .filter(|name| **name == "tool-call")
        .count();
    assert_eq!((calls, told.last().unwrap().0.as_str()), (6, "error"));
    let ends = |name: &&str| matches!(*name, "done" | "error");
    assert_eq!(names(&told).into_iter().filter(ends).count(), 1);
    let last = &told.last().unwrap().1["metadata"];
    assert_eq!(last["finish_reason"], "error");
    assert!(last["error_message"].as_str().unwrap().contains('6'));
}

/// A run that a guard stopped: an error in a conversation, an answer that says so in a session of an agent of a file.
async fn line_093_a_run_that_went_in_circles_says_so(place: Place) {
    let world = World::start(&place).await;
    let to = conversation(&world, None).await;
    let said = "Stopped by loop detection (generic_repeat): 'search' was called 20 times";
    world.plays(move |_| {
        let stopped = tg_schemas::msg::AgentResponse {
            end_of_message: true,
            end_of_dialog: true,
            finish_reason: "loop".to_owned(),
            stopped: true,
            ..part("answer", &format!("{said}\n\nfound"))
        };
        Play::of(vec![stopped])
    });
    let told = streamed(&world, &to, "look").await;
    assert_eq!(names(&told), ["user-message", "token", "error"]);
    let last = &told[2].1;
    assert_eq!(last["metadata"]["finish_reason"], "error");
    assert_eq!(last["metadata"]["error_message"], said);
    assert!(last["content"].as_str().unwrap().ends_with("found"));
    let session = world.session("zoe", "bob").await;
    let turn = world.send(&session, "look").await.unwrap();
    assert_eq!((turn.stopped, turn.finish_reason.as_str()), (true, "loop"));
}

async fn line_072_an_agent_that_fails_ends_the_stream_with_a_readable_answer(place: Place) {
    let world = World::start(&place).await;
    let to = conversation(&world, None).await;
    world.answers(|_| fails(ErrorCode::Provider));
    let told = streamed(&world, &to, "hi").await;
    assert_eq!(names(&told), ["user-message", "error"]);
    let last = Value::Object(told[1].1.clone()).to_string();
    assert!(
        last.contains("could not answer") && !last.contains("10.0.0.1"),
        "{last}"
    );
    assert_eq!(listed(&world, &to).await.len(), 2);
    // In the middle of its answer, too: what it had said is not the answer.
    world.plays(|_| {
        let failed = AgentResponse {
            error: fails(ErrorCode::Provider).err(),
            ..part("error", "")
        };
        Play::of(vec![part("answer", "half "), failed])
    });
    let told = streamed(&world, &to, "ho").await;
    assert_eq!(names(&told), ["user-message", "token", "error"]);
    let last = Value::Object(told[2].1.clone()).to_string();
    assert!(!last.contains("10.0.0.1"), "{last}");
    let kept = messages(&world, &to).await;
    assert_eq!(kept.len(), 4);
    assert_eq!(kept[2].content.as_deref(), Some("ho"));
    let text = kept[3].content.clone().unwrap_or_default();
    assert!(
        text.contains("could not answer") && !text.contains("half"),
        "{text}"
    );
    assert_eq!(kept[3].metadata["finish_reason"], "error");
}

async fn line_073_a_reader_that_leaves_ends_the_turn_with_what_was_said(place: Place) {
    let world = World::start(&place).await;
    let to = conversation(&world, None).await;
    world.plays(|_| Play::of(vec![part("answer", "one "), part("answer", "two")]).hanging());
    leaves::<SendConversationMessage>(&world, &content(&to, "hi", true), 2).await;
    world.agent.cancelled.notified().await;
    let kept = async || listed(&world, &to).await == ["hi", "one two"];
    world.flow.until(kept).await;
    let all = messages(&world, &to).await;
    assert_eq!(all[1].metadata["finish_reason"], "stop");
}

/// C.16: the turn of a session goes on where that of a conversation (line 73) ends.
async fn a_reader_that_leaves_does_not_end_the_turn_of_a_session(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let to = conversation(&world, None).await;
    world.plays(|asked| match asked.question.as_str() {
        "hi" => Play::of(vec![part("answer", "one "), answer("two")]).holding(),
        _ => Play::of(vec![part("answer", "hm")]).hanging(),
    });
    let asked = SentMessage {
        streaming: true,
        ..sent(&session, "hi")
    };
    leaves::<SendMessage>(&world, &asked, 1).await;
    // A later reader leaves, too: when its turn ends, the service knows of both.
    leaves::<SendConversationMessage>(&world, &content(&to, "ho", true), 1).await;
    world.agent.cancelled.notified().await;
    world.agent.resume.notify_one();
    let kept = async || said(&world, &session).await.len() == 2;
    world.flow.until(kept).await;
    let all = said(&world, &session).await;
    let told = all.iter().map(|one| (&*one.role, one.content.as_deref()));
    let expected = [("user", Some("hi")), ("assistant", Some("one two"))];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

async fn line_035_a_conversation_is_no_way_around_the_depth(place: Place) {
    let world = World::start(&place).await;
    let to = conversation(&world, None).await;
    for (depth, refused) in [(3, "recursion_depth_exceeded"), (-1, "invalid_header")] {
        let deep = SentContent {
            caller_depth: depth,
            ..content(&to, "x", false)
        };
        let done = world.call::<SendConversationMessage>(&deep).await;
        assert_eq!(code(done), refused);
    }
    assert!(world.asked().is_empty());
}

async fn line_064_without_a_flow_nothing_is_sent_and_agents_can_be_changed(place: Place) {
    let world = World::start(&place).await;
    let to = conversation(&world, None).await;
    let flow = TenantChange {
        agent_flow: Some(Some("none".to_owned())),
        ..TenantChange::default()
    };
    world.call::<PutTenantConfig>(&flow).await.unwrap();
    for streaming in [false, true] {
        let asked = content(&to, "x", streaming);
        let refused = world.events::<SendConversationMessage>(&asked).await;
        assert_eq!(code(refused), "chat_disabled");
    }
    assert!(listed(&world, &to).await.is_empty());
    let agent = OneAgent {
        agent_id: to.agent_id.clone(),
    };
    world.call::<GetAgent>(&agent).await.unwrap();
    let change = AgentChange {
        agent_id: to.agent_id.clone(),
        name: Some("q".to_owned()),
        ..AgentChange::default()
    };
    world.call::<UpdateAgent>(&change).await.unwrap();
    world.call::<DeleteAgent>(&agent).await.unwrap();
}

async fn line_068_an_agent_without_instructions_has_the_usual_ones(place: Place) {
    let world = World::start(&place).await;
    for (own, told) in [
        (Some("Be terse."), "Be terse."),
        (None, "You are a helpful assistant."),
    ] {
        let to = conversation(&world, own).await;
        streamed(&world, &to, "x").await;
        let framing = world.asked().pop().unwrap().framing;
        assert!(framing.starts_with(told), "{framing}");
    }
}

async fn line_084_a_long_conversation_goes_on_with_a_summary(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("ok".to_owned()));
    let to = conversation(&world, None).await;
    let text = "x".repeat(31_000);
    for _ in 0..8 {
        let asked = content(&to, &text, false);
        world.call::<SendConversationMessage>(&asked).await.unwrap();
    }
    let asked = world.asked().pop().unwrap();
    assert!(
        asked
            .framing
            .contains("Summary of what was said before: in short")
    );
    assert_eq!(listed(&world, &to).await.len(), 16);
    let sums = world.model.asked.lock().len();
    world
        .call::<SendConversationMessage>(&content(&to, "on", false))
        .await
        .unwrap();
    let asked = world.asked().pop().unwrap();
    assert!(asked.framing.contains("in short") && asked.framing.len() < 150_000);
    assert_eq!(world.model.asked.lock().len(), sums, "the summary is kept");
}

/// `/a1`: the same events, with the answer of a session at their end.
async fn line_131_a_turn_of_a_session_is_streamed(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    let asked = SentMessage {
        streaming: true,
        ..sent(&session, "hi")
    };
    let told = world.events::<SendMessage>(&asked).await.unwrap();
    assert_eq!(names(&told), ["user-message", "token", "done"]);
    assert_eq!(told[2].1["content"], "re hi");
    let nobody = SentMessage {
        user_id: String::new(),
        ..asked
    };
    let refused = world.events::<SendMessage>(&nobody).await;
    assert_eq!(code(refused), "user_id_required");
}

async fn an_interrupting_turn_takes_the_place_of_the_other_one(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.plays(|asked| match asked.question.as_str() {
        "slow" => Play::of(vec![part("thought", "hm")]).hanging(),
        _ => with_tools(0),
    });
    let slow = world.send(&session, "slow");
    let next = async {
        world.agent.hanging.notified().await;
        let next = SentMessage {
            when_busy: WhenBusy::Interrupt,
            ..sent(&session, "now")
        };
        world.call::<SendMessage>(&next).await
    };
    let (slow, next) = tokio::join!(slow, next);
    assert_eq!(code(slow), "turn_interrupted");
    assert_eq!(next.unwrap().content, "let me seeit is there");
    let all = said(&world, &session).await;
    let roles: Vec<_> = all.iter().map(|one| one.role.as_str()).collect();
    assert_eq!(roles, ["user", "user", "assistant"]);
}

async fn a_refusing_turn_leaves_the_other_one_as_it_is(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.plays(|_| Play::of(vec![part("answer", "one "), answer("two")]).holding());
    let slow = world.send(&session, "slow");
    let next = async {
        world.flow.until(async || world.asked().len() == 1).await;
        let next = SentMessage {
            when_busy: WhenBusy::Refuse,
            ..sent(&session, "now")
        };
        let refused = world.call::<SendMessage>(&next).await;
        let kept = said(&world, &session).await.len();
        world.agent.resume.notify_one();
        (refused, kept)
    };
    let (slow, (refused, kept)) = tokio::join!(slow, next);
    assert_eq!((code(refused).as_str(), kept), ("session_busy", 1));
    assert_eq!(slow.unwrap().content, "one two");
    assert_eq!(world.asked().len(), 1);
    assert_eq!(said(&world, &session).await.len(), 2);
}

async fn a_turn_is_cancelled_and_the_next_one_begins(place: Place) {
    a_turn_is_cancelled_by(&place, Some).await;
}

async fn a_turn_is_cancelled_by_an_empty_message_id(place: Place) {
    a_turn_is_cancelled_by(&place, |_| Some(String::new())).await;
}

/// Cancels a turn, with what the function makes of the id of its message.
async fn a_turn_is_cancelled_by(place: &Place, message_id: fn(String) -> Option<String>) {
    let world = World::start(place).await;
    let session = world.session("ann", "bob").await;
    world.plays(|asked| match asked.question.as_str() {
        "slow" => Play::of(vec![part("thought", "hm")]).hanging(),
        _ => with_tools(0),
    });
    let slow = world.send(&session, "slow");
    let named = |message: Option<String>| CancelledTurn {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        user_id: session.user_id.clone(),
        message_id: message,
    };
    let cancel = async {
        world.agent.hanging.notified().await;
        let message = said(&world, &session).await.pop().unwrap().id;
        world.call::<CancelTurn>(&named(message_id(message))).await
    };
    let (slow, cancelled) = tokio::join!(slow, cancel);
    assert_eq!(code(slow), "turn_interrupted");
    cancelled.unwrap();
    // Where no turn is in progress nothing changes.
    world.call::<CancelTurn>(&named(None)).await.unwrap();
    world.send(&session, "now").await.unwrap();
    let all = said(&world, &session).await;
    let roles: Vec<_> = all.iter().map(|one| one.role.as_str()).collect();
    assert_eq!(roles, ["user", "user", "assistant"]);
}

async fn line_132_the_last_event_names_the_session_that_goes_on(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.fill(&session, 6, &"x".repeat(4_400)).await;
    let asked = SentMessage {
        streaming: true,
        ..sent(&session, "on")
    };
    let told = world.events::<SendMessage>(&asked).await.unwrap();
    let (name, last) = told.last().expect("an end");
    assert_eq!(name, "done");
    assert_ne!(last["session_id"], *session.id);
    assert_eq!(last["session_id"], last["compacted"]["to"]);
}

on_both_buses!(
    a_turn_is_cancelled_and_the_next_one_begins,
    a_turn_is_cancelled_by_an_empty_message_id,
    line_132_the_last_event_names_the_session_that_goes_on,
    line_035_a_conversation_is_no_way_around_the_depth,
    line_064_without_a_flow_nothing_is_sent_and_agents_can_be_changed,
    line_068_an_agent_without_instructions_has_the_usual_ones,
    line_069_a_stream_begins_with_the_message_and_ends_with_the_answer,
    line_070_calls_of_tools_are_told_in_their_order,
    line_074_a_listing_hides_calls_of_tools_and_the_next_prompt_has_them,
    line_071_a_seventh_call_of_a_tool_ends_the_turn,
    line_072_an_agent_that_fails_ends_the_stream_with_a_readable_answer,
    line_073_a_reader_that_leaves_ends_the_turn_with_what_was_said,
    a_reader_that_leaves_does_not_end_the_turn_of_a_session,
    line_084_a_long_conversation_goes_on_with_a_summary,
    line_093_a_run_that_went_in_circles_says_so,
    line_131_a_turn_of_a_session_is_streamed,
    an_interrupting_turn_takes_the_place_of_the_other_one,
    a_refusing_turn_leaves_the_other_one_as_it_is,
);
