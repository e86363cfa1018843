//! Sections of the settings that are of the process itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tg_mesh::rabbitmq::RecordQueues;
use tg_settings::SettingError;
use tg_tls::{ClientFiles, PairFiles};

use super::choices;

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

tg_settings::options! {
    /// How the process logs.
    pub struct Log {
        /// Which log lines are written, in the syntax of `tracing` filters, e.g. `info,tg_mesh=debug`.
        #[serde(deserialize_with = "choices::log_filter")]
        filter: String = "info,lapin=off".to_owned();
        /// `text` or `json`.
        format: LogFormat = LogFormat::Text;
    }
}

tg_settings::options! {
    /// The currency in which costs are reported.
    pub struct Money {
        /// Euros for a dollar, to report costs in euros, too. 0: only in dollars.
        usd_eur_rate: f64 = 0.0, Number(0.0..=1_000.0);
    }
}

tg_settings::options! {
    /// How connections with the broker are made secure, where `bus` begins with `amqps://`.
    pub struct BusTls {
        /// File with the authorities whose certificates are trusted, in PEM form, and no others. Empty: those of the machine.
        ca: PathBuf = PathBuf::new();
        /// File with the certificate that is shown to the broker, in PEM form, for one that asks for it. Like the others it is
        /// read again at each connect.
        cert: PathBuf = PathBuf::new();
        /// File with the key of that certificate in PEM form (PKCS#8, PKCS#1 or SEC1), not encrypted.
        key: PathBuf = PathBuf::new();
    }
}

tg_settings::options! {
    /// How this process is known to the broker.
    pub struct Broker {
        /// Answers travel through an exchange of their own, so that no service needs the right to write to every queue: for
        /// systems in which each service has a user of its own at the broker (`threadgraph permissions`). All processes of a
        /// system need the same.
        own_users: bool = false;
        /// What queues of records are: `classic`, on one node each, or `quorum`, for a cluster whose nodes may fail. Foreign
        /// processors cannot share quorum queues. A system is set up with one of them; another needs a new virtual host. All
        /// processes of a system need the same.
        queues: QueueType = QueueType::Classic;
    }
}

/// What queues of records are at the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueType {
    /// Each on one node.
    Classic,
    /// Each on most nodes.
    Quorum,
}

impl From<QueueType> for RecordQueues {
    fn from(of: QueueType) -> Self {
        match of {
            QueueType::Classic => Self::Classic,
            QueueType::Quorum => Self::Quorum,
        }
    }
}

impl BusTls {
    /// The files that are given.
    pub(crate) fn files(&self) -> ClientFiles {
        let given = |path: &PathBuf| Some(path.clone()).filter(|path| !path.as_os_str().is_empty());
        let pair = given(&self.cert).zip(given(&self.key));
        ClientFiles {
            ca: given(&self.ca),
            pair: pair.map(|(cert, key)| PairFiles { cert, key }),
        }
    }

    /// What is wrong with the files, as they are now. Blocks.
    pub(super) fn unreadable(&self) -> Option<SettingError> {
        if *self == Self::default() {
            return None;
        }
        let fault = self.files().config().err()?;
        Some(SettingError::new(
            fault.part.to_string(),
            fault.why.to_string(),
        ))
    }

    /// The mistakes that one setting alone does not show.
    pub(super) fn faults(&self) -> Vec<SettingError> {
        let given = |path: &PathBuf| !path.as_os_str().is_empty();
        let lacks = match (given(&self.cert), given(&self.key)) {
            (true, false) => ("key", "is required beside bus_tls.cert"),
            (false, true) => ("cert", "is required beside bus_tls.key"),
            _ => return Vec::new(),
        };
        vec![SettingError::new(lacks.0, lacks.1)]
    }
}

tg_settings::options! {
    /// The metrics of the process.
    pub struct Metrics {
        /// Loopback address at which this process serves its own metrics (`GET /metrics`), for one without a gateway.
        /// Empty: nowhere but at the gateway. Port 0: a free one, which the log reports.
        #[serde(deserialize_with = "choices::listen_or_not")]
        listen: Option<SocketAddr> = None;
    }
}

tg_settings::options! {
    /// How the process reports on itself.
    pub struct Report {
        /// Address at which this process reports its own health and metrics (`GET /health/live`, `/health/ready`, `/metrics`),
        /// without credentials: for containers, where only their machinery and Prometheus reach it. Empty: nowhere but at the
        /// gateway. Port 0: a free one, which the log reports.
        #[serde(deserialize_with = "choices::anywhere_or_not")]
        listen: Option<SocketAddr> = None;
        /// Seconds after which a process with `report.listen` is not ready because a consumer of it took nothing although
        /// messages waited. 0: that changes nothing.
        idle_consumer_seconds: u64 = 60, Whole(0..=86_400);
    }
}
