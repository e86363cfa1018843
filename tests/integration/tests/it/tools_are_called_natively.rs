//! A run whose model calls tools by the means of its API: the tools come with their schemas, what is called is called once, and a
//! plain text is the answer. Nothing of it unless a setting asks.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::mcp::McpServer;
use tg_testkit::model::{Reply, Rule, ScriptedModel};

use crate::world::{Bus, launch, on_both_buses, post};

const DUES: &str = "The harbour dues are seven florins.";
/// A call, as a model without tools of its own writes it; with tools that were offered to it, its server reads it as one.
const CALL: &str = r#"{"name": "document", "arguments": {"id": "1"}}"#;

/// The reply to a question about a document, and what the model was asked on the way.
async fn asked(bus: Bus, native: bool, answer: &str) -> Result<(Value, Vec<Value>)> {
    let rules = vec![
        Rule::contains(DUES, Reply::pieces(["It is ", answer])),
        Rule::always(Reply::text(CALL)),
    ];
    let model = ScriptedModel::start(rules).await?;
    let tools = McpServer::start().await?;
    tools.texts.lock().insert("1".to_owned(), DUES.to_owned());
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref());
    let launch = launch.env("THREADGRAPH_AGENT__NATIVE_TOOLS", native.to_string());
    let server = launch.ready().await?;
    let read = json!({"name": "id", "type": "string", "description": "Which."});
    for (kind, value) in [
        (
            "mcp",
            json!({"url": tools.url(), "remote-name": "document"}),
        ),
        (
            "tool",
            json!({"name": "document", "description": "Reads a document.", "type": "mcp-tool",
                "mcp-tool": "document", "arguments": [read]}),
        ),
    ] {
        let row = json!({"type": kind, "key": "document", "value": value.to_string()});
        let put = json!({"operation": "put", "values": [row]});
        let (status, told) = post(&server.url(), "api/v1/config", put).await?;
        ensure!(status == 200, "{told}");
    }
    let ask = json!({"question": "What are the dues?", "pattern": "react"});
    let (status, reply) = post(&server.url(), "api/v1/flow/default/service/agent", ask).await?;
    ensure!(status == 200, "{reply}\n{}", server.log());
    ensure!(tools.count("document") == 1, "{reply}");
    let calls = model.calls().into_iter();
    let chats = calls.filter(|call| call.path.ends_with("/chat/completions"));
    Ok((reply, chats.map(|call| call.body).collect()))
}

async fn tools_are_offered_by_the_api_where_a_setting_says_so(bus: Bus) -> Result<()> {
    let (reply, chats) = asked(bus, true, "seven.").await?;
    ensure!(reply["answer"] == "It is seven.", "{reply}");
    for chat in &chats {
        let offered = chat["tools"].as_array().context("no tools")?;
        let mut functions = offered.iter().map(|tool| &tool["function"]);
        let document = functions.find(|tool| tool["name"] == "document");
        let document = document.with_context(|| chat.to_string())?;
        let kind = &document["parameters"]["properties"]["id"]["type"];
        ensure!(*kind == "string", "{document}");
    }
    let (_, chats) = asked(bus, false, "no answer.\nFinal Answer: seven.").await?;
    let plain = chats.iter().all(|chat| chat["tools"].is_null());
    ensure!(plain && !chats.is_empty(), "{chats:?}");
    Ok(())
}

on_both_buses!(tools_are_offered_by_the_api_where_a_setting_says_so);
