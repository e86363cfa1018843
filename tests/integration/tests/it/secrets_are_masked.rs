//! Credentials of MCP servers and of whatever else is configured: who may only read the configuration sees that there is one, over each endpoint and
//! operation; who may write it sees what it is.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Server, client};
use tg_testkit::socket::Socket;

use crate::bulk_streams::Reader;
use crate::edge::{first_key, iam};
use crate::world::{Bus, launched, on_both_buses};

const SECRET: &str = "S3CRET-of-the-server";

/// Types of rows that hold a credential.
const KINDS: [&str; 6] = [
    "mcp",
    "tool",
    "tool-service",
    "flow-blueprint",
    "parameter-type",
    "processor:of-nobody",
];

/// Every operation that gives values.
fn reads() -> Vec<Value> {
    let mut reads = vec![json!({"operation": "config"})];
    for kind in KINDS {
        reads.push(json!({"operation": "get", "keys": [{"type": kind, "key": "k"}]}));
        reads.push(json!({"operation": "getvalues", "type": kind}));
    }
    reads.push(json!({"operation": "getvalues", "type": "mcp", "limit": 1}));
    reads
}

/// Questions to the service of flows that give what rows of configuration hold.
fn of_flows() -> [Value; 2] {
    [
        json!({"operation": "get-blueprint", "blueprint-name": "k"}),
        json!({"operation": "get-flow", "flow-id": "held"}),
    ]
}

async fn key_of_reader(server: &Server, admin: &str) -> Result<String> {
    let user = json!({"operation": "create-user", "workspace": "default",
        "user": {"username": "looks", "roles": ["reader"]}});
    let made = iam(server, admin, user).await?;
    let ask = json!({"operation": "create-api-key", "workspace": "default",
        "key": {"user_id": made["user"]["id"], "name": "k"}});
    let made = iam(server, admin, ask).await?;
    let key = made["api_key_plaintext"].as_str().context("no key")?;
    Ok(key.to_owned())
}

/// What each operation answers, over REST and over a socket.
async fn answers(server: &Server, key: &str) -> Result<Vec<String>> {
    let reader = Reader {
        server,
        key,
        workspace: "default",
    };
    let socket = Socket::connect(&server.url(), key).await?;
    let mut answers = Vec::new();
    let of_config = reads().into_iter().map(|ask| ("config", ask));
    let of_flows = of_flows().into_iter().map(|ask| ("flow", ask));
    for (service, ask) in of_config.chain(of_flows) {
        let told = reader.done(service, ask.clone()).await;
        answers.push(told.with_context(|| ask.to_string())?.to_string());
        let told = socket.ask_service(service, ask).await?;
        answers.push(told.to_string());
    }
    Ok(answers)
}

async fn readers_see_that_there_is_one(bus: Bus) -> Result<()> {
    let (launch, _node) = launched(bus).await?;
    let server = launch.arg("--auth").arg("iam").ready().await?;
    let admin = first_key(&server).await?;
    let row = json!({"url": "http://127.0.0.1:9/", "remote-name": "seen", "auth-token": SECRET});
    let of = |kind: &str| {
        let other = json!({"name": "seen", "headers": [{"x-api-key": SECRET}]});
        let value = if kind == "mcp" { &row } else { &other };
        json!({"type": kind, "key": "k", "value": value.to_string()})
    };
    let values: Vec<Value> = KINDS.iter().map(|kind| of(kind)).collect();
    let put = json!({"operation": "put", "workspace": "default", "values": values});
    let url = format!("{}api/v1/config", server.url());
    let put = client()?.post(url).bearer_auth(&admin).json(&put);
    let told: Value = put.send().await?.json().await?;
    ensure!(told.get("error").is_none(), "{told}");
    let start = json!({"operation": "start-flow", "workspace": "default", "flow-id": "held",
        "blueprint-name": "everything", "description": "seen", "parameters": {"api-key": SECRET}});
    let url = format!("{}api/v1/flow", server.url());
    let told: Value = client()?
        .post(url)
        .bearer_auth(&admin)
        .json(&start)
        .send()
        .await?
        .json()
        .await?;
    ensure!(told.get("error").is_none(), "{told}");
    for told in answers(&server, &admin).await? {
        ensure!(told.contains(SECRET), "{told}");
    }
    let reader = key_of_reader(&server, &admin).await?;
    for told in answers(&server, &reader).await? {
        ensure!(!told.contains(SECRET), "{told}");
        ensure!(told.contains("********") && told.contains("seen"), "{told}");
    }
    // What was not shown is not written back.
    let seen = json!({"url": "http://127.0.0.1:9/", "auth-token": "********"});
    let values = [json!({"type": "mcp", "key": "k", "value": seen.to_string()})];
    let put = json!({"operation": "put", "workspace": "default", "values": values});
    let url = format!("{}api/v1/config", server.url());
    let told = client()?
        .post(url)
        .bearer_auth(&admin)
        .json(&put)
        .send()
        .await?;
    let told = told.text().await?;
    ensure!(told.contains("must not hold"), "{told}");
    ensure!(!server.log().contains(SECRET), "{}", server.log());
    Ok(())
}

on_both_buses!(readers_see_that_there_is_one);
