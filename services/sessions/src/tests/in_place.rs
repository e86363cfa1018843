//! Summaries in place of a conversation's messages: they are listed, expanded, taken back and made again, and what stands there where
//! no summary can be had.

use serde_json::json;
use tg_compaction::{MODEL_TYPE, NOTE};
use tg_schemas::ErrorCode;
use tg_schemas::operations::{
    Conversation, ConversationSummary, CreateAgent, CreateConversation, CreateLlmService,
    ExpandConversationSummary, ListConversationMessages, ListConversationSummaries, NewAgent,
    NewConversation, NewLlmService, OneConversation, OneConversationSummary,
    SendConversationMessage, SentContent, UndoConversationCompaction, WhichPage,
};
use tg_storage::rusqlite::Connection;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::warnings;
use super::world::{World, code, fails, with_results};
use crate::options::Options;

/// The id of a request that comes twice.
const TWICE: &str = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d73";

async fn says(world: &World, to: &Conversation, text: &str) {
    let content = SentContent {
        agent_id: to.agent_id.clone(),
        conversation_id: to.conversation_id.clone(),
        content: text.to_owned(),
        ..SentContent::default()
    };
    let sent = world.call::<SendConversationMessage>(&content).await;
    sent.unwrap();
}

/// A conversation with an agent whose model reads so many tokens; `None`: nobody says how many.
async fn conversation(world: &World, window: Option<i64>) -> Conversation {
    let mut agent = NewAgent {
        name: "r".to_owned(),
        ..NewAgent::default()
    };
    if window.is_some() {
        let service = NewLlmService {
            name: "near".to_owned(),
            provider: "ollama".to_owned(),
            model_name: "m9".to_owned(),
            context_window_tokens: window,
            ..NewLlmService::default()
        };
        let service = world.call::<CreateLlmService>(&service).await.unwrap();
        agent.llm_service_id = Some(service.llm_service_id);
    }
    let agent = world.call::<CreateAgent>(&agent).await.unwrap();
    let new = NewConversation {
        agent_id: agent.agent_id,
        ..NewConversation::default()
    };
    world.call::<CreateConversation>(&new).await.unwrap()
}

/// A conversation that filled its model, so that a summary stands for the beginning of it.
async fn summed_up(world: &World, text: &str) -> Conversation {
    world.answers(|_| Ok("ok".to_owned()));
    let to = conversation(world, None).await;
    for _ in 0..8 {
        says(world, &to, text).await;
    }
    to
}

fn page(of: &Conversation) -> WhichPage {
    WhichPage {
        agent_id: of.agent_id.clone(),
        conversation_id: of.conversation_id.clone(),
        ..WhichPage::default()
    }
}

async fn summaries(world: &World, of: &Conversation) -> Vec<ConversationSummary> {
    let all = world.call::<ListConversationSummaries>(&page(of)).await;
    all.unwrap().items
}

fn one(of: &Conversation) -> OneConversation {
    OneConversation {
        agent_id: of.agent_id.clone(),
        conversation_id: of.conversation_id.clone(),
    }
}

fn which(of: &Conversation, id: &str) -> OneConversationSummary {
    OneConversationSummary {
        agent_id: of.agent_id.clone(),
        conversation_id: of.conversation_id.clone(),
        summary_id: id.to_owned(),
    }
}

/// The tiers of all summaries of a conversation. Of its messages none is missing.
async fn tiers(world: &World, of: &Conversation, turns: usize) -> Vec<String> {
    let listed = world.call::<ListConversationMessages>(&page(of)).await;
    assert_eq!(listed.unwrap().items.len(), 2 * turns);
    let all = summaries(world, of).await.into_iter();
    all.map(|one| one.tier).collect()
}

/// What the agent was sent last of what was said before.
fn framing(world: &World) -> String {
    world.asked().pop().unwrap().framing
}

async fn line_101_where_no_model_sums_up_a_note_stands_for_the_messages(place: Place) {
    let world = World::start(&place).await;
    world.sums_up(|_| fails(ErrorCode::Provider));
    let of = summed_up(&world, &"x".repeat(31_000)).await;
    assert_eq!(tiers(&world, &of, 8).await, ["note"]);
    let framing = framing(&world);
    let note = format!("Summary of what was said before: {NOTE}");
    assert!(framing.contains(&note), "{}", framing.len());
}

