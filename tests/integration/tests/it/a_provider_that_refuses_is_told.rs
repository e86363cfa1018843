//! A provider that refuses, or says nothing, is told with its status or cause and the setting behind it: to whoever asks, in
//! the log, and by the doctor; the language model and what makes vectors alike. Who runs the system is told the address, too,
//! whoever only has a key is not. What the provider writes, and keys, are told nobody.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, ScriptedModel};
use tg_testkit::process::{Launch, Server, client, tg};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Socket, brief};
use tokio::time::Instant;

use crate::edge::first_key;
use crate::world::Bus;

const KEY: &str = "sk-test-secret-4711";
/// What no provider's words may bring to anybody.
const SAID: &str =
    r#"{"error": {"message": "the key sk-test-secret-4711 is bad, says db.internal"}}"#;
const HIDDEN: [&str; 3] = [KEY, "is bad", "db.internal"];
const BOUND: Duration = Duration::from_secs(60);

/// A question to a service, the check that looks after it, and what is behind it.
struct Asked {
    service: &'static str,
    body: Value,
    check: &'static str,
    about: &'static str,
}

fn both() -> [Asked; 2] {
    [
        Asked {
            service: "text-completion",
            body: json!({"system": "s", "prompt": "p"}),
            check: "language model",
            about: "; set by OPENAI_BASE_URL; model m",
        },
        Asked {
            service: "embeddings",
            body: json!({"texts": ["a"]}),
            check: "embeddings provider",
            about: "; set by embeddings.url; model v",
        },
    ]
}

/// A running system, and the key to it, if one is needed.
struct World {
    server: Server,
    key: String,
    model: ScriptedModel,
    _node: Option<VirtualHost>,
}

impl World {
    async fn start(bus: Bus, auth: &str) -> Result<Self> {
        let model = ScriptedModel::start(Vec::new()).await?;
        let mut launch = Launch::up()
            .env("OPENAI_BASE_URL", model.url())
            .env("OPENAI_API_KEY", KEY)
            .env("OPENAI_MODEL", "m")
            .env("THREADGRAPH_EMBEDDINGS__PROVIDER", "openai")
            .env("THREADGRAPH_EMBEDDINGS__URL", model.url())
            .env("THREADGRAPH_EMBEDDINGS__MODEL", "v")
            .arg("--auth")
            .arg(auth);
        let node = bus.broker().await?;
        if let Some(node) = &node {
            launch = launch.arg("--bus").arg(node.url());
        }
        let server = launch.ready().await?;
        let key = match auth {
            "iam" => first_key(&server).await?,
            _ => String::new(),
        };
        Ok(Self {
            server,
            key,
            model,
            _node: node,
        })
    }

    /// What a question to a service ends with.
    async fn error(&self, asked: &Asked, seconds: u64) -> Result<String> {
        let service = asked.service;
        let url = format!("{}api/v1/flow/default/service/{service}", self.server.url());
        let mut request = client()?.post(url).header("x-timeout", seconds.to_string());
        if !self.key.is_empty() {
            request = request.bearer_auth(&self.key);
        }
        let reply: Value = request.json(&asked.body).send().await?.json().await?;
        let message = reply["error"]["message"].as_str();
        Ok(message.with_context(|| reply.to_string())?.to_owned())
    }

    /// What the doctor says, and whether that is well.
    async fn doctor(&self, check: &str) -> Result<(bool, String)> {
        let told = tg(
            &self.server.url(),
            &["doctor", "--json", "--token", &self.key],
        )
        .await?;
        let told: Value =
            serde_json::from_str(&told.stdout).with_context(|| told.stdout.clone())?;
        let checks = told["checks"]
            .as_array()
            .with_context(|| told.to_string())?;
        let check = checks.iter().find(|one| one["name"] == check);
        let check = check.with_context(|| told.to_string())?;
        let detail = check["detail"].as_str().unwrap_or_default();
        Ok((check["ok"] == true, detail.to_owned()))
    }

