//! A tool is for whom its row names, by roles that the gateway found and nobody says of themselves; one that writes is used where
//! it was granted.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::mcp::McpServer;
use tg_testkit::model::{ScriptedModel, two_step_react};
use tg_testkit::process::{Server, client};
use tg_testkit::shared_node::VirtualHost;

use crate::edge::{first_key, iam};
use crate::world::{Bus, launch, on_both_buses};

const AGENT: &str = "api/v1/flow/default/service/agent";

/// A system with users, whose model calls the tool `pay` once.
struct System {
    server: Server,
    admin: String,
    model: ScriptedModel,
    mcp: Arc<McpServer>,
    _node: Option<VirtualHost>,
}

impl System {
    async fn new(bus: Bus) -> Result<Self> {
        let model = ScriptedModel::start(two_step_react("pay", json!({}), 1)).await?;
        let node = bus.broker().await?;
        let mcp = McpServer::start().await?;
        let launch = launch(&model, node.as_ref()).arg("--auth").arg("iam");
        let server = launch.ready().await?;
        let admin = first_key(&server).await?;
        Ok(Self {
            server,
            admin,
            model,
            mcp,
            _node: node,
        })
    }

    async fn post(&self, key: &str, path: &str, body: Value) -> Result<(u16, Value)> {
        let url = format!("{}{path}", self.server.url());
        let reply = client()?
            .post(url)
            .bearer_auth(key)
            .json(&body)
            .send()
            .await?;
        let status = reply.status().as_u16();
        Ok((status, reply.json().await?))
    }

    async fn put(&self, kind: &str, key: &str, value: Value) -> Result<()> {
        let row = json!({"type": kind, "key": key, "value": value.to_string()});
        let ask = json!({"operation": "put", "values": [row]});
        let (status, reply) = self.post(&self.admin, "api/v1/config", ask).await?;
        ensure!(status == 200, "{reply}");
        Ok(())
    }

    /// The tool `pay`, with these flags; the row of the server with these.
    async fn tool(&self, flags: Value, of_server: Value) -> Result<()> {
        let mut tool = json!({"name": "pay", "description": "Pays.", "type": "mcp-tool",
            "mcp-tool": "pay", "arguments": [], "group": ["default"]});
        let mut server = json!({"url": self.mcp.url(), "remote-name": "pay"});
        for (row, more) in [(&mut tool, flags), (&mut server, of_server)] {
            let more = more.as_object().context("flags")?.clone();
            row.as_object_mut().context("a row")?.extend(more);
        }
        self.put("mcp", "pay", server).await?;
        self.put("tool", "pay", tool).await
    }

    /// A key of a new user.
    async fn key(&self, name: &str, role: &str, scopes: &[&str]) -> Result<String> {
        let user = json!({"username": name, "roles": [role]});
        let ask = json!({"operation": "create-user", "user": user});
        let made = iam(&self.server, &self.admin, ask).await?;
        let key = json!({"user_id": made["user"]["id"], "name": "k", "scopes": scopes});
        let ask = json!({"operation": "create-api-key", "key": key});
        let made = iam(&self.server, &self.admin, ask).await?;
        let key = made["api_key_plaintext"].as_str();
        Ok(key.context("no key")?.to_owned())
    }

    /// Whether a run that asks so is offered the tool, and uses it. They are the same.
    async fn uses(&self, key: &str, more: Value) -> Result<bool> {
        let (calls, prompts) = (self.mcp.count("pay"), self.model.calls().len());
        let mut ask = json!({"question": "What is it? nonce-1"});
        let more = more.as_object().context("fields")?.clone();
        ask.as_object_mut().context("a question")?.extend(more);
        let (status, reply) = self.post(key, AGENT, ask).await?;
        ensure!(status == 200, "{reply}");
        let answer = reply["answer"].as_str().unwrap_or_default();
        ensure!(
            answer.trim() == "The answer for nonce-1 is here.",
            "{reply}"
        );
        let first = &self.model.calls()[prompts];
        let offered = first.body.to_string().contains("Pays.");
        let used = self.mcp.count("pay") > calls;
        ensure!(offered == used, "offered: {offered}, used: {used}; {reply}");
        let told = reply["observation"].as_str().unwrap_or_default();
        ensure!(used || told.contains("there is no tool 'pay'"), "{reply}");
        Ok(used)
    }

