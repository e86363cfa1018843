//! Conversations with agents of the workspace.

use tg_mesh::{Ask, Deadline};
use tg_schemas::ErrorCode;
use tg_schemas::msg::{CollectionDrop, CollectionDropped};
use tg_schemas::operations::{
    Chat, Conversation, ConversationChange, CreateAgent, CreateConversation, DeleteAgent,
    DeleteConversation, GetAgent, GetConversation, ListConversationMessages, ListConversations,
    NewAgent, NewConversation, OneAgent, OneConversation, Question, SendConversationMessage,
    SendMessage, SentContent, UpdateConversation, WhichPage, WorkspaceAgent,
};
use tg_schemas::processors::drop_topic;
use tg_testkit::flow::SOON;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{TRACE, World, code, fails, sent};

async fn agent(world: &World, name: &str) -> WorkspaceAgent {
    let new = NewAgent {
        name: name.to_owned(),
        system_prompt: Some("Be kind.".to_owned()),
        user_prompt: Some("Hello.".to_owned()),
        ..NewAgent::default()
    };
    world.call::<CreateAgent>(&new).await.unwrap()
}

async fn begun(world: &World, agent: &WorkspaceAgent) -> Conversation {
    let new = NewConversation {
        agent_id: agent.agent_id.clone(),
        title: Some("t".to_owned()),
        ..NewConversation::default()
    };
    world.call::<CreateConversation>(&new).await.unwrap()
}

fn one(of: &Conversation) -> OneConversation {
    OneConversation {
        agent_id: of.agent_id.clone(),
        conversation_id: of.conversation_id.clone(),
    }
}

fn page(of: &Conversation) -> WhichPage {
    WhichPage {
        agent_id: of.agent_id.clone(),
        conversation_id: of.conversation_id.clone(),
        ..WhichPage::default()
    }
}

fn says(of: &Conversation, text: &str) -> SentContent {
    SentContent {
        agent_id: of.agent_id.clone(),
        conversation_id: of.conversation_id.clone(),
        content: text.to_owned(),
        ..SentContent::default()
    }
}

async fn line_059_conversations_are_listed_newest_first(place: Place) {
    let world = World::start(&place).await;
    let ann = agent(&world, "ann").await;
    let unknown = NewConversation {
        agent_id: "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70".to_owned(),
        ..NewConversation::default()
    };
    let refused = world.call::<CreateConversation>(&unknown).await;
    assert_eq!(code(refused), "agent_not_found");
    let first = begun(&world, &ann).await;
    // Those of one millisecond have no order by time.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    let second = begun(&world, &ann).await;
    let listed = world
        .call::<ListConversations>(&page(&first))
        .await
        .unwrap();
    assert_eq!(
        (listed.items, listed.next_cursor),
        (vec![second, first], None)
    );
}

/// What the agent was sent last of what was said before.
fn sent_before(world: &World) -> String {
    world.asked().pop().unwrap().framing
}

async fn a_turn_goes_on_with_the_past_of_its_own_conversation(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("ok".to_owned()));
    let ann = agent(&world, "ann").await;
    let new = NewConversation {
        agent_id: ann.agent_id,
        conversation_id: Some("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d74".to_owned()),
        ..NewConversation::default()
    };
    let talk = world.call::<CreateConversation>(&new).await.unwrap();
    for text in ["first", "second", "third"] {
        let says = says(&talk, text);
        world.call::<SendConversationMessage>(&says).await.unwrap();
    }
    let before = sent_before(&world);
    let said = ["User: first", "User: second"].map(|said| before.find(said));
    assert!(said[0].is_some() && said[0] < said[1], "{before}");
    assert_eq!(before.matches("User: ").count(), 2, "{before}");
    // Another conversation takes the id of one that was deleted.
    world.call::<DeleteConversation>(&one(&talk)).await.unwrap();
    let talk = world.call::<CreateConversation>(&new).await.unwrap();
    for text in ["other", "more"] {
        let says = says(&talk, text);
        world.call::<SendConversationMessage>(&says).await.unwrap();
    }
    let before = sent_before(&world);
    assert!(before.contains("User: other"), "{before}");
    assert_eq!(before.matches("User: ").count(), 1, "{before}");
}

