//! What an answer says of what it took.

use serde_json::json;
use tg_schemas::msg::{AgentRequest, AgentResponse, AnswerCall, AnswerCost, ChatUsage};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use super::endings::ADD;
use super::replayed::{asks, run as run_recorded, same_again};
use super::supervised::{give, split};
use super::world::*;
use crate::options::Options;

const END: &str = "Thought: known\nFinal Answer: 4";

fn priced() -> Config {
    let config = rows();
    let price = json!({"input_price": 0.001, "output_price": 0.002, "cache_read_price": 0.0005});
    config.put("token-cost", "scripted", &price.to_string());
    config
}

async fn world(place: &Place, script: Vec<Say>, config: Config, rate: f64) -> World {
    let options = Options {
        usd_eur_rate: rate,
        ..Options::default()
    };
    World::start(place.connect().await, script, options, config, Vec::new()).await
}

fn cost(usd: Option<f64>, eur: Option<f64>, source: &str, calls: i64) -> Option<AnswerCost> {
    Some(AnswerCost {
        usd,
        eur,
        source: source.into(),
        sub_calls: calls,
    })
}

fn used(input: i64, output: i64, cache_read: i64) -> Option<ChatUsage> {
    Some(ChatUsage {
        input,
        output,
        cache_read,
        total: input + output,
        ..ChatUsage::default()
    })
}

async fn an_answer_says_its_tokens_and_their_price(place: Place) {
    let script = vec![Say::Text(ADD), Say::Text(END)];
    let world = world(&place, script, priced(), 0.5).await;
    let chunks = world.run(&question("q", true)).await;
    let (last, rest) = chunks.split_last().unwrap();
    assert_eq!(last.finish_reason, "stop");
    assert_eq!(last.usage, used(200, 20, 0));
    assert_eq!(last.cost, cost(Some(0.24), Some(0.12), "table", 2));
    let said = |chunk: &AgentResponse| chunk.usage.is_some() || chunk.cost.is_some();
    assert!(!rest.iter().any(said));
}

/// What the provider says wins over the table; where one call has neither, the sum is of what is known.
async fn line_038_what_the_provider_says_of_three_calls_is_summed_up(place: Place) {
    // In binary fractions they would be 0.30000000000000004 and something.
    let script = [(ADD, 0.1), (ADD, 0.2), (END, 0.0125)];
    let script = script.map(|(text, dollars)| Say::Costs(text, dollars));
    let world = world(&place, Vec::from(script), priced(), 0.0).await;
    let chunks = world.run(&question("q", false)).await;
    let last = chunks.last().unwrap();
    assert_eq!(last.usage, used(300, 30, 180));
    assert_eq!(last.cost, cost(Some(0.3125), None, "upstream", 3));
}

