//! Settings: defaults, `threadgraph.toml`, environment `THREADGRAPH_…` (`__` for nesting), flags; later
//! ones win. All mistakes are reported at once, each with its key.

mod choices;
mod concurrency;
mod left_out;
mod memory;
pub mod page;
mod sections;
mod sources;
mod telemetry;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tg_schemas::limits;
use tg_settings::{Filled, SettingError, Texts, read, variables};
use tg_storage::Durability;

use crate::compose::Services;

pub use memory::overdrawn;

pub use choices::{AmqpUrl, Auth, BusChoice, MeshMode};
pub use concurrency::Concurrency;
pub use left_out::LeftOut;
pub use sections::{Broker, BusTls, Log, LogFormat, Metrics, Money, QueueType, Report};
pub use sources::{Given, Source};
pub use telemetry::{Receiver, Telemetry};

tg_settings::options! {
    /// All settings of a process.
    pub struct Settings {
        /// Address and port of the gateway. Anything but a loopback address needs `auth = iam`. Port 0: a free one, which the
        /// log and the greeting report.
        #[serde(deserialize_with = "choices::listen")]
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8888));
        /// Where stores live. Empty: `threadgraph` below the user's data directory.
        data_dir: PathBuf = PathBuf::new();
        /// `embedded`, or a broker: `amqp://user:password@host:port/vhost`, with TLS `amqps://…`. It may be named: `env:NAME` or
        /// `file:PATH`.
        bus: BusChoice = BusChoice::Embedded;
        /// `native`, or `interop`: names and JSON of TrustGraph 2.11, to share a broker with its processors.
        mode: MeshMode = MeshMode::Native;
        /// `none` (loopback only, everybody may do everything) or `iam` (users with keys).
        auth: Auth = Auth::None;
        /// What a committed write survives: with `process` the death of the process, with `power` a power loss, too.
        durability: Durability = Durability::Process;
        /// How long a stop waits for what is in progress, in seconds.
        drain_seconds: u64 = 20, Whole(1..=600);
        /// Messages that processors work on at a time in each queue, where not as many as each was made for:
        /// `graph-rag=8,chunker=2`. Beyond, questions are refused as busy, and records wait. Of `iam-svc` at least 1,024.
        concurrency: Concurrency = Concurrency::default();
        /// Processors of flows that this process leaves to others on the same broker, such as TrustGraph's own in interop
        /// mode: `chunker,graph-rag`. Else both serve, and share the work. A foreign store of triples (`triples-write`,
        /// `triples-query`, `sparql-query`) knows no policies and withdraws nothing. Not on the embedded bus, where nobody else is.
        without: LeftOut = LeftOut::default();
        /// Memory that this system may take on the machine, in MiB. 0, or more than there is: the least of the machine's
        /// memory, the limits of the process's control groups and of its address space.
        memory_mb: u64 = 0, Whole(0..=1 << 30);
        /// Memory of records that are handed out and not settled, beside one for each reader, in MiB; on the embedded bus of
        /// those that wait, too. More wait on disk, or at the broker.
        bus_memory_mb: usize = 128, Whole(1..=65_536);
        /// Records on the disk of the embedded bus at most, in MiB. Of those that wait, one workspace has half, and what comes
        /// in anew half of that; beyond, it is refused as busy.
        bus_disk_mb: u64 = 16_384, Whole(256..=1 << 24);
        /// Memory of records that wait for live subscribers in this process, live exports above all, in MiB; beyond,
        /// they miss records and learn how many.
        exports_mb: usize = 256, Whole(1..=65_536);
        /// Memory for finished answers in each process, in MiB, kept ten seconds so that lost parts can be resent.
        answers_mb: usize = limits::REPEATS >> 20, Whole(1..=65_536);
        /// Memory for questions in progress in each process, in MiB; one workspace has half of it. A question takes twice its
        /// size, one of up to 16 KiB nothing; where there is no room it is refused as busy.
        questions_mb: usize = 256, Whole(1..=65_536);
    }
    sections {
        /// How the process logs.
        log: Log,
        /// The metrics of the process.
        metrics: Metrics,
        /// What the process reports on itself.
        report: Report,
        /// Traces of requests.
        telemetry: Telemetry,
        /// In which money costs are told.
        cost: Money,
        /// Secure connections with the broker.
        bus_tls: BusTls,
        /// Users of the broker.
        broker: Broker,
        /// How documents are taken apart.
        ingest: tg_ingest::Settings,
        /// The gateway: its bounds and its certificate.
        gateway: tg_gateway::Settings,
        /// The agent.
        agent: tg_agent::Options,
        /// Tool calls.
        tool: tg_tool::Options,
        /// Agents over time, and their sessions.
        sessions: tg_sessions::Options,
        /// Messages between listeners.
        threads: tg_threads_service::Options,
        /// The extractors.
        extract: tg_extract::Options,
        /// The language model that answers.
        llm: tg_llm::Options,
        /// Who makes vectors of texts.
        embeddings: tg_embeddings::Options,
        /// How retrieval answers, and who reranks.
        rag: tg_rag::Options,
        /// The vectors in memory.
        vectors: tg_vectors::Options,
        /// Graphs and queries over them.
        graph: tg_graph::Options,
        /// The rows.
        rows: tg_rows::Options,
        /// The knowledge cores.
        knowledge: tg_knowledge::Options,
        /// The configuration.
        config: tg_config::Options,
        /// Users and what they may.
        iam: tg_iam::Options,
        /// The flow service.
        flow: tg_flow::Options,
        /// The library.
        library: tg_librarian::Options,
    }
    given {
        /// Stores that serve although another of their name served before.
        adopt_stores: Vec<String>,
        /// A data directory that was served under access control and is opened to everybody.
        open_data: Option<PathBuf>,
        /// Settings of memory that nobody says, as they were filled in.
        filled: Vec<Filled>,
    }
}

