//! Credentials of MCP servers: who may only read the configuration sees that there is one, over each endpoint and
//! operation; who may write it sees what it is.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Server, client};
use tg_testkit::socket::Socket;

use crate::bulk_streams::Reader;
use crate::edge::{first_key, iam};
use crate::world::{Bus, launched, on_both_buses};

const SECRET: &str = "S3CRET-of-the-server";

/// Every operation that gives values.
fn reads() -> Vec<Value> {
    vec![
        json!({"operation": "config"}),
        json!({"operation": "get", "keys": [{"type": "mcp", "key": "k"}]}),
        json!({"operation": "getvalues", "type": "mcp"}),
        json!({"operation": "getvalues", "type": "mcp", "limit": 1}),
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
    for ask in reads() {
        let told = reader.done("config", ask.clone()).await;
        answers.push(told.with_context(|| ask.to_string())?.to_string());
        let told = socket.ask_service("config", ask).await?;
        answers.push(told.to_string());
    }
    Ok(answers)
}

async fn readers_see_that_there_is_one(bus: Bus) -> Result<()> {
    let (launch, _node) = launched(bus).await?;
    let server = launch.arg("--auth").arg("iam").ready().await?;
    let admin = first_key(&server).await?;
    let row = json!({"url": "http://127.0.0.1:9/", "remote-name": "seen", "auth-token": SECRET});
    let put = json!({"operation": "put", "workspace": "default",
        "values": [{"type": "mcp", "key": "k", "value": row.to_string()}]});
    let url = format!("{}api/v1/config", server.url());
    let put = client()?.post(url).bearer_auth(&admin).json(&put);
    let told: Value = put.send().await?.json().await?;
    ensure!(told.get("error").is_none(), "{told}");
    for told in answers(&server, &admin).await? {
        ensure!(told.contains(SECRET), "{told}");
    }
    let reader = key_of_reader(&server, &admin).await?;
    for told in answers(&server, &reader).await? {
        ensure!(!told.contains(SECRET), "{told}");
        ensure!(told.contains("********") && told.contains("seen"), "{told}");
    }
    ensure!(!server.log().contains(SECRET), "{}", server.log());
    Ok(())
}

on_both_buses!(readers_see_that_there_is_one);
