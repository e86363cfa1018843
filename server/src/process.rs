//! One process from start to orderly stop: bus, mesh, hosted services, gateway, bootstrap, signals.

use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tg_gateway::{GatewayHandle, GatewayOptions};
use tg_mesh::embedded::{EmbeddedBus, EmbeddedOptions};
use tg_mesh::rabbitmq::RabbitOptions;
use tg_mesh::{Bus, Host, MeshOptions, Mode, Processor, TaskKind};
use tg_storage::StorageError;
use tokio::time::Instant;

use crate::compose::{self, Services};
use crate::greeting::{self, FirstKey, Local, Models};
use crate::health::{self, Health};
use crate::metrics::Recorder;
use crate::settings::{self, Auth, BusChoice, MeshMode, Settings};
use crate::signals::{Signals, Told};
use crate::telemetry::Exporter;
use crate::{backup, broker, disk, logs, machine, seed};

/// Pause before a bootstrap that failed is tried again.
const BOOTSTRAP_RETRY_DELAY: Duration = Duration::from_secs(2);

/// What is left to the mesh, and to the gateway over its own bound, when the drain time is used up.
const CUT_OFF: Duration = Duration::from_secs(2);

/// How long the greeting waits for the code for the first key.
const CODE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a process without a greeting waits for it: its store may be opened late, as other processes start.
const LONE_CODE_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two looks for it.
const CODE_LOOK: Duration = Duration::from_millis(50);

/// How long an Ollama of this machine may take to say that it is there; meanwhile the system is set up.
const LOCAL_MODELS: Duration = Duration::from_millis(500);

/// A running process.
pub struct Running {
    /// Its place in the mesh.
    pub mesh: Host,
    /// Its gateway, if it has one.
    pub gateway: Option<GatewayHandle>,
    drain: Duration,
}

impl Running {
    /// What SIGHUP asks of a process without a terminal: certificates are read again, nothing else is.
    fn renew(&self) {
        let certified = self.gateway.as_ref();
        match certified.is_some_and(GatewayHandle::renew_certificate) {
            true => tracing::info!("SIGHUP: the certificate is looked at"),
            false => {
                tracing::info!("SIGHUP: nothing to read again, settings are read at the start only")
            }
        }
    }

    /// What a stop waits for, in words.
    fn waits_for(&self) -> String {
        let answers = self.gateway.as_ref().map_or(0, GatewayHandle::answering);
        let work = self.mesh.port().tasks().handlers();
        let what = match (answers, work) {
            (0, 0) => return String::new(),
            (0, _) => "work in progress".to_owned(),
            (1, _) => "1 answer".to_owned(),
            (answers, _) => format!("{answers} answers"),
        };
        format!(": waiting for {what}, Ctrl-C again to stop at once")
    }

    /// Stops: no new work, what is in progress ends, stores are left whole. Clients and the work behind
    /// them share one drain time; leaving the mesh takes a few seconds more at most.
    pub async fn stop(self) {
        let end = Instant::now() + self.drain;
        if let Some(gateway) = self.gateway {
            // It cuts requests off at the end of the drain time by itself.
            let bound = self.drain + CUT_OFF;
            if tokio::time::timeout(bound, gateway.close()).await.is_err() {
                tracing::warn!("the gateway did not close in time");
            }
        }
        let left = end.saturating_duration_since(Instant::now()).max(CUT_OFF);
        self.mesh.stop(left).await;
    }
}

/// Runs until SIGTERM, Ctrl-C or the end of its terminal. Without a terminal, SIGHUP has the certificate read again.
///
/// # Errors
/// What [`start`] refuses, or signals that cannot be heard.
pub async fn run(settings: Settings, services: Services) -> Result<()> {
    logs::init(&settings);
    let mut signals = Signals::new()?;
    let running = tokio::select! {
        running = start(&settings, &services) => running?,
        // Nothing is served yet; what is stored is whole at every moment.
        () = signals.stop() => {
            tracing::info!("stopped before the start was complete");
            return Ok(());
        }
    };
    while signals.next().await == Told::Renew {
        running.renew();
    }
    tracing::info!("stopping{}", running.waits_for());
    tokio::select! {
        () = running.stop() => {}
        () = signals.stop() => tracing::warn!("second signal: stopping at once"),
    }
    Ok(())
}

