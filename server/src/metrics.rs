//! The metrics of this process: recorded with the meaning and the buckets that the table says, told as text in the
//! exposition format of Prometheus, together with what the system says of the process.

mod process;
mod table;

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tg_gateway::Exposition;
use tg_mesh::{Host, TaskKind};

pub use table::{Kind, METRICS, Metric};

/// How often measured values are put into their buckets, whether anybody reads them or not: until then each of them is
/// kept as it is.
const UPKEEP: Duration = Duration::from_secs(5);

/// A process's recorder.
#[derive(Debug, Clone)]
pub struct Recorder {
    handle: PrometheusHandle,
    /// When it was started, in milliseconds since 1970.
    started: i64,
}

impl Recorder {
    /// Starts recording. `None` when a recorder is installed already.
    pub fn install() -> Option<Self> {
        let mut builder = PrometheusBuilder::new();
        for metric in METRICS {
            if let Some(buckets) = metric.kind.buckets() {
                let name = Matcher::Full(metric.name.to_owned());
                builder = builder.set_buckets_for_metric(name, buckets).ok()?;
            }
        }
        let handle = builder.install_recorder().ok()?;
        METRICS.iter().for_each(Metric::describe);
        Some(Self {
            handle,
            started: tg_mesh::clock::millis(),
        })
    }

    /// Keeps what is recorded small for as long as the process runs.
    pub fn keep_small(&self, mesh: &Host) {
        let handle = self.handle.clone();
        mesh.spawn(TaskKind::Background, async move {
            loop {
                tokio::time::sleep(UPKEEP).await;
                handle.run_upkeep();
            }
        });
    }

    /// The text that `/metrics` serves.
    pub fn exposition(&self) -> Exposition {
        let (handle, started) = (self.handle.clone(), self.started);
        Exposition::new(move || {
            let mut text = handle.render();
            process::write(&mut text, started);
            text
        })
    }
}
