//! Sessions that are shortened: on demand and by themselves, the chain that they make, and the way back.

use serde_json::json;
use tg_schemas::ErrorCode;
use tg_schemas::operations::{
    CompactSession, CompactStrategy, CreateSession, DeleteSession, ExpandSummary, GetSession,
    NewSession, OneSession, OneSummary, Operation, PutTenantConfig, SendMessage, Session,
    SessionLineage, TenantChange, UndoCompaction, decimal,
};
use tg_schemas::price::ROWS as PRICES;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::warnings;
use super::world::{World, code, fails, one, said, sent, with_tools};

/// A session with so many turns, of which the last `keep` messages stay when it is shortened.
async fn filled(world: &World, keep: i64, turns: usize) -> Session {
    let new = NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        compact_keep_last_n: Some(keep),
        ..NewSession::default()
    };
    let session = world.call::<CreateSession>(&new).await.unwrap();
    world.fill(&session, turns, "turn").await;
    session
}

/// The same session under another id.
fn other(session: &Session, id: &str) -> OneSession {
    OneSession {
        session_id: id.to_owned(),
        ..one(session)
    }
}

async fn line_019_a_session_no_longer_than_what_stays_is_not_shortened(place: Place) {
    let world = World::start(&place).await;
    // Ten rows, and five: the answer to the third message is missing.
    let short = filled(&world, 10, 2).await;
    world.answers(|_| fails(ErrorCode::Provider));
    world.send(&short, "three").await.unwrap_err();
    world.answers(|asked| Ok(format!("re {}", asked.question)));
    for (session, rows) in [(short, 5), (filled(&world, 10, 5).await, 10)] {
        assert_eq!(said(&world, &session).await.len(), rows);
        let refused = world.call::<CompactSession>(&one(&session)).await;
        assert_eq!(code(refused), "session_compact_conflict");
        let same = world.call::<GetSession>(&one(&session)).await.unwrap();
        assert_eq!(same.archived_at, None);
    }
    assert!(world.model.asked.lock().is_empty());
}

async fn line_020_the_successor_begins_with_the_summary(place: Place) {
    let world = World::start(&place).await;
    let session = filled(&world, 10, 7).await;
    let done = world.call::<CompactSession>(&one(&session)).await.unwrap();
    assert_eq!(done.source_session_id, session.id);
    assert_eq!((done.compacted_count, done.kept_count), (4, 10));
    assert_eq!(done.summary_text, "in short");
    let chain = world.call::<SessionLineage>(&one(&session)).await.unwrap();
    assert_eq!(chain.summaries[0].id, done.summary_id);
    let next = world
        .call::<GetSession>(&other(&session, &done.successor_session_id))
        .await
        .unwrap();
    let all = said(&world, &next).await;
    assert_eq!(all.len(), 11);
    let begin = format!("[compaction summary from session {}]", session.id);
    assert!(all[0].content.as_ref().unwrap().starts_with(&begin));
    assert!(all[0].synthetic && all[0].role == "assistant");
    // 21: the source.
    let source = world.call::<GetSession>(&one(&session)).await.unwrap();
    assert!(source.archived_at.is_some());
    assert_eq!(source.successor_session_id.as_ref(), Some(&next.id));
    assert_eq!(next.parent_session_id.as_ref(), Some(&session.id));
    let replaced = said(&world, &source).await;
    let replaced = replaced.iter().filter(|one| one.compacted_at.is_some());
    assert_eq!(replaced.count(), 4);
}

async fn line_022_a_result_stays_with_its_call(place: Place) {
    let world = World::start(&place).await;
    let session = filled(&world, 2, 2).await;
    world.plays(|_| with_tools(1));
    let turn = world.send(&session, "look").await.unwrap();
    // 42: the calls are counted.
    assert_eq!(turn.tool_calls, 1);
    // user, call, result, answer: the last two would part the result from its call.
    let done = world.call::<CompactSession>(&one(&session)).await.unwrap();
    assert_eq!((done.compacted_count, done.kept_count), (5, 3));
    let next = other(&session, &done.successor_session_id);
    let next = world.call::<GetSession>(&next).await.unwrap();
    let all = said(&world, &next).await;
    assert!(all[1].tool_calls.is_some());
    assert_eq!(
        (all[2].role.as_str(), all[2].tool_name.as_deref()),
        ("tool", Some("search"))
    );
}

