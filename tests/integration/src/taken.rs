//! What a run of the agent takes of a machine: two systems that count are compared, with few runs and with many.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tempfile::TempDir;
use tg_testkit::model::{Options, ScriptedModel, two_step_react};
use tg_testkit::process::{bin_dir, client};
use tg_testkit::socket::Socket;
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Runs of the two systems that are compared: what the start and the end take, and the first runs, drops out.
const FEW: u32 = 10;
const RUNS: u32 = 50;

/// A system under valgrind is ready within this, and has answered and stored.
const BOUND: Duration = Duration::from_secs(240);
/// Pause between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// What a program is told, so that as little as possible depends on clocks and on the number of processors: freed pages stay, and
/// one thread does all async work. One that finds all of it set does not start itself once more.
///
/// The C library chooses how it copies memory by the processor, and valgrind counts each step of `rep movsb`: by a tenth more or fewer
/// instructions for one program. Here it copies as on the oldest processor.
const ENVIRONMENT: [(&str, &str); 6] = [
    (
        "GLIBC_TUNABLES",
        "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-RTM,-ERMS,-FSRM,-SSSE3",
    ),
    ("MALLOC_ARENA_MAX", "2"),
    ("MIMALLOC_PURGE_DELAY", "-1"),
    ("MIMALLOC_ARENA_RESERVE", "131072"),
    ("RUST_MIN_STACK", "8388608"),
    ("TOKIO_WORKER_THREADS", "1"),
];

/// What was taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// How often memory was asked for.
    pub allocations: f64,
    /// For how many bytes in all.
    pub bytes: f64,
    /// Only under valgrind; else 0.
    pub instructions: f64,
}

/// How a system is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// As it is.
    Itself,
    /// By valgrind, which counts its instructions.
    Valgrind,
}

/// What is measured, and how.
struct Measurement<'a> {
    program: &'a Path,
    by: By,
    /// It says at its end how often it asked for memory.
    counts: bool,
}

/// A system that is measured.
struct Measured {
    child: Child,
    /// As it reports it once it is ready.
    url: String,
    scratch: TempDir,
}

