//! A workspace's budget binds all its runs together, however many go on at once; what they used is told, and is still known
//! after a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use serde_json::{Value, json};
use tg_schemas::operations::{ALL, Meta};
use tg_testkit::model::{Reply, Rule, ScriptedModel, tool_call};
use tg_testkit::process::{client, tg};

use crate::edge::first_key;
use crate::world::{Bus, launch, on_both_buses, post};

const RUNS: usize = 64;
const MOST: i64 = 8_000;

fn adding() -> Vec<Rule> {
    let call = tool_call("Add.", "calculator", &json!({"expression": "6*7"}));
    vec![Rule::always(Reply::text(call))]
}

async fn used(url: &str, by: &str) -> Result<Vec<Value>> {
    let shown = tg(url, &["show-usage", "--by", by, "--json"]).await?;
    ensure!(shown.code == Some(0), "{shown:?}");
    Ok(serde_json::from_str(&shown.stdout)?)
}

fn tokens(one: &Value) -> i64 {
    let count = |key: &str| one[key].as_i64().unwrap_or(0);
    count("in_token") + count("out_token")
}

async fn a_workspace_has_one_budget(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(adding()).await?;
    let node = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let launched = || {
        launch(&model, node.as_ref())
            .data(data.path())
            .env(
                "THREADGRAPH_AGENT__WORKSPACE_TOKENS_A_DAY",
                MOST.to_string(),
            )
            .env("THREADGRAPH_AGENT__LOOP_DETECTION", "false")
            .env("THREADGRAPH_AGENT__MAX_ITERATIONS", "100")
    };
    let server = launched().ready().await?;
    let url = server.url();
    let path = "api/v1/flow/default/service/agent";
    let asked = (0..RUNS).map(|n| post(&url, path, json!({"question": format!("Question {n}?")})));
    for answer in join_all(asked).await {
        let (status, answer) = answer?;
        ensure!(status == 200, "{answer}");
        let text = answer["answer"].as_str().context("an answer")?;
        ensure!(text.starts_with(WHY), "{text}");
        ensure!(
            answer["stopped"] == true && answer["finish_reason"] == "budget",
            "{answer}"
        );
    }
    let all = used(&url, "workspace").await?;
    ensure!(all.len() == 1 && all[0]["name"] == "default", "{all:?}");
    let one = tokens(&all[0]) / all[0]["model_calls"].as_i64().context("calls")?.max(1);
    ensure!(tokens(&all[0]) <= MOST + one, "{all:?}");
    let runs = used(&url, "run").await?;
    ensure!(
        runs.iter().map(tokens).sum::<i64>() == tokens(&all[0]),
        "{runs:?}"
    );
    let tools = used(&url, "tool").await?;
    ensure!(
        tools
            .iter()
            .any(|one| one["name"] == "calculator" && one["tool_calls"] == all[0]["tool_calls"]),
        "{tools:?} {all:?}"
    );
    let (status, answer) = post(&url, path, json!({"question": "One more?"})).await?;
    ensure!(
        status == 200 && answer["finish_reason"] == "budget",
        "{answer}"
    );
    for (ask, why) in [
        (
            json!({"operation": "list-usage", "by": "planet"}),
            "by: must be",
        ),
        (
            json!({"operation": "list-usage", "since": "today"}),
            "since: must be a date",
        ),
    ] {
        let (status, told) = post(&url, "api/v1/usage", ask).await?;
        ensure!(status == 200 || status == 400, "{status}");
        ensure!(told.to_string().contains(why), "{told}");
    }
    let all = used(&url, "workspace").await?;
    server.terminate().await?;
    let again = launched().ready().await?;
    ensure!(used(&again.url(), "workspace").await? == all, "{all:?}");
    Ok(())
}