async fn line_023_a_message_to_an_archived_session_names_its_successor(place: Place) {
    let world = World::start(&place).await;
    let session = filled(&world, 0, 1).await;
    let first = world.call::<CompactSession>(&one(&session)).await.unwrap();
    let asked = world.asked().len();
    let refused = world.send(&session, "x").await.unwrap_err();
    assert_eq!(refused["code"], "session_archived");
    assert_eq!(refused["successor_session_id"], *first.successor_session_id);
    assert_eq!(world.asked().len(), asked);
    assert_eq!(said(&world, &session).await.len(), 2);
    // 24: the successor takes it.
    let mut next = session.clone();
    next.id.clone_from(&first.successor_session_id);
    let answer = world.send(&next, "x").await.unwrap();
    assert_eq!(answer.session_id.as_ref(), Some(&next.id));
}

/// A session, the one that continues it, and the one that continues that one.
async fn chain(world: &World) -> [Session; 3] {
    let first = filled(world, 0, 1).await;
    let mut all = [first.clone(), first.clone(), first];
    for at in 0..2 {
        let done = world.call::<CompactSession>(&one(&all[at])).await.unwrap();
        all[at + 1].id = done.successor_session_id;
        if at == 0 {
            world.send(&all[1], "x").await.unwrap();
        }
    }
    all
}

async fn line_025_a_session_that_was_archived_twice_over_names_the_last_one(place: Place) {
    let world = World::start(&place).await;
    let [first, second, last] = chain(&world).await;
    for session in [first, second] {
        let refused = world.send(&session, "x").await.unwrap_err();
        assert_eq!(refused["code"], "session_archived");
        assert_eq!(refused["successor_session_id"], *last.id);
    }
}

async fn line_026_nothing_continues_a_session_whose_successor_was_deleted(place: Place) {
    let world = World::start(&place).await;
    let [first, second, last] = chain(&world).await;
    world.call::<DeleteSession>(&one(&last)).await.unwrap();
    for session in [first, second] {
        assert_eq!(code(world.send(&session, "x").await), "session_gone");
    }
}

async fn line_027_an_archived_session_is_not_shortened(place: Place) {
    let world = World::start(&place).await;
    let [first, ..] = chain(&world).await;
    let asked = world.model.asked.lock().len();
    let refused = world.call::<CompactSession>(&one(&first)).await;
    assert_eq!(code(refused), "session_compact_conflict");
    assert_eq!(world.model.asked.lock().len(), asked);
}

async fn line_028_a_chain_is_seen_from_its_middle(place: Place) {
    let world = World::start(&place).await;
    let [first, second, last] = chain(&world).await;
    let chain = world.call::<SessionLineage>(&one(&second)).await.unwrap();
    assert_eq!((chain.backward.len(), chain.forward.len()), (1, 1));
    assert_eq!(chain.backward[0].id, first.id);
    assert_eq!(chain.forward[0].id, last.id);
    assert_eq!(chain.live_session_id.as_ref(), Some(&last.id));
    let sources: Vec<_> = chain
        .summaries
        .iter()
        .map(|one| &one.source_session_id)
        .collect();
    assert_eq!(sources, [&first.id, &second.id]);
    let summary = &chain.summaries[0];
    assert_eq!(
        (summary.messages.as_slice(), summary.model.as_str()),
        (&[1, 2][..], "of-flow")
    );
    assert_eq!(summary.prompt, "summary-1");
}