impl Measured {
    async fn start(of: &Measurement<'_>, model: &ScriptedModel) -> Result<Self> {
        let scratch = TempDir::new()?;
        let program = of.program;
        ensure!(program.exists(), "{}: build it first", program.display());
        let mut command = match of.by {
            By::Itself => Command::new(program),
            By::Valgrind => {
                let mut under = Command::new("valgrind");
                let out = scratch.path().join("instructions");
                under
                    .args(["-q", "--tool=callgrind", "--vgdb=no"])
                    .arg(format!("--callgrind-out-file={}", out.display()))
                    .arg(program);
                under
            }
        };
        command
            .args(["up", "--listen", "127.0.0.1:0"])
            .arg("--data-dir")
            .arg(scratch.path().join("data"))
            .env_remove("ANTHROPIC_API_KEY")
            .env("OPENAI_BASE_URL", model.url())
            .env("OPENAI_API_KEY", "sk-test-secret-4711")
            .env("OPENAI_MODEL", "scripted")
            .envs(ENVIRONMENT)
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(scratch.path().join("log"))?)
            .kill_on_drop(true);
        let child = command
            .spawn()
            .context("cannot start it: run scripts/setup.sh test, which installs valgrind")?;
        let mut measured = Self {
            child,
            url: String::new(),
            scratch,
        };
        measured.ready().await?;
        Ok(measured)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }

    /// Waits until it serves. It is not asked before it greets: each question would be counted.
    async fn ready(&mut self) -> Result<()> {
        let client = client()?;
        let end = Instant::now() + BOUND;
        loop {
            tokio::time::sleep(LOOK).await;
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}:\n{}", self.log());
            }
            let log = self.log();
            let mut greetings = log
                .lines()
                .filter_map(|line| line.split_once("is ready at "));
            if let Some((_, url)) = greetings.next() {
                url.clone_into(&mut self.url);
                let health = format!("{url}health/ready");
                let answer = client.get(health).timeout(BOUND).send().await;
                if answer.is_ok_and(|answer| answer.status().is_success()) {
                    return Ok(());
                }
            }
            ensure!(Instant::now() < end, "not ready in time:\n{}", self.log());
        }
    }

    /// Waits until the graph has stored the two steps of each run.
    async fn stored(&self, runs: u32) -> Result<()> {
        let client = client()?;
        let url = format!("{}metrics", self.url);
        let end = Instant::now() + BOUND;
        loop {
            let page = client.get(&url).send().await?.text().await?;
            // A record counts once it is stored.
            let series = "tg_consumer_processing_total{";
            let of = "processor=\"triples-write\"";
            let lines = page
                .lines()
                .filter(|line| line.starts_with(series) && line.contains(of));
            let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
            let stored: f64 = values.sum();
            if stored >= f64::from(2 * runs) {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{stored} records of {runs} runs");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends it in order, and reads what it took.
    async fn end(mut self, of: &Measurement<'_>) -> Result<Taken> {
        let pid = self.child.id().context("already gone")?;
        let mut kill = std::process::Command::new("kill");
        let told = kill.arg("-TERM").arg(pid.to_string()).status()?;
        ensure!(told.success(), "it cannot be told to end");
        let status = tokio::time::timeout(BOUND, self.child.wait()).await;
        let status = status.context("it did not end")??;
        let log = self.log();
        ensure!(status.success(), "it ended with {status}:\n{log}");
        let mut taken = Taken::default();
        if of.counts {
            let told = log
                .lines()
                .rev()
                .find_map(|line| line.strip_prefix("allocations "));
            let (allocations, bytes) = told
                .and_then(|line| line.split_once(" bytes "))
                .with_context(|| format!("nothing was counted:\n{log}"))?;
            taken.allocations = allocations.parse()?;
            taken.bytes = bytes.trim().parse()?;
        }
        if of.by == By::Valgrind {
            taken.instructions = instructions(&self.scratch.path().join("instructions"))?;
        }
        Ok(taken)
    }
}

/// The sum that callgrind writes at the end of its file.
fn instructions(file: &Path) -> Result<f64> {
    let text = std::fs::read_to_string(file).context("valgrind wrote no file")?;
    let sum = text.lines().rev().find_map(|line| {
        let sum = line.strip_prefix("totals:");
        sum.or_else(|| line.strip_prefix("summary:"))
    });
    let sum = sum.context("no sum of instructions")?;
    let first = sum.split_whitespace().next();
    Ok(first.context("no number of instructions")?.parse()?)
}

/// A run, whose question is as long as that of any other.
async fn run(socket: &Socket, number: u32) -> Result<()> {
    let nonce = format!("nonce-{number:04}");
    let question = json!({"question": format!("How much is it? {nonce}"), "streaming": false});
    let envelope = json!({"service": "agent", "flow": "default", "request": question});
    let frames = socket.send(envelope).await?.all(BOUND).await?;
    let answered = frames
        .iter()
        .any(|frame| frame["response"].to_string().contains(&nonce));
    ensure!(answered, "{frames:?}");
    Ok(())
}

/// A system from its start to its end, with so many runs one after the other. It rests as long as it is told after the first
/// runs, and says how long the others took.
async fn system(of: &Measurement<'_>, runs: u32, rests: Duration) -> Result<(Taken, Duration)> {
    let options = Options {
        keep_calls: false,
        ..Options::default()
    };
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 1);
    let model = ScriptedModel::start_with(options, rules).await?;
    let measured = Measured::start(of, &model).await?;
    let socket = Socket::connect(&measured.url, "").await?;
    for number in 0..FEW {
        run(&socket, number).await?;
    }
    let begun = Instant::now();
    tokio::time::sleep(rests).await;
    for number in FEW..runs {
        run(&socket, number).await?;
    }
    let took = begun.elapsed();
    measured.stored(runs).await?;
    Ok((measured.end(of).await?, took))
}

/// What one run takes, of the server that counts.
///
/// # Errors
/// That server is not built (`cargo build --workspace --examples`), valgrind is not installed, or a run fails.
pub async fn of_one_run(by: By) -> Result<Taken> {
    let program = bin_dir()?.join("examples/counted_server");
    let of = Measurement {
        program: &program,
        by,
        counts: true,
    };
    compared(&of).await
}

/// The instructions of one run, of a `threadgraph` of whichever commit.
///
/// # Errors
/// As for [`of_one_run`].
pub async fn instructions_of(program: &Path) -> Result<f64> {
    let of = Measurement {
        program,
        by: By::Valgrind,
        counts: false,
    };
    Ok(compared(&of).await?.instructions)
}

/// The difference of two systems that live equally long, so that what is done each second drops out, too.
async fn compared(of: &Measurement<'_>) -> Result<Taken> {
    let (many, took) = system(of, FEW + RUNS, Duration::ZERO).await?;
    let (few, _) = system(of, FEW, took).await?;
    let each = |many: f64, few: f64| (many - few) / f64::from(RUNS);
    Ok(Taken {
        allocations: each(many.allocations, few.allocations),
        bytes: each(many.bytes, few.bytes),
        instructions: each(many.instructions, few.instructions),
    })
}
