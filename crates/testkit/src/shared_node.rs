//! One RabbitMQ node for all tests of a `cargo test`, of a `cargo nextest run` or of `scripts/suites.py`, and a virtual host
//! for each test.
//!
//! The first process that needs the node starts it, the others find it in a file that is named by the runner they have in
//! common (`noted`); it ends with that runner. A binary that was started by hand has a node of its own. There is no way around
//! it: a test that needs the node and cannot have it fails.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use crate::noted::Noted;
use crate::rabbitmq::{RabbitNode, local_ports};

mod inside;

pub use self::inside::HostQueue;

/// Ends when the process with this id has ended, and removes the file that tells of the node.
const WATCHER: &str = r#"while kill -0 "$1" 2>/dev/null; do sleep 0.5; done; rm -f "$2""#;

/// Where the node listens.
#[derive(Debug, Clone, Copy)]
struct Ports {
    amqp: u16,
    maker: u16,
}

/// A virtual host that nobody else has: to a test, a broker of its own. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub struct VirtualHost {
    ports: Ports,
    name: String,
    /// Open for as long as the host is there.
    held: TcpStream,
}

impl VirtualHost {
    /// Makes one.
    ///
    /// # Errors
    /// RabbitMQ is not installed, or does not start.
    pub async fn new() -> Result<Self> {
        Self::named("test").await
    }

    /// One that may outlive this process, whose number another one may get: it has a name of its own kind.
    pub(crate) async fn lasting() -> Result<Self> {
        Self::named("system").await
    }

    async fn named(kind: &str) -> Result<Self> {
        static NODE: OnceCell<Ports> = OnceCell::const_new();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let ports = *NODE.get_or_try_init(find_or_start).await?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{kind}-{}-{number}", std::process::id());
        let held = inside::make(ports.maker, &name).await?;
        Ok(Self { ports, name, held })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The AMQP port of the node.
    pub fn port(&self) -> u16 {
        self.ports.amqp
    }

    /// Its queues.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn queues(&self) -> Result<Vec<HostQueue>> {
        Ok(inside::list(self.ports.maker, &self.name).await?.queues)
    }

    /// The names of its queues, and of its exchanges but the broker's own.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn names(&self) -> Result<Vec<String>> {
        let listed = inside::list(self.ports.maker, &self.name).await?;
        let queues = listed.queues.into_iter().map(|queue| queue.name);
        Ok(queues.chain(listed.exchanges).collect())
    }

    /// Closes the connections of one process from the broker's side, as after missed heartbeats.
    ///
    /// # Errors
    /// The node does not answer, or the process does not run.
    pub async fn close_connections_of(&self, pid: u32) -> Result<usize> {
        inside::close(self.ports.maker, &self.name, &local_ports(pid)?).await
    }

    /// Address for clients.
    pub fn url(&self) -> String {
        let Self { ports, name, .. } = self;
        format!("amqp://guest:guest@127.0.0.1:{}/{name}", ports.amqp)
    }

    /// Address for clients of a host that stays until this process ends, and no longer: each that stays slows down the node, which
    /// reads all queues and bindings when it makes another.
    pub fn into_url(self) -> String {
        static KEPT: Mutex<Vec<TcpStream>> = Mutex::new(Vec::new());
        let (url, held) = self.into_parts();
        KEPT.lock().push(held);
        url
    }

    /// Address for clients, and the connection that the host ends with.
    pub(crate) fn into_parts(self) -> (String, TcpStream) {
        (self.url(), self.held)
    }
}

/// A node of one's own, asked by a process inside it, until it ends: each command of [`RabbitNode`] takes a processor for a second or
/// two.
#[derive(Debug, Clone, Copy)]
pub struct Inside {
    maker: u16,
}

impl Inside {
    /// Those of this node.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn of(node: &RabbitNode) -> Result<Self> {
        let maker = inside::begin(node).await?;
        Ok(Self { maker })
    }

    /// The queues of its first virtual host.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn queues(self) -> Result<Vec<HostQueue>> {
        Ok(inside::list(self.maker, "/").await?.queues)
    }

    /// Seconds between the heartbeats of each connection, as agreed with its client, in order.
    ///
    /// # Errors
    /// The node does not answer, or with something else.
    pub async fn heartbeats(self) -> Result<Vec<u64>> {
        let all = "[T || [{timeout, T}] <- rabbit_networking:connection_info_all([timeout]), is_integer(T)]";
        let mut all: Vec<u64> = serde_json::from_str(&inside::compute(self.maker, all).await?)?;
        all.sort_unstable();
        Ok(all)
    }

    /// Closes every client connection from the broker's side. One that ends by itself meanwhile is closed, too.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn close_connections(self) -> Result<()> {
        let close = r#"[catch rabbit_networking:close_connection(One, <<"test">>) || One <- rabbit_networking:connections()], closed"#;
        inside::compute(self.maker, close).await.map(drop)
    }

    /// Number of open channels of all clients.
    ///
    /// # Errors
    /// The node does not answer, or with something else.
    pub async fn channels(self) -> Result<usize> {
        let count = "length(rabbit_channel:list())";
        Ok(inside::compute(self.maker, count).await?.parse()?)
    }

    /// Raises (or clears) the memory alarm: publishers are blocked.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn set_alarm(self, raised: bool) -> Result<()> {
        let mark = if raised { "0.0" } else { "0.4" };
        let set = format!("vm_memory_monitor:set_vm_memory_high_watermark({mark})");
        inside::compute(self.maker, &set).await.map(drop)
    }
}

async fn find_or_start() -> Result<Ports> {
    // Held until the node is up: who comes meanwhile waits for it.
    let noted = Noted::open("rabbit").await?;
    if let Some(ports) = read(&noted.text)
        && TcpStream::connect(("127.0.0.1", ports.maker)).await.is_ok()
    {
        return Ok(ports);
    }
    let ports = start(&noted).await?;
    noted.write(&format!("{} {}", ports.amqp, ports.maker))?;
    Ok(ports)
}

fn read(told: &str) -> Option<Ports> {
    let (amqp, maker) = told.split_once(' ')?;
    Some(Ports {
        amqp: amqp.parse().ok()?,
        maker: maker.parse().ok()?,
    })
}

async fn start(noted: &Noted) -> Result<Ports> {
    let mut watcher = Command::new("sh")
        .args(["-c", WATCHER, "sh", &noted.owner.to_string()])
        .arg(&noted.path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let watched = watcher.stdout.take().context("a pipe")?;
    let mut node = RabbitNode::start_until(watched.into()).await?;
    let maker = inside::begin(&node).await?;
    let amqp = node.port();
    // From here on only the watcher ends it.
    node.leave();
    Ok(Ports { amqp, maker })
}