/// Sums come in pages, and those by model and by day are of the same runs.
async fn usage_is_listed(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(adding()).await?;
    let node = bus.broker().await?;
    let server = launch(&model, node.as_ref())
        .env("THREADGRAPH_AGENT__RUN_TOOL_CALLS", "1")
        .ready()
        .await?;
    let url = server.url();
    for n in 0..3 {
        let path = "api/v1/flow/default/service/agent";
        let (status, answer) = post(&url, path, json!({"question": format!("{n}?")})).await?;
        ensure!(status == 200, "{answer}");
    }
    let whole = used(&url, "run").await?;
    let (mut listed, mut after) = (Vec::new(), String::new());
    loop {
        let ask = json!({"operation": "list-usage", "by": "run", "limit": 1, "after": after});
        let (status, page) = post(&url, "api/v1/usage", ask).await?;
        let some = page["usage"].as_array().context("usage")?;
        ensure!(status == 200 && some.len() <= 1, "{page}");
        listed.extend(some.clone());
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    ensure!(whole.len() == 3 && listed == whole, "{listed:?} {whole:?}");
    let total = |sums: &[Value]| sums.iter().map(tokens).sum::<i64>();
    let models = used(&url, "model").await?;
    ensure!(
        models.len() == 1 && models[0]["name"] == "scripted",
        "{models:?}"
    );
    let days = used(&url, "day").await?;
    let day = days.first().and_then(|day| day["name"].as_str());
    let day = day.context("a day")?;
    ensure!(total(&models) == total(&whole), "{models:?} {whole:?}");
    ensure!(total(&days) == total(&whole), "{days:?} {whole:?}");
    let since = ["show-usage", "--by", "day", "--since", day];
    tg(&url, &since).await?.expect(day)?;
    let before = ["show-usage", "--by", "day", "--until", "2000-01-01"];
    tg(&url, &before).await?.expect("Nothing was used.")?;
    Ok(())
}

/// The other budgets: what binds, by which sums are told, and where what was used stands.
struct Bound {
    /// The setting, and what it is set to.
    setting: (&'static str, &'static str),
    /// What the answer says it is out of.
    says: &'static str,
    /// By what `tg show-usage` sums it up.
    by: &'static str,
    /// Whether the question has to name a conversation.
    talks: bool,
    /// What was used of a sum, against the limit.
    used: fn(&Value) -> f64,
    most: f64,
}

const BOUNDS: [Bound; 3] = [
    Bound {
        setting: ("THREADGRAPH_AGENT__WORKSPACE_DOLLARS_A_DAY", "8.0"),
        says: "Stopped by the budget of its workspace for the day (money): ",
        by: "workspace",
        talks: false,
        used: |sum| sum["dollars"].as_f64().unwrap_or(f64::NAN),
        most: 8.0,
    },
    Bound {
        setting: ("THREADGRAPH_AGENT__SESSION_TOKENS", "8000"),
        says: "Stopped by the budget of its session (tokens): ",
        by: "session",
        talks: true,
        used: |sum| tokens(sum) as f64,
        most: 8_000.0,
    },
    Bound {
        setting: ("THREADGRAPH_AGENT__KEY_TOKENS_A_DAY", "8000"),
        says: "Stopped by the budget of its key for the day (tokens): ",
        by: "key",
        talks: false,
        used: |sum| tokens(sum) as f64,
        most: 8_000.0,
    },
];

/// Money of a workspace, tokens of a conversation and of a key: 64 runs at once, of which every third model's reply
/// cannot be read, use no more than the budget and what one more call takes.
async fn each_budget_binds(bus: Bus) -> Result<()> {
    for bound in &BOUNDS {
        let asked = Arc::new(AtomicUsize::new(0));
        let call = tool_call("Add.", "calculator", &json!({"expression": "6*7"}));
        let reply = move |_: &str| match asked.fetch_add(1, Ordering::Relaxed) % 3 {
            2 => Reply::text("I would rather not say"),
            _ => Reply::text(call.clone()),
        };
        let model = ScriptedModel::start(vec![Rule::computed(|_| true, reply)]).await?;
        let node = bus.broker().await?;
        let server = launch(&model, node.as_ref())
            .arg("--auth")
            .arg("iam")
            .env(bound.setting.0, bound.setting.1)
            .env("THREADGRAPH_AGENT__LOOP_DETECTION", "false")
            .env("THREADGRAPH_AGENT__MAX_ITERATIONS", "100")
            .ready()
            .await?;
        let key = first_key(&server).await?;
        let client = tg_testkit::process::client()?;
        let ask = async |path: &str, body: Value| {
            let asked = client
                .post(format!("{}{path}", server.url()))
                .bearer_auth(&key);
            anyhow::Ok(asked.json(&body).send().await?.json::<Value>().await?)
        };
        let price = json!({"operation": "put", "values": [{"type": "token-cost", "key": "scripted",
            "value": r#"{"input_price": 0.001, "output_price": 0.001}"#}]});
        ask("api/v1/config", price).await?;
        let runs = (0..RUNS).map(|n| {
            let mut question = json!({"question": format!("Question {n}?")});
            if bound.talks {
                question["conversation_id"] = json!("talk");
            }
            ask("api/v1/flow/default/service/agent", question)
        });
        for answer in join_all(runs).await {
            let answer = answer?;
            let text = answer["answer"]
                .as_str()
                .with_context(|| answer.to_string())?;
            ensure!(text.starts_with(bound.says), "{}: {text}", bound.by);
            ensure!(answer["finish_reason"] == "budget", "{answer}");
        }
        let sums = ask(
            "api/v1/usage",
            json!({"operation": "list-usage", "by": bound.by}),
        )
        .await?;
        let sum = &sums["usage"][0];
        ensure!(
            sums["usage"].as_array().is_some_and(|all| all.len() == 1),
            "{sums}"
        );
        let calls = sum["model_calls"].as_f64().unwrap_or(0.0);
        let used = (bound.used)(sum);
        ensure!(
            calls > 0.0 && calls == model.count() as f64,
            "{sums}: {} calls",
            model.count()
        );
        ensure!(used <= bound.most + used / calls, "{}: {sums}", bound.by);
    }
    Ok(())
}

/// How the workspace of these tests says that its budget is used up.
const WHY: &str = "Stopped by the budget of its workspace for the day (tokens): ";

/// What an endpoint answers: its status, the seconds of `Retry-After`, and the body.
async fn asked(url: &str, path: &str, body: &Value) -> Result<(u16, Option<u64>, Value)> {
    let asked = tg_testkit::process::client()?
        .post(format!("{url}{path}"))
        .header("X-Error-Status", "true")
        .header("SPASS-User-Id", "ann")
        .json(body)
        .send()
        .await?;
    let pause = asked.headers().get("retry-after");
    let pause = pause.and_then(|pause| pause.to_str().ok()?.parse().ok());
    Ok((asked.status().as_u16(), pause, asked.json().await?))
}

/// A chat over `/v1`.
async fn chat(url: &str) -> Result<(u16, Option<u64>, Value)> {
    chat_of(url, None).await
}

async fn chat_of(url: &str, max_tokens: Option<i64>) -> Result<(u16, Option<u64>, Value)> {
    let turns = json!([{"role": "user", "content": "Say something."}]);
    let mut body = json!({"model": "scripted", "messages": turns});
    if let Some(most) = max_tokens {
        body["max_tokens"] = json!(most);
    }
    asked(url, "v1/chat/completions", &body).await
}

/// An endpoint refuses a call for the budget, and names a pause.
fn refused(status: u16, pause: Option<u64>, told: &Value) -> Result<()> {
    ensure!(status == 429 && pause.is_some(), "{status}: {told}");
    let text = told["error"]["message"].as_str().unwrap_or_default();
    ensure!(text.starts_with(WHY), "{told}");
    Ok(())
}

/// A schema of rows: without one, questions about rows are refused before a model is asked.
const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps", "fields": [
    {"name": "id", "type": "string", "primary_key": true}]}"#;
/// The error of the services of rows until the schema has reached them.
const NO_SCHEMA: &str = "this workspace has no schemas of rows";
/// The schema arrives within so many tries, with a pause after each.
const TRIES: u32 = 1_200;
const PAUSE: Duration = Duration::from_millis(50);

/// A picture of one dot.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

/// Asks a service of the flow, and once more while the schema of rows has not reached it: it asks no model then.
async fn asked_of_flow(
    url: &str,
    service: &str,
    body: &Value,
) -> Result<(u16, Option<u64>, Value)> {
    let path = format!("api/v1/flow/default/service/{service}");
    for _ in 0..TRIES {
        let answer = asked(url, &path, body).await?;
        if !answer.2.to_string().contains(NO_SCHEMA) {
            return Ok(answer);
        }
        tokio::time::sleep(PAUSE).await;
    }
    anyhow::bail!("{service} has no schema")
}

/// What is asked once the budget is used up: longer than the chats that used it up, so that what is left is too little.
fn long() -> String {
    "Say something. ".repeat(20)
}

/// Each service of the flow that asks a model refuses, whether it asks by itself or has another service ask.
async fn each_service_of_the_flow_refuses(url: &str) -> Result<()> {
    let text = long();
    for (service, body) in [
        ("text-completion", json!({"system": "", "prompt": text})),
        (
            "chat-completion",
            json!({"messages": [{"role": "user", "content": text}]}),
        ),
        (
            "prompt",
            json!({"id": "question", "variables": {"question": text}}),
        ),
        ("graph-rag", json!({"query": text})),
        ("document-rag", json!({"query": text})),
        ("nlp-query", json!({"question": text})),
        ("structured-query", json!({"question": text})),
        (
            "structured-diag",
            json!({"operation": "schema-selection", "sample": text}),
        ),
        (
            "image-to-text",
            json!({"image": PNG, "mime_type": "image/png", "prompt": text}),
        ),
    ] {
        let (status, pause, answer) = asked_of_flow(url, service, &body).await?;
        refused(status, pause, &answer).context(service)?;
    }
    Ok(())
}

/// The budget is used up for endpoints of each surface that asks a model or the agent.
async fn each_surface_is_refused(url: &str) -> Result<()> {
    let text = long();
    let turns = json!([{"role": "user", "content": text}]);
    for (path, body) in [
        (
            "v1/chat/completions",
            json!({"model": "scripted", "messages": turns}),
        ),
        (
            "v1/completions",
            json!({"model": "scripted", "prompt": text}),
        ),
        (
            "v1/messages",
            json!({"model": "scripted", "max_tokens": 1_000, "messages": turns}),
        ),
        ("v1/responses", json!({"model": "scripted", "input": text})),
    ] {
        let (status, pause, told) = asked(url, path, &body).await?;
        refused(status, pause, &told).context(path)?;
    }
    let call = |tool: &str, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}})
    };
    let run = json!({"assistant_id": "concise-de", "input": {"messages": turns}});
    // These answer with status 200; the first one says besides how the run ended.
    for (at, (path, body, answer)) in [
        (
            "api/v1/flow/default/service/agent",
            json!({"question": text}),
            "/answer",
        ),
        ("langgraph/runs/wait", run, "/messages/1/content"),
        (
            "mcp",
            call("ask_agent", json!({"question": text})),
            "/result/content/0/text",
        ),
        (
            "mcp",
            call(
                "chat_with_agent",
                json!({"name": "concise-de", "message": text}),
            ),
            "/result/content/0/text",
        ),
        (
            "mcp",
            call("graph_rag", json!({"query": text})),
            "/result/content/0/text",
        ),
        (
            "mcp",
            call("document_rag", json!({"query": text})),
            "/result/content/0/text",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (status, _, told) = asked(url, path, &body).await?;
        let answer = told.pointer(answer).and_then(Value::as_str);
        let is_why = answer.is_some_and(|answer| answer.starts_with(WHY));
        ensure!(status == 200 && is_why, "{path}: {status}: {told}");
        let is_stopped = told["stopped"] == true && told["finish_reason"] == "budget";
        ensure!(at > 0 || is_stopped, "{path}: {told}");
    }
    Ok(())
}

