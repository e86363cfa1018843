//! Three nodes that are one broker, with a port mapper of their own that outlives each of them.

use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::{CONNECT_PAUSE, RabbitNode, START, signal};

/// How many there are.
const NODES: usize = 3;
/// How long a node that was frozen may take to be back by itself, before it is restarted as an operator does.
const BY_ITSELF: Duration = Duration::from_secs(30);
/// How long the commands that restart it may take together.
const RESTARTED: Duration = Duration::from_secs(120);
/// The port mapper; it ends when the pipe on its standard input closes, as with this process.
const MAPPER: &str =
    r#"epmd -address 127.0.0.1 -port "$0" </dev/null >/dev/null 2>&1 & cat >/dev/null; kill $!"#;

/// A broker of three nodes. A minority that is cut off pauses. Dropping it kills all.
#[derive(Debug)]
pub struct RabbitCluster {
    /// The nodes.
    pub nodes: Vec<RabbitNode>,
    _mapper: Child,
    _home: TempDir,
}

impl RabbitCluster {
    /// Starts three nodes and waits until each knows the others.
    ///
    /// # Errors
    /// RabbitMQ is not installed, or the nodes do not come together within the bound.
    pub async fn start() -> Result<Self> {
        Self::start_with("").await
    }

    /// The same, of nodes that take one for gone after some eight seconds of silence, and not after a minute.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub async fn start_watchful() -> Result<Self> {
        Self::start_with("net_ticktime = 8\n").await
    }

    async fn start_with(more: &str) -> Result<Self> {
        let home = TempDir::with_prefix("tg-cluster-")?;
        let cookie = fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o400)
            .open(home.path().join(".erlang.cookie"));
        // Unlike any other's, as the name of the folder is.
        write!(cookie?, "{}", home.path().display())?;
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(RabbitNode::placed(None, "")?);
        }
        let mapper_port = nodes[0].mapper_port;
        let mapper = mapper(mapper_port).await?;
        let names: String = (1..)
            .zip(&nodes)
            .map(|(n, node)| {
                format!(
                    "cluster_formation.classic_config.nodes.{n} = {}\n",
                    node.name()
                )
            })
            .collect();
        for node in &mut nodes {
            node.mapper_port = mapper_port;
            home.path().clone_into(&mut node.home);
            let path = node.path("rabbitmq.conf");
            let mut settings = fs::File::options().append(true).open(path)?;
            write!(
                settings,
                "cluster_partition_handling = pause_minority\n{more}{names}"
            )?;
        }
        try_join_all(nodes.iter_mut().map(|node| node.boot(Stdio::piped()))).await?;
        let cluster = Self {
            nodes,
            _mapper: mapper,
            _home: home,
        };
        cluster.is_whole().await?;
        Ok(cluster)
    }

    /// Address for clients, with every node.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.port()))
            .collect();
        format!("amqp://guest:guest@{}/%2f", hosts.join(","))
    }

    /// Waits until the nodes that run are all, and one broker.
    ///
    /// # Errors
    /// They do not come together within the bound.
    pub async fn is_whole(&self) -> Result<()> {
        let last = self.nodes.last().context("a node")?;
        runs(last, NODES, START).await
    }

    /// Stops a node without an end to its connections, as a broken network does, until the others take it for gone.
    ///
    /// # Errors
    /// The node does not run, or the others do not notice within the bound.
    pub async fn freeze(&self, at: usize) -> Result<()> {
        signal("-STOP", &self.nodes[at].pid()?.to_string());
        runs(&self.nodes[(at + 1) % NODES], NODES - 1, START).await
    }

    /// Has a frozen node go on, and waits until the others have it again. The node finds out that its connections were closed when the
    /// others connect already, so it may never see itself in a minority: then it neither pauses nor comes back, and RabbitMQ wants it
    /// restarted.
    ///
    /// # Errors
    /// The node does not run, or is not back within the bound; the error holds what it says itself, and its log.
    pub async fn thaw(&self, at: usize) -> Result<()> {
        let (node, other) = (&self.nodes[at], &self.nodes[(at + 1) % NODES]);
        signal("-CONT", &node.pid()?.to_string());
        if runs(other, NODES, BY_ITSELF).await.is_ok() {
            return Ok(());
        }
        let alone = seen_by(node).await;
        let restarting = async {
            node.ctl(&["stop_app"]).await?;
            node.ctl(&["start_app"]).await
        };
        let restarted = timeout(RESTARTED, restarting).await;
        let back = match restarted.context("it was not restarted in time") {
            Ok(Ok(_)) => runs(other, NODES, START).await,
            Ok(Err(fault)) | Err(fault) => Err(fault),
        };
        if let Err(fault) = back {
            let log = node.log()?;
            bail!("{fault:#}\nthe node itself, before: {alone}\nits log:\n{log}");
        }
        Ok(())
    }
}

/// How a node sees the cluster, or why it does not say.
async fn seen_by(node: &RabbitNode) -> String {
    match timeout(BY_ITSELF, node.ctl(&["cluster_status"])).await {
        Ok(Ok(status)) => status,
        Ok(Err(fault)) => format!("{fault:#}"),
        Err(_) => "cluster_status was not answered".to_owned(),
    }
}

/// Waits until so many nodes run, as one of them sees it.
async fn runs(seen_by: &RabbitNode, nodes: usize, bound: Duration) -> Result<()> {
    let started = Instant::now();
    loop {
        let status = seen_by
            .ctl(&["cluster_status", "--formatter", "json"])
            .await;
        let status = status.and_then(|text| Ok(serde_json::from_str::<Value>(&text)?));
        let running = status
            .as_ref()
            .ok()
            .and_then(|all| all["running_nodes"].as_array());
        if running.is_some_and(|running| running.len() == nodes) {
            return Ok(());
        }
        ensure!(started.elapsed() < bound, "not {nodes} nodes: {status:?}");
        sleep(CONNECT_PAUSE).await;
    }
}

async fn mapper(port: u16) -> Result<Child> {
    let child = Command::new("/bin/sh")
        .args(["-c", MAPPER])
        .arg(port.to_string())
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start the port mapper")?;
    let started = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .is_err()
    {
        ensure!(started.elapsed() < START, "no port mapper");
        sleep(CONNECT_PAUSE).await;
    }
    Ok(child)
}