async fn line_060_a_conversation_belongs_to_its_agent(place: Place) {
    let world = World::start(&place).await;
    let (ann, bob) = (agent(&world, "ann").await, agent(&world, "bob").await);
    let mut other = begun(&world, &ann).await;
    other.agent_id = bob.agent_id;
    let change = ConversationChange {
        agent_id: other.agent_id.clone(),
        conversation_id: other.conversation_id.clone(),
        ..ConversationChange::default()
    };
    let hidden = "conversation_not_found";
    assert_eq!(
        code(world.call::<GetConversation>(&one(&other)).await),
        hidden
    );
    assert_eq!(
        code(world.call::<UpdateConversation>(&change).await),
        hidden
    );
    assert_eq!(
        code(world.call::<DeleteConversation>(&one(&other)).await),
        hidden
    );
    let messages = world.call::<ListConversationMessages>(&page(&other)).await;
    assert_eq!(code(messages), hidden);
    let sent = world
        .call::<SendConversationMessage>(&says(&other, "x"))
        .await;
    assert_eq!(code(sent), hidden);
    assert!(world.asked().is_empty());
}

async fn line_061_a_conversation_is_changed_in_parts(place: Place) {
    let world = World::start(&place).await;
    let ann = agent(&world, "ann").await;
    let conversation = begun(&world, &ann).await;
    let change = ConversationChange {
        agent_id: conversation.agent_id.clone(),
        conversation_id: conversation.conversation_id.clone(),
        knowledge_base_ids: Some(vec!["b".to_owned(), "a".to_owned()]),
        ..ConversationChange::default()
    };
    let changed = world.call::<UpdateConversation>(&change).await.unwrap();
    assert_eq!(changed.title.as_deref(), Some("t"));
    assert_eq!(changed.knowledge_base_ids, ["a", "b"]);
    let titled = ConversationChange {
        agent_id: conversation.agent_id.clone(),
        conversation_id: conversation.conversation_id.clone(),
        title: Some(Some("new".to_owned())),
        ..ConversationChange::default()
    };
    let changed = world.call::<UpdateConversation>(&titled).await.unwrap();
    assert_eq!(changed.title.as_deref(), Some("new"));
    assert_eq!(changed.knowledge_base_ids, ["a", "b"]);
    let empty = ConversationChange {
        title: Some(Some(String::new())),
        ..change
    };
    let refused = world.call::<UpdateConversation>(&empty).await;
    assert_eq!(code(refused), "validation_error");
}

async fn line_062_a_message_is_answered(place: Place) {
    let world = World::start(&place).await;
    let ann = agent(&world, "ann").await;
    let conversation = begun(&world, &ann).await;
    let first = world
        .call::<SendConversationMessage>(&says(&conversation, "one"))
        .await;
    let first = first.unwrap();
    assert_eq!(
        (first.user.role.as_str(), first.assistant.role.as_str()),
        ("user", "agent")
    );
    assert_eq!(first.user.content.as_deref(), Some("one"));
    assert!(first.user.message_ts < first.assistant.message_ts);
    assert_eq!(first.assistant.metadata["finish_reason"], "stop");
    assert_eq!(first.assistant.metadata["model"], "played");
    // Line 128: it resolves in the graph of the flow.
    assert_eq!(first.assistant.metadata["explain_session"], TRACE);
    let second = world
        .call::<SendConversationMessage>(&says(&conversation, "two"))
        .await;
    second.unwrap();
    // What opens a conversation is told once, and not kept.
    let asked = world.asked();
    assert_eq!(
        (asked[0].question.as_str(), asked[1].question.as_str()),
        ("Hello.\n\none", "two")
    );
    assert!(asked[1].framing.starts_with("Be kind.") && asked[1].framing.contains("User: one"));
    let listed = world
        .call::<ListConversationMessages>(&page(&conversation))
        .await
        .unwrap();
    let said: Vec<_> = listed
        .items
        .iter()
        .filter_map(|one| one.content.as_deref())
        .collect();
    assert_eq!(said, ["one", "re Hello.\n\none", "two", "re two"]);
}

