//! A private RabbitMQ node: real, started in seconds, gone with the test process.
//!
//! It runs the distribution's server as a plain process with its own name, ports, cookie and
//! directories; everything listens on loopback only. It never touches a packaged service, and it ends
//! when this process ends, in whatever way: the shell that runs it watches a pipe that we hold.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep, timeout};

mod cluster;
mod listed;
mod secured;

pub use self::cluster::RabbitCluster;
pub use self::listed::{BindingInfo, ExchangeInfo, QueueInfo};
pub use self::secured::Secured;
use crate::process::free_port;

/// Where distributions keep the scripts themselves; the ones on `PATH` change the user first.
const SCRIPTS: &[&str] = &["/usr/lib/rabbitmq/bin", "/usr/local/sbin", "/usr/sbin"];
/// The variable that names a folder with the scripts of another version; then no others are looked for.
const SCRIPTS_OF: &str = "TG_RABBIT_SCRIPTS";
const START: Duration = Duration::from_secs(90);
const STOP: Duration = Duration::from_secs(60);
const CONNECT_PAUSE: Duration = Duration::from_millis(30);
/// The variable that names a folder for nodes. `scripts/suites.py gate` names one in memory: a node waits for the disk at each durable
/// queue, exchange and binding, and no test takes the power from the machine.
const FOLDER: &str = "TG_RABBIT_FOLDER";
/// How often a node is given other ports.
const PORTS: usize = 3;

/// Runs the port mapper and the server. When the pipe on its standard input closes, the test process is
/// gone: both end, and nothing is left behind.
const RUNNER: &str = r#"
exec 3<&0
epmd -address 127.0.0.1 -port "$ERL_EPMD_PORT" </dev/null >/dev/null 2>&1 &
"$0" </dev/null >"$1/out" 2>&1 3<&- &
server=$!
(
    cat <&3 >/dev/null
    touch "$1/abandoned"
    kill -9 $server $(cat "$1/pid")
    rm -rf "$1"
) >/dev/null 2>&1 &
wait $server
[ -e "$1/abandoned" ] && wait $!
kill -9 0
"#;

/// A running (or stopped) private node. Dropping it kills it.
#[derive(Debug)]
pub struct RabbitNode {
    dir: TempDir,
    scripts: PathBuf,
    port: u16,
    mapper_port: u16,
    distribution_port: u16,
    /// Where its cookie is.
    home: PathBuf,
    /// Where it speaks TLS, if it does.
    secure_port: Option<u16>,
    running: Option<Running>,
}

/// A started node; it lives as long as the leash.
#[derive(Debug)]
struct Running {
    child: Child,
    leash: Option<ChildStdin>,
}

impl RabbitNode {
    /// Whether the server is installed here.
    pub fn installed() -> bool {
        scripts().is_some()
    }

    /// Starts a node and waits until it speaks AMQP. A port that was free a moment ago may be somebody else's by the
    /// time the node wants it: then it has others.
    ///
    /// # Errors
    /// RabbitMQ is not installed (`scripts/setup.sh test`), or does not start within the bound; the error holds its log.
    pub async fn start() -> Result<Self> {
        for _ in 1..PORTS {
            match Self::start_until(Stdio::piped()).await {
                Err(fault) if fault.to_string().contains("port_already_used") => {}
                started => return started,
            }
        }
        Self::start_until(Stdio::piped()).await
    }

