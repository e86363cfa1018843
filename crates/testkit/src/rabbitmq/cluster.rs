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
/// How long a node that was suspended may take to be back by itself, before it is restarted as an operator does.
const BY_ITSELF: Duration = Duration::from_secs(30);
/// How long the commands that restart it may take together.
const RESTARTED: Duration = Duration::from_secs(120);
/// What a node writes into its log when it pauses, as it finds itself in a minority.
const PAUSES: &str = "minority/secondary status detected";
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

    /// Cuts a node off from the others, as a broken network between them does: both sides lose their connections at once, and neither
    /// can connect again, as the node has another cookie for each of them. Its clients still reach it. Waits until the others have given
    /// it up and the node has paused.
    ///
    /// # Errors
    /// The node does not run, or does not pause within the bound, or the others do not notice; the error holds its log.
    pub async fn cut(&self, at: usize) -> Result<()> {
        let (node, other) = (&self.nodes[at], &self.nodes[(at + 1) % NODES]);
        let pauses = || anyhow::Ok(node.log()?.matches(PAUSES).count());
        let before = pauses()?;
        let peers = self.peers(at);
        // All cookies first: between two disconnects the others could still reach it through one another.
        let cut = format!(
            "[erlang:set_cookie(Peer, cut_off) || Peer <- {peers}], [erlang:disconnect_node(Peer) || Peer <- {peers}]."
        );
        node.ctl(&["eval", &cut]).await?;
        let noticed = runs(other, NODES - 1, START).await;
        noticed.context("the others still count the node that is cut off")?;
        let started = Instant::now();
        loop {
            let (paused, speaks) = (pauses()? > before, node.speaks().await);
            if paused && !speaks {
                return Ok(());
            }
            if started.elapsed() > START {
                let (alone, log) = (seen_by(node).await, node.log()?);
                bail!(
                    "the node that is cut off did not pause (its log says that it does: {paused}; its listener answers: {speaks})\n\
                     the node itself: {alone}\nits log:\n{log}"
                );
            }
            sleep(CONNECT_PAUSE).await;
        }
    }

    /// Mends the network of a node that was cut off, and waits until it serves again and the others count it. Nobody restarts it.
    ///
    /// # Errors
    /// The node does not run, or is not back within the bound; the error holds what it says itself, and its log.
    pub async fn mend(&self, at: usize) -> Result<()> {
        let (node, other) = (&self.nodes[at], &self.nodes[(at + 1) % NODES]);
        let peers = self.peers(at);
        let mend = format!("[erlang:set_cookie(Peer, erlang:get_cookie()) || Peer <- {peers}].");
        node.ctl(&["eval", &mend]).await?;
        let back = async {
            runs(other, NODES, START).await?;
            let started = Instant::now();
            while !node.speaks().await {
                ensure!(started.elapsed() < START, "its listener does not answer");
                sleep(CONNECT_PAUSE).await;
            }
            anyhow::Ok(())
        };
        if let Err(fault) = back.await {
            let (alone, log) = (seen_by(node).await, node.log()?);
            bail!(
                "the node that was cut off did not come back by itself: {fault:#}\nthe node itself: {alone}\nits log:\n{log}"
            );
        }
        Ok(())
    }

    /// The other nodes, as a list of Erlang.
    fn peers(&self, at: usize) -> String {
        let others = self.nodes.iter().enumerate().filter(|(n, _)| *n != at);
        let names: Vec<String> = others
            .map(|(_, node)| format!("'{}'", node.name()))
            .collect();
        format!("[{}]", names.join(", "))
    }

    /// Suspends a node, as happens to a virtual machine that moves: its connections stay open and silent until the others take it for gone.
    /// It does not see itself cut off.
    ///
    /// # Errors
    /// The node does not run, or the others do not notice within the bound.
    pub async fn freeze(&self, at: usize) -> Result<()> {
        signal("-STOP", &self.nodes[at].pid()?.to_string());
        runs(&self.nodes[(at + 1) % NODES], NODES - 1, START).await
    }

    /// Has a suspended node go on, and waits until the others have it again. The node finds out that its connections were closed when the
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