/// Starts a process and returns once it listens.
///
/// # Errors
/// The directory, the bus, a service or the listener cannot be set up; the text names the setting where one is at fault.
pub async fn start(settings: &Settings, services: &Services) -> Result<Running> {
    let recorder = Recorder::install();
    if let Some(warning) = settings::overdrawn(settings) {
        tracing::warn!("{warning}");
    }
    let files = machine::raise();
    // Stores hold what only their owner may read, also from another account of this machine.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&settings.data_dir)
        .with_context(|| format!("data_dir: cannot create {}", settings.data_dir.display()))?;
    machine::close(&settings.data_dir);
    if backup::unfinished(&settings.data_dir) {
        bail!(
            "data_dir: a restore into {} did not end; empty it and restore again",
            settings.data_dir.display()
        );
    }
    if services.has("gateway") || services.has("iam") {
        crate::guarded::check(settings)?;
    }
    let first = !settings.data_dir.join("config.sqlite").exists();
    let bus = open_bus(settings).await?;
    let (telemetry, name) = (settings.telemetry.clone(), services.name());
    let exporter = tokio::task::spawn_blocking(move || Exporter::new(&telemetry, &name));
    let (tracer, exporter) = exporter.await?.context("telemetry.otlp_url")?;
    let mesh = tg_runs::start(
        bus,
        Arc::new(tg_clients::config::Watched),
        MeshOptions {
            name: services.name(),
            adopt_stores: settings.adopt_stores.clone(),
            repeats: settings.answers_mb << 20,
            taps: settings.exports_mb << 20,
            questions: settings.questions_mb << 20,
            near: true,
            tracer,
            ..MeshOptions::default()
        },
    )
    .await?;
    if let Some(exporter) = exporter {
        exporter.start(&mesh);
    }
    let health = Health::new(&mesh);
    report(&mesh, settings, recorder.as_ref(), &health).await?;
    let mut composed = compose(&mesh, settings, services).await?;
    composed.retain(|one| !settings.without.has(one));
    let expected = health.expect(&composed);
    for processor in composed {
        mesh.host(settings.concurrency.of(processor)).await?;
    }
    expected.all_hosted();
    if services.has("gateway") || services.has("iam") {
        crate::guarded::mark(settings)?;
    }
    let gateway = if services.has("gateway") {
        let auth_mode = match settings.auth {
            Auth::None => tg_gateway::AuthMode::None,
            Auth::Iam => tg_gateway::AuthMode::Iam,
        };
        let mut options = GatewayOptions {
            metrics: recorder.as_ref().map(Recorder::exposition),
            drain: settings.drain(),
            settings: settings.gateway.clone(),
            ..GatewayOptions::new(settings.listen, auth_mode)
        };
        let connections = machine::connections(files, options.settings.connections);
        options.settings.connections = connections;
        // However few there are: one address is not all of them.
        let share = &mut options.settings.connections_per_address;
        *share = (*share).min((connections / 2).max(1));
        Some(
            tg_gateway::serve(mesh.mesh().clone(), options)
                .await
                .context("gateway")?,
        )
    } else {
        None
    };
    disk::watch(&mesh, settings.data_dir.clone());
    let url = gateway.as_ref().map(GatewayHandle::url);
    set_up(&mesh, settings, services, url, first);
    Ok(Running {
        mesh,
        gateway,
        drain: settings.drain(),
    })
}

/// Starts the listeners that report on this process, before its services: they tell that it lives while stores are opened.
async fn report(
    mesh: &Host,
    settings: &Settings,
    recorder: Option<&Recorder>,
    health: &Health,
) -> Result<()> {
    let Some(recorder) = recorder else {
        return Ok(());
    };
    recorder.keep_small(mesh);
    if let Some(listen) = settings.metrics.listen {
        tg_gateway::serve_metrics(mesh.mesh(), listen, recorder.exposition())
            .await
            .context("metrics.listen")?;
    }
    if let Some(listen) = settings.report.listen {
        let metrics = recorder.exposition();
        tg_gateway::serve_report(mesh.mesh(), listen, metrics, health.readiness())
            .await
            .context("report.listen")?;
        let seconds = settings.report.idle_consumer_seconds;
        if seconds > 0 {
            mesh.watch_intake(Duration::from_secs(seconds));
            health::count_idle(mesh);
        }
    }
    Ok(())
}

/// What goes on beside the services at a start: the process with the configuration fills it, and greets where it has the
/// gateway; the process with the first key's code says where that is, if nobody greets there.
fn set_up(mesh: &Host, settings: &Settings, services: &Services, url: Option<String>, first: bool) {
    let keys = services.has("iam") && settings.auth == Auth::Iam;
    let inner = mesh.clone();
    let greets = services.has("config") && url.is_some();
    if services.has("config") {
        let greet = url.map(|url| Greeting {
            url,
            auth: settings.auth,
            models: Models {
                model: settings.llm.describe(),
                at: settings.llm.origin(),
                vectors: settings.embeddings.describe(),
                local: None,
            },
            local: settings.llm.local(),
            first,
            keys: keys.then(|| settings.data_dir.clone()),
        });
        mesh.spawn(TaskKind::Background, async move {
            tokio::select! {
                () = bootstrap(inner.clone(), greet) => {}
                // Each of its steps may be repeated: the next start goes on.
                () = inner.stopping().cancelled() => {}
            }
        });
    }
    if keys && !greets {
        let (inner, data_dir) = (mesh.clone(), settings.data_dir.clone());
        mesh.spawn(TaskKind::Background, async move {
            tokio::select! {
                key = first_key(&data_dir, LONE_CODE_TIMEOUT) => {
                    if let Some(line) = key.line() {
                        eprintln!("{line}");
                    }
                }
                () = inner.stopping().cancelled() => {}
            }
        });
    }
}

