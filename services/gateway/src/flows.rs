//! Flow records as config holds them: which topic an interface means, and when a flow stops.
//!
//! Questions on a flow hold its entry; when the record goes, is replaced or starts to stop, the entry's
//! token ends them. Entries exist only for records that exist.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_clients::flow_records::{self, Drain, FlowRecord, Status};
use tg_mesh::ConfigView;
use tg_schemas::{Class, Error, ErrorCode, FlowId, Topic, WorkspaceId};
use tokio_util::sync::CancellationToken;

use crate::error::RequestError;

/// One running start of a flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) workspace: WorkspaceId,
    /// `None` for records that others wrote.
    pub(crate) epoch: Option<u64>,
    /// Cancelled when whoever waits on the flow is to be told that it is gone.
    pub(crate) stopped: CancellationToken,
    /// Cancelled as soon as a stop begins, of whatever kind: who only looks on must not be in its way.
    pub(crate) leaving: CancellationToken,
    row: Arc<str>,
    record: FlowRecord,
}

impl Flow {
    fn stopping(&self) -> bool {
        self.record.status == Status::Stopping
    }

    /// A stop that waits lets running questions end by themselves, until the record goes.
    fn ends_now(&self) -> bool {
        self.stopping() && self.record.drain != Some(Drain::Wait)
    }

    /// Nothing of it goes on.
    fn end(&self) {
        self.stopped.cancel();
        self.leaving.cancel();
    }

    /// The topic of an interface: `request` of a service, `flow` of an input.
    fn topic(&self, interface: &str, class: Class) -> Result<Topic, RequestError> {
        let text = self
            .record
            .topic(interface, class)
            .ok_or(RequestError::KindNotInFlow)?;
        Topic::parse(text)
            .ok()
            .filter(|topic| topic.class() == class)
            .ok_or(RequestError::KindNotInFlow)
    }

    /// Where questions to an interface go.
    pub(crate) fn request(&self, interface: &str) -> Result<Topic, RequestError> {
        self.topic(interface, Class::Request)
    }

    /// Where records for an interface go.
    pub(crate) fn input(&self, interface: &str) -> Result<Topic, RequestError> {
        self.topic(interface, Class::Flow)
    }
}

/// The error of whoever waited on a flow that stopped.
pub(crate) fn stopped() -> Error {
    Error::new(ErrorCode::FlowStopped, "the flow was stopped")
}

type Live = HashMap<(WorkspaceId, FlowId), Arc<Flow>>;

/// All flows that somebody asked for.
pub(crate) struct Flows {
    view: ConfigView,
    live: Mutex<Live>,
}

impl Flows {
    /// Reads records from a view.
    pub(crate) fn new(view: ConfigView) -> Self {
        Self {
            view,
            live: Mutex::default(),
        }
    }

    /// A flow that takes questions.
    pub(crate) fn get(
        &self,
        workspace: &WorkspaceId,
        id: &FlowId,
    ) -> Result<Arc<Flow>, RequestError> {
        let flow = self
            .look(workspace, id)
            .ok_or_else(|| RequestError::InvalidFlow {
                workspace: workspace.to_string(),
                flow: id.to_string(),
            })?;
        if flow.stopping() {
            return Err(RequestError::Service(Error::new(
                ErrorCode::FlowStopped,
                "the flow is being stopped",
            )));
        }
        Ok(flow)
    }

    /// The current entry, brought in line with the view.
    fn look(&self, workspace: &WorkspaceId, id: &FlowId) -> Option<Arc<Flow>> {
        let mut live = self.live.lock();
        let key = (workspace.clone(), id.clone());
        let row = flow_records::row(&self.view, workspace.as_str(), id.as_str());
        let known = live.remove(&key);
        let entry = next_entry(known, row, workspace)?;
        live.insert(key, entry.clone());
        Some(entry)
    }

    /// Brings every entry in line with the view.
    pub(crate) fn refresh(&self) {
        let mut live = self.live.lock();
        let old = std::mem::take(&mut *live);
        for ((workspace, id), known) in old {
            let row = flow_records::row(&self.view, workspace.as_str(), id.as_str());
            if let Some(entry) = next_entry(Some(known), row, &workspace) {
                live.insert((workspace, id), entry);
            }
        }
    }

