//! The system as its users run it: the built `threadgraph` and `tg` binaries, each a process of its own.
//! For black-box tests; knows nothing of what happens inside.

use std::io::{Seek, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::certificates::{self, Certified};
use crate::shared_node::VirtualHost;
use crate::started::{is_ready, reported};
use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// How long a process may take to be ready on a busy machine.
pub(crate) const READY: Duration = Duration::from_secs(120);
/// Between two looks whether it is.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);
/// How long a command of a client may take.
pub(crate) const COMMAND: Duration = Duration::from_secs(120);

/// What people type who look around. Each is one request, or a few at the same time; tests and the bench time them.
pub const LOOKING_AROUND: [&[&str]; 7] = [
    &["--help"],
    &["show-flows"],
    &["process-status"],
    &["show-library-documents"],
    &["list-explain-traces"],
    &["list-collections"],
    &["doctor"],
];

/// What stands beside the address of the gateway in a log: a line at level info, and the greeting, which no filter leaves out.
const GATEWAY: [&str; 2] = ["gateway listens", "Threadgraph is ready at"];
/// What stands beside the address of `metrics.listen` or `report.listen`.
const REPORT: [&str; 1] = ["metrics are served here"];

/// Below what systems give to connections of their own accord.
const PORTS: std::ops::Range<u16> = 10_240..32_000;

/// The folder of the built binaries: the one this test binary lies in, or the one above an example's.
///
/// # Errors
/// The test binary does not lie where cargo puts it.
pub fn bin_dir() -> Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let mut dir = exe.parent().context("no folder")?.to_path_buf();
    if dir.ends_with("deps") || dir.ends_with("examples") {
        dir.pop();
    }
    Ok(dir)
}

/// The project's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A loopback port that was free a moment ago, and that no connection of others is given: those are above it. A process that
/// can report its port chooses it itself; this one is for programs that cannot, for addresses where nobody listens, and for a
/// gateway that a client is to find again after a restart: meanwhile a connection may be given a port that the system chose.
///
/// # Errors
/// No port is free.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in PORTS {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let place = std::process::id().wrapping_mul(641).wrapping_add(next);
        let port = PORTS.start + (place % u32::from(PORTS.end - PORTS.start)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port is free")
}

/// How to start a `threadgraph` process.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Services for `serve`; empty means `up`.
    pub services: Vec<String>,
    /// `--bus`.
    pub bus: Option<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Environment.
    pub env: Vec<(String, String)>,
    /// Port of the gateway; if absent, the process chooses one and reports it.
    pub port: Option<u16>,
    /// Data directory; a temporary one if absent.
    pub data_dir: Option<PathBuf>,
    /// Most bytes of address space that the process may have.
    pub address_space: Option<u64>,
    /// Most file descriptors that the process may have.
    pub descriptors: Option<u64>,
    /// How many it has to begin with, where it may have more.
    pub descriptors_at_first: Option<u64>,
    /// Starts it with SIGHUP ignored, as `nohup` does.
    pub ignores_hang_up: bool,
    /// The terminal that it has, if any; else it has that of whoever tests.
    pub terminal: Terminal,
    /// It goes on when the process that started it ends.
    pub stays: bool,
    /// Who signed the certificate of its gateway, if that has one.
    pub authority: Option<String>,
}

/// The terminal of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Terminal {
    /// That of whoever tests, or none.
    #[default]
    Inherited,
    /// None, as services of a system have.
    None,
    /// One of its own, which SIGHUP closes.
    Own,
}

/// Runs a program at a terminal of its own, and closes that at SIGHUP.
const AT_TERMINAL: &str = "
import os, pty, signal, sys
log = os.dup(2)
pid, terminal = pty.fork()
if pid == 0:
    os.dup2(log, 2)
    os.execv(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGHUP, lambda *_: os.close(terminal))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

impl Launch {
    /// Every service in one process.
    pub fn up() -> Self {
        Self::default()
    }