/// The processors of this process; what is read for them is read off the runtime's threads.
async fn compose(mesh: &Host, settings: &Settings, services: &Services) -> Result<Vec<Processor>> {
    let (mesh, mut settings, services) = (mesh.clone(), settings.clone(), services.clone());
    // Who is let in is decided by the process with the gateway: elsewhere it is not known that whoever asks runs the system.
    settings.llm.tells_address &= services.has("gateway");
    settings.embeddings.tells_address &= services.has("gateway");
    let made = move || compose::processors(&mesh, &settings, &services);
    tokio::task::spawn_blocking(made).await?
}

/// What the greeting says.
struct Greeting {
    url: String,
    auth: Auth,
    models: Models,
    /// Where an Ollama is looked for, where the builtin reader serves.
    local: String,
    first: bool,
    /// The data directory with the code for the first key, if the service that asks for it is in this process.
    keys: Option<PathBuf>,
}

impl Greeting {
    /// At a later start the code for the first key, if it was never used, is there already.
    async fn lines(self) -> Vec<String> {
        let patience = match self.first {
            true => CODE_TIMEOUT,
            false => Duration::ZERO,
        };
        let key = match &self.keys {
            Some(data_dir) => first_key(data_dir, patience).await,
            None => FirstKey::None,
        };
        greeting::lines(&self.url, self.auth, &self.models, self.first, &key)
    }
}

/// The code for the first key, which is there a moment after the service that asks for it: itself for a terminal, else
/// where it is.
async fn first_key(data_dir: &Path, patience: Duration) -> FirstKey {
    let until = Instant::now() + patience;
    loop {
        match tg_iam::bootstrap_code(data_dir) {
            Some(code) if std::io::stderr().is_terminal() => return FirstKey::Code(code),
            Some(_) => return FirstKey::File(tg_iam::bootstrap_code_file(data_dir)),
            None if Instant::now() >= until => return FirstKey::None,
            None => tokio::time::sleep(CODE_LOOK).await,
        }
    }
}

async fn bootstrap(mesh: Host, greeting: Option<Greeting>) {
    let seed = match seed::seed() {
        Ok(seed) => seed,
        Err(error) => {
            tracing::error!(%error, "the shipped data files cannot be read");
            return;
        }
    };
    let set_up = async {
        while let Err(error) = tg_config::bootstrap(&mesh, seed.clone()).await {
            tracing::warn!(%error, "bootstrap waits for the services config and flow");
            tokio::time::sleep(BOOTSTRAP_RETRY_DELAY).await;
        }
    };
    let look = async {
        match &greeting {
            Some(greeting) if greeting.models.at.is_none() => {
                tg_llm::providers::models_at(&greeting.local, LOCAL_MODELS).await
            }
            _ => None,
        }
    };
    let ((), local) = tokio::join!(set_up, look);
    if let Some(mut greeting) = greeting {
        greeting.models.local = local.map(|models| Local {
            address: greeting.local.clone(),
            models,
        });
        for line in greeting.lines().await {
            eprintln!("{line}");
        }
    }
}

async fn open_bus(settings: &Settings) -> Result<Arc<dyn Bus>> {
    let rules = match settings.mode {
        MeshMode::Native => Mode::Native,
        MeshMode::Interop => Mode::Interop,
    }
    .rules();
    Ok(match &settings.bus {
        BusChoice::Embedded => {
            let dir = settings.data_dir.join("bus");
            let options = EmbeddedOptions {
                durability: settings.durability,
                memory: settings.bus_memory_mb << 20,
                disk: settings.bus_disk_mb << 20,
                ..EmbeddedOptions::default()
            };
            let bus = match EmbeddedBus::open_with(&dir, options) {
                Err(StorageError::InUse) => bail!("{}", taken(settings, &dir)),
                bus => bus.context("bus: embedded")?,
            };
            Arc::new(bus)
        }
        BusChoice::Amqp(url) => {
            let options = RabbitOptions {
                in_hand: settings.bus_memory_mb << 20,
                tls: settings.bus_tls.files(),
                inbox_exchange: settings.broker.own_users,
                queues: settings.broker.queues.into(),
                ..RabbitOptions::of(rules)
            };
            Arc::new(broker::connect(url, rules, options).await?)
        }
    })
}

/// Why a data directory cannot be used that another process has.
fn taken(settings: &Settings, bus: &Path) -> String {
    let by = match EmbeddedBus::taken_by(bus) {
        Some(process) => format!("another threadgraph (process {process})"),
        None => "another threadgraph".to_owned(),
    };
    format!(
        "data_dir: {} is in use by {by}; stop that one, or choose another directory with --data-dir",
        settings.data_dir.display()
    )
}
