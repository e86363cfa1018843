//! The `threadgraph` binary.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use tg_schemas::WorkspaceId;
use tg_server::backup::Manifest;
use tg_server::compose::{SERVICES, Services};
use tg_server::settings::{Flags, Settings, page};
use tg_server::{backup, machine, permissions, process};
use tg_settings::SettingError;

/// Many small allocations on all threads are what this program does most: see docs/decisions/0010. What a query takes
/// is counted: see docs/decisions/0012.
#[global_allocator]
static ALLOCATOR: tg_counted_alloc::Counted<mimalloc::MiMalloc> =
    tg_counted_alloc::Counted(mimalloc::MiMalloc);

/// A message-broker mesh of services for agents and retrieval over RDF knowledge graphs.
#[derive(Parser)]
#[command(name = "threadgraph", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs every service in this process.
    Up(Common),
    /// Runs some services over a broker: `serve gateway`, `serve config flow iam`, …
    Serve {
        /// Services to run.
        #[arg(required = true, value_parser = clap::builder::PossibleValuesParser::new(SERVICES))]
        services: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Prints every setting with what counts, and where that comes from.
    Settings {
        #[command(flatten)]
        common: Common,
        /// As a JSON list.
        #[arg(long)]
        json: bool,
    },
    /// Prints what each service may do at a RabbitMQ broker, where each has a user of its own (`broker.own_users`).
    Permissions {
        /// As commands of `rabbitmqctl` for this virtual host, instead of JSON.
        #[arg(long, value_name = "VHOST")]
        ctl: Option<String>,
    },
    /// Copies the data of a running or stopped system, as it is at one moment, into an empty directory.
    Backup {
        #[command(flatten)]
        copied: Copied,
        /// Copies this workspace alone. If that fails or is interrupted, remove the directory: it may hold data of others.
        #[arg(short, long, value_name = "NAME")]
        workspace: Option<String>,
    },
    /// Copies a backup into an empty data directory.
    Restore(Copied),
    /// Writes man pages of this program into a directory.
    #[command(hide = true)]
    ManPages {
        /// Directory, which is there.
        directory: PathBuf,
    },
    /// Takes one document apart: started by this program itself.
    #[command(name = tg_server::DECODE, hide = true)]
    Decode {
        /// Format of the document on standard input.
        format: String,
        /// What it may use up.
        limits: Option<String>,
    },
}

#[derive(Args)]
struct Copied {
    /// Directory of the backup.
    directory: PathBuf,
    /// Settings file (default: threadgraph.toml in this directory, if there).
    #[arg(long)]
    config: Option<PathBuf>,
    /// Where stores live.
    #[arg(long)]
    data_dir: Option<String>,
    /// What was copied, as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Common {
    /// Settings file (default: threadgraph.toml in this directory, if there).
    #[arg(long)]
    config: Option<PathBuf>,
    /// Address of the gateway.
    #[arg(long)]
    listen: Option<String>,
    /// Where stores live.
    #[arg(long)]
    data_dir: Option<String>,
    /// `embedded` or `amqp://user:password@host:port/vhost` (`amqps://` with TLS).
    #[arg(long)]
    bus: Option<String>,
    /// `native` or `interop` (names and JSON of TrustGraph 2.11, to share a broker with its processors).
    #[arg(long)]
    mode: Option<String>,
    /// `none` (loopback only) or `iam`.
    #[arg(long)]
    auth: Option<String>,
    /// Serve with this store although another one of its name served before (repeatable): for a store that was lost
    /// for good. Names as in the log line that refuses it, e.g. `graph`.
    #[arg(long, value_name = "STORE")]
    adopt_store: Vec<String>,
    /// Open this data directory to everybody on this machine (`auth = none`) although it was served under access control.
    #[arg(long, value_name = "DIRECTORY")]
    open_data: Option<PathBuf>,
}

