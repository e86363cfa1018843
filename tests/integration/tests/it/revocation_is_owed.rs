//! A revocation that nobody could be told of, because configuration was away and then iam itself was killed, is told by
//! the next iam: a gateway does not go on by what it remembers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tg_testkit::process::{Launch, Server};
use tg_testkit::shared_node::VirtualHost;

use crate::edge::{first_key, iam};
use crate::revocation_is_immediate::{key_of, status};

/// Everything but config and iam.
const REST: [&str; 6] = ["flow", "librarian", "llm", "prompt", "agent", "gateway"];
/// After the next iam begins to serve. Decisions are remembered for a minute.
const BOUND: Duration = Duration::from_secs(60);

async fn one(service: &str, node: &VirtualHost, rest: &Server) -> Result<Server> {
    Launch::serve(&[service], &node.url())
        .arg("--auth")
        .arg("iam")
        .data(&rest.data().join(service))
        .spawn()
        .await
}

#[tokio::test]
async fn by_whoever_serves_next() -> Result<()> {
    let node = VirtualHost::new().await?;
    let mut rest = Launch::serve(&REST, &node.url())
        .arg("--auth")
        .arg("iam")
        .spawn()
        .await?;
    let config = one("config", &node, &rest).await?;
    let first = one("iam", &node, &rest).await?;
    rest.wait_ready().await?;
    let admin = first_key(&rest).await?;
    let user = json!({"operation": "create-user", "workspace": "default",
        "user": {"username": "bob", "roles": ["writer"]}});
    let user = iam(&rest, &admin, user).await?["user"]["id"].clone();
    let user = user.as_str().context("no user")?;
    let (key, id) = key_of(&rest, &admin, user, "").await?;
    let remembered = Instant::now();
    assert_eq!(status(&rest, &key).await?, 200);

    config.kill9().await?;
    let revoke = json!({"operation": "revoke-api-key", "workspace": "default", "key_id": id});
    iam(&rest, &admin, revoke).await?;
    first.kill9().await?;

    let _config = one("config", &node, &rest).await?;
    let _iam = one("iam", &node, &rest).await?;
    let begun = Instant::now();
    while status(&rest, &key).await? != 401 {
        ensure!(begun.elapsed() < BOUND, "the key still opens the door");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // It was told; it did not merely lapse.
    ensure!(
        remembered.elapsed() < Duration::from_secs(60),
        "too slow to tell"
    );
    Ok(())
}
