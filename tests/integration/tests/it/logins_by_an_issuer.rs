//! Tokens of an OpenID provider, as it is from npm, are good for a login: by its keys, for us, now, and with a role of ours.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tg_testkit::process::{Launch, Server, client, root, tg_with};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::edge::{first_key, iam, with_keys};
use crate::revocation_is_immediate::status;
use crate::world::{Bus, on_both_buses};

/// From the answer of what ends a session on.
const BOUND: Duration = Duration::from_secs(60);
/// Least time from one look at the issuer's keys to the next, and a little: waited for before it has others.
const PAUSE: Duration = Duration::from_millis(5_500);
/// The life of a token of one second is over.
const OVER: Duration = Duration::from_millis(2_100);

/// A provider in a process of its own.
struct Provider {
    _child: Child,
    input: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    issuer: String,
}

impl Provider {
    async fn start() -> Result<Self> {
        let mut child = Command::new(root().join(".cache/npm/node"))
            .arg(root().join("tests/integration/clients/oidc_provider.mjs"))
            .arg(root().join(".cache/oidc/node_modules"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot run Node.js: run the set-up first")?;
        let input = child.stdin.take().context("no input")?;
        let output = child.stdout.take().context("no output")?;
        let mut said = BufReader::new(output).lines();
        let issuer = said.next_line().await?.context("no provider")?;
        Ok(Self {
            _child: child,
            input,
            said,
            issuer,
        })
    }

    async fn rotate(&mut self) -> Result<()> {
        self.input.write_all(b"rotate\n").await?;
        while self.said.next_line().await?.context("it ended")? != "rotated" {}
        Ok(())
    }

    /// A token for an audience, signed so and good for so many seconds.
    async fn token(&self, who: &str, audience: &str, how: &str, seconds: u32) -> Result<String> {
        let resource = format!("https://{audience}.example/{how}/{seconds}");
        let resource = utf8_percent_encode(&resource, NON_ALPHANUMERIC);
        let form = format!("grant_type=client_credentials&scope=api&resource={resource}");
        let asked = client()?
            .post(format!("{}/token", self.issuer))
            .header("content-type", "application/x-www-form-urlencoded")
            .basic_auth(who, Some("of-a-test"))
            .body(form);
        let reply: Value = asked.send().await?.json().await?;
        let token = reply["access_token"].as_str();
        Ok(token
            .with_context(|| format!("no token: {reply}"))?
            .to_owned())
    }
}

/// A system that takes tokens of an issuer.
fn with_issuer(issuer: &str) -> Launch {
    with_keys()
        // Nobody is there. What is on this machine is not asked for through it.
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .env("http_proxy", "http://127.0.0.1:9")
        .env("THREADGRAPH_IAM__OIDC__ISSUER", issuer)
        .env("THREADGRAPH_IAM__OIDC__AUDIENCE", "us")
        .env(
            "THREADGRAPH_IAM__OIDC__ROLES",
            "staff=reader,editors=writer",
        )
        .env("THREADGRAPH_IAM__OIDC__WORKSPACE_CLAIM", "tenant")
        .env("THREADGRAPH_IAM__OIDC__LEEWAY_SECS", "0")
}

async fn login(server: &Server, ask: &Value) -> Result<(StatusCode, String)> {
    let url = format!("{}api/v1/auth/login", server.url());
    let response = client()?.post(url).json(ask).send().await?;
    let status = response.status();
    let reply: Value = response.json().await?;
    Ok((status, reply["jwt"].as_str().unwrap_or_default().to_owned()))
}

async fn comes_in(server: &Server, token: &str) -> Result<String> {
    let (status, jwt) = login(server, &json!({"token": token})).await?;
    ensure!(status == StatusCode::OK && !jwt.is_empty(), "{status}");
    Ok(jwt)
}

async fn stays_out(server: &Server, token: &str) -> Result<()> {
    let (status, jwt) = login(server, &json!({"token": token})).await?;
    ensure!(
        status == StatusCode::UNAUTHORIZED && jwt.is_empty(),
        "{status}"
    );
    Ok(())
}

/// `tg login --issuer` changes the token for one of ours, which later commands go by.
async fn the_command_keeps_what_it_gets(server: &Server, token: &str) -> Result<()> {
    let home = tempfile::tempdir()?;
    let folder = home.path().to_str().context("no folder")?;
    let kept = [("XDG_CONFIG_HOME", folder)];
    let url = server.url();
    let tg = async |args: &[&str]| tg_with(&url, &kept, args).await;
    let said = tg(&["login", "--issuer", "--token", token]).await?;
    ensure!(said.code == Some(0), "{}", said.stderr);
    ensure!(!said.stdout.contains(token), "{}", said.stdout);
    let who = tg(&["whoami", "--json"]).await?;
    ensure!(
        who.code == Some(0) && who.stdout.contains(":ada"),
        "{}",
        who.stderr
    );
    let profiles = std::fs::read_dir(home.path().join("threadgraph"))?;
    for file in profiles {
        let text = std::fs::read_to_string(file?.path())?;
        ensure!(!text.contains(token), "the issuer's token is kept");
    }
    let refused = tg(&["login", "--issuer", "--token", "a.b.c"]).await?;
    ensure!(refused.code != Some(0), "{}", refused.stdout);
    Ok(())
}

async fn tokens_of_a_provider_are_good_for_a_login(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let (mut provider, other) = (Provider::start().await?, Provider::start().await?);
    let launch = with_issuer(&provider.issuer).over(broker.as_ref());
    let server = launch.ready().await?;
    let admin = first_key(&server).await?;
    let mut given = Vec::new();
    let mut bob = Value::Null;
    for how in ["RS256", "PS256", "ES256", "EdDSA"] {
        let token = provider.token("bob", "us", how, 300).await?;
        let jwt = comes_in(&server, &token).await?;
        bob = iam(&server, &jwt, json!({"operation": "whoami"})).await?["user"].take();
        given.extend([token, jwt]);
    }
    ensure!(bob["roles"] == json!(["reader", "writer"]), "{bob}");
    let named = bob["username"].as_str().unwrap_or_default();
    ensure!(
        named.starts_with("oidc:") && named.ends_with(":bob"),
        "{bob}"
    );
    let users = iam(&server, &admin, json!({"operation": "list-users"})).await?;
    assert_eq!(users["users"].as_array().map(Vec::len), Some(2), "{users}");

    let ada = provider.token("ada", "us", "RS256", 300).await?;
    the_command_keeps_what_it_gets(&server, &ada).await?;
    let ada = comes_in(&server, &ada).await?;
    let own = iam(&server, &ada, json!({"operation": "whoami"})).await?;
    ensure!(own["user"]["roles"] == json!(["reader"]), "{own}");
    // For somebody else, over, of another provider, without a role, for a workspace that is not there, and of ours.
    stays_out(&server, &provider.token("ada", "them", "RS256", 300).await?).await?;
    let short = provider.token("ada", "us", "RS256", 1).await?;
    tokio::time::sleep(OVER).await;
    stays_out(&server, &short).await?;
    stays_out(&server, &other.token("ada", "us", "RS256", 300).await?).await?;
    stays_out(&server, &provider.token("eve", "us", "RS256", 300).await?).await?;
    stays_out(&server, &provider.token("far", "us", "RS256", 300).await?).await?;
    stays_out(&server, &ada).await?;

    // Other keys are found by the first token of them.
    tokio::time::sleep(PAUSE).await;
    provider.rotate().await?;
    comes_in(&server, &provider.token("ada", "us", "ES256", 300).await?).await?;
    stays_out(&server, &given[0]).await?;

    let last = given.last().context("none")?;
    assert_eq!(status(&server, last).await?, 200);
    let disable = json!({"operation": "disable-user", "user_id": bob["id"]});
    iam(&server, &admin, disable).await?;
    let begun = Instant::now();
    while status(&server, last).await? != 401 {
        ensure!(begun.elapsed() < BOUND, "still let in");
    }
    stays_out(&server, &provider.token("bob", "us", "ES256", 300).await?).await?;
    let log = server.log();
    ensure!(
        given.iter().all(|secret| !log.contains(secret)),
        "a token is in the log"
    );
    Ok(())
}

async fn an_issuer_that_is_away_lets_nobody_in_and_keeps_nobody_out(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let provider = Provider::start().await?;
    let token = provider.token("ada", "us", "RS256", 300).await?;
    let launch = with_issuer(&provider.issuer).over(broker.as_ref());
    drop(provider);
    let server = launch.ready().await?;
    let admin = first_key(&server).await?;
    let user = json!({"operation": "create-user", "workspace": "default",
                      "user": {"username": "eva", "password": "one", "roles": ["reader"]}});
    iam(&server, &admin, user).await?;
    for _ in 0..3 {
        let (refused, jwt) = login(&server, &json!({"token": token})).await?;
        ensure!(
            refused == StatusCode::SERVICE_UNAVAILABLE && jwt.is_empty(),
            "{refused}"
        );
    }
    let (let_in, _) = login(&server, &json!({"username": "eva", "password": "one"})).await?;
    assert_eq!(let_in, StatusCode::OK);
    Ok(())
}

on_both_buses!(
    tokens_of_a_provider_are_good_for_a_login,
    an_issuer_that_is_away_lets_nobody_in_and_keeps_nobody_out,
);
