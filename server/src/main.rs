//! The `threadgraph` binary.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tg_server::process::{self, Services};
use tg_server::settings::{Flags, Settings};

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
        #[arg(required = true, value_parser = clap::builder::PossibleValuesParser::new(process::SERVICES))]
        services: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Prints every setting with its default.
    Settings,
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
        }
    }
}

fn main() -> ExitCode {
    // Several TLS users share the process; they must agree on one provider before the first of them.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (flags, services) = match Cli::parse().command {
        Command::Up(common) => (Flags::from(common), Services::all()),
        Command::Serve { services, common } => (Flags::from(common), Services::some(services)),
        Command::Settings => {
            for (key, default) in tg_server::settings::KEYS {
                println!("{key} = {default:?}");
            }
            return ExitCode::SUCCESS;
        }
    };
    let settings = match Settings::load(&flags, std::env::vars().collect()) {
        Ok(settings) => settings,
        Err(mistakes) => {
            for mistake in mistakes {
                eprintln!("setting {}: {}", mistake.key, mistake.text);
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
    match runtime.block_on(process::run(settings, services)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("threadgraph: {error:#}");
            ExitCode::FAILURE
        }
    }
}
