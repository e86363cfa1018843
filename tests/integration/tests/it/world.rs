//! A running system on either bus, with a scripted model behind it.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_testkit::model::{Rule, ScriptedModel, two_step_react};
use tg_testkit::process::{Launch, Server};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::Socket;

/// Which bus a test runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bus {
    Embedded,
    Rabbit,
}

impl Bus {
    /// A broker of one's own, where there is one; it is kept for as long as it is needed.
    pub async fn broker(self) -> Result<Option<VirtualHost>> {
        Ok(match self {
            Self::Embedded => None,
            Self::Rabbit => Some(VirtualHost::new().await?),
        })
    }
}

/// Makes tests of stories, which take the bus: one on each.
macro_rules! on_both_buses {
    ($($name:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                super::$name($crate::world::Bus::Embedded).await
            })+
        }

        mod rabbitmq {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                super::$name($crate::world::Bus::Rabbit).await
            })+
        }
    };
}
pub(crate) use on_both_buses;

/// Every service in one process, with the model that comes with it; the broker is kept for as long as it is needed.
pub async fn up(bus: Bus) -> Result<(Server, Option<VirtualHost>)> {
    let (launch, node) = launched(bus).await?;
    Ok((launch.ready().await?, node))
}

/// The same, before it is started: for what else it is to be told.
pub async fn launched(bus: Bus) -> Result<(Launch, Option<VirtualHost>)> {
    let node = bus.broker().await?;
    Ok((Launch::up().over(node.as_ref()), node))
}

/// A data directory and a broker that servers come and go over, without any setting of a model.
pub struct Installation {
    data: TempDir,
    node: Option<VirtualHost>,
}

impl Installation {
    pub async fn new(bus: Bus) -> Result<Self> {
        let node = bus.broker().await?;
        let data = tempfile::tempdir()?;
        Ok(Self { data, node })
    }

    /// Starts the server, at a port if it is to be the same again.
    pub async fn up(&self, port: Option<u16>) -> Result<Server> {
        let mut launch = Launch::up().data(self.data.path()).over(self.node.as_ref());
        if let Some(port) = port {
            launch = launch.port(port);
        }
        launch.ready().await
    }
}

/// A system with every service in one process.
pub struct World {
    pub server: Server,
    pub model: ScriptedModel,
    _node: Option<VirtualHost>,
}

impl World {
    /// Starts it with rules for the model.
    pub async fn with(bus: Bus, rules: Vec<Rule>) -> Result<Self> {
        let model = ScriptedModel::start(rules).await?;
        let node = bus.broker().await?;
        let server = launch(&model, node.as_ref()).ready().await?;
        Ok(Self {
            server,
            model,
            _node: node,
        })
    }

    /// Starts it with a model that calls the calculator once and then answers with the question's nonce.
    pub async fn two_step(bus: Bus) -> Result<Self> {
        Self::with(
            bus,
            two_step_react("calculator", json!({"expression": "6*7"}), 8),
        )
        .await
    }

    /// A socket of an anonymous client.
    pub async fn socket(&self) -> Result<Socket> {
        Socket::connect(&self.server.url(), "").await
    }

    /// Sends a request over REST and returns status and body.
    pub async fn post(&self, path: &str, body: Value) -> Result<(u16, Value)> {
        post(&self.server.url(), path, body).await
    }
}

/// A launch of every service, wired to a model and maybe a broker.
pub fn launch(model: &ScriptedModel, node: Option<&VirtualHost>) -> Launch {
    wired(Launch::up(), model).over(node)
}

/// A launch of some services over a broker, wired to a model.
pub fn serving(services: &[&str], model: &ScriptedModel, node: &VirtualHost) -> Launch {
    wired(Launch::serve(services, &node.url()), model)
}

/// Wires a launch to a model.
pub fn wired(launch: Launch, model: &ScriptedModel) -> Launch {
    launch
        .env("OPENAI_BASE_URL", model.url())
        .env("OPENAI_API_KEY", "sk-test-secret-4711")
        .env("OPENAI_MODEL", "scripted")
}

/// An answer comes within this: a test that waits for none says where it stands, and not that the suite took too long.
const ANSWER: Duration = Duration::from_secs(120);

/// Sends a request over REST.
pub async fn post(url: &str, path: &str, body: Value) -> Result<(u16, Value)> {
    post_within(url, path, body, ANSWER).await
}

/// The same, of which the gateway is told how long its asker waits.
pub async fn post_within(
    url: &str,
    path: &str,
    body: Value,
    patience: Duration,
) -> Result<(u16, Value)> {
    // Written by code of the library of JSON. What `json` of a request writes it by is compiled with these tests, which are not
    // optimised, and takes a fifth of a second for eight megabytes.
    let mut request = tg_testkit::process::client()?
        .post(format!("{url}{path}"))
        .header("Content-Type", "application/json")
        .body(body.to_string())
        .timeout(ANSWER);
    if patience < ANSWER {
        request = request.header("X-Timeout", patience.as_secs());
    }
    let response = request.send().await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    Ok((
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    ))
}
