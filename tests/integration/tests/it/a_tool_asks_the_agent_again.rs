//! A tool asks the agent that called it, on each level: the third nesting is refused, and each level above has its answer.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::mcp::McpServer;
use tg_testkit::model::{Reply, Rule, ScriptedModel, final_answer, tool_call};

use crate::world::{Bus, launch, on_both_buses, post};

const CHAT: &str = "a1/agents/nested/chat";
const AGENT: &str = "name: nested\nmodel: m1\ntools: [again]\n";

/// Calls the tool once, and answers when it has returned.
fn rules() -> Vec<Rule> {
    let returned = |prompt: &str| prompt.lines().any(|line| line.starts_with("Observation:"));
    vec![
        Rule::computed(returned, |_| {
            Reply::text(final_answer("It came back.", "done"))
        }),
        Rule::always(Reply::text(tool_call("Once more.", "again", &json!({})))),
    ]
}

/// The depths that the tool was told, in order.
fn depths(tools: &McpServer) -> Vec<Value> {
    let calls = tools.calls.lock();
    let depth = |call: &Value| call["_meta"]["threadgraph/caller-depth"].clone();
    calls.iter().map(depth).collect()
}

async fn line_036_it_ends_at_the_third_nesting(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(rules()).await?;
    let tools = McpServer::start().await?;
    let agents = tempfile::tempdir()?;
    std::fs::write(agents.path().join("nested.yaml"), AGENT)?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref()).env(
        "THREADGRAPH_SESSIONS__AGENTS_DIR",
        agents.path().to_string_lossy(),
    );
    let server = launch.ready().await?;
    let url = server.url();
    *tools.again.lock() = format!("{url}{CHAT}");
    for (kind, value) in [
        ("mcp", json!({"url": tools.url(), "remote-name": "again"})),
        (
            "tool",
            json!({"name": "again", "description": "Asks once more.", "type": "mcp-tool", "mcp-tool": "again", "arguments": []}),
        ),
    ] {
        let row = json!({"type": kind, "key": "again", "value": value.to_string()});
        let put = json!({"operation": "put", "values": [row]});
        let (status, told) = post(&url, "api/v1/config", put).await?;
        ensure!(status == 200, "{told}");
    }
    let (status, told) = post(&url, CHAT, json!({"message": "begin"})).await?;
    ensure!(status == 200, "{status} {told}\n{}", server.log());
    ensure!(told["content"] == "done", "{told}");
    ensure!(depths(&tools) == [1, 2, 3], "{:?}", depths(&tools));
    // The model saw why it ends there.
    let calls = model.calls();
    let is_refused = |body: &Value| body.to_string().contains("recursion_depth_exceeded");
    let refused = calls.iter().rfind(|call| is_refused(&call.body));
    let last = refused.context("nobody was refused")?;
    ensure!(last.body.to_string().contains("400"), "{}", last.body);
    Ok(())
}

on_both_buses!(line_036_it_ends_at_the_third_nesting);