    /// Whether the flow's agent uses the tool if it is asked among listeners. What the body says of the caller is nothing.
    async fn uses_among_listeners(&self, key: &str) -> Result<bool> {
        let calls = self.mcp.count("pay");
        let ask = json!({"operation": "send-message", "flow": "default", "to": "agent", "type": "agentrequest",
            "payload": {"question": "What is it? nonce-1"}, "roles": ["writer", "admin"], "grant": ["pay"]});
        let (status, reply) = self.post(key, "api/v1/threads", ask).await?;
        ensure!(status == 200, "{reply}");
        let answer = reply["messages"][0]["payload"]["answer"].as_str();
        let answer = answer.with_context(|| reply.to_string())?;
        ensure!(
            answer.trim() == "The answer for nonce-1 is here.",
            "{reply}"
        );
        Ok(self.mcp.count("pay") > calls)
    }
}

async fn a_tool_is_for_whom_its_roles_name(bus: Bus) -> Result<()> {
    let system = System::new(bus).await?;
    let reader = system.key("rita", "reader", &[]).await?;
    let writer = system.key("will", "writer", &[]).await?;
    let narrow = system.key("wanda", "writer", &["agent"]).await?;
    let named = ["agent", "role:writer"];
    let named = system.key("wilma", "writer", &named).await?;
    let feigned = ["agent", "role:writer"];
    let feigned = system.key("rolf", "reader", &feigned).await?;
    system.tool(json!({"roles": ["writer"]}), json!({})).await?;
    let plain = json!({});
    ensure!(system.uses(&writer, plain.clone()).await?, "a writer");
    ensure!(system.uses(&system.admin, plain.clone()).await?, "an admin");
    ensure!(system.uses(&named, plain.clone()).await?, "a named role");
    ensure!(!system.uses(&reader, plain.clone()).await?, "a reader");
    ensure!(!system.uses(&narrow, plain.clone()).await?, "a narrow key");
    ensure!(!system.uses(&feigned, plain).await?, "a role not had");
    for (key, uses) in [
        (&writer, true),
        (&named, true),
        (&reader, false),
        (&narrow, false),
        (&feigned, false),
    ] {
        let used = system.uses_among_listeners(key).await?;
        ensure!(used == uses, "among listeners: {used}, not {uses}");
    }
    // What a client says of itself is nothing.
    for pattern in ["", "plan-then-execute", "supervisor"] {
        let said = json!({"roles": ["writer", "admin"], "tools": ["pay"], "grant": ["pay"],
            "group": ["*"], "pattern": pattern});
        let calls = system.mcp.count("pay");
        let (_, reply) = {
            let mut ask = said.clone();
            ask["question"] = "What is it? nonce-1".into();
            system.post(&reader, AGENT, ask).await?
        };
        ensure!(system.mcp.count("pay") == calls, "{said}: {reply}");
    }
    // A tool of a server that is itself for writers cannot be called around the agent either.
    let direct = json!({"name": "pay", "parameters": {}});
    let path = "api/v1/flow/default/service/mcp-tool";
    let (status, told) = system.post(&reader, path, direct.clone()).await?;
    ensure!(status == 200, "{told}");
    let writers = json!({"roles": ["writer"]});
    system.tool(json!({}), writers).await?;
    let (status, told) = system.post(&reader, path, direct.clone()).await?;
    ensure!(
        told.to_string().contains("there is no MCP tool 'pay'"),
        "{status} {told}"
    );
    let (status, told) = system.post(&writer, path, direct).await?;
    ensure!(status == 200, "{told}");
    Ok(())
}

async fn a_tool_that_writes_is_used_where_it_was_granted(bus: Bus) -> Result<()> {
    let system = System::new(bus).await?;
    let writer = system.key("will", "writer", &[]).await?;
    let scopes = ["agent", "tool:pay"];
    let granting = system.key("wilma", "writer", &scopes).await?;
    system.tool(json!({"writes": true}), json!({})).await?;
    ensure!(!system.uses(&writer, json!({})).await?, "without a grant");
    let other = json!({"grant": ["other"]});
    ensure!(!system.uses(&writer, other).await?, "another's grant");
    let pay = json!({"grant": ["pay"]});
    ensure!(system.uses(&writer, pay).await?, "a grant of the request");
    ensure!(system.uses(&granting, json!({})).await?, "one of the key");
    ensure!(
        system.uses_among_listeners(&granting).await?,
        "one of the key, among listeners"
    );
    ensure!(
        !system.uses_among_listeners(&writer).await?,
        "a grant of the body, among listeners"
    );
    Ok(())
}

on_both_buses!(
    a_tool_is_for_whom_its_roles_name,
    a_tool_that_writes_is_used_where_it_was_granted,
);
