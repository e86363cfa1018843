//! The `threadgraph` binary.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use tg_server::compose::{SERVICES, Services};
use tg_server::process;
use tg_server::settings::{Flags, Settings};

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
    /// Prints every setting with its default.
    Settings,
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
    /// `embedded` or `amqp://user:password@host:port/vhost`.
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
        }
    }
}

/// How long blocking work may take to end after everything else has.
const LAST: Duration = Duration::from_secs(5);

/// Starts this program once more, as the same process, with freed pages given back to the system after 10 ms instead
/// of a second: the allocator reads that from the environment, before anything of ours runs. A large document
/// on its way through would leave much more behind. Without it everything works all the same.
fn give_pages_back_soon() {
    const DELAY: &str = "MIMALLOC_PURGE_DELAY";
    if std::env::var_os(DELAY).is_some() {
        return;
    }
    let mut words = std::env::args_os();
    if let (Ok(program), Some(name)) = (std::env::current_exe(), words.next()) {
        // Only returns if it failed.
        let _ = std::process::Command::new(program)
            .arg0(name)
            .args(words)
            .env(DELAY, "10")
            .exec();
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Several TLS users share the process; they must agree on one provider before the first of them.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (flags, services) = match command {
        Command::Up(common) => {
            give_pages_back_soon();
            (Flags::from(common), Services::all())
        }
        Command::Serve { services, common } => {
            give_pages_back_soon();
            (Flags::from(common), Services::some(services))
        }
        Command::Settings => {
            print!("{}", tg_server::settings::page::listing());
            return ExitCode::SUCCESS;
        }
        Command::Decode { format, limits } => return decode(&format, limits.as_deref()),
    };
    let settings = match Settings::load(&flags, std::env::vars().collect()) {
        Ok(settings) => settings,
        Err(faults) => {
            for fault in faults {
                eprintln!("setting {fault}");
            }
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
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

fn decode(format: &str, limits: Option<&str>) -> ExitCode {
    use tg_ingest::decode::{Format, Limits, run};
    let limits = limits.map_or_else(|| Some(Limits::default()), Limits::from_argument);
    match Format::parse(format).zip(limits) {
        Some((format, limits)) => ExitCode::from(run(format, &limits)),
        None => ExitCode::from(2),
    }
}
