//! `why`: for each part of a flow whether it moves, and if not, what is missing.

use serde_json::{Value, json};
use tg_clients::neighbours::Neighbours;
use tg_mesh::{Mesh, clock};
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::{Error, FlowId, WorkspaceId, WorkspaceKey, processors};

use super::Service;
use super::generation::present;
use super::start::flow_id;
use crate::error::known;
use crate::handlers::reply;
use crate::store::{DeadLetterCount, Reason, Select};
use tg_schemas::flow_record::{FlowRecord, Status};

/// Reasons told of at most.
const REASONS: u32 = 16;
/// Records among which the next one that is tried again is looked for.
const RETRIED: u32 = 1000;

impl Service {
    pub(crate) async fn why(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let key = (workspace.clone(), flow_id(request)?);
        let record = self
            .record(mesh, &key)
            .await?
            .ok_or_else(|| known("Flow ID invalid"))?;
        let names = self.names_of(mesh, &key, &record).await?;
        let mut said = vec![flow_line(&key.1, &record)];
        for row in names.all_rows() {
            let epoch = if names.rows.contains(row) {
                record.epoch
            } else {
                0
            };
            let state = processor_state(
                mesh,
                workspace.as_str(),
                &row.processor,
                &row.variant,
                epoch,
            );
            said.push(line(&row.processor, state.0, state.1));
        }
        for queue in names.all_queues() {
            let Some(state) = mesh.bus().queue_state(queue).await? else {
                continue;
            };
            if state.ready == 0 {
                continue;
            }
            let waiting = format!("{} waiting", state.ready);
            let (state, detail) = match state.consumers {
                0 => ("stuck", format!("{waiting}; no consumer reads them")),
                _ => ("working", waiting),
            };
            said.push(json!({ "subject": queue.name, "state": state, "detail": detail }));
        }
        let flow = Some(key.1.as_str());
        let store = self.store().await?;
        let kept_under = present(mesh, workspace.as_str())?;
        let counts = store.counts(kept_under.as_str(), flow, REASONS).await?;
        for DeadLetterCount {
            reason,
            content,
            records,
            ..
        } in counts
        {
            let detail = match reason.as_str() {
                "retry" => match self.next_try(&kept_under, &key.1).await? {
                    Some(next) if records == 1 => format!("1 record is tried again, {next}"),
                    Some(next) => format!("{records} records are tried again, {next}"),
                    // They were, meanwhile.
                    None => continue,
                },
                "dead" if content => format!(
                    "{records} records, for what documents or rows lack; `tg dead-letters` lists them, \
                     --discard-all throws them away"
                ),
                "dead" => format!("{records} records; `tg dead-letters` lists them"),
                "parked" => format!("{records} records; `tg parked` lists them"),
                _ => format!("{records} records; replay or discard them"),
            };
            said.push(json!({ "subject": "put-aside", "state": reason, "detail": detail }));
        }
        if self.waits_for_room(mesh, workspace, key.1.as_str()).await {
            let detail = "the quota of dead letters is reached: records that cannot be handled stay in their \
                          queues and are tried again ever more rarely; replay or discard some";
            said.push(json!({ "subject": "put-aside", "state": "full", "detail": detail }));
        }
        Ok(reply::with("why", &said))
    }

    /// When the next record of a flow is tried again, and why it was not handled.
    async fn next_try(
        &self,
        workspace: &WorkspaceKey,
        flow: &FlowId,
    ) -> Result<Option<String>, Error> {
        let select = Select {
            workspace: workspace.to_string(),
            id: None,
            flow: Some(flow.to_string()),
            reason: Some(Reason::Retry),
            after: 0,
            limit: RETRIED,
        };
        let records = self.store().await?.list(select).await?;
        let next = records.iter().min_by_key(|kept| kept.record.due);
        Ok(next.map(|kept| {
            let left = kept.record.due.saturating_sub(clock::millis()).max(0);
            let seconds = (left + 999) / 1000;
            format!("the next in {seconds} s: {}", kept.record.detail)
        }))
    }
}

fn flow_line(flow: &tg_schemas::FlowId, record: &FlowRecord) -> Value {
    let detail = match record.status {
        Status::Running => format!("from blueprint '{}'", record.blueprint_name),
        Status::Starting => {
            "its names are being declared; repeat start-flow if it stays so".to_owned()
        }
        Status::Stopping => "being stopped; repeat stop-flow if it stays so".to_owned(),
    };
    json!({ "subject": flow, "state": record.status.as_str(), "detail": detail })
}

fn line(subject: &str, state: &str, detail: &str) -> Value {
    json!({ "subject": subject, "state": state, "detail": detail })
}

/// State of an instance, and what to think of it.
pub(super) fn processor_state(
    mesh: &Mesh,
    workspace: &str,
    processor: &str,
    variant: &str,
    epoch: u64,
) -> (&'static str, &'static str) {
    let presence = mesh.presence();
    let hosted = processors::processor(processor).is_none_or(|known| known.hosted);
    if presence.attached(processor, workspace, variant, epoch) {
        ("attached", "")
    } else if presence.attached(processor, workspace, variant, 0) {
        (
            "outdated",
            "attached to an earlier start of the flow; it will follow in a moment",
        )
    } else if presence.hosted(processor) {
        (
            "detached",
            "a process serves it, but has not attached to this flow",
        )
    } else if !hosted {
        (
            "absent",
            "not part of this release; a foreign processor can serve it",
        )
    } else if !Neighbours::of(mesh).say_what_they_serve() {
        ("unknown", "no native process serves it; a foreign one may")
    } else {
        (
            "missing",
            "no process serves it; start the service it belongs to",
        )
    }
}
