//! The system under measurement: one process, or a process per service over a broker; what its processes cost.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tg_testkit::model::{Options, Reply, Rule, ScriptedModel, two_step_react};
use tg_testkit::process::{Launch, Server, bin_dir, client};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::services::SERVICES;

use crate::figures::{Figures, millis};
use crate::{BOUND, DURABILITY, PIECES};

/// Pause between two looks at whether it is ready: short, for it is part of the figure.
const LOOK: Duration = Duration::from_millis(2);
/// The service that is asked; its process is the first.
const GATEWAY: &str = "gateway";
/// The variable that names the services of a program of another commit, with blanks between them.
const OF_PROGRAM: &str = "TG_BENCH_SERVICES";
/// What the one process of a system is called.
const ALL: &str = "all";
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
    /// By its word on the command line of a turn.
    pub fn named(word: &str) -> Result<Self> {
        match word {
            "embedded" => Ok(Self::Embedded),
            "process" => Ok(Self::OneProcess),
            "services" => Ok(Self::ProcessPerService),
            _ => bail!("{word:?} must be embedded, process or services"),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::OneProcess => "RabbitMQ, one process",
            Self::ProcessPerService => "RabbitMQ, a process per service",
        }
    }
}

/// A running system; the first process has the gateway. Each has a name, in the same order.
pub struct System(Vec<Server>, Vec<String>);

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
        let names = names(shape)?;
        let mut servers = Vec::new();
        for name in &names {
            let mut launch = match bus {
                Some(bus) => Launch::serve(&[name.as_str()], bus),
                None => Launch::up(),
            };
            if shape == Shape::OneProcess {
                launch.services = Vec::new();
            }
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
        let mut system = Self(servers, names);
        loop {
            // It is known once the gateway listens.
            let url = format!("{}health/ready", system.url());
            let answer = client.get(url).timeout(BOUND).send().await;
            let said = match answer {
                Ok(answer) if answer.status().is_success() => {
                    return Ok((system, millis(begun)));
                }
                Ok(answer) => answer.text().await.unwrap_or_default(),
                Err(fault) => fault.to_string(),
            };
            let ended = system.ended();
            if !ended.is_empty() || begun.elapsed() > BOUND {
                bail!(system.not_ready(&ended, &said));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The processes that have ended, by their names.
    fn ended(&mut self) -> Vec<String> {
        let each = self.0.iter_mut().zip(&self.1);
        let ended = each.filter_map(|(server, name)| (!server.alive()).then(|| name.clone()));
        ended.collect()
    }

    /// Why the system is not ready: which processes have ended, or what the gateway says it lacks; and the log of each.
    fn not_ready(&self, ended: &[String], said: &str) -> String {
        let why = match ended {
            [] => format!("the gateway says: {said}"),
            ended => format!("these processes ended: {}", ended.join(", ")),
        };
        let logs = self.0.iter().zip(&self.1);
        let logs = logs.filter(|(_, name)| ended.is_empty() || ended.contains(name));
        let logs: Vec<_> = logs
            .map(|(server, name)| format!("{name}:\n{}", server.log()))
            .collect();
        format!("the system did not get ready; {why}\n{}", logs.join("\n"))
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

    /// Memory of each process, the largest first: which service costs what. `line` is one of `/proc/PID/status`, `what` says what it shows.
    pub fn print_memory(&self, line: &str, what: &str) -> Result<()> {
        let memory = self.memory(line)?;
        let mut of_each: Vec<_> = self.1.iter().zip(memory).collect();
        of_each.sort_by(|one, other| other.1.total_cmp(&one.1));
        let texts = of_each
            .iter()
            .map(|(name, memory)| format!("{name} {memory:.1}"));
        println!(
            "  {what} of each, MB: {}",
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

/// What each process is called, the one with the gateway first: its service, where it has one.
pub fn names(shape: Shape) -> Result<Vec<String>> {
    if shape != Shape::ProcessPerService {
        return Ok(vec![ALL.to_owned()]);
    }
    let given = std::env::var(OF_PROGRAM).unwrap_or_default();
    let given: Vec<&str> = given.split_whitespace().collect();
    let all: &[&str] = match given.as_slice() {
        [] => &SERVICES,
        given => given,
    };
    ensure!(all.contains(&GATEWAY), "{OF_PROGRAM} has no {GATEWAY}");
    let others = all.iter().filter(|name| **name != GATEWAY);
    let all = std::iter::once(&GATEWAY).chain(others);
    Ok(all.map(|name| (*name).to_owned()).collect())
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

/// Size of the program's file, in MB.
pub fn size_of_program() -> Result<f64> {
    let file = std::fs::metadata(bin_dir()?.join("threadgraph"))?;
    Ok(file.len() as f64 / 1e6)
}