impl From<Common> for Flags {
    fn from(common: Common) -> Self {
        Self {
            config: common.config,
            listen: common.listen,
            data_dir: common.data_dir,
            bus: common.bus,
            mode: common.mode,
            auth: common.auth,
            adopt_stores: common.adopt_store,
            open_data: common.open_data,
        }
    }
}

/// How long blocking work may take to end after everything else has.
const LAST: Duration = Duration::from_secs(5);

/// Stack of the threads of async work. Headers of a message nest some thousand deep at most, and dropping them recurses.
const STACK: usize = 8 << 20;

/// What is read from the environment before anything of ours runs.
const ENVIRONMENT: [(&str, &str); 4] = [
    // Heaps of the C library, which SQLite uses: one for each of some thirty threads takes 64 MiB of address space each.
    ("MALLOC_ARENA_MAX", "2"),
    // Freed pages are given back to the system after 100 ms instead of a second: a large document on its way through would
    // leave much more behind. After 10 ms the system had to clear the same pages again for nearly every run of the agent.
    ("MIMALLOC_PURGE_DELAY", "100"),
    // Address space that the allocator takes at once, in KiB, as much as it needs for a start: a GiB by itself, which is
    // half of what a small machine leaves to a process.
    ("MIMALLOC_ARENA_RESERVE", "131072"),
    // Stack of threads that say none, in bytes: those of the AMQP client, whose parser recurses over tables of headers. These nest
    // 26,000 deep in the longest frame of a node, and one that is longer than was agreed is read before it is refused. With the usual
    // 2 MiB a message of 5 KB ended every process that reads its queue, and with 256 one of 125 KB (unoptimised). It is address space,
    // and memory only as far as it is used.
    ("RUST_MIN_STACK", "536870912"),
];