async fn line_098_a_window_that_leaves_no_room_for_a_summary_is_cleared(place: Place) {
    let small = |options: &mut Options| options.summary_model = "tiny".to_owned();
    let world = World::start_bounded(&place, small).await;
    let window = json!({"context_window": 4_900});
    let (config, mesh) = (&world.flow.config, &world.flow.mesh);
    config.apply(mesh, MODEL_TYPE, "tiny", Some(&window)).await;
    let of = summed_up(&world, &"x".repeat(31_000)).await;
    assert_eq!(tiers(&world, &of, 8).await, ["hard_clear"]);
    assert!(world.model.asked.lock().is_empty());
    let framing = framing(&world);
    assert!(!framing.contains("Summary") && framing.contains("\n\nUser: xxx"));
}

/// Two turns stay, which nearly fill the window.
async fn a_summary_that_does_not_fit_is_cleared(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("ok".to_owned()));
    for (summary, tier) in [("s".repeat(100), "full"), ("s".repeat(4_000), "hard_clear")] {
        let told = summary.clone();
        world.sums_up(move |_| Ok(told.clone()));
        let of = conversation(&world, Some(16_000)).await;
        for _ in 0..4 {
            says(&world, &of, &"x".repeat(31_000)).await;
        }
        assert_eq!(tiers(&world, &of, 4).await, [tier]);
        assert_eq!(framing(&world).contains(&summary), tier == "full");
    }
}

/// A summary of 6,000 tokens and three turns of 3,000 fill a model that reads 16,000.
async fn the_summary_that_stands_counts_as_what_fills_the_model(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("ok".to_owned()));
    let summary = "s".repeat(24_000);
    let told = summary.clone();
    world.sums_up(move |_| Ok(told.clone()));
    let of = conversation(&world, Some(16_000)).await;
    for (turns, expected) in [(6, 1), (7, 2)] {
        while turns_of(&world) < turns {
            says(&world, &of, &"x".repeat(12_000)).await;
        }
        assert_eq!(tiers(&world, &of, turns).await, vec!["full"; expected]);
    }
    let asked = world.model.asked.lock().last().cloned().unwrap();
    assert!(asked.messages[1].content.contains(&summary));
}

/// Of these letters each has two bytes: they fill what an agent is sent before they fill its model.
async fn a_text_of_other_letters_is_summed_up_before_it_is_cut_off(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("ok".to_owned()));
    let of = conversation(&world, None).await;
    for _ in 0..5 {
        says(&world, &of, &"я".repeat(31_000)).await;
    }
    assert_eq!(tiers(&world, &of, 5).await, ["full"]);
    let all = summaries(&world, &of).await;
    assert_eq!(all[0].messages, [1, 4]);
}

/// How often the agent was asked.
fn turns_of(world: &World) -> usize {
    world.asked().len()
}

/// The turn goes on with the summary, and the next one makes another.
async fn a_summary_that_cannot_be_stored_is_logged_and_the_turn_goes_on(place: Place) {
    warnings::keep();
    let world = World::start(&place).await;
    world.answers(|_| Ok("ok".to_owned()));
    let of = conversation(&world, None).await;
    let text = "x".repeat(31_000);
    for _ in 0..7 {
        says(&world, &of, &text).await;
    }
    let file = database(&world);
    let refuse =
        "CREATE TRIGGER refused BEFORE INSERT ON summary BEGIN SELECT RAISE(ABORT, 'refused'); END";
    file.execute_batch(refuse).unwrap();
    says(&world, &of, &text).await;
    assert!(tiers(&world, &of, 8).await.is_empty());
    assert!(framing(&world).contains("Summary of what was said before: in short"));
    let warned = [&*of.conversation_id, "a summary could not be stored"];
    assert!(warnings::have(&warned));
    file.execute_batch("DROP TRIGGER refused").unwrap();
    says(&world, &of, "on").await;
    assert_eq!(tiers(&world, &of, 9).await, ["full"]);
}

/// The file of the only workspace.
fn database(world: &World) -> Connection {
    let files = std::fs::read_dir(world.dir.path().join("agent_sessions")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let is_database =
        |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "sqlite");
    Connection::open(files.find(is_database).unwrap()).unwrap()
}