async fn line_063_a_message_has_its_bounds(place: Place) {
    let world = World::start(&place).await;
    let ann = agent(&world, "ann").await;
    let conversation = begun(&world, &ann).await;
    for text in [" ", &"x".repeat(32_001)] {
        let sent = world
            .call::<SendConversationMessage>(&says(&conversation, text))
            .await;
        assert_eq!(code(sent), "validation_error");
    }
    let longest = says(&conversation, &"x".repeat(32_000));
    assert!(
        world
            .call::<SendConversationMessage>(&longest)
            .await
            .is_ok()
    );
}

async fn an_agent_that_fails_is_an_answer_that_says_so(place: Place) {
    let world = World::start(&place).await;
    let ann = agent(&world, "ann").await;
    let conversation = begun(&world, &ann).await;
    world.answers(|_| fails(ErrorCode::Provider));
    let failed = world
        .call::<SendConversationMessage>(&says(&conversation, "one"))
        .await;
    let failed = failed.unwrap().assistant;
    assert_eq!(failed.metadata["finish_reason"], "error");
    assert!(!failed.content.unwrap_or_default().contains("10.0.0.1"));
    world.answers(|_| Ok("fine".to_owned()));
    let next = world
        .call::<SendConversationMessage>(&says(&conversation, "two"))
        .await;
    next.unwrap();
    let framing = world.asked().pop().map(|asked| asked.framing);
    assert!(!framing.unwrap_or_default().contains("could not answer"));
}

async fn line_079_conversations_go_with_their_agent(place: Place) {
    let world = World::start(&place).await;
    let (ann, bob) = (agent(&world, "ann").await, agent(&world, "bob").await);
    let (gone, stays) = (begun(&world, &ann).await, begun(&world, &bob).await);
    for to in [&gone, &stays] {
        let sent = says(to, "x");
        world.call::<SendConversationMessage>(&sent).await.unwrap();
    }
    let of_ann = tg_schemas::operations::OneAgent {
        agent_id: ann.agent_id,
    };
    world.call::<DeleteAgent>(&of_ann).await.unwrap();
    let refused = world.call::<GetConversation>(&one(&gone)).await;
    assert_eq!(code(refused), "agent_not_found");
    let kept = world.call::<ListConversationMessages>(&page(&stays)).await;
    assert_eq!(kept.unwrap().items.len(), 2);
    // One that takes its id finds nothing of it.
    let again = NewAgent {
        agent_id: Some(gone.agent_id.clone()),
        name: "ann".to_owned(),
        ..NewAgent::default()
    };
    world.call::<CreateAgent>(&again).await.unwrap();
    let listed = world.call::<ListConversations>(&page(&gone)).await.unwrap();
    assert!(listed.items.is_empty());
    let messages = world.call::<ListConversationMessages>(&page(&gone)).await;
    assert_eq!(code(messages), "conversation_not_found");
}

/// `list-conversations` and `list-conversation-messages`
async fn listings_come_in_pages(place: Place) {
    let world = World::start(&place).await;
    let ann = agent(&world, "ann").await;
    let first = begun(&world, &ann).await;
    begun(&world, &ann).await;
    let mut asked = WhichPage {
        limit: Some(1),
        ..page(&first)
    };
    let one = world.call::<ListConversations>(&asked).await.unwrap();
    asked.cursor = one.next_cursor;
    let two = world.call::<ListConversations>(&asked).await.unwrap();
    assert_eq!((one.items.len(), two.items.len()), (1, 1));
    assert_ne!(one.items, two.items);
    assert_eq!(two.next_cursor, None);
    let sent = says(&first, "x");
    world.call::<SendConversationMessage>(&sent).await.unwrap();
    asked.cursor = None;
    let one = world
        .call::<ListConversationMessages>(&asked)
        .await
        .unwrap();
    asked.cursor = one.next_cursor;
    let two = world
        .call::<ListConversationMessages>(&asked)
        .await
        .unwrap();
    let roles = [&one.items[0].role, &two.items[0].role];
    assert_eq!(roles, ["user", "agent"]);
    assert_eq!(two.next_cursor, None);
}