    /// The stored trace of a run that fails, once it has the reason.
    async fn trace(&self, why: &str) -> Result<String> {
        let url = self.server.url();
        let socket = Socket::connect(&url, &self.key).await?;
        let question = json!({"question": "Why?", "streaming": true});
        let frames = socket.ask("agent", "default", question).await?;
        let mut ids = frames
            .iter()
            .filter_map(|frame| frame["response"]["explain_id"].as_str());
        let run = ids.next().with_context(|| brief(&frames))?;
        let end = Instant::now() + BOUND;
        loop {
            let args = ["show-explain-trace", run, "--token", self.key.as_str()];
            let shown = tg(&url, &args).await?;
            if shown.stdout.contains(why) {
                return Ok(shown.stdout);
            }
            ensure!(Instant::now() < end, "{why} in {shown:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits for a warning that ends with a sentence.
    async fn logged(&self, sentence: &str) -> Result<()> {
        let end = Instant::now() + BOUND;
        let has = |line: &str| line.contains(" WARN ") && line.contains(sentence);
        while !self.server.log().lines().any(has) {
            ensure!(Instant::now() < end, "{sentence} in {}", self.server.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

/// Statuses that stay, with what the model and what the server of vectors are said to lack.
const REFUSED: [(u16, [&str; 2]); 3] = [
    (
        401,
        [
            "the model provider did not accept the key",
            "the embeddings provider did not accept the key",
        ],
    ),
    (
        404,
        [
            "the model provider does not know this model; list-models shows what it has",
            "model: the embeddings provider does not have this model",
        ],
    ),
    (
        400,
        [
            "the model provider refused the request as invalid",
            "the embeddings provider refused the request as invalid",
        ],
    ),
];

async fn refusals(world: &World) -> Result<()> {
    let url = world.model.url();
    for (status, failures) in REFUSED {
        world.model.refuse(Reply::status(status, SAID));
        for (asked, failure) in both().iter().zip(failures) {
            let told = |why: &str| format!("{failure} ({why}){}", asked.about);
            let full = told(&format!("HTTP {status} at {url}"));
            let bare = told(&format!("HTTP {status}"));
            let error = world.error(asked, 30).await?;
            match world.key.is_empty() {
                true => ensure!(error == full, "{error} is not {full}"),
                false => ensure!(error == bare, "{error} is not {bare}"),
            }
            world.logged(&full).await?;
            let (good, detail) = world.doctor(asked.check).await?;
            let address = match world.key.is_empty() {
                true => format!("HTTP {status} at {url}"),
                false => format!("HTTP {status}"),
            };
            ensure!(
                detail.contains(&format!("({address}){}", asked.about)),
                "{detail}"
            );
            // A server may have no list of its models.
            ensure!(good == (status == 404), "{status}: {detail}");
        }
        if status == 401 {
            let trace = world.trace(failures[0]).await?;
            for hidden in HIDDEN {
                ensure!(!trace.contains(hidden), "{hidden} in {trace}");
            }
        }
    }
    Ok(())
}

/// One that takes questions and never answers: it is told in time, before whoever asks gives up.
async fn silence(world: &World) -> Result<()> {
    world.model.refuse(Reply::Silence);
    let url = world.model.url();
    let failures = [
        "the model did not answer in time",
        "the embeddings provider did not answer in time",
    ];
    let [model, vectors] = both();
    let (of_model, of_vectors) = tokio::join!(world.error(&model, 10), world.error(&vectors, 10));
    let told = [(model, of_model?), (vectors, of_vectors?)];
    for ((asked, error), failure) in told.iter().zip(failures) {
        let full = format!("{failure} ({url}){}", asked.about);
        let bare = format!("{failure}{}", asked.about);
        let expected = if world.key.is_empty() { &full } else { &bare };
        ensure!(error == expected, "{error} is not {expected}");
        world.logged(&full).await?;
        let (good, detail) = world.doctor(asked.check).await?;
        ensure!(!good && detail == *expected, "{detail} is not {expected}");
    }
    Ok(())
}

async fn story(bus: Bus, auth: &str) -> Result<()> {
    let world = World::start(bus, auth).await?;
    refusals(&world).await?;
    silence(&world).await?;
    let log = world.server.log();
    for hidden in HIDDEN {
        ensure!(!log.contains(hidden), "{hidden} in {log}");
    }
    Ok(())
}

#[tokio::test]
async fn to_who_runs_the_system_embedded() -> Result<()> {
    story(Bus::Embedded, "none").await
}

#[tokio::test]
async fn to_who_runs_the_system_over_rabbitmq() -> Result<()> {
    story(Bus::Rabbit, "none").await
}

#[tokio::test]
async fn to_who_has_a_key_embedded() -> Result<()> {
    story(Bus::Embedded, "iam").await
}

#[tokio::test]
async fn to_who_has_a_key_over_rabbitmq() -> Result<()> {
    story(Bus::Rabbit, "iam").await
}
