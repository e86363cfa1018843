//! One process from start to orderly stop: bus, mesh, hosted services, gateway, bootstrap, signals.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tg_gateway::{GatewayHandle, GatewayOptions};
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::rabbitmq::{RabbitBus, RabbitOptions};
use tg_mesh::{Bus, BusError, Mesh, MeshOptions, Mode, TaskKind};
use tg_storage::Durability;

use crate::settings::{AmqpUrl, Auth, BusChoice, DurabilityChoice, MeshMode, Settings};
use crate::{compose, greeting, seed, telemetry};

/// Names that `threadgraph serve` knows, in the order they are started.
pub const SERVICES: [&str; 10] = [
    "config",
    "iam",
    "flow",
    "librarian",
    "graph",
    "llm",
    "prompt",
    "tool",
    "agent",
    "gateway",
];

/// Pause before a bootstrap that failed is tried again.
const BOOTSTRAP_AGAIN: Duration = Duration::from_secs(2);

/// How long a process waits for a broker that is not there yet.
const BROKER_PATIENCE: Duration = Duration::from_secs(30);

/// Which services a process runs.
#[derive(Debug, Clone)]
pub struct Services(BTreeSet<String>);

impl Services {
    /// Every one.
    pub fn all() -> Self {
        Self(SERVICES.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Those named.
    pub fn some(names: Vec<String>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Whether a service is to run here.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// A running process.
pub struct Running {
    /// Its place in the mesh.
    pub mesh: Mesh,
    /// Its gateway, if it has one.
    pub gateway: Option<GatewayHandle>,
    drain: Duration,
}

impl Running {
    /// Stops: no new work, what is in progress ends (bounded), stores are left whole.
    pub async fn stop(self) {
        if let Some(gateway) = self.gateway {
            gateway.close().await;
        }
        self.mesh.stop(self.drain).await;
    }
}

/// Runs until SIGTERM or Ctrl-C.
pub async fn run(settings: Settings, services: Services) -> Result<()> {
    telemetry::init_logs(&settings);
    let running = start(&settings, &services).await?;
    stop_signal().await?;
    tracing::info!("stopping");
    running.stop().await;
    Ok(())
}

/// Starts a process and returns once it listens.
pub async fn start(settings: &Settings, services: &Services) -> Result<Running> {
    let metrics = telemetry::init_metrics();
    std::fs::create_dir_all(&settings.data_dir)
        .with_context(|| format!("data_dir: cannot create {}", settings.data_dir.display()))?;
    let first = !settings.data_dir.join("config.sqlite").exists();
    let bus = open_bus(settings).await?;
    let name = if services.0.len() == SERVICES.len() {
        "up".to_owned()
    } else {
        services.0.iter().cloned().collect::<Vec<_>>().join("-")
    };
    let mesh = Mesh::start(
        bus,
        MeshOptions {
            name,
            ..MeshOptions::default()
        },
    )
    .await?;
    let composed = compose::processors(&mesh, settings, services).await?;
    for processor in composed.processors {
        mesh.host(processor).await?;
    }
    let gateway = if services.has("gateway") {
        let regime = match settings.auth {
            Auth::None => tg_gateway::Regime::None,
            Auth::Iam => tg_gateway::Regime::Iam,
        };
        let options = GatewayOptions {
            metrics,
            drain: settings.drain,
            ..GatewayOptions::new(settings.listen, regime)
        };
        Some(
            tg_gateway::serve(mesh.clone(), options)
                .await
                .context("gateway")?,
        )
    } else {
        None
    };
    if services.has("config") {
        let greet = gateway.as_ref().map(|gateway| {
            greeting::lines(gateway.local_addr(), settings.auth, &composed.model, first)
        });
        let inner = mesh.clone();
        mesh.spawn(TaskKind::Background, async move {
            bootstrap(inner, greet).await
        });
    }
    Ok(Running {
        mesh,
        gateway,
        drain: settings.drain,
    })
}

async fn bootstrap(mesh: Mesh, greeting: Option<Vec<String>>) {
    let seed = match seed::seed() {
        Ok(seed) => seed,
        Err(error) => {
            tracing::error!(%error, "the shipped data files cannot be read");
            return;
        }
    };
    while let Err(error) = tg_config::bootstrap(&mesh, seed.clone()).await {
        tracing::warn!(%error, "bootstrap waits for the other services");
        tokio::time::sleep(BOOTSTRAP_AGAIN).await;
    }
    for line in greeting.unwrap_or_default() {
        eprintln!("{line}");
    }
}

async fn open_bus(settings: &Settings) -> Result<Arc<dyn Bus>> {
    let mode = match settings.mode {
        MeshMode::Native => Mode::Native,
        MeshMode::Interop => Mode::Interop,
    };
    Ok(match &settings.bus {
        BusChoice::Embedded => {
            let dir = settings.data_dir.join("bus");
            Arc::new(EmbeddedBus::open(&dir, durability(settings)).context("bus: embedded")?)
        }
        BusChoice::Amqp(url) => Arc::new(connect(url, mode).await?),
    })
}

/// Connects to the broker; one that is still starting is waited for.
async fn connect(url: &AmqpUrl, mode: Mode) -> Result<RabbitBus> {
    let until = Instant::now() + BROKER_PATIENCE;
    loop {
        match RabbitBus::connect(url.expose(), mode, RabbitOptions::of(mode)).await {
            Err(BusError::Down) if Instant::now() < until => {
                tracing::info!("waiting for the broker");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            bus => {
                return bus.context("bus: the broker cannot be reached; check the setting `bus`");
            }
        }
    }
}

/// The stores' durability.
pub fn durability(settings: &Settings) -> Durability {
    match settings.durability {
        DurabilityChoice::Process => Durability::Process,
        DurabilityChoice::Power => Durability::Power,
    }
}

async fn stop_signal() -> Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => {}
        result = tokio::signal::ctrl_c() => result?,
    }
    Ok(())
}