async fn line_080_a_deleted_collection_is_taken_from_conversations(place: Place) {
    let world = World::start(&place).await;
    let list = |all: &[&str]| -> Vec<String> { all.iter().map(|&one| one.to_owned()).collect() };
    let agent = NewAgent {
        name: "r".to_owned(),
        knowledge_base_ids: list(&["k1", "k2"]),
        ..NewAgent::default()
    };
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    let new = NewConversation {
        agent_id: agent.agent_id.clone(),
        knowledge_base_ids: list(&["k1", "k2"]),
        ..NewConversation::default()
    };
    let begun = world.call::<CreateConversation>(&new).await.unwrap();
    let gone = CollectionDrop {
        workspace: "default".to_owned(),
        collection: "k1".to_owned(),
        generation: 1,
    };
    let ask = || async {
        let options = Ask {
            deadline: Some(Deadline::after(SOON)),
            ..Ask::default()
        };
        let topic = drop_topic("sessions");
        let asked = world
            .flow
            .mesh
            .ask::<_, CollectionDropped>(&topic, &gone, options);
        asked.last().await.unwrap().removed["conversations"]
    };
    assert_eq!(ask().await, 1);
    let one = OneConversation {
        agent_id: agent.agent_id.clone(),
        conversation_id: begun.conversation_id,
    };
    let kept = world.call::<GetConversation>(&one).await.unwrap();
    assert_eq!(kept.knowledge_base_ids, ["k2"]);
    // What the agent reads is not changed.
    let named = OneAgent {
        agent_id: agent.agent_id,
    };
    let agent = world.call::<GetAgent>(&named).await.unwrap();
    assert_eq!(agent.knowledge_base_ids, ["k1", "k2"]);
    assert_eq!(ask().await, 0);
}

/// The roles of the caller go to the agent with each turn: its tools may be for some of them only.
async fn each_turn_carries_the_roles_of_its_caller(place: Place) {
    let world = World::start(&place).await;
    let ann = agent(&world, "ann").await;
    let conversation = begun(&world, &ann).await;
    let session = world.session("zoe", "bob").await;
    let question = Question {
        name: "zoe".to_owned(),
        message: Some("x".to_owned()),
        ..Question::default()
    };
    let turn = says(&conversation, "x");
    world
        .call_with_roles::<SendConversationMessage>("reader", &turn)
        .await;
    world
        .call_with_roles::<SendMessage>("reader writer", &sent(&session, "x"))
        .await;
    world.call_with_roles::<Chat>("writer", &question).await;
    world.chat("zoe", "x").await.unwrap();
    let roles = world.agent.roles.lock().clone();
    let expected = [Some("reader"), Some("reader writer"), Some("writer"), None];
    assert_eq!(roles, expected.map(|roles| roles.map(str::to_owned)));
}

on_both_buses!(
    line_080_a_deleted_collection_is_taken_from_conversations,
    listings_come_in_pages,
    line_059_conversations_are_listed_newest_first,
    a_turn_goes_on_with_the_past_of_its_own_conversation,
    line_060_a_conversation_belongs_to_its_agent,
    line_061_a_conversation_is_changed_in_parts,
    line_062_a_message_is_answered,
    line_063_a_message_has_its_bounds,
    an_agent_that_fails_is_an_answer_that_says_so,
    line_079_conversations_go_with_their_agent,
    each_turn_carries_the_roles_of_its_caller,
);
