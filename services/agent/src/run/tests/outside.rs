//! Calls of models that no run makes share the budgets of their key and workspace with runs, and what a run asks counts once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::json;
use tg_clients::model_calls::{self, ModelCalls, Took};
use tg_mesh::{Ask, Cx, Processor, RequestHandler, Responder};
use tg_schemas::msg::{
    GraphRagQuery, GraphRagResponse, StructuredQueryRequest, StructuredQueryResponse,
    TextCompletionRequest, TextCompletionResponse,
};
use tg_schemas::processors::{graph_rag, structured_query, text_completion};
use tg_schemas::{Class, CountedBy, Error, ErrorCode};
use tg_testkit::bus::{until, within};
use tg_testkit::place::Place;

use super::budgets::used;
use super::world::{Say, World, ask_for, question, rows, topic};
use crate::engine::usage::Scope;

const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}";
const END: &str = "Final Answer: done";
const CALLS: usize = 64;
/// Tokens that a call takes, and that it is believed to take before the first has answered.
const TOOK: i64 = 100;
const LIKELY: i64 = 50;
/// How long it takes: calls are under way at the same time.
const PACE: Duration = Duration::from_millis(20);

/// Asks no model, and counts as the service does that asks one.
#[derive(Default)]
struct Model {
    calls: OnceLock<ModelCalls>,
    asked: AtomicUsize,
}

impl Model {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn tokens(model: &str, all: i64) -> Took {
    Took {
        model: model.to_owned(),
        in_token: all - 10,
        out_token: 10,
        ..Took::default()
    }
}

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Model {
    async fn serve(
        &self,
        cx: Cx,
        _: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        let calls = self.calls.get_or_init(|| ModelCalls::start(&cx.mesh));
        let call = calls.begin(&cx, tokens("asked", LIKELY)).await?;
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(PACE).await;
        if let Some(mut call) = call {
            call.settle(tokens("answers", TOOK)).await;
        }
        let answer = TextCompletionResponse {
            response: "yes".to_owned(),
            end_of_stream: true,
            ..TextCompletionResponse::default()
        };
        out.send(answer).await
    }
}

/// Services that a run uses and that ask the model for their answers.
struct Retrieval;

async fn asked(cx: &Cx) -> Result<(), Error> {
    let to = topic(Class::Request, "text-completion");
    let question = TextCompletionRequest::default();
    let answer = cx.ask_topic::<_, TextCompletionResponse>(&to, &question);
    answer.last().await.map(drop)
}

#[async_trait]
impl RequestHandler<GraphRagQuery, GraphRagResponse> for Retrieval {
    async fn serve(
        &self,
        cx: Cx,
        _: GraphRagQuery,
        mut out: Responder<GraphRagResponse>,
    ) -> Result<(), Error> {
        assert_eq!(cx.counted(), Some(CountedBy::Run));
        asked(&cx).await?;
        let answer = GraphRagResponse {
            response: "found".to_owned(),
            message_type: "chunk".to_owned(),
            end_of_session: true,
            in_token: Some(TOOK - 10),
            out_token: Some(10),
            ..GraphRagResponse::default()
        };
        out.send(answer).await
    }
}

#[async_trait]
impl RequestHandler<StructuredQueryRequest, StructuredQueryResponse> for Retrieval {
    async fn serve(
        &self,
        cx: Cx,
        _: StructuredQueryRequest,
        mut out: Responder<StructuredQueryResponse>,
    ) -> Result<(), Error> {
        asked(&cx).await?;
        let answer = StructuredQueryResponse {
            data: r#"{"n": 1}"#.to_owned(),
            ..StructuredQueryResponse::default()
        };
        out.send(answer).await
    }
}

async fn world(place: &Place, budget: &str, script: Vec<Say>) -> (World, Arc<Model>) {
    let rows = rows();
    if !budget.is_empty() {
        rows.put("agent", "budget", budget);
    }
    let tools = [
        json!({"name": "know", "type": "knowledge-query", "collection": "default"}),
        json!({"name": "count", "type": "structured-query", "collection": "default"}),
    ];
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        rows.put("tool", name, &tool.to_string());
    }
    let services = ["text-completion", "graph-rag", "structured-query"];
    for processor in services {
        let request = topic(Class::Request, processor).to_string();
        ask_for(&rows, &format!("{processor}-request"), processor, &request);
    }
    let model = Arc::new(Model::default());
    let more = vec![
        Processor::new(text_completion::PROCESSOR)
            .serves(text_completion::REQUEST, model.clone())
            .watches(&[model_calls::WATCHED])
            .concurrency(4 * CALLS),
        Processor::new(graph_rag::PROCESSOR).serves(graph_rag::REQUEST, Arc::new(Retrieval)),
        Processor::new(structured_query::PROCESSOR)
            .serves(structured_query::REQUEST, Arc::new(Retrieval)),
    ];
    let world = World::among(place, script, rows, more).await;
    world.attached(&services).await;
    (world, model)
}

/// A question for the model alone, of a key.
async fn complete(world: &World, key: &str) -> Result<String, Error> {
    let ask = Ask {
        credential: Some(key.to_owned()).filter(|key| !key.is_empty()),
        ..Ask::default()
    };
    let to = topic(Class::Request, "text-completion");
    let question = TextCompletionRequest::default();
    let answer = world
        .mesh
        .ask::<_, TextCompletionResponse>(&to, &question, ask);
    within(answer.last()).await.map(|answer| answer.response)
}