/// What an operation that asks models is sent, and what its response then contains. An operation without a row here fails the test.
fn row_of(meta: &Meta) -> Result<(Value, &'static str)> {
    let text = long();
    Ok(match meta.name {
        "chat" | "send-message" => (json!({"message": text}), WHY),
        "send-conversation-message" => (json!({"content": text}), WHY),
        "compact-session" => (json!({}), "compact_summary_failed"),
        other => anyhow::bail!("{other} asks models, and no request of it is listed"),
    })
}

/// Each operation that declares that it asks models has the reason in its answer, also as events. A session that was not summed up says
/// only that.
async fn each_operation_has_the_reason(url: &str) -> Result<()> {
    let made = async |path: &str, body: Value, id: &str| {
        let (_, _, made) = asked(url, path, &body).await?;
        let id = made[id].as_str().map(str::to_owned);
        id.with_context(|| made.to_string())
    };
    let keep = json!({"compact_keep_last_n": 0});
    let session = made("a1/agents/concise-de/sessions", keep, "id").await?;
    let agents = "api/v1/workspaces/default/agents";
    let agent = made(agents, json!({"name": "Brisk"}), "agentId").await?;
    let talks = format!("{agents}/{agent}/conversations");
    let talk = made(&talks, json!({}), "conversationId").await?;
    for meta in ALL.iter().filter(|meta| meta.asks_models) {
        let (body, expected) = row_of(meta)?;
        let patterns = [meta.path, meta.stream].into_iter();
        for pattern in patterns.filter(|pattern| !pattern.is_empty()) {
            let path = pattern
                .trim_start_matches('/')
                .replace("{name}", "concise-de")
                .replace("{session_id}", &session)
                .replace("{workspace}", "default")
                .replace("{agent_id}", &agent)
                .replace("{conversation_id}", &talk);
            let request = client()?.post(format!("{url}{path}")).json(&body);
            let response = request.header("SPASS-User-Id", "ann").send().await?;
            let (status, text) = (response.status(), response.text().await?);
            ensure!(text.contains(expected), "{path}: {status}: {text}");
        }
    }
    Ok(())
}