    /// Starts a node that speaks TLS, too, on another port.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub async fn start_secured(secured: &Secured) -> Result<Self> {
        Self::start_as(Stdio::piped(), Some(secured), "").await
    }

    /// Starts a node that lets a consumer hold a record so long at most, and looks as often.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub async fn start_impatient(longest: Duration) -> Result<Self> {
        let longest = longest.as_millis();
        // Otherwise it looks each minute.
        let settings =
            format!("{{consumer_timeout, {longest}}}, {{channel_tick_interval, {longest}}}");
        Self::start_as(Stdio::piped(), None, &settings).await
    }

    /// Starts a node that ends when this pipe closes, or with this process, until that [leaves](Self::leave) it.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub async fn start_until(leash: Stdio) -> Result<Self> {
        Self::start_as(leash, None, "").await
    }

    async fn start_as(leash: Stdio, secured: Option<&Secured>, settings: &str) -> Result<Self> {
        let mut node = Self::placed(secured, settings)?;
        node.boot(leash).await?;
        Ok(node)
    }

    /// A node with its directory and ports, not started yet.
    fn placed(secured: Option<&Secured>, settings: &str) -> Result<Self> {
        let scripts =
            scripts().context("rabbitmq-server is required: run scripts/install-rabbitmq.sh")?;
        let dir = match std::env::var_os(FOLDER) {
            Some(folder) => TempDir::with_prefix_in("tg-rabbit-", folder),
            None => TempDir::with_prefix("tg-rabbit-"),
        }?;
        for name in ["home", "data", "log"] {
            fs::create_dir(dir.path().join(name))?;
        }
        fs::write(dir.path().join("plugins"), "[].\n")?;
        let settings = format!("[{{rabbit, [{settings}]}}].\n");
        fs::write(dir.path().join("advanced.config"), settings)?;
        let secure_port = secured.map(|_| free_port()).transpose()?;
        let lines = secured.zip(secure_port);
        let lines = lines.map_or_else(String::new, |(secured, port)| secured.lines(port));
        fs::write(
            dir.path().join("rabbitmq.conf"),
            format!(
                "log.console = false\nlog.file.level = warning\ncollect_statistics = none\n{lines}"
            ),
        )?;
        // A connection of others takes none of these while the node is away.
        let [port, mapper_port, distribution_port] = [free_port()?, free_port()?, free_port()?];
        Ok(Self {
            home: dir.path().join("home"),
            dir,
            scripts,
            port,
            mapper_port,
            distribution_port,
            secure_port,
            running: None,
        })
    }

    /// Address for clients: the default user and virtual host.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port)
    }

    /// The same over TLS.
    ///
    /// # Errors
    /// The node was not started to speak it.
    pub fn secure_url(&self) -> Result<String> {
        let port = self.secure_port.context("no port for TLS")?;
        Ok(format!("amqps://guest:guest@127.0.0.1:{port}/%2f"))
    }

    /// Makes another virtual host, empty as a broker of its own, and returns its address for clients.
    ///
    /// # Errors
    /// The node does not make it.
    pub async fn vhost(&self, name: &str) -> Result<String> {
        self.ctl(&["add_vhost", name]).await?;
        let all = ["set_permissions", "-p", name, "guest", ".*", ".*", ".*"];
        self.ctl(&all).await?;
        Ok(format!("amqp://guest:guest@127.0.0.1:{}/{name}", self.port))
    }

    /// Process id of the running server.
    ///
    /// # Errors
    /// The node does not run.
    pub fn pid(&self) -> Result<u32> {
        Ok(fs::read_to_string(self.path("pid"))?.trim().parse()?)
    }

    /// The AMQP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Leaves the node to the pipe that it was started with, which removes it with its directory.
    pub fn leave(&mut self) {
        self.running = None;
        self.dir.disable_cleanup(true);
    }

    /// Stops the node in order; what is durable stays.
    ///
    /// # Errors
    /// The node does not stop within the bound.
    pub async fn stop(&mut self) -> Result<()> {
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        let pid = fs::read_to_string(self.path("pid"))?;
        signal("-TERM", pid.trim());
        timeout(STOP, running.child.wait())
            .await
            .context("the node did not stop")??;
        Ok(())
    }

    /// Kills the node as a crash would.
    ///
    /// # Errors
    /// The node does not run, or does not end.
    pub async fn kill9(&mut self) -> Result<()> {
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        kill_group(&running.child);
        timeout(STOP, running.child.wait())
            .await
            .context("the node did not die")??;
        Ok(())
    }

    /// Starts the node again (stops it first if it runs): same port, same data.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.stop().await?;
        self.boot(Stdio::piped()).await
    }

    /// Closes every client connection from the broker's side.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn close_connections(&self) -> Result<()> {
        self.ctl(&["close_all_connections", "--global", "test"])
            .await?;
        Ok(())
    }

    /// Seconds between the heartbeats of each connection, as agreed with its client, in order.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn heartbeats(&self) -> Result<Vec<u64>> {
        let listed = self.ctl(&["list_connections", "timeout"]).await?;
        // The first line may be the name of the column.
        let seconds = listed.lines().filter_map(|line| line.trim().parse().ok());
        let mut all: Vec<u64> = seconds.collect();
        all.sort_unstable();
        Ok(all)
    }

    /// How often it has taken back what a consumer held for too long, by its log.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn taken_back(&self) -> Result<usize> {
        Ok(self.log()?.matches("has timed out waiting for").count())
    }

    /// Every access that it has refused to a user, by its log.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn refusals(&self) -> Result<Vec<String>> {
        let refusals = |line: &&str| line.contains("refused for user");
        Ok(self
            .log()?
            .lines()
            .filter(refusals)
            .map(str::to_owned)
            .collect())
    }

    fn log(&self) -> Result<String> {
        let mut log = String::new();
        for entry in fs::read_dir(self.path("log"))? {
            log.push_str(&String::from_utf8_lossy(&fs::read(entry?.path())?));
        }
        Ok(log)
    }

    /// Raises (or clears) the memory alarm: publishers are blocked.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn set_alarm(&self, raised: bool) -> Result<()> {
        let mark = if raised { "0" } else { "0.4" };
        self.ctl(&["set_vm_memory_high_watermark", mark]).await?;
        Ok(())
    }

    /// All queues.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn queues(&self) -> Result<Vec<QueueInfo>> {
        self.list(&[
            "list_queues",
            "name",
            "durable",
            "auto_delete",
            "exclusive",
            "arguments",
            "messages",
            "consumers",
        ])
        .await
    }

    /// All exchanges but the broker's own.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn exchanges(&self) -> Result<Vec<ExchangeInfo>> {
        let mut all: Vec<ExchangeInfo> = self
            .list(&[
                "list_exchanges",
                "name",
                "type",
                "durable",
                "auto_delete",
                "arguments",
            ])
            .await?;
        all.retain(|exchange| !exchange.name.is_empty() && !exchange.name.starts_with("amq."));
        Ok(all)
    }

    /// All bindings but those of the default exchange.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn bindings(&self) -> Result<Vec<BindingInfo>> {
        let mut all: Vec<BindingInfo> = self
            .list(&[
                "list_bindings",
                "source_name",
                "destination_name",
                "routing_key",
            ])
            .await?;
        all.retain(|binding| !binding.source_name.is_empty());
        Ok(all)
    }

    /// Number of open channels of all clients.
    ///
    /// # Errors
    /// The node does not answer.
    pub async fn channels(&self) -> Result<usize> {
        let all: Vec<Value> = self.list(&["list_channels", "pid"]).await?;
        Ok(all.len())
    }

    /// Any `rabbitmqctl` command that lists; one row per entry.
    ///
    /// # Errors
    /// The node does not answer, or prints something else than rows of this type.
    pub async fn list<T: DeserializeOwned>(&self, command: &[&str]) -> Result<Vec<T>> {
        let (name, columns) = command.split_first().context("no command")?;
        let args = [&[*name, "--formatter", "json"], columns].concat();
        let text = self.ctl(&args).await?;
        serde_json::from_str(&text).with_context(|| format!("unreadable answer: {text}"))
    }

    /// Any `rabbitmqctl` command; what it printed.
    ///
    /// # Errors
    /// The command fails; the error holds what it printed.
    pub async fn ctl(&self, args: &[&str]) -> Result<String> {
        let output = self
            .command("rabbitmqctl")
            .args(["-q", "-n", &self.name()])
            .args(args)
            .stdin(Stdio::null())
            .output()
            .await?;
        ensure!(
            output.status.success(),
            "rabbitmqctl {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    async fn boot(&mut self, leash: Stdio) -> Result<()> {
        let server = self.scripts.join("rabbitmq-server");
        let mut child = self
            .command_at(Path::new("/bin/sh"))
            .arg("-c")
            .arg(RUNNER)
            .arg(server)
            .arg(self.dir.path())
            .stdin(leash)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start the node")?;
        // Kept apart: waiting for a child closes its standard input.
        let leash = child.stdin.take();
        let started = Instant::now();
        while !self.speaks().await {
            if let Some(status) = child.try_wait()? {
                bail!("the node ended ({status}): {}", self.output());
            }
            if started.elapsed() > START {
                kill_group(&child);
                bail!("the node did not start: {}", self.output());
            }
            sleep(CONNECT_PAUSE).await;
        }
        self.running = Some(Running { child, leash });
        Ok(())
    }

    /// Asks for the protocol's first frame: the listener opens last, so an answer means ready.
    async fn speaks(&self) -> bool {
        let hello = async {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await?;
            stream.write_all(b"AMQP\0\0\x09\x01").await?;
            stream.read_u8().await
        };
        matches!(timeout(Duration::from_secs(2), hello).await, Ok(Ok(1)))
    }

    fn name(&self) -> String {
        format!("tg{}@localhost", self.port)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn output(&self) -> String {
        fs::read_to_string(self.path("out")).unwrap_or_default()
    }

    fn command(&self, script: &str) -> Command {
        self.command_at(&self.scripts.join(script))
    }

    fn command_at(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("HOME", &self.home)
            .env("ERL_EPMD_PORT", self.mapper_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            // A node that does not start, for its port was taken meanwhile, leaves no dump in the folder of the test.
            .env("ERL_CRASH_DUMP_SECONDS", "0")
            .env("RABBITMQ_NODENAME", self.name())
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.port.to_string())
            .env("RABBITMQ_DIST_PORT", self.distribution_port.to_string())
            .env("RABBITMQ_MNESIA_BASE", self.path("data"))
            .env("RABBITMQ_LOG_BASE", self.path("log"))
            .env("RABBITMQ_PID_FILE", self.path("pid"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", self.path("plugins"))
            .env("RABBITMQ_CONFIG_FILE", self.path("rabbitmq.conf"))
            .env(
                "RABBITMQ_ADVANCED_CONFIG_FILE",
                self.path("advanced.config"),
            )
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            // Not each of its threads on a processor of its own: tests keep all processors busy.
            .env("RABBITMQ_SCHEDULER_BIND_TYPE", "u")
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none",
            );
        command
    }
}

impl Drop for RabbitNode {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            kill_group(&running.child);
            drop(running.leash.take());
        }
    }
}