    /// Follows the view until the process stops.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut changes = self.view.changes();
        while changes.changed().await.is_ok() {
            self.refresh();
        }
    }
}

/// What becomes of an entry when its row is `row` now.
fn next_entry(
    known: Option<Arc<Flow>>,
    row: Option<Arc<str>>,
    workspace: &WorkspaceId,
) -> Option<Arc<Flow>> {
    if let (Some(known), Some(row)) = (&known, &row)
        && (Arc::ptr_eq(&known.row, row) || known.row == *row)
    {
        return Some(known.clone());
    }
    let record = row.as_deref().and_then(FlowRecord::read);
    let (Some(row), Some(record)) = (row, record) else {
        if let Some(known) = known {
            known.end();
        }
        return None;
    };
    let same_start = known
        .as_ref()
        .is_some_and(|known| known.epoch == record.start() && !known.stopped.is_cancelled());
    let (stopped, leaving) = match &known {
        Some(known) if same_start => (known.stopped.clone(), known.leaving.clone()),
        Some(known) => {
            known.end();
            Default::default()
        }
        None => Default::default(),
    };
    let flow = Flow {
        workspace: workspace.clone(),
        epoch: record.start(),
        stopped,
        leaving,
        row,
        record,
    };
    if flow.stopping() {
        flow.leaving.cancel();
    }
    if flow.ends_now() {
        flow.stopped.cancel();
    }
    Some(Arc::new(flow))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(known: Option<Arc<Flow>>, row: Option<&str>) -> Option<Arc<Flow>> {
        let workspace = WorkspaceId::new("default").unwrap();
        next_entry(known, row.map(Arc::from), &workspace)
    }

    const RUNNING: &str = r#"{"interfaces": {
        "agent": {"request": "request:tg:agent:default:f", "response": "response:tg:agent:default:f"},
        "triples-store": {"flow": "flow:tg:triples-store:default:f"},
        "odd": {"request": "notify:tg:x"}}, "epoch": 3}"#;

    #[test]
    fn interfaces_lead_to_topics_of_the_right_class() {
        let flow = step(None, Some(RUNNING)).unwrap();
        assert_eq!(
            flow.request("agent").unwrap().to_string(),
            "request:tg:agent:default:f"
        );
        assert!(flow.input("triples-store").is_ok());
        for missing in ["triples-store", "odd", "nope"] {
            assert_eq!(flow.request(missing), Err(RequestError::KindNotInFlow));
        }
    }

    #[test]
    fn whoever_waits_is_told_when_the_record_goes_stops_or_starts_anew() {
        for (next, ends) in [
            (None, true),
            (Some(r#"{"status": "stopping", "epoch": 3}"#), true),
            (
                Some(r#"{"status": "stopping", "epoch": 3, "drain": "park"}"#),
                true,
            ),
            (
                Some(r#"{"status": "stopping", "epoch": 3, "drain": "wait"}"#),
                false,
            ),
            (Some(r#"{"epoch": 4}"#), true),
            (Some(r#"{"epoch": 3, "description": "new words"}"#), false),
            (Some("not json"), true),
        ] {
            let flow = step(None, Some(RUNNING)).unwrap();
            let after = step(Some(flow.clone()), next);
            assert_eq!(flow.stopped.is_cancelled(), ends, "{next:?}");
            if next.is_some_and(|text| text.contains("epoch\": 4")) {
                assert!(!after.unwrap().stopped.is_cancelled());
            }
        }
    }

    #[test]
    fn a_waiting_stop_ends_with_its_record() {
        let flow = step(None, Some(RUNNING)).unwrap();
        let waiting = step(
            Some(flow.clone()),
            Some(r#"{"status": "stopping", "epoch": 3, "drain": "wait"}"#),
        );
        assert!(!flow.stopped.is_cancelled());
        assert!(flow.leaving.is_cancelled());
        assert!(step(waiting, None).is_none());
        assert!(flow.stopped.is_cancelled());
    }
}