/// A turn of a thread of LangGraph has the reason as its answer.
async fn a_turn_of_a_thread_has_the_reason(url: &str) -> Result<()> {
    let path = "langgraph/threads/5f0c7a52-8d1e-4b0b-9a64-0d7c3c1f2e90/runs/wait";
    let run = json!({"assistant_id": "concise-de", "if_not_exists": "create",
        "input": {"messages": [{"role": "user", "content": long()}]}});
    let (status, _, turn) = asked(url, path, &run).await?;
    let answer = turn["messages"][1]["content"].as_str().unwrap_or_default();
    ensure!(answer.starts_with(WHY), "{path}: {status}: {turn}");
    Ok(())
}

/// What is asked without the agent shares the budget with runs, and the refusal says when to ask again.
async fn calls_without_the_agent_share_it(bus: Bus) -> Result<()> {
    const MOST: i64 = 2_000;
    let says = Reply::text("Something else. ".repeat(20));
    let model = ScriptedModel::start(vec![Rule::always(says)]).await?;
    let node = bus.broker().await?;
    let server = launch(&model, node.as_ref())
        .env(
            "THREADGRAPH_AGENT__WORKSPACE_TOKENS_A_DAY",
            MOST.to_string(),
        )
        .ready()
        .await?;
    let url = server.url();
    let row = json!([{"type": "schema", "key": "lamps", "value": SCHEMA}]);
    let put = json!({"operation": "put", "values": row});
    let (status, answer) = post(&url, "api/v1/config", put).await?;
    ensure!(status == 200 && answer["error"].is_null(), "{answer}");
    for answer in join_all((0..RUNS).map(|_| chat(&url))).await {
        let (status, pause, told) = answer?;
        if status != 200 {
            refused(status, pause, &told)?;
        }
    }
    // One after the other, until there is no room for one more.
    let mut asked = 0;
    loop {
        let (status, pause, told) = chat(&url).await?;
        if status != 200 {
            refused(status, pause, &told)?;
            break;
        }
        asked += 1;
        ensure!(asked < 500, "none is refused");
    }
    let before = model.count();
    each_service_of_the_flow_refuses(&url).await?;
    each_surface_is_refused(&url).await?;
    each_operation_has_the_reason(&url).await?;
    a_turn_of_a_thread_has_the_reason(&url).await?;
    ensure!(model.count() == before, "a model was asked");
    let all = used(&url, "workspace").await?;
    let calls = all[0]["model_calls"].as_i64().context("calls")?;
    ensure!(calls == i64::try_from(before)?, "{all:?}, not {before}");
    ensure!(tokens(&all[0]) <= MOST + tokens(&all[0]) / calls, "{all:?}");
    let runs = used(&url, "run").await?;
    ensure!(runs.len() == 1 && runs[0]["name"] == "direct", "{runs:?}");
    Ok(())
}