fn scripts() -> Option<PathBuf> {
    scripts_of(std::env::var_os(SCRIPTS_OF).map(PathBuf::from))
}

/// Where the scripts are: in the named folder or nowhere, else where distributions keep them.
fn scripts_of(named: Option<PathBuf>) -> Option<PathBuf> {
    named
        .map(|named| vec![named])
        .unwrap_or_else(|| SCRIPTS.iter().map(PathBuf::from).collect())
        .into_iter()
        .find(|dir| dir.join("rabbitmq-server").exists() && dir.join("rabbitmqctl").exists())
}

/// Local ports of a process's TCP connections.
pub(crate) fn local_ports(pid: u32) -> Result<Vec<u64>> {
    let links = fs::read_dir(format!("/proc/{pid}/fd"))?.flatten();
    let sockets: Vec<String> = links
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?;
            Some(inode.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp"))?;
    let port = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, port) = words.get(1)?.split_once(':')?;
        let ours = sockets.iter().any(|inode| words.get(9) == Some(&&**inode));
        ours.then(|| u64::from_str_radix(port, 16).ok())?
    };
    Ok(table.lines().filter_map(port).collect())
}

fn kill_group(child: &Child) {
    if let Some(pid) = child.id() {
        signal("-KILL", &format!("-{pid}"));
    }
}

fn signal(which: &str, target: &str) {
    // The standard library has no kill for other processes.
    let _ = std::process::Command::new("/bin/kill")
        .args([which, "--", target])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_another_version_are_never_those_of_the_machine() {
        let there = TempDir::new().unwrap();
        let named = || scripts_of(Some(there.path().to_owned()));
        assert_eq!(named(), None);
        for name in ["rabbitmq-server", "rabbitmqctl"] {
            fs::write(there.path().join(name), "").unwrap();
        }
        assert_eq!(named().as_deref(), Some(there.path()));
    }

    #[tokio::test]
    async fn a_node_starts_stops_and_comes_back_on_its_port() {
        let mut node = RabbitNode::start().await.unwrap();
        assert!(node.queues().await.unwrap().is_empty());
        assert!(node.exchanges().await.unwrap().is_empty());
        node.stop().await.unwrap();
        assert!(!node.speaks().await);
        node.restart().await.unwrap();
        assert!(node.speaks().await);
        node.kill9().await.unwrap();
        assert!(!node.speaks().await);
    }
}