    /// Some services over a broker.
    pub fn serve(services: &[&str], bus: &str) -> Self {
        Self {
            services: services.iter().map(|name| (*name).to_owned()).collect(),
            bus: Some(bus.to_owned()),
            ..Self::default()
        }
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Bounds the address space of the process, as `ulimit -v` does: an allocation beyond it ends the process.
    pub fn address_space(mut self, bytes: u64) -> Self {
        self.address_space = Some(bytes);
        self
    }

    /// Bounds the file descriptors of the process, as `ulimit -n` does.
    pub fn descriptors(mut self, count: u64) -> Self {
        self.descriptors = Some(count);
        self
    }

    /// Bounds them as `ulimit -S -n` does: the process may raise that bound itself.
    pub fn descriptors_at_first(mut self, count: u64) -> Self {
        self.descriptors_at_first = Some(count);
        self
    }

    /// Starts the process as `nohup` does: SIGHUP is ignored.
    pub fn hang_up_ignored(mut self) -> Self {
        self.ignores_hang_up = true;
        self
    }

    /// With a terminal of its own, or none.
    pub fn terminal(mut self, terminal: Terminal) -> Self {
        self.terminal = terminal;
        self
    }

    /// Goes on when the process that started it ends: whoever starts it so sees to its end.
    pub fn staying(mut self) -> Self {
        self.stays = true;
        self
    }

    /// With a certificate at the gateway.
    pub fn secure(mut self, certified: &Certified) -> Self {
        self.authority = Some(certified.authority.pem());
        self.env("THREADGRAPH_GATEWAY__TLS_CERT", path(&certified.cert()))
            .env("THREADGRAPH_GATEWAY__TLS_KEY", path(&certified.key()))
    }

    /// Over a broker, where there is one.
    pub fn over(self, broker: Option<&VirtualHost>) -> Self {
        match broker {
            Some(broker) => self.arg("--bus").arg(broker.url()),
            None => self,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Keeps the data in a folder of the caller's.
    pub fn data(mut self, dir: &Path) -> Self {
        self.data_dir = Some(dir.to_path_buf());
        self
    }

    /// Uses a port of the caller's.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Starts the process without waiting for it.
    ///
    /// # Errors
    /// The binary is not built, or the process cannot be started.
    pub async fn spawn(self) -> Result<Server> {
        let scratch = TempDir::new()?;
        let data = self
            .data_dir
            .clone()
            .unwrap_or_else(|| scratch.path().join("data"));
        let log = scratch.path().join("log");
        let program = bin_dir()?.join("threadgraph");
        let space = self
            .address_space
            .map(|bytes| format!("-v {}", bytes / 1_024));
        let files = self.descriptors.map(|count| format!("-n {count}"));
        let at_first = self.descriptors_at_first;
        let at_first = at_first.map(|count| format!("-S -n {count}"));
        let limits = space.into_iter().chain(files).chain(at_first);
        let mut limits: String = limits.map(|one| format!("ulimit {one}; ")).collect();
        if self.ignores_hang_up {
            limits.push_str("trap '' HUP; ");
        }
        let mut command = match (limits.as_str(), self.terminal) {
            ("", Terminal::Inherited) => Command::new(&program),
            ("", Terminal::None) => {
                let mut alone = Command::new("setsid");
                alone.arg(&program);
                alone
            }
            ("", Terminal::Own) => {
                let mut shown = Command::new("python3");
                shown.args(["-c", AT_TERMINAL]).arg(&program);
                shown
            }
            (limits, _) => {
                let mut limited = Command::new("sh");
                let script = format!("{limits}exec \"$@\"");
                limited.args(["-c", &script, "sh"]).arg(&program);
                limited
            }
        };
        if self.services.is_empty() {
            command.arg("up");
        } else {
            command.arg("serve").args(&self.services);
        }
        command
            .args(["--listen", &format!("127.0.0.1:{}", self.port.unwrap_or(0))])
            .arg("--data-dir")
            .arg(&data);
        if let Some(bus) = &self.bus {
            command.args(["--bus", bus]);
        }
        for (name, _) in std::env::vars() {
            if name.starts_with("OPENAI")
                || name.starts_with("ANTHROPIC")
                || name.starts_with("OLLAMA")
            {
                command.env_remove(name);
            }
        }
        let child = command
            .args(&self.args)
            // Servers of tools in tests are on this machine. A test may say otherwise.
            .env("THREADGRAPH_TOOL__PRIVATE_ADDRESSES", "true")
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(!self.stays)
            .spawn()
            .with_context(|| format!("cannot start {}: build it first", program.display()))?;
        Ok(Server {
            child,
            port: self.port.map(OnceLock::from).unwrap_or_default(),
            authority: self.authority,
            log,
            data,
            scratch,
        })
    }

    /// Starts the process and waits until its gateway says that the default flow serves.
    ///
    /// # Errors
    /// As for [`Self::spawn`], or it does not serve within the bound; the error holds its log.
    pub async fn ready(self) -> Result<Server> {
        let mut server = self.spawn().await?;
        server.wait_ready().await?;
        Ok(server)
    }
}

/// A running `threadgraph` process; killed when dropped, unless it [stays](Launch::staying).
pub struct Server {
    child: Child,
    /// Set once it is known.
    port: OnceLock<u16>,
    authority: Option<String>,
    log: PathBuf,
    data: PathBuf,
    scratch: TempDir,
}

impl Server {
    /// URL of the gateway, with a slash at the end. As [`Self::port`], it holds once the gateway listens.
    pub fn url(&self) -> String {
        let scheme = match self.authority {
            Some(_) => "https",
            None => "http",
        };
        format!("{scheme}://127.0.0.1:{}/", self.port())
    }

    /// A client that trusts its certificate, if it has one, and no other.
    ///
    /// # Errors
    /// As [`client`].
    pub fn client(&self) -> Result<reqwest::Client> {
        match &self.authority {
            Some(authority) => certificates::client(authority),
            None => client(),
        }
    }

    /// Port of the gateway; 0, where nobody is, until the gateway listens and reports another one.
    pub fn port(&self) -> u16 {
        let known = self.port.get().copied();
        let port = known.or_else(|| reported(&self.log(), &GATEWAY));
        port.map_or(0, |port| *self.port.get_or_init(|| port))
    }

    /// Port at which it reports its metrics, and its health where that is set (`metrics.listen`, `report.listen`).
    ///
    /// # Errors
    /// It has not reported one yet.
    pub fn report_port(&self) -> Result<u16> {
        reported(&self.log(), &REPORT).context("no port of metrics is reported yet")
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Process id.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// What it wrote to stderr so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until `GET /health/ready` is 200.
    ///
    /// # Errors
    /// It ended, or does not serve within the bound; the error holds its log.
    pub async fn wait_ready(&mut self) -> Result<()> {
        let client = self.client()?;
        let end = Instant::now() + READY;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the process ended with {status}:\n{}", self.log());
            }
            if self.port() != 0 && is_ready(&client, &self.url()).await {
                return Ok(());
            }
            if Instant::now() > end {
                bail!("not ready in time:\n{}", self.log());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Leaves a process that [stays](Launch::staying). Returns the folder of its data (`data`) and of what it writes to stderr (`log`),
    /// which nobody removes.
    pub(crate) fn leave(&mut self) -> PathBuf {
        self.scratch.disable_cleanup(true);
        self.scratch.path().to_path_buf()
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// It cannot be killed, or does not end.
    pub async fn kill9(mut self) -> Result<()> {
        self.child.start_kill()?;
        self.child.wait().await?;
        Ok(())
    }

    /// SIGSTOP: it holds all it has, and does nothing.
    ///
    /// # Errors
    /// It cannot be signalled, for example because it ended.
    pub fn freeze(&self) -> Result<()> {
        self.signal("-STOP")
    }

    /// SIGCONT: it goes on.
    ///
    /// # Errors
    /// As for [`Self::freeze`].
    pub fn thaw(&self) -> Result<()> {
        self.signal("-CONT")
    }

    /// Any signal, as `kill` takes it: `-HUP`, `-INT`.
    ///
    /// # Errors
    /// As for [`Self::freeze`], or the signal has no such name.
    pub fn signal(&self, which: &str) -> Result<()> {
        let pid = self.child.id().context("already gone")?;
        let mut kill = std::process::Command::new("kill");
        let sent = kill.arg(which).arg(pid.to_string()).status()?;
        anyhow::ensure!(sent.success(), "kill {which}");
        Ok(())
    }

    /// SIGTERM; waits for an orderly end. Returns the exit code.
    ///
    /// # Errors
    /// It cannot be signalled, or does not end within the bound.
    pub async fn terminate(self) -> Result<Option<i32>> {
        self.signal("-TERM")?;
        let (code, _) = self.ended().await?;
        Ok(code)
    }

    /// Waits for its end. Returns the exit code and the log.
    ///
    /// # Errors
    /// It does not end within the bound.
    pub async fn ended(mut self) -> Result<(Option<i32>, String)> {
        let status = tokio::time::timeout(Duration::from_secs(40), self.child.wait()).await;
        Ok((status.context("did not end")??.code(), self.log()))
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// An HTTP client for the tests. It speaks with loopback only, without TLS: no certificate is read, which takes longer than
/// a request. One for all would not do, as its connections end with the runtime of the test that made them.
///
/// # Errors
/// The client cannot be set up on this machine.
pub fn client() -> Result<reqwest::Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(reqwest::Client::builder().tls_certs_only([]).build()?)
}

/// A path as a variable has it.
fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What a command printed and how it ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Fails unless the output holds a text; shows both streams.
    ///
    /// # Errors
    /// The text is in neither stream; the error holds both.
    pub fn expect(&self, text: &str) -> Result<&Self> {
        if self.stdout.contains(text) {
            return Ok(self);
        }
        bail!(
            "expected {text:?} in stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        )
    }

    /// Fails if the output holds a text.
    ///
    /// # Errors
    /// The text is in one of the streams; the error holds both.
    pub fn refuse(&self, text: &str) -> Result<&Self> {
        if !self.stdout.contains(text) && !self.stderr.contains(text) {
            return Ok(self);
        }
        bail!(
            "did not expect {text:?}:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        )
    }
}

/// Runs a command of our own.
///
/// # Errors
/// The binary is not built, or the command fails or does not end within the bound.
pub async fn tg(url: &str, args: &[&str]) -> Result<Output> {
    run(&bin_dir()?.join("tg"), url, &[], None, args).await
}

/// The same with variables, each left out where it says nothing.
///
/// # Errors
/// As [`tg`].
pub async fn tg_with(url: &str, variables: &[(&str, &str)], args: &[&str]) -> Result<Output> {
    run(&bin_dir()?.join("tg"), url, variables, None, args).await
}

/// The same with a token, and something on its standard input.
///
/// # Errors
/// As [`tg`].
pub async fn tg_as(url: &str, token: &str, input: &str, args: &[&str]) -> Result<Output> {
    let token = [("TRUSTGRAPH_TOKEN", token)];
    run(&bin_dir()?.join("tg"), url, &token, Some(input), args).await
}

pub(crate) async fn run(
    program: &Path,
    url: &str,
    variables: &[(&str, &str)],
    input: Option<&str>,
    args: &[&str],
) -> Result<Output> {
    let mut command = Command::new(program);
    let stdin = match input {
        None => Stdio::null(),
        Some(text) => {
            let mut file = tempfile::tempfile()?;
            file.write_all(text.as_bytes())?;
            file.rewind()?;
            file.into()
        }
    };
    let work = command
        .args(args)
        .env("TRUSTGRAPH_URL", url)
        // What the developer keeps by `tg login` is no part of a test.
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env_remove("TRUSTGRAPH_TOKEN")
        .envs(variables.iter().filter(|(_, value)| !value.is_empty()).copied())
        .stdin(stdin)
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(COMMAND, work)
        .await
        .with_context(|| format!("{} {args:?} did not end", program.display()))?
        .with_context(|| format!("cannot run {}: run the set-up first", program.display()))?;
    Ok(Output {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