/// The first calls of all, 64 at once, of a model of which nothing is known: where each says how long its reply may be, they use
/// no more than the budget and what is reserved for one.
async fn a_first_burst_that_says_how_long_replies_may_be_passes_by_one_call(
    bus: Bus,
) -> Result<()> {
    const REPLY: i64 = 2_000;
    let says = Reply::text("word ".repeat(1_800));
    let model = ScriptedModel::start(vec![Rule::always(says)]).await?;
    let node = bus.broker().await?;
    let server = launch(&model, node.as_ref())
        .env(
            "THREADGRAPH_AGENT__WORKSPACE_TOKENS_A_DAY",
            MOST.to_string(),
        )
        .ready()
        .await?;
    let url = server.url();
    let mut answered = 0;
    for answer in join_all((0..RUNS).map(|_| chat_of(&url, Some(REPLY)))).await {
        let (status, pause, told) = answer?;
        match status {
            200 => answered += 1,
            _ => ensure!(status == 429 && pause.is_some(), "{status}: {told}"),
        }
    }
    let all = used(&url, "workspace").await?;
    let calls = all[0]["model_calls"].as_u64().context("calls")?;
    ensure!(
        calls == answered && answered > 0 && answered == model.count() as u64,
        "{all:?}: {answered} answers, {} calls",
        model.count()
    );
    let prompt = all[0]["in_token"].as_i64().context("tokens")? / i64::try_from(calls)?;
    ensure!(tokens(&all[0]) <= MOST + prompt + REPLY, "{all:?}");
    Ok(())
}

on_both_buses!(
    each_budget_binds,
    calls_without_the_agent_share_it,
    a_first_burst_that_says_how_long_replies_may_be_passes_by_one_call,
);

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    a_workspace_has_one_budget(Bus::Embedded).await?;
    usage_is_listed(Bus::Embedded).await
}

#[tokio::test]
async fn over_rabbitmq() -> Result<()> {
    a_workspace_has_one_budget(Bus::Rabbit).await?;
    usage_is_listed(Bus::Rabbit).await
}