async fn long_results_are_shortened_before_anything_is_summed_up(place: Place) {
    let world = World::start(&place).await;
    let long = "y".repeat(20_000);
    let found = long.clone();
    world.plays(move |_| with_results(1, &found));
    let of = conversation(&world, Some(16_000)).await;
    for _ in 0..4 {
        says(&world, &of, "look").await;
    }
    let framing = framing(&world);
    let (whole, short) = (framing.matches(&long), framing.matches("\n[…]\n"));
    assert_eq!((whole.count(), short.count()), (1, 2));
    assert!(tiers(&world, &of, 4).await.is_empty());
    assert!(world.model.asked.lock().is_empty());
}

async fn a_summary_is_expanded_to_what_it_stands_for(place: Place) {
    let world = World::start(&place).await;
    let text = "x".repeat(31_000);
    let of = summed_up(&world, &text).await;
    let all = summaries(&world, &of).await;
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].messages[0], all[0].tier.as_str()), (1, "full"));
    assert!(!all[0].prompt.is_empty() && all[0].message_count > 0);
    let which_one = which(&of, &all[0].summary_id);
    let opened = world.call::<ExpandConversationSummary>(&which_one).await;
    let opened = opened.unwrap();
    assert_eq!(
        (opened.text.as_str(), &opened.summary),
        ("in short", &all[0])
    );
    let count = i64::try_from(opened.messages.len()).unwrap();
    assert_eq!(count, all[0].message_count);
    let first = &opened.messages[0];
    assert_eq!((first.role.as_str(), &first.content), ("user", &Some(text)));
    let unknown = which(&of, "x");
    let unknown = world.call::<ExpandConversationSummary>(&unknown).await;
    assert_eq!(code(unknown), "summary_not_found");
}

async fn a_summary_is_taken_back_and_made_again(place: Place) {
    let world = World::start(&place).await;
    let of = summed_up(&world, &"x".repeat(31_000)).await;
    let before = summaries(&world, &of).await;
    let undo = one(&of);
    for _ in 0..2 {
        // A request that comes again finds it done.
        let back = world.call_as::<UndoConversationCompaction>(Some(TWICE), &undo);
        assert_eq!(back.await.unwrap().conversation_id, of.conversation_id);
    }
    assert!(summaries(&world, &of).await.is_empty());
    let nothing = world.call::<UndoConversationCompaction>(&undo).await;
    assert_eq!(code(nothing), "summary_not_found");
    let sums = world.model.asked.lock().len();
    says(&world, &of, "on").await;
    let after = summaries(&world, &of).await;
    assert_eq!(after.len(), 1);
    assert_ne!(after[0].summary_id, before[0].summary_id);
    assert!(world.model.asked.lock().len() > sums);
    let framing = world.asked().pop().unwrap().framing;
    assert!(framing.contains("Summary of what was said before: in short"));
}

/// `list-conversation-summaries`
async fn summaries_are_listed_in_pages_the_oldest_first(place: Place) {
    let world = World::start(&place).await;
    let text = "x".repeat(31_000);
    let of = summed_up(&world, &text).await;
    // The messages that stayed fill the model once more.
    for _ in 0..6 {
        says(&world, &of, &text).await;
    }
    let all = summaries(&world, &of).await;
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[1].messages[0], all[0].messages[1] + 1);
    let mut which = WhichPage {
        limit: Some(1),
        ..page(&of)
    };
    let first = world.call::<ListConversationSummaries>(&which).await;
    let first = first.unwrap();
    which.cursor = first.next_cursor;
    let second = world.call::<ListConversationSummaries>(&which).await;
    let second = second.unwrap();
    assert_eq!([first.items, second.items].concat(), all);
    assert_eq!(second.next_cursor, None);
}

on_both_buses!(
    line_098_a_window_that_leaves_no_room_for_a_summary_is_cleared,
    line_101_where_no_model_sums_up_a_note_stands_for_the_messages,
    a_summary_that_does_not_fit_is_cleared,
    the_summary_that_stands_counts_as_what_fills_the_model,
    a_text_of_other_letters_is_summed_up_before_it_is_cut_off,
    a_summary_that_cannot_be_stored_is_logged_and_the_turn_goes_on,
    long_results_are_shortened_before_anything_is_summed_up,
    summaries_are_listed_in_pages_the_oldest_first,
    a_summary_is_expanded_to_what_it_stands_for,
    a_summary_is_taken_back_and_made_again,
);