async fn line_029_a_mask_leaves_out_what_tools_returned(place: Place) {
    let world = World::start(&place).await;
    world.plays(|_| with_tools(1));
    for (mask, shown) in [(true, "[tool result: search]"), (false, "[tool]: found")] {
        let new = NewSession {
            name: "ann".to_owned(),
            user_id: "bob".to_owned(),
            compact_keep_last_n: Some(0),
            compact_observation_mask: Some(mask),
            ..NewSession::default()
        };
        let session = world.call::<CreateSession>(&new).await.unwrap();
        world.send(&session, "look").await.unwrap();
        world.call::<CompactSession>(&one(&session)).await.unwrap();
        let asked = world.model.asked.lock().pop().unwrap();
        let text = &asked.messages[1].content;
        assert!(text.contains(shown), "{text}");
        let told = &asked.messages[0].content;
        assert_eq!(told.contains("Leave out greetings"), mask);
    }
}

/// Text that with five more of its kind and their answers is over four fifths of 16,000 tokens.
fn long() -> String {
    "x".repeat(4_400)
}

async fn line_030_a_full_session_goes_on_in_its_successor(place: Place) {
    let world = World::start(&place).await;
    let session = filled(&world, 10, 0).await;
    world.fill(&session, 6, &long()).await;
    let before = said(&world, &session).await;
    let text = |one: &tg_schemas::operations::SessionMessage| one.content.as_ref().unwrap().len();
    let tokens = before.iter().map(text).sum::<usize>() / 4;
    let request = sent(&session, "on");
    let id = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d71";
    let answer = world
        .call_as::<SendMessage>(Some(id), &request)
        .await
        .unwrap();
    let compacted = answer.compacted.clone().expect("it was shortened");
    assert_eq!(
        (&compacted.from, compacted.tokens),
        (&session.id, tokens as i64)
    );
    assert_eq!(answer.session_id.as_ref(), Some(&compacted.to));
    let headers = answer.headers();
    let has = |name, text: &str| headers.contains(&(name, text.to_owned()));
    assert!(has("spass-session-compacted", &compacted.to), "{headers:?}");
    let tokens = tokens.to_string();
    assert!(
        has("spass-session-compacted-tokens", &tokens),
        "{headers:?}"
    );
    let mut next = session.clone();
    next.id.clone_from(&compacted.to);
    let after = said(&world, &next).await;
    assert_eq!(after.len(), 13);
    assert_eq!(after[11].content.as_deref(), Some("on"));
    assert_eq!(said(&world, &session).await.len(), 12);
    // The same request once more finds its turn.
    let again = world
        .call_as::<SendMessage>(Some(id), &request)
        .await
        .unwrap();
    assert_eq!(again.session_id, answer.session_id);
    assert_eq!(said(&world, &next).await.len(), 13);
}

/// By the workspace's price of the model that sums up, and in euros, too.
async fn line_038_a_summary_before_a_turn_counts_in_its_cost(place: Place) {
    let world = World::start_bounded(&place, |options| options.usd_eur_rate = 0.5).await;
    let price = json!({"input_price": 0.01, "output_price": 0.02});
    let (config, mesh) = (&world.flow.config, &world.flow.mesh);
    config.apply(mesh, PRICES, "of-flow", Some(&price)).await;
    let session = filled(&world, 10, 0).await;
    world.fill(&session, 6, &long()).await;
    let answer = world.send(&session, "on").await.unwrap();
    assert!(answer.compacted.is_some());
    // Of the agent half a dollar; the summary took ten tokens and five.
    let cost = answer.cost;
    let amounts = [cost.usd, cost.eur].map(|amount| decimal(amount.unwrap()));
    assert_eq!(amounts, ["0.7", "0.1"]);
    assert_eq!((cost.source.as_str(), cost.sub_calls), ("mixed", 2));
    assert_eq!(answer.usage.total, 7 + 15);
}

async fn line_038_a_summary_on_demand_has_the_headers_of_its_cost(place: Place) {
    let world = World::start_bounded(&place, |options| options.usd_eur_rate = 0.5).await;
    let price = json!({"input_price": 0.01, "output_price": 0.02});
    let (config, mesh) = (&world.flow.config, &world.flow.mesh);
    config.apply(mesh, PRICES, "of-flow", Some(&price)).await;
    let session = filled(&world, 0, 1).await;
    let done = world.call::<CompactSession>(&one(&session)).await.unwrap();
    let expected = [
        ("spass-cost-eur", "0.1"),
        ("spass-cost-usd", "0.2"),
        ("spass-cost-source", "table"),
        ("spass-cost-sub-calls", "1"),
    ];
    let expected = expected.map(|(name, text)| (name, text.to_owned()));
    assert_eq!(CompactSession::headers(&done), expected);
}

