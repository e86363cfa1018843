//! A key that was revoked, or has expired, opens nothing a second later, and what it had opened is closed: requests,
//! exports and sockets. No key of a deleted workspace opens one that is made of its name.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use serde_json::{Value, json};
use tg_testkit::process::{Server, client};
use tg_testkit::socket::Socket;

use crate::edge::{first_key, iam, with_keys};
use crate::world::Bus;

/// From the answer of the revocation on.
const BOUND: Duration = Duration::from_secs(1);

/// What a request with a key is answered with.
pub async fn status(server: &Server, key: &str) -> Result<u16> {
    let url = format!("{}api/v1/config", server.url());
    let ask = json!({"operation": "list", "type": "flow"});
    let response = client()?
        .post(url)
        .bearer_auth(key)
        .json(&ask)
        .send()
        .await?;
    Ok(response.status().as_u16())
}

/// A key of a user, and its id.
pub async fn key_of(
    server: &Server,
    admin: &str,
    user: &str,
    expires: &str,
) -> Result<(String, String)> {
    let key = json!({"operation": "create-api-key", "workspace": "default",
        "key": {"user_id": user, "name": "k", "expires": expires}});
    let made = iam(server, admin, key).await?;
    let text = |value: &Value| value.as_str().map(str::to_owned).context("no key");
    Ok((
        text(&made["api_key_plaintext"])?,
        text(&made["api_key"]["id"])?,
    ))
}

/// The last line of an export that is open when it ends.
pub async fn export(
    server: &Server,
    key: &str,
) -> Result<impl Future<Output = Result<String>> + use<>> {
    let url = format!(
        "{}api/v1/flow/default/export/triples?workspace=default",
        server.url()
    );
    let response = client()?.get(url).bearer_auth(key).send().await?;
    ensure!(response.status().is_success(), "no export");
    let mut lines = response.bytes_stream();
    Ok(async move {
        let mut all = Vec::new();
        while let Some(bytes) = lines.next().await {
            all.extend_from_slice(&bytes?);
        }
        Ok(String::from_utf8_lossy(&all).into_owned())
    })
}

