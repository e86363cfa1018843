//! The bus as a parameter of a test: the same test runs on the embedded bus and on RabbitMQ.

use std::sync::Arc;

use tg_bus::embedded::{EmbeddedBus, EmbeddedOptions};
use tg_bus::rabbitmq::{RabbitBus, RabbitOptions};
use tg_bus::{Bus, Mode};
use tg_clients::config::Watched;
use tg_mesh::{Host, MeshOptions};

use crate::shared_node::VirtualHost;

/// A place of its own where the processes of one test meet.
#[derive(Clone)]
pub enum Place {
    /// In this process, in memory.
    Embedded(EmbeddedBus),
    /// A virtual host, by its address.
    RabbitMq(String),
}

impl Place {
    /// An embedded bus.
    pub fn embedded() -> Self {
        Self::Embedded(EmbeddedBus::in_memory())
    }

    /// A virtual host of the shared node. Panics without one.
    pub async fn rabbitmq() -> Self {
        let host = VirtualHost::new().await;
        let host = host.expect("RabbitMQ is installed and starts: scripts/setup.sh test");
        Self::RabbitMq(host.into_url())
    }

    /// Another place of the same kind, where nobody is yet.
    pub async fn another(&self) -> Self {
        match self {
            Self::Embedded(_) => Self::embedded(),
            Self::RabbitMq(_) => Self::rabbitmq().await,
        }
    }

    /// What a process of this place speaks over.
    pub async fn connect(&self) -> Arc<dyn Bus> {
        match self {
            Self::Embedded(bus) => Arc::new(bus.clone()),
            Self::RabbitMq(url) => connect(url, Mode::Native).await,
        }
    }

    /// What a process speaks over that expects foreign ones there. Embedded there are none but itself.
    pub async fn connect_among_foreign(&self) -> Arc<dyn Bus> {
        match self {
            Self::Embedded(_) => Arc::new(EmbeddedBus::in_memory_with(EmbeddedOptions {
                rules: Mode::Interop.rules(),
                ..EmbeddedOptions::default()
            })),
            Self::RabbitMq(url) => connect(url, Mode::Interop).await,
        }
    }
}

async fn connect(url: &str, mode: Mode) -> Arc<dyn Bus> {
    let bus = RabbitBus::connect(url, mode, RabbitOptions::of(mode)).await;
    Arc::new(bus.expect("the node accepts"))
}

/// A process that hosts nothing yet. Panics when the bus does not take it.
pub async fn host(bus: Arc<dyn Bus>) -> Host {
    host_with(bus, MeshOptions::default()).await
}

/// As [`host`], with options.
pub async fn host_with(bus: Arc<dyn Bus>, options: MeshOptions) -> Host {
    let host = Host::start(bus, Arc::new(Watched), options);
    host.await.expect("the bus takes a host")
}

/// As [`host`], of one whose handlers belong to runs.
pub async fn host_of_runs(bus: Arc<dyn Bus>) -> Host {
    let host = tg_runs::start(bus, Arc::new(Watched), MeshOptions::default());
    host.await.expect("the bus takes a host")
}

/// Tests that run once on each bus: async functions of a [`Place`], by name. One that is not listed is unused code.
#[macro_export]
macro_rules! on_both_buses {
    ($($name:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::place::Place::embedded()).await;
            })+
        }

        mod rabbitmq {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::place::Place::rabbitmq().await).await;
            })+
        }
    };
}