/// Its letters have two bytes each: they fill what the agent is sent before they fill its model.
async fn a_session_of_other_letters_goes_on_before_it_is_cut_off(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("ok".to_owned()));
    let new = NewSession {
        name: "zoe".to_owned(),
        user_id: "bob".to_owned(),
        compact_keep_last_n: Some(2),
        ..NewSession::default()
    };
    let session = world.call::<CreateSession>(&new).await.unwrap();
    for _ in 0..4 {
        let answer = world.send(&session, &"я".repeat(31_000)).await.unwrap();
        assert_eq!(answer.compacted, None);
    }
    let answer = world.send(&session, "on").await.unwrap();
    assert!(answer.compacted.is_some());
}

/// With one turn at once: a turn of the successor has its session and waits for the place that the repeated request has.
async fn a_repeated_message_and_one_to_its_successor_do_not_wait_for_each_other(place: Place) {
    let world = World::start_bounded(&place, |options| options.max_concurrent = 1).await;
    let session = filled(&world, 10, 0).await;
    world.fill(&session, 6, &long()).await;
    let request = sent(&session, "on");
    let again =
        || world.call_as::<SendMessage>(Some("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d72"), &request);
    let first = again().await.unwrap();
    let mut next = session.clone();
    next.id.clone_from(first.session_id.as_ref().unwrap());
    assert_ne!(next.id, session.id);
    let (one, repeated, two, three) = tokio::join!(
        world.send(&next, "one"),
        again(),
        world.send(&next, "two"),
        world.send(&next, "three"),
    );
    assert_eq!(repeated.unwrap().session_id, first.session_id);
    for (turn, expected) in [(one, "re one"), (two, "re two"), (three, "re three")] {
        assert_eq!(turn.unwrap().content, expected);
    }
}

/// Ten long messages fill their model: fewer stay from the second time on.
async fn a_session_of_long_messages_is_not_shortened_at_each_turn(place: Place) {
    let world = World::start(&place).await;
    let mut session = filled(&world, 10, 0).await;
    world.fill(&session, 6, &long()).await;
    let mut shortened = Vec::new();
    for _ in 0..6 {
        let answer = world.send(&session, &long()).await.unwrap();
        shortened.push(answer.compacted.is_some());
        session.id = answer.session_id.expect("a session");
    }
    assert_eq!(shortened, [true, true, false, false, true, false]);
}

async fn line_032_a_session_is_shortened_as_its_strategy_says(place: Place) {
    let world = World::start(&place).await;
    for (strategy, by_hand) in [
        (CompactStrategy::Manual, None),
        (CompactStrategy::Off, Some("session_compact_disabled")),
    ] {
        let new = NewSession {
            name: "ann".to_owned(),
            user_id: "bob".to_owned(),
            compact_strategy: Some(strategy),
            ..NewSession::default()
        };
        let session = world.call::<CreateSession>(&new).await.unwrap();
        world.fill(&session, 6, &long()).await;
        let answer = world.send(&session, "on").await.unwrap();
        assert_eq!(answer.compacted, None);
        let done = world.call::<CompactSession>(&one(&session)).await;
        match by_hand {
            None => assert!(done.is_ok()),
            Some(refused) => assert_eq!(code(done), refused),
        }
    }
}

