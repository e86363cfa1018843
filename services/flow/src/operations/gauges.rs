//! Gauges of what waits: records that are put aside, and messages in the queues of running flows. They are told by the
//! process that owns the store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tg_mesh::{Mesh, clock};
use tg_schemas::flow_record::FlowRecord;
use tg_schemas::{Error, WorkspaceKey};

use super::Service;
use crate::store::{DeadLetterBacklog, Reason};

/// Pause between two looks.
const LOOK: Duration = Duration::from_secs(5);
/// Lines of a look at the store, at most: each a flow and a reason.
const LINES: u32 = 10_000;
/// Queues that one look asks about, at most; the next goes on behind them.
const QUEUES: usize = 500;
/// Flows with series of their own, for as long as the process runs.
const FLOWS: usize = 256;
/// What the flows beyond are called.
const OTHERS: &str = "(others)";

const REASONS: [Reason; 4] = [Reason::Dead, Reason::Retry, Reason::Stale, Reason::Parked];

/// A flow as it is told: the name of its workspace, and its own.
type Flow = (String, String);

/// What was told so far: a series stays, so one that is over must be told as 0.
#[derive(Default)]
struct ReportedSeries {
    flows: BTreeSet<Flow>,
    aside: BTreeSet<(Flow, &'static str)>,
    /// Messages in the queues of flows, as each was seen last.
    waiting: BTreeMap<Flow, u64>,
    /// The flow that was looked at last.
    last: Option<(String, String)>,
}

impl ReportedSeries {
    /// What a flow is called: itself, while there are not too many.
    fn flow(&mut self, workspace: &str, flow: &str) -> Flow {
        let own = (workspace.to_owned(), flow.to_owned());
        if self.flows.contains(&own) {
            return own;
        }
        if self.flows.len() >= FLOWS {
            return (OTHERS.to_owned(), OTHERS.to_owned());
        }
        self.flows.insert(own.clone());
        own
    }
}

impl Service {
    /// Tells the gauges for as long as the process runs.
    pub(super) async fn gauge(&self, mesh: &Mesh) {
        let mut told = ReportedSeries::default();
        loop {
            // Another process owns the store, and tells.
            let lines = match self.store().await {
                Ok(store) => store.standing(LINES).await.ok(),
                Err(_) => Some(Vec::new()),
            };
            if let Some(lines) = lines {
                aside(&mut told, &lines, clock::millis());
            }
            if let Err(error) = self.waiting(mesh, &mut told).await {
                tracing::debug!(%error, "what waits in queues is reported later");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Messages that wait in the queues of running flows.
    async fn waiting(&self, mesh: &Mesh, told: &mut ReportedSeries) -> Result<(), Error> {
        let mut records = match self.store().await {
            Ok(_) => self.records(mesh).await?,
            Err(_) => Vec::new(),
        };
        records.sort();
        let behind = told.last.take();
        let start = records.partition_point(|(workspace, flow, _)| {
            behind
                .as_ref()
                .is_some_and(|last| (workspace, flow) <= (&last.0, &last.1))
        });
        let all: BTreeSet<Flow> = records
            .iter()
            .map(|(workspace, flow, _)| told.flow(workspace, flow))
            .collect();
        let mut seen: BTreeMap<Flow, u64> = BTreeMap::new();
        let mut asked = 0;
        for (workspace, flow, text) in &records[start..] {
            let queues = FlowRecord::read(text).and_then(|record| record.plan);
            let queues = queues.map(|names| names.queues).unwrap_or_default();
            let messages = seen.entry(told.flow(workspace, flow)).or_default();
            for queue in &queues {
                match mesh.bus().queue_state(queue).await {
                    Ok(state) => *messages += state.map_or(0, |state| state.ready),
                    // The next look begins behind it.
                    Err(error) => {
                        tracing::debug!(%error, "what waits in a queue is reported later");
                        asked = QUEUES;
                        break;
                    }
                }
            }
            asked += queues.len();
            if asked >= QUEUES {
                told.last = Some((workspace.clone(), flow.clone()));
                break;
            }
        }
        for (flow, messages) in &mut told.waiting {
            if !all.contains(flow) {
                *messages = 0;
            }
        }
        told.waiting.extend(seen);
        for ((workspace, flow), messages) in &told.waiting {
            metrics::gauge!("tg_flow_waiting_messages", "workspace" => workspace.clone(), "flow" => flow.clone())
                .set(*messages as f64);
        }
        Ok(())
    }
}

/// Tells what is put aside.
fn aside(told: &mut ReportedSeries, lines: &[DeadLetterBacklog], now: i64) {
    let mut flows: BTreeMap<(Flow, &'static str), u64> = BTreeMap::new();
    for line in lines {
        let workspace = WorkspaceKey::parse(&line.workspace);
        let flow = told.flow(workspace.name(), &line.flow);
        *flows.entry((flow, line.reason.as_str())).or_default() += line.records;
    }
    let keys: Vec<_> = flows.keys().cloned().collect();
    told.aside.extend(keys);
    for key in &told.aside {
        let ((workspace, flow), reason) = key;
        let records = flows.get(key).copied().unwrap_or(0);
        metrics::gauge!(
            "tg_flow_dead_letters", "workspace" => workspace.clone(), "flow" => flow.clone(), "reason" => *reason
        )
        .set(records as f64);
    }
    for reason in REASONS {
        let of = lines.iter().filter(|line| line.reason == reason);
        let records: u64 = of.clone().map(|line| line.records).sum();
        let oldest = of.map(|line| line.since).min().unwrap_or(now);
        let waited = now.saturating_sub(oldest).max(0) as f64 / 1_000.0;
        metrics::gauge!("tg_dead_letters", "reason" => reason.as_str()).set(records as f64);
        metrics::gauge!("tg_dead_letter_oldest_seconds", "reason" => reason.as_str()).set(waited);
    }
}