/// Starts this program once more, as the same process, with its environment completed. If that fails everything works
/// all the same, but for what the environment is for.
fn complete_environment() {
    let is_set = |(name, _): &(&str, &str)| std::env::var_os(name).is_some();
    if ENVIRONMENT.iter().all(is_set) {
        return;
    }
    let mut words = std::env::args_os();
    if let (Ok(program), Some(name)) = (std::env::current_exe(), words.next()) {
        let mut again = std::process::Command::new(program);
        for (name, value) in ENVIRONMENT {
            again.env(name, std::env::var_os(name).unwrap_or(value.into()));
        }
        // Only returns if it failed.
        let _ = again.arg0(name).args(words).exec();
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Several TLS users share the process; they must agree on one provider before the first of them.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (flags, services) = match command {
        Command::Up(common) => {
            complete_environment();
            (Flags::from(common), Services::all())
        }
        Command::Serve { services, common } => {
            complete_environment();
            (Flags::from(common), Services::some(services))
        }
        Command::Settings { common, json } => return show(&Flags::from(common), json),
        Command::Permissions { ctl } => return permissions(ctl.as_deref()),
        Command::ManPages { directory } => return man_pages(&directory),
        Command::Backup { copied, workspace } => {
            return copy(&copied, |to, settings| {
                backup(to, settings, workspace.as_deref())
            });
        }
        Command::Restore(copied) => return copy(&copied, restore),
        Command::Decode { format, limits } => return decode(&format, limits.as_deref()),
    };
    machine::keep_to_itself();
    let settings = match Settings::load(&flags, std::env::vars().collect()) {
        Ok(settings) => settings,
        Err(faults) => return refuse(&faults),
    };
    if let Some(fault) = settings.unshared(&services) {
        return refuse(&[fault]);
    }
    let unreadable = settings.unreadable(&services);
    if !unreadable.is_empty() {
        return refuse(&unreadable);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .on_thread_park(|| tg_counted_alloc::collect_before_sleep(tg_mesh::clock::millis()))
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("threadgraph: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(process::run(settings, services));
    // A store that is just being opened does not hold the end up.
    runtime.shutdown_timeout(LAST);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("threadgraph: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the settings that count; where there are mistakes, all the same, as they send people here.
fn show(flags: &Flags, json: bool) -> ExitCode {
    let (rows, faults) = page::effective(flags, &std::env::vars().collect());
    let text = match json {
        true => format!("{}\n", serde_json::json!(rows)),
        false => page::listing(&rows),
    };
    // A reader that has seen enough, such as `head`, closes the pipe.
    let _ = std::io::stdout().write_all(text.as_bytes());
    match faults.is_empty() {
        true => ExitCode::SUCCESS,
        false => refuse(&faults),
    }
}

fn man_pages(directory: &Path) -> ExitCode {
    match clap_mangen::generate_to(Cli::command(), directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("threadgraph: {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}

/// Prints the broker's permissions for all services.
fn permissions(vhost: Option<&str>) -> ExitCode {
    let text = match (permissions::all(), vhost) {
        (Ok(all), Some(vhost)) => permissions::commands(&all, vhost),
        (Ok(all), None) => format!("{:#}\n", serde_json::json!(all)),
        (Err(error), _) => {
            eprintln!("threadgraph: {error}");
            return ExitCode::FAILURE;
        }
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Copies a data directory out or in, and prints what was copied.
fn copy(
    of: &Copied,
    how: impl FnOnce(&Path, &Settings) -> anyhow::Result<(Manifest, String)>,
) -> ExitCode {
    machine::keep_to_itself();
    machine::raise();
    let flags = Flags {
        config: of.config.clone(),
        data_dir: of.data_dir.clone(),
        ..Flags::default()
    };
    let settings = match Settings::load(&flags, std::env::vars().collect()) {
        Ok(settings) => settings,
        Err(faults) => return refuse(&faults),
    };
    match how(&of.directory, &settings) {
        Ok((manifest, text)) => {
            let text = match of.json {
                true => format!("{}\n", serde_json::json!(manifest)),
                false => text,
            };
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("threadgraph: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn backup(
    to: &Path,
    settings: &Settings,
    workspace: Option<&str>,
) -> anyhow::Result<(Manifest, String)> {
    let manifest = match workspace {
        Some(name) => backup::take_workspace(&settings.data_dir, to, &WorkspaceId::new(name)?)?,
        None => backup::take(&settings.data_dir, to)?,
    };
    let records = match (workspace, manifest.records) {
        (Some(_), _) => {
            "Records that wait, uploads in progress, the audit log and files beside the stores are not in it.\n"
        }
        (None, true) => "",
        (None, false) => "Records that wait are at the broker, and not in it.\n",
    };
    let text = format!("{} in {}.\n{records}", manifest.summary(), to.display());
    Ok((manifest, text))
}

fn restore(from: &Path, settings: &Settings) -> anyhow::Result<(Manifest, String)> {
    let manifest = backup::restore(from, &settings.data_dir)?;
    let to = settings.data_dir.display();
    let text = format!("{} restored into {to}.\n", manifest.summary());
    Ok((manifest, text))
}

/// Tells all mistakes in the settings.
fn refuse(faults: &[SettingError]) -> ExitCode {
    for fault in faults {
        eprintln!("{}{fault}", heading(&fault.key));
    }
    ExitCode::from(2)
}

/// What stands before a mistake: a file that cannot be read and a flag are no settings.
fn heading(key: &str) -> &'static str {
    match key.starts_with("--") || key.contains('/') || key.ends_with(".toml") {
        true => "",
        false => "setting ",
    }
}

fn decode(format: &str, limits: Option<&str>) -> ExitCode {
    use tg_ingest::decode::{Format, Limits, run};
    let limits = limits.map_or_else(|| Some(Limits::default()), Limits::from_argument);
    match Format::parse(format).zip(limits) {
        Some((format, limits)) => ExitCode::from(run(format, &limits)),
        None => ExitCode::from(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_setting_is_not_called_one() {
        for key in [
            "threadgraph.toml",
            "broken.toml",
            "/etc/tg/conf",
            "--config",
        ] {
            assert_eq!(heading(key), "", "{key}");
        }
        for key in ["bus", "llm.key", "OLLAMA_HOST"] {
            assert_eq!(heading(key), "setting ", "{key}");
        }
    }
}
