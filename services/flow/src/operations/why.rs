//! `why`: for each part of a flow whether it moves, and if not, what is missing.

use serde_json::{Value, json};
use tg_clients::neighbours::Neighbours;
use tg_mesh::{Mesh, clock};
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::{Error, FlowId, Subscription, WorkspaceId, WorkspaceKey, processors};

use super::Service;
use super::generation::present;
use super::start::flow_id;
use crate::error::{bad, known};
use crate::handlers::reply;
use crate::store::{DeadLetterCount, Reason, Select};
use tg_mesh::bus::QueueState;
use tg_schemas::flow_record::{FlowRecord, Names, RowKey, Status};

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
        if let Some(name) = request.parameters.get("queue") {
            let said = why_a_queue(mesh, workspace, &key.1, &record, &names, name).await?;
            return Ok(reply::with("why", &said));
        }
        let mut said = vec![flow_line(&key.1, &record)];
        said.extend(mesh.presence().disk_full().then(disk_line));
        for row in names.all_rows() {
            let epoch = epoch_of(&record, &names, row);
            let state = processor_state(
                mesh,
                workspace.as_str(),
                &row.processor,
                &row.variant,
                epoch,
            );
            said.push(processor_line(&row.processor, state));
        }
        for queue in names.all_queues() {
            let Some(state) = mesh.bus().queue_state(queue).await? else {
                continue;
            };
            if state.ready > 0 {
                let row = reader_of(&names, workspace, &queue.name);
                said.push(queue_line(queue, &state, row));
            }
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
            let command = match reason.as_str() {
                "dead" => Some(format!("tg dead-letters -i {}", key.1)),
                "parked" => Some(format!("tg parked -i {}", key.1)),
                _ => None,
            };
            said.push(with_command(line("put-aside", &reason, &detail), command));
        }
        if self.waits_for_room(mesh, workspace, key.1.as_str()).await {
            let detail = "the quota of dead letters is reached: records that cannot be handled stay in their \
                          queues and are tried again ever more rarely; replay or discard some";
            let command = Some(format!("tg dead-letters -i {}", key.1));
            said.push(with_command(line("put-aside", "full", detail), command));
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

/// One queue of a flow: what waits in it, who is to read it, and whether the flow runs.
async fn why_a_queue(
    mesh: &Mesh,
    workspace: &WorkspaceId,
    flow: &FlowId,
    record: &FlowRecord,
    names: &Names,
    name: &str,
) -> Result<Vec<Value>, Error> {
    let queue = names.all_queues().find(|queue| queue.name == name);
    let queue =
        queue.ok_or_else(|| bad(format!("queue: the flow '{flow}' has none of this name")))?;
    let mut said = vec![flow_line(flow, record)];
    let row = reader_of(names, workspace, name);
    said.push(match mesh.bus().queue_state(queue).await? {
        Some(state) => queue_line(queue, &state, row),
        None => line(
            name,
            "absent",
            "nobody has asked for it yet: it is made when it is read",
        ),
    });
    if let Some(row) = row {
        let epoch = epoch_of(record, names, row);
        let (processor, variant) = (&row.processor, &row.variant);
        let state = processor_state(mesh, workspace.as_str(), processor, variant, epoch);
        said.push(processor_line(processor, state));
    }
    Ok(said)
}

/// The row whose processor reads a queue.
fn reader_of<'a>(names: &'a Names, workspace: &WorkspaceId, queue: &str) -> Option<&'a RowKey> {
    let reads = |row: &RowKey| format!("{}--{workspace}--{}--", row.processor, row.variant);
    names.all_rows().find(|row| queue.starts_with(&reads(row)))
}

/// Rows that flows share are of no start of one of them.
fn epoch_of(record: &FlowRecord, names: &Names, row: &RowKey) -> u64 {
    match names.rows.contains(row) {
        true => record.epoch,
        false => 0,
    }
}

fn queue_line(queue: &Subscription, state: &QueueState, reader: Option<&RowKey>) -> Value {
    let waiting = format!("{} waiting", state.ready);
    let (state, detail, command) = match (state.ready, state.consumers) {
        (0, _) => ("empty", "nothing is waiting".to_owned(), None),
        (_, 0) => {
            let command = reader.and_then(|row| serve(&row.processor));
            let detail = format!("{waiting}; no consumer reads them");
            ("stuck", detail, command.or_else(doctor))
        }
        _ => ("working", waiting, None),
    };
    with_command(line(&queue.name, state, &detail), command)
}

fn processor_line(processor: &str, (state, detail): (&str, &str)) -> Value {
    let command = match state {
        "missing" | "unknown" => serve(processor),
        // Its process is there: what it lacks shows in the checks.
        "detached" => doctor(),
        _ => None,
    };
    with_command(line(processor, state, detail), command)
}

/// Starts the service that hosts a processor.
fn serve(processor: &str) -> Option<String> {
    let service = processors::service_of(processor)?;
    Some(format!("threadgraph serve {service}"))
}

/// Checks what all processes lack.
fn doctor() -> Option<String> {
    Some("tg doctor".to_owned())
}

fn flow_line(flow: &FlowId, record: &FlowRecord) -> Value {
    let (detail, command) = match record.status {
        Status::Running => (format!("from blueprint '{}'", record.blueprint_name), None),
        Status::Starting => (
            "its names are being declared; repeat start-flow if it stays so".to_owned(),
            Some(format!(
                "tg start-flow -i {flow} -n {}",
                record.blueprint_name
            )),
        ),
        Status::Stopping => (
            "being stopped; repeat stop-flow if it stays so".to_owned(),
            Some(format!("tg stop-flow -i {flow}")),
        ),
    };
    with_command(
        line(flow.as_str(), record.status.as_str(), &detail),
        command,
    )
}

/// What `tg doctor` and `tg why` report of a full disk.
pub(super) const FULL_DISK: &str =
    "the disk below data_dir is full; documents wait, and no store keeps anything new";

/// Why records wait although processors read them.
fn disk_line() -> Value {
    with_command(line("disk", "full", FULL_DISK), doctor())
}

/// Adds the command that helps.
fn with_command(mut line: Value, command: Option<String>) -> Value {
    if let Some(command) = command {
        line["command"] = json!(command);
    }
    line
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
