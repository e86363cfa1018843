//! Processors of the reference's release, unmodified, on a broker that they share with ours; and stand-ins for the databases
//! that some of them need.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tg_testkit::process::{client, free_port, root};
use tg_testkit::shared_node::VirtualHost;
use tokio::process::{Child, Command};

/// How often a log is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// One that runs until it is dropped.
pub struct Processor {
    metrics: u16,
    _child: Child,
}

impl Processor {
    /// Starts a released program under an id.
    pub fn start(
        command: &str,
        id: &str,
        node: &VirtualHost,
        log: &Path,
        extra: &[&str],
    ) -> Result<Self> {
        let program = Command::new(root().join(".cache/venv/bin").join(command));
        Self::run(program, id, node, log, extra)
    }

    /// Starts a released service over a stand-in, which is a script of ours.
    pub fn over_a_stand_in(script: &str, id: &str, node: &VirtualHost, log: &Path) -> Result<Self> {
        Self::by_script(script, id, node, log, &[])
    }

    /// The same with more arguments.
    pub fn by_script(
        script: &str,
        id: &str,
        node: &VirtualHost,
        log: &Path,
        extra: &[&str],
    ) -> Result<Self> {
        let mut program = Command::new(root().join(".cache/venv/bin/python3"));
        program.arg(root().join("tests/integration/clients").join(script));
        Self::run(program, id, node, log, extra)
    }

    fn run(
        mut program: Command,
        id: &str,
        node: &VirtualHost,
        log: &Path,
        extra: &[&str],
    ) -> Result<Self> {
        // It does not report which port it chose.
        let metrics = free_port()?;
        let log = std::fs::File::create(log.join(format!("{id}.log")))?;
        let child = program
            .args([
                "--id",
                id,
                "--pubsub-backend",
                "rabbitmq",
                "--rabbitmq-host",
                "127.0.0.1",
            ])
            .args(["--rabbitmq-port", &node.port().to_string()])
            .args(["--rabbitmq-vhost", node.name()])
            .args(["--no-loki-enabled", "--metrics-port", &metrics.to_string()])
            .args(extra)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {id}: run the set-up first"))?;
        Ok(Self {
            metrics,
            _child: child,
        })
    }

    /// Messages that this process says it has handled without error.
    pub async fn handled(&self) -> Result<u64> {
        let url = format!("http://127.0.0.1:{}/", self.metrics);
        let text = client()?.get(url).send().await?.text().await?;
        let count = text
            .lines()
            .filter(|line| line.starts_with("tg_consumer_processing_total{"))
            .filter(|line| line.contains("request:tg:") || line.contains("flow:tg:"))
            .filter(|line| line.contains("status=\"ok\""))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum::<f64>();
        Ok(count as u64)
    }
}

/// Waits until a foreign processor says in its log that it has attached the flow. Asked earlier it may wait
/// ten minutes for a question that its peer never got.
pub async fn attached(log: &Path) -> Result<()> {
    says(log, "Started flow: default/default", 1).await
}

/// Waits until a log says something so many times.
pub async fn says(log: &Path, what: &str, times: usize) -> Result<()> {
    for _ in 0..600 {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if text.matches(what).count() >= times {
            return Ok(());
        }
        // A Python process comes up, which takes seconds.
        tokio::time::sleep(LOOK).await;
    }
    let text = std::fs::read_to_string(log).unwrap_or_default();
    bail!("{what:?} is not in it {times} times: {text}")
}