/// What flags say; absent ones fall through.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<String>,
    /// `--data-dir`.
    pub data_dir: Option<String>,
    /// `--bus`.
    pub bus: Option<String>,
    /// `--mode`.
    pub mode: Option<String>,
    /// `--auth`.
    pub auth: Option<String>,
    /// `--adopt-store`, as often as it is given.
    pub adopt_stores: Vec<String>,
    /// `--open-data`.
    pub open_data: Option<PathBuf>,
}

impl Settings {
    /// Reads all sources. `env` stands for the process environment.
    ///
    /// # Errors
    /// All mistakes, each with the key or the variable that it is in.
    pub fn load(flags: &Flags, env: Texts) -> Result<Self, Vec<SettingError>> {
        let (settings, _, faults) = Self::read(flags, &env);
        match faults.is_empty() {
            true => Ok(settings),
            false => Err(faults),
        }
    }

    /// The settings with defaults in place of what is wrong, where each comes from, and all mistakes.
    fn read(flags: &Flags, env: &Texts) -> (Self, Given, Vec<SettingError>) {
        let (given, unread) = match sources::collect(flags, env.clone()) {
            Ok(given) => (given, None),
            Err(fault) => (Given::default(), Some(fault)),
        };
        let (mut settings, mut faults) = read::<Self>(given.texts());
        settings.adopt_stores = flags.adopt_stores.clone();
        settings.open_data = flags.open_data.clone();
        if settings.data_dir.as_os_str().is_empty() {
            settings.data_dir = usual_data_dir();
        }
        settings.llm.variables = variables(env).0;
        settings.telemetry.variables = variables(env).0;
        settings.llm.tells_address = settings.auth == Auth::None;
        settings.embeddings.tells_address = settings.auth == Auth::None;
        settings.sessions.credentials = settings.llm.credentials.clone();
        settings.rag.credentials = settings.llm.credentials.clone();
        settings.embeddings.variables = variables(env).0;
        settings.embeddings.data_dir = settings.data_dir.clone();
        settings.agent.usd_eur_rate = settings.cost.usd_eur_rate;
        settings.gateway.usd_eur_rate = settings.cost.usd_eur_rate;
        settings.sessions.usd_eur_rate = settings.cost.usd_eur_rate;
        let machine = tg_storage::memory::of_this_process();
        settings.filled = memory::share_out(&mut settings, &given, machine);
        settings.open_private_addresses(&given);
        settings.rag.private_addresses = settings.llm.private_addresses;
        match unread {
            // What follows from settings that could not be read says nothing.
            Some(fault) => faults = vec![fault],
            None => faults.extend(settings.faults()),
        }
        (settings, given, faults)
    }