/// Tokens that were used, by name.
async fn sums(world: &World, scope: Scope) -> Vec<(String, u64)> {
    let all = used(world, scope).await.into_iter();
    all.map(|(name, [_, _, tokens, _])| (name, tokens))
        .collect()
}

async fn sixty_four_calls_pass_no_budget_by_more_than_one(place: Place) {
    let budget = r#"{"workspace": {"tokens": 1000}}"#;
    let (world, model) = world(&place, budget, Vec::new()).await;
    // From the first on it is known how much a call of this model takes.
    assert_eq!(complete(&world, "").await.unwrap(), "yes");
    let answers = join_all((0..CALLS).map(|_| complete(&world, ""))).await;
    let fit = answers.iter().filter(|answer| answer.is_ok()).count();
    for error in answers.into_iter().filter_map(Result::err) {
        assert_eq!(error.code(), ErrorCode::Busy);
        let why = "Stopped by the budget of its workspace for the day (tokens): ";
        assert!(error.message.starts_with(why), "{}", error.message);
        assert!(error.pause().is_some(), "{}", error.message);
    }
    assert_eq!(model.asked(), 1 + fit);
    let most = u64::try_from(TOOK).unwrap();
    let all = sums(&world, Scope::Workspace).await;
    let [(_, tokens)] = &all[..] else {
        panic!("one workspace: {all:?}");
    };
    assert!((1000 - most..=1000 + most).contains(tokens), "{tokens}");
    let error = complete(&world, "").await.unwrap_err();
    let why = "Stopped by the budget of its workspace for the day (tokens): 1000 of 1000 tokens";
    assert!(error.message.starts_with(why), "{}", error.message);
}

async fn a_key_has_its_own(place: Place) {
    let budget = r#"{"key": {"tokens": 250}}"#;
    let (world, model) = world(&place, budget, Vec::new()).await;
    for (key, fits) in [
        ("key:a", true),
        ("key:a", true),
        ("key:a", false),
        ("key:b", true),
        ("", true),
    ] {
        let answer = complete(&world, key).await;
        assert_eq!(answer.is_ok(), fits, "{key}: {answer:?}");
    }
    assert_eq!(model.asked(), 4);
    let expected = [("key:a".to_owned(), 200), ("key:b".to_owned(), 100)];
    assert_eq!(sums(&world, Scope::Key).await, expected);
}

async fn a_run_and_a_completion_share_one_budget(place: Place) {
    let budget = r#"{"workspace": {"tokens": 1200}}"#;
    let script = (0..20).map(|_| Say::Text(ADD)).collect();
    let (world, model) = world(&place, budget, script).await;
    let chunks = world.run(&question("q", false)).await;
    let text = &chunks.last().expect("an end").content;
    let why = "Stopped by the budget of its workspace for the day (tokens): 440 of 1200 tokens";
    assert!(text.starts_with(why), "{text}");
    let mut fit = 0;
    let error = loop {
        match complete(&world, "").await {
            Ok(_) => fit += 1,
            Err(error) => break error,
        }
    };
    let why = "Stopped by the budget of its workspace for the day (tokens): 1140 of 1200 tokens";
    assert!(error.message.starts_with(why), "{}", error.message);
    assert_eq!((fit, model.asked()), (7, 7));
    let chunks = world.run(&question("q", false)).await;
    let text = &chunks.last().expect("an end").content;
    assert!(text.starts_with(why), "{text}");
    assert_eq!(world.calls(), 4, "the run's model is not asked again");
    let runs = sums(&world, Scope::Run).await;
    assert!(runs.contains(&("direct".to_owned(), 700)), "{runs:?}");
    let together: u64 = runs.iter().map(|(_, tokens)| tokens).sum();
    assert_eq!(sums(&world, Scope::Workspace).await[0].1, together);
}

async fn what_a_run_asks_counts_once(place: Place) {
    let know = "Action: know\nArgs: {\"question\": \"Which?\"}";
    let count = "Action: count\nArgs: {\"question\": \"How many?\"}";
    let script = vec![Say::Text(know), Say::Text(count), Say::Text(END)];
    let (world, model) = world(&place, "", script).await;
    let chunks = world.run(&question("q", false)).await;
    assert!(chunks.last().expect("an end").end_of_dialog);
    assert_eq!(model.asked(), 2);
    // Three calls of the run's own, with what the first tool says that it took. The second says nothing of it, and the service
    // that asked the model tells it after a moment.
    until(async || sums(&world, Scope::Run).await.len() == 2).await;
    let mut runs = sums(&world, Scope::Run).await;
    runs.sort_by_key(|(_, tokens)| *tokens);
    assert_eq!(runs[0], ("direct".to_owned(), 100));
    assert_eq!(runs[1].1, 430);
    assert_eq!(sums(&world, Scope::Workspace).await[0].1, 530);
}

async fn without_budgets_calls_are_counted_and_none_is_refused(place: Place) {
    let (world, _) = world(&place, "", Vec::new()).await;
    for _ in 0..3 {
        complete(&world, "key:a").await.unwrap();
    }
    let all = ("key:a".to_owned(), 300);
    until(async || sums(&world, Scope::Key).await == [all.clone()]).await;
    let models = sums(&world, Scope::Model).await;
    assert_eq!(models, [("answers".to_owned(), 300)]);
}

tg_testkit::on_both_buses!(
    sixty_four_calls_pass_no_budget_by_more_than_one,
    a_key_has_its_own,
    a_run_and_a_completion_share_one_budget,
    what_a_run_asks_counts_once,
    without_budgets_calls_are_counted_and_none_is_refused,
);