async fn line_039_costs_of_several_sources_are_mixed_and_a_local_model_costs_nothing(place: Place) {
    let script = vec![Say::Costs(ADD, 0.25), Say::Text(END)];
    let world = world(&place, script, priced(), 0.0).await;
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(
        chunks.last().unwrap().cost,
        cost(Some(0.37), None, "mixed", 2)
    );

    // Of one call nothing is known.
    let script = vec![Say::Costs(ADD, 0.25), Say::Text(END)];
    let world = self::world(&place.another().await, script, rows(), 0.0).await;
    let chunks = world.run(&question("q", false)).await;
    assert_eq!(
        chunks.last().unwrap().cost,
        cost(Some(0.25), None, "mixed", 2)
    );

    let local = rows();
    local.put("llm-model", "scripted", r#"{"local": true}"#);
    for (config, usd, source) in [(rows(), None, "unknown"), (local, Some(0.0), "local")] {
        let script = vec![Say::Text(END)];
        let world = self::world(&place.another().await, script, config, 0.0).await;
        let chunks = world.run(&question("q", false)).await;
        assert_eq!(chunks.last().unwrap().cost, cost(usd, None, source, 1));
    }
}

/// As of a call at the endpoints for models: a price needs tokens that the provider reported.
async fn line_039_a_call_without_a_reported_usage_has_no_price(place: Place) {
    let local = priced();
    local.put("llm-model", "scripted", r#"{"local": true}"#);
    for (config, usd, source) in [(priced(), None, "unknown"), (local, Some(0.0), "local")] {
        let script = vec![Say::Uncounted(END)];
        let world = self::world(&place.another().await, script, config, 0.0).await;
        let chunks = world.run(&question("q", false)).await;
        assert_eq!(chunks.last().unwrap().cost, cost(usd, None, source, 1));
    }
}

/// The calls of subagents and of tools that ask a model are among them, also of a run that fails.
async fn all_that_was_asked_counts(place: Place) {
    let script = vec![Say::Text(r#"["a?", "b?"]"#), Say::Text("both")];
    let one = world(&place, script, priced(), 0.0).await;
    let llm = "Thought: ask\nAction: llm\nArgs: {\"question\": \"x\"}";
    give(&one, "a?", [Say::Text(llm), Say::Text("Final Answer: A")]);
    give(&one, "b?", [Say::Costs("Final Answer: B", 1.0)]);
    let chunks = one.run(&split("?", false)).await;
    let last = chunks.last().unwrap();
    assert_eq!(last.content, "both");
    assert_eq!(last.usage, used(600, 60, 60));
    assert_eq!(last.cost, cost(Some(1.6), None, "mixed", 6));

    let away = Error::new(ErrorCode::Provider, "away");
    let script = vec![Say::Text(ADD), Say::Fail(away)];
    let world = world(&place.another().await, script, priced(), 0.0).await;
    let chunks = world.run(&question("q", false)).await;
    let last = chunks.last().unwrap();
    assert_eq!(last.finish_reason, "error");
    assert_eq!(
        (last.usage, last.cost.clone()),
        (used(100, 10, 0), cost(Some(0.12), None, "table", 1))
    );
}

/// Line 37: who keeps a trail of the calls is given each of them, also by a run that fails; nobody else is.
async fn line_037_an_answer_lists_the_calls_that_were_made_for_it(place: Place) {
    let counted = |streaming| AgentRequest {
        caller_depth: 1,
        ..question("q", streaming)
    };
    let of = |nanodollars| AnswerCall {
        model: "scripted".to_owned(),
        in_token: 100,
        out_token: 10,
        nanodollars: Some(nanodollars),
        backend: "near".to_owned(),
        attempts: Some(2),
        source: "table".to_owned(),
        ..AnswerCall::default()
    };
    // How long they took is not known here.
    let listed = |last: &AgentResponse| {
        let calls = last.calls.iter().cloned();
        let calls = calls.map(|call| AnswerCall {
            duration_ms: 0,
            ..call
        });
        calls.collect::<Vec<_>>()
    };
    let llm = "Thought: ask\nAction: llm\nArgs: {\"question\": \"x\"}";
    let script = vec![Say::Text(ADD), Say::Text(llm), Say::Text(END)];
    let one = world(&place, script, priced(), 0.0).await;
    let chunks = one.run(&counted(true)).await;
    let (last, rest) = chunks.split_last().unwrap();
    assert_eq!(last.cost.as_ref().map(|cost| cost.sub_calls), Some(4));
    assert_eq!(listed(last), vec![of(120_000_000); 4]);
    assert!(rest.iter().all(|chunk| chunk.calls.is_empty()));

    let away = Error::new(ErrorCode::Provider, "away");
    let script = vec![Say::Text(ADD), Say::Fail(away)];
    let one = world(&place.another().await, script, priced(), 0.0).await;
    let chunks = one.run(&counted(false)).await;
    let last = chunks.last().unwrap();
    assert_eq!(last.finish_reason, "error");
    assert_eq!(listed(last), [of(120_000_000)]);

    let script = vec![Say::Text(ADD), Say::Text(END)];
    let one = world(&place.another().await, script, priced(), 0.0).await;
    let chunks = one.run(&question("q", true)).await;
    assert!(chunks.iter().all(|chunk| chunk.calls.is_empty()));
}

async fn it_is_told_again(place: Place) {
    let unread = "I would rather not say";
    let script = vec![Say::Costs(ADD, 0.1), Say::Text(unread), Say::Text(END)];
    let world = world(&place, script, priced(), 0.9).await;
    let heard = run_recorded(&world, question("q", true), asks("q", false)).await;
    assert_eq!(heard.last().unwrap().cost.as_ref().unwrap().sub_calls, 3);
    same_again(&world, "q", &heard).await;
}

tg_testkit::on_both_buses!(
    an_answer_says_its_tokens_and_their_price,
    line_038_what_the_provider_says_of_three_calls_is_summed_up,
    line_039_costs_of_several_sources_are_mixed_and_a_local_model_costs_nothing,
    line_039_a_call_without_a_reported_usage_has_no_price,
    all_that_was_asked_counts,
    line_037_an_answer_lists_the_calls_that_were_made_for_it,
    it_is_told_again,
);