    /// Without users whoever asks runs the system, on this machine: servers there are asked unless the operator says otherwise.
    fn open_private_addresses(&mut self, given: &Given) {
        if self.auth != Auth::None {
            return;
        }
        let all = [
            ("tool.private_addresses", &mut self.tool.private_addresses),
            ("llm.private_addresses", &mut self.llm.private_addresses),
        ];
        for (name, allowed) in all {
            if given.source(name) == Source::Default {
                *allowed = true;
                self.filled.push(Filled {
                    name,
                    value: true.to_string(),
                    by: Some("auth"),
                });
            }
        }
    }

    /// What keeps these services from meeting the others: the embedded bus is one process's own.
    pub fn unshared(&self, services: &Services) -> Option<SettingError> {
        let alone = self.bus == BusChoice::Embedded && !services.is_all();
        alone.then(|| {
            SettingError::new(
                "bus",
                "`serve` needs a broker that processes share (--bus amqp://user:password@host/); `threadgraph up` runs \
                 everything in one process",
            )
        })
    }

    /// What these services could not start with: files that settings name.
    pub fn unreadable(&self, services: &Services) -> Vec<SettingError> {
        let of_gateway = match services.has("gateway") {
            true => self.gateway.unreadable(),
            false => None,
        };
        let mut faults = within("gateway", of_gateway);
        faults.extend(within("bus_tls", self.bus_tls.unreadable()));
        faults
    }

    /// How long a stop waits for work in progress.
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_seconds)
    }

    /// The mistakes that one setting alone does not show.
    fn faults(&self) -> Vec<SettingError> {
        let mut faults = self.llm.faults();
        faults.extend(self.llm.asks_gateway(self.listen));
        faults.extend(within("embeddings", self.embeddings.faults()));
        faults.extend(within("rag", self.rag.faults()));
        faults.extend(within("tool", self.tool.faults()));
        faults.extend(within("sessions", self.sessions.faults()));
        faults.extend(self.iam.faults(self.auth == Auth::None));
        faults.extend(within("gateway", self.gateway.faults()));
        faults.extend(within("bus_tls", self.bus_tls.faults()));
        faults.extend(self.telemetry.receiver().err().into_iter().flatten());
        let is_secure = matches!(&self.bus, BusChoice::Amqp(url) if url.is_secure());
        if self.bus_tls != BusTls::default() && !is_secure {
            let text =
                "must begin with amqps:// where bus_tls.… is given: nothing would be encrypted";
            faults.push(SettingError::new("bus", text));
        }
        if self.auth == Auth::None && !self.listen.ip().is_loopback() {
            let text = "other machines could reach this address and auth is none: set auth to iam \
                        (--auth iam), or listen on 127.0.0.1";
            faults.push(SettingError::new("listen", text));
        }
        if self.mode == MeshMode::Interop && self.bus == BusChoice::Embedded {
            let text = "interop needs a broker: set bus to amqp://user:password@host:port/vhost";
            faults.push(SettingError::new("mode", text));
        }
        if self.mode == MeshMode::Interop && self.broker.queues == QueueType::Quorum {
            let text = "must be classic with mode interop: foreign processors declare the same queues, and the broker refuses \
                        them where the queues are of another kind";
            faults.push(SettingError::new("broker.queues", text));
        }
        if !self.without.is_empty() && self.bus == BusChoice::Embedded {
            let text = "must be empty on the embedded bus, where nobody else could serve them: set bus to \
                        amqp://user:password@host:port/vhost";
            faults.push(SettingError::new("without", text));
        }
        faults
    }
}

/// The mistakes of a section by their full names.
fn within(section: &str, own: impl IntoIterator<Item = SettingError>) -> Vec<SettingError> {
    let named =
        |fault: SettingError| SettingError::new(format!("{section}.{}", fault.key), fault.message);
    own.into_iter().map(named).collect()
}

fn usual_data_dir() -> PathBuf {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    std::env::var_os("XDG_DATA_HOME")
        .map_or_else(|| home.join(".local/share"), PathBuf::from)
        .join("threadgraph")
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