async fn ends(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let launch = with_keys().over(broker.as_ref());
    let server = launch.ready().await?;
    let admin = first_key(&server).await?;
    let user = json!({"operation": "create-user", "workspace": "default",
        "user": {"username": "bob", "roles": ["writer"]}});
    let user = iam(&server, &admin, user).await?["user"]["id"].clone();
    let user = user.as_str().context("no user")?;

    let (key, id) = key_of(&server, &admin, user, "").await?;
    assert_eq!(status(&server, &key).await?, 200);
    let stream = export(&server, &key).await?;
    let socket = Socket::connect(&server.url(), &key).await?;
    let revoke = json!({"operation": "revoke-api-key", "workspace": "default", "key_id": id});
    iam(&server, &admin, revoke).await?;
    let revoked = Instant::now();
    let last = tokio::time::timeout(BOUND, stream)
        .await
        .context("the export goes on after a revocation")??;
    ensure!(last.contains("revoked or has expired"), "{last}");
    while socket.open() {
        ensure!(revoked.elapsed() < BOUND, "the socket is open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(status(&server, &key).await?, 401);
    assert_eq!(status(&server, &admin).await?, 200);

    // The clock ends one as well.
    let soon = std::time::SystemTime::now() + Duration::from_secs(3);
    let seconds = soon.duration_since(std::time::UNIX_EPOCH)?.as_secs_f64();
    let (key, _) = key_of(&server, &admin, user, &stamp(seconds)).await?;
    let stream = export(&server, &key).await?;
    let bound = Duration::from_secs(3) + BOUND;
    let last = tokio::time::timeout(bound, stream)
        .await
        .context("the export goes on after its key expired")??;
    ensure!(last.contains("revoked or has expired"), "{last}");
    assert_eq!(status(&server, &key).await?, 401);
    Ok(())
}

/// What a request about the workspace `acme` with a key is answered with.
async fn at_acme(server: &Server, key: &str) -> Result<u16> {
    let url = format!("{}api/v1/config", server.url());
    let ask = json!({"operation": "list", "type": "flow", "workspace": "acme"});
    let asked = client()?.post(url).bearer_auth(key).json(&ask).send();
    Ok(asked.await?.status().as_u16())
}

/// Two keys of a user whose own workspace is deleted and made again, one of them revoked just before.
async fn of_an_older_workspace(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let admin = first_key(&server).await?;
    let of_acme = |operation: &str| json!({"operation": operation, "workspace_record": {"id": "acme", "enabled": true}});
    iam(&server, &admin, of_acme("create-workspace")).await?;
    let person = json!({"operation": "create-user", "workspace": "acme",
        "user": {"username": "bob", "roles": ["writer"]}});
    let person = iam(&server, &admin, person).await?["user"]["id"].clone();
    let mut keys = Vec::new();
    for name in ["a", "b"] {
        let ask = json!({"operation": "create-api-key", "workspace": "acme",
            "key": {"user_id": person, "name": name}});
        let made = iam(&server, &admin, ask).await?;
        let key = made["api_key_plaintext"].as_str().context("no key")?;
        keys.push((key.to_owned(), made["api_key"]["id"].clone()));
    }
    // Remembered by the gateway from now on.
    let end = Instant::now() + Duration::from_secs(60);
    for (key, _) in &keys {
        while at_acme(&server, key).await? != 200 {
            ensure!(Instant::now() < end, "a key of the workspace opens it");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let revoke = json!({"operation": "revoke-api-key", "workspace": "acme", "key_id": keys[0].1});
    iam(&server, &admin, revoke).await?;
    iam(&server, &admin, of_acme("delete-workspace")).await?;
    iam(&server, &admin, of_acme("create-workspace")).await?;
    let made = Instant::now();
    let end = made + Duration::from_secs(60);
    while at_acme(&server, &admin).await? != 200 {
        ensure!(Instant::now() < end, "the new one is not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // As long as decisions were remembered once, and longer than the bound.
    while made.elapsed() < 3 * BOUND {
        for (key, _) in &keys {
            let answered = at_acme(&server, key).await?;
            let refused = answered == 401 || answered == 403;
            ensure!(refused, "{answered} after {:?}", made.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Somebody of the same name in the new one has a key of their own.
    let person = json!({"operation": "create-user", "workspace": "acme",
        "user": {"username": "bob", "roles": ["writer"]}});
    let person = iam(&server, &admin, person).await?["user"]["id"].clone();
    let ask = json!({"operation": "create-api-key", "workspace": "acme",
        "key": {"user_id": person, "name": "c"}});
    let made = iam(&server, &admin, ask).await?;
    let new = made["api_key_plaintext"].as_str().context("no key")?;
    ensure!(at_acme(&server, new).await? == 200);
    for (key, _) in &keys {
        ensure!(at_acme(&server, key).await? == 401, "an old key is back");
    }
    Ok(())
}

#[tokio::test]
async fn of_an_older_workspace_on_the_embedded_bus() -> Result<()> {
    of_an_older_workspace(Bus::Embedded).await
}

#[tokio::test]
async fn of_an_older_workspace_on_rabbitmq() -> Result<()> {
    of_an_older_workspace(Bus::Rabbit).await
}

/// A moment as ISO 8601, by the civil calendar.
fn stamp(seconds: f64) -> String {
    let whole = seconds as i64;
    let (days, rest) = (whole / 86_400, whole % 86_400);
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}+00:00",
        doy - (153 * mp + 2) / 5 + 1,
        rest / 3600,
        rest % 3600 / 60,
        rest % 60
    )
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn on_the_embedded_bus() -> Result<()> {
        ends(Bus::Embedded).await
    }

    #[tokio::test]
    async fn on_rabbitmq() -> Result<()> {
        ends(Bus::Rabbit).await
    }
}