async fn line_033_a_session_goes_on_where_no_model_sums_it_up(place: Place) {
    warnings::keep();
    let world = World::start(&place).await;
    world.sums_up(|_| fails(ErrorCode::Provider));
    let session = filled(&world, 10, 0).await;
    world.fill(&session, 6, &long()).await;
    let warning = [session.id.as_str(), "could not be shortened"];
    assert!(!warnings::have(&warning));
    let answer = world.send(&session, "on").await.unwrap();
    assert_eq!(answer.compacted, None);
    assert_eq!(answer.session_id.as_ref(), Some(&session.id));
    assert!(warnings::have(&warning));
    let refused = world.call::<CompactSession>(&one(&session)).await;
    assert_eq!(code(refused), "compact_summary_failed");
    let same = world.call::<GetSession>(&one(&session)).await.unwrap();
    assert_eq!((same.live_message_count, same.archived_at), (14, None));
}

async fn line_034_the_workspace_names_the_model_that_sums_up(place: Place) {
    let world = World::start(&place).await;
    let change = TenantChange {
        compact_summary_model: Some(Some("brief".to_owned())),
        ..TenantChange::default()
    };
    world.call::<PutTenantConfig>(&change).await.unwrap();
    let session = filled(&world, 0, 1).await;
    let done = world.call::<CompactSession>(&one(&session)).await.unwrap();
    assert_eq!(done.summary_model, "brief");
    let asked = world.model.asked.lock().pop().unwrap();
    assert_eq!(asked.model.as_deref(), Some("brief"));
}

async fn a_shortening_is_expanded_and_taken_back(place: Place) {
    let world = World::start(&place).await;
    let session = filled(&world, 2, 3).await;
    let done = world.call::<CompactSession>(&one(&session)).await.unwrap();
    let which = OneSummary {
        name: session.agent.clone(),
        session_id: done.successor_session_id.clone(),
        summary_id: done.summary_id.clone(),
        user_id: session.user_id.clone(),
    };
    let expanded = world.call::<ExpandSummary>(&which).await.unwrap();
    assert_eq!(expanded.messages.len(), 4);
    assert_eq!(expanded.messages[0].content.as_deref(), Some("turn 0"));
    let unknown = OneSummary {
        summary_id: "x".to_owned(),
        ..which
    };
    assert_eq!(
        code(world.call::<ExpandSummary>(&unknown).await),
        "summary_not_found"
    );
    let back = world.call::<UndoCompaction>(&one(&session)).await.unwrap();
    assert_eq!((back.live_message_count, back.archived_at), (6, None));
    let next = other(&session, &done.successor_session_id);
    assert_eq!(
        code(world.call::<GetSession>(&next).await),
        "session_not_found"
    );
    let again = world.call::<UndoCompaction>(&one(&session)).await;
    assert_eq!(code(again), "session_compact_conflict");
    // Once the successor has a turn of its own there is no way back.
    let done = world.call::<CompactSession>(&one(&session)).await.unwrap();
    let mut next = session.clone();
    next.id = done.successor_session_id;
    world.send(&next, "x").await.unwrap();
    let refused = world.call::<UndoCompaction>(&one(&session)).await;
    assert_eq!(code(refused), "session_compact_conflict");
}

on_both_buses!(
    a_session_of_other_letters_goes_on_before_it_is_cut_off,
    line_038_a_summary_before_a_turn_counts_in_its_cost,
    line_038_a_summary_on_demand_has_the_headers_of_its_cost,
    line_019_a_session_no_longer_than_what_stays_is_not_shortened,
    line_020_the_successor_begins_with_the_summary,
    line_022_a_result_stays_with_its_call,
    line_023_a_message_to_an_archived_session_names_its_successor,
    line_025_a_session_that_was_archived_twice_over_names_the_last_one,
    line_026_nothing_continues_a_session_whose_successor_was_deleted,
    line_027_an_archived_session_is_not_shortened,
    line_028_a_chain_is_seen_from_its_middle,
    line_029_a_mask_leaves_out_what_tools_returned,
    line_030_a_full_session_goes_on_in_its_successor,
    a_repeated_message_and_one_to_its_successor_do_not_wait_for_each_other,
    a_session_of_long_messages_is_not_shortened_at_each_turn,
    line_032_a_session_is_shortened_as_its_strategy_says,
    line_033_a_session_goes_on_where_no_model_sums_it_up,
    line_034_the_workspace_names_the_model_that_sums_up,
    a_shortening_is_expanded_and_taken_back,
);
