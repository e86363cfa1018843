//! The system that is taken apart: one process, or one per service over a broker. Each tells its metrics at a port of its own.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use tg_testkit::model::{Options, Reply, Rule, ScriptedModel, two_step_react};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::services::SERVICES;

/// The service that is asked.
const GATEWAY: &str = "gateway";
/// What the one process of a system is called.
const ALL: &str = "all";
const PIECES: usize = 8;

/// How the system is put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Embedded,
    OneProcess,
    ProcessPerService,
}

impl Shape {
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::OneProcess => "RabbitMQ, one process",
            Self::ProcessPerService => "RabbitMQ, a process per service",
        }
    }
}

/// A process of the system.
pub struct Part {
    pub name: &'static str,
    pub pid: u32,
    server: Server,
}

impl Part {
    /// Its metrics as they are now.
    pub async fn metrics(&self) -> Result<String> {
        let url = format!("http://127.0.0.1:{}/metrics", self.server.report_port()?);
        let answer = client()?.get(url).send().await?;
        Ok(answer.error_for_status()?.text().await?)
    }
}

/// A running system.
pub struct System {
    pub parts: Vec<Part>,
    _data: TempDir,
}

impl System {
    /// Starts it and waits until its gateway serves; `traces` is where it exports its spans.
    pub async fn start(
        shape: Shape,
        model: &ScriptedModel,
        bus: Option<&str>,
        traces: Option<&str>,
    ) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let names: &[&'static str] = match shape {
            Shape::ProcessPerService => &SERVICES,
            _ => &[ALL],
        };
        let mut parts = Vec::new();
        for name in names.iter().copied() {
            let mut launch = Launch::up();
            if shape == Shape::ProcessPerService {
                launch.services.push(name.to_owned());
            }
            launch.bus = bus.map(str::to_owned);
            let launch = launch
                .env("OPENAI_BASE_URL", model.url())
                .env("OPENAI_API_KEY", "sk-bench")
                .env("OPENAI_MODEL", "scripted")
                .env("THREADGRAPH_METRICS__LISTEN", "127.0.0.1:0")
                .env("THREADGRAPH_TELEMETRY__OTLP_URL", traces.unwrap_or("none"))
                .data(&data.path().join(name));
            let server = launch.spawn().await?;
            parts.push(Part {
                name,
                pid: server.pid().context("no process")?,
                server,
            });
        }
        let mut system = Self { parts, _data: data };
        let ready = system.front()?.server.wait_ready().await;
        ready.with_context(|| format!("processes that ended: {:?}", system.ended()))?;
        Ok(system)
    }

    /// The processes that have ended, by their names.
    fn ended(&mut self) -> Vec<&'static str> {
        let each = self.parts.iter_mut();
        let ended = each.filter_map(|part| (!part.server.alive()).then_some(part.name));
        ended.collect()
    }

    /// The process with the gateway: the only one, or that service's.
    fn front(&mut self) -> Result<&mut Part> {
        let mut parts = self.parts.iter_mut();
        let front = parts.find(|part| part.name == GATEWAY || part.name == ALL);
        front.context("no gateway")
    }

    pub fn url(&self) -> Result<String> {
        let mut parts = self.parts.iter();
        let front = parts.find(|part| part.name == GATEWAY || part.name == ALL);
        Ok(front.context("no gateway")?.server.url())
    }

    /// Ends it in order.
    pub async fn end(self) -> Result<()> {
        let ends = self.parts.into_iter().map(|part| part.server.terminate());
        for end in futures::future::join_all(ends).await {
            let code = end?;
            ensure!(code == Some(0), "a process ended with {code:?}");
        }
        Ok(())
    }
}

/// A virtual host of its own, over a broker.
pub async fn host(node: Option<&RabbitNode>, name: &str) -> Result<Option<String>> {
    match node {
        None => Ok(None),
        Some(node) => Ok(Some(node.vhost(name).await?)),
    }
}

/// A model without delay: the agent first asks it through a tool, which asks it once more, and then answers.
pub async fn model() -> Result<ScriptedModel> {
    let options = Options {
        keep_calls: false,
        counts_tokens: false,
        ..Options::default()
    };
    let asked = json!({"question": "Say in a word what six times seven is."});
    let mut rules = vec![Rule::computed(
        |prompt| !prompt.contains("Final Answer"),
        |_| Reply::pieces(vec!["Forty".to_owned(), "-two.".to_owned()]),
    )];
    rules.extend(two_step_react("llm_completion", asked, PIECES));
    Ok(ScriptedModel::start_with(options, rules).await?)
}
