//! The system under measurement: one process, or a process per service over a broker; what its processes cost.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tg_testkit::model::{Options, Reply, Rule, ScriptedModel, two_step_react};
use tg_testkit::process::{Launch, Server, bin_dir, client};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::services::{SERVICES, without};

use crate::figures::{Figures, millis};
use crate::{BOUND, DURABILITY, PIECES};

/// Pause between two looks at whether it is ready: short, for it is part of the figure.
const LOOK: Duration = Duration::from_millis(2);
/// The service that is asked; its process is the first.
const GATEWAY: &str = "gateway";
/// Time that a process of the system may take to be connected before the next is started.
const SETTLE: Duration = Duration::from_millis(20);

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

/// A running system; the first process has the gateway.
pub struct System(Vec<Server>);

impl System {
    pub fn url(&self) -> String {
        self.0[0].url()
    }

    pub fn gateway(&self) -> &Server {
        &self.0[0]
    }

    /// Starts it; milliseconds until the default flow serves.
    pub async fn start(
        shape: Shape,
        model: &ScriptedModel,
        bus: Option<&str>,
        data: &Path,
    ) -> Result<(Self, f64)> {
        let client = client()?;
        let begun = Instant::now();
        let mut servers = Vec::new();
        for services in parts(shape) {
            let mut launch = match bus {
                Some(bus) => Launch::serve(&services, bus),
                None => Launch::up(),
            };
            if shape == Shape::OneProcess {
                launch.services = Vec::new();
            }
            let name = services.first().copied().unwrap_or("all");
            let launch = launch
                .env("OPENAI_BASE_URL", model.url())
                .env("OPENAI_API_KEY", "sk-bench")
                .env("OPENAI_MODEL", "scripted")
                .env("THREADGRAPH_DURABILITY", DURABILITY)
                .data(&match shape {
                    Shape::ProcessPerService => data.join(name),
                    _ => data.to_owned(),
                });
            servers.push(launch.spawn().await?);
            if shape == Shape::ProcessPerService {
                tokio::time::sleep(SETTLE).await;
            }
        }
        let mut system = Self(servers);
        let url = format!("{}health/ready", system.url());
        loop {
            let answer = client.get(&url).timeout(BOUND).send().await;
            if answer.is_ok_and(|response| response.status().is_success()) {
                return Ok((system, millis(begun)));
            }
            if system.0.iter_mut().any(|server| !server.alive()) || begun.elapsed() > BOUND {
                let logs: Vec<_> = system.0.iter().map(Server::log).collect();
                bail!("the system did not get ready:\n{}", logs.join("\n"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Asks the system to end; a process that does not is killed, and that is a fault.
    pub async fn end(self, figures: &mut Figures) {
        let ends = self.0.into_iter().map(Server::terminate);
        for end in futures::future::join_all(ends).await {
            match end {
                Ok(Some(0)) => {}
                Ok(code) => figures.faults.push(format!("end: exit code {code:?}")),
                Err(fault) => figures.faults.push(format!("end: {fault:#}")),
            }
        }
    }

    /// A line of `/proc/PID/status` of each process, in MB.
    pub fn memory(&self, line: &str) -> Result<Vec<f64>> {
        let one = |server: &Server| {
            let pid = server.pid().context("no process")?;
            Ok(tg_integration_tests::memory(pid, line)? * 1.048_576)
        };
        self.0.iter().map(one).collect()
    }

    /// Own memory of each process at rest, the largest first: which service costs what.
    pub fn print_memory(&self, shape: Shape) -> Result<()> {
        let own = self.memory("RssAnon")?;
        let mut of_each: Vec<_> = names(shape).into_iter().zip(own).collect();
        of_each.sort_by(|one, other| other.1.total_cmp(&one.1));
        let texts = of_each.iter().map(|(name, own)| format!("{name} {own:.1}"));
        println!(
            "  own memory of each, idle, MB: {}",
            texts.collect::<Vec<_>>().join(", ")
        );
        Ok(())
    }

    /// Processor time of each process so far, in milliseconds.
    pub fn processor_times(&self) -> Result<Vec<f64>> {
        let one = |server: &Server| processor_time(server.pid().context("no process")?);
        self.0.iter().map(one).collect()
    }
}

/// What each process is called: its service, where it has one.
pub fn names(shape: Shape) -> Vec<&'static str> {
    let first = |part: &Vec<&'static str>| part.first().copied().unwrap_or("all");
    parts(shape).iter().map(first).collect()
}

/// The services of each process, the one with the gateway first.
fn parts(shape: Shape) -> Vec<Vec<&'static str>> {
    match shape {
        Shape::ProcessPerService => {
            let others = without(&SERVICES, &[GATEWAY]);
            let all = std::iter::once(GATEWAY).chain(others);
            all.map(|name| vec![name]).collect()
        }
        _ => vec![Vec::new()],
    }
}

fn processor_time(pid: u32) -> Result<f64> {
    tg_testkit::bench::processor_time(pid).context("no times")
}

/// Processor time of a broker so far, in milliseconds.
pub fn of_broker(node: &RabbitNode) -> Result<f64> {
    processor_time(node.pid()?)
}

/// A model without delay: the agent first asks it through a tool, which asks it once more, and then answers.
pub async fn model() -> Result<ScriptedModel> {
    let options = Options {
        keep_calls: false,
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

/// Size of the program's file, in MB.
pub fn size_of_program() -> Result<f64> {
    let file = std::fs::metadata(bin_dir()?.join("threadgraph"))?;
    Ok(file.len() as f64 / 1e6)
}
