//! Dead letters: taking them in, trying them again when due, and what people do with them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use tg_mesh::bus::{Link, PublishMode, Routed, Target};
use tg_mesh::clock;
use tg_mesh::{BusError, Envelope, Mesh};
use tg_schemas::codec::ContentType;
use tg_schemas::msg::{DeadLetter, FlowRequest, FlowResponse};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode, Headers, Subscription, Topic, WorkspaceId, WorkspaceKey};

use super::generation::{is_over, present};
use super::{FlowKey, Service};
use crate::error::{bad, conflict};
use crate::handlers::reply;
use crate::store::{Due, NewRecord, Reason, Select, Store, StoredRecord};
use tg_schemas::flow_record::Status;

/// Records looked at in one step of a listing.
const STRIDE: u32 = 512;
/// Records replayed or discarded by one request, at most.
const MOST: u32 = 1000;
/// Bytes of a body shown.
const SHOWN: usize = 64 << 10;
/// Headers that name queues of processes, which nobody outside needs.
const ADDRESSES: [&str; 3] = ["from", "receipt", "reply-to"];
/// Retries published between two looks at the store.
const BATCH: u32 = 64;
/// Longest sleep of the retry loop.
const LOOK: Duration = Duration::from_secs(30);
/// How long a stop waits for records that processors dead-lettered to be stored.
const STORED: Duration = Duration::from_secs(10);
/// Pause between two looks at whether they are.
const STORED_LOOK: Duration = Duration::from_millis(5);

impl Service {
    /// Takes a record in that a process dead-lettered.
    pub(crate) async fn take_in(
        &self,
        mesh: &Mesh,
        record: DeadLetter,
        letter: Option<String>,
    ) -> Result<(), Error> {
        self.reading.fetch_add(1, Ordering::AcqRel);
        let outcome = self.take(mesh, record, letter).await;
        self.reading.fetch_sub(1, Ordering::AcqRel);
        outcome
    }

    async fn take(
        &self,
        mesh: &Mesh,
        record: DeadLetter,
        letter: Option<String>,
    ) -> Result<(), Error> {
        let headers: Headers =
            serde_json::from_slice(record.headers.as_bytes()).unwrap_or_default();
        let key = match headers.generation {
            Some(generation) => WorkspaceKey::new(&record.workspace, generation),
            None => present(mesh, &record.workspace)?,
        };
        if is_over(mesh, &key) {
            metrics::counter!("tg_records_of_ended_workspaces_total").increment(1);
            return Ok(());
        }
        let mut reason = Reason::parse(&record.reason).unwrap_or(Reason::Dead);
        let body = record.clone().into_body();
        if body.is_err() || Topic::parse(&record.topic).is_err() {
            reason = Reason::Dead;
        }
        let body = body.unwrap_or_else(|text| text);
        let kept = NewRecord {
            workspace: key.to_string(),
            flow: record.flow,
            topic: record.topic,
            subscription: record.subscription,
            reason,
            detail: record.detail,
            kind: record.kind,
            due: record.due_ms,
            attempt: headers.attempt.unwrap_or(0),
            since: clock::millis(),
            headers: record.headers,
            content_type: record.content_type,
            body: body.into(),
            letter,
        };
        let (workspace, flow) = (kept.workspace.clone(), kept.flow.clone());
        let outcome = self.store().await?.keep(kept).await?;
        if reason == Reason::Retry {
            self.kept.notify_one();
        }
        if outcome.evicted > 0 {
            metrics::counter!("tg_dead_letters_evicted_total").increment(outcome.evicted as u64);
            tracing::warn!(
                workspace,
                flow,
                evicted = outcome.evicted,
                "the oldest dead letters were evicted for newer records"
            );
        }
        if outcome.full {
            self.tell_rooms(mesh).await?;
        }
        Ok(())
    }

    /// Waits (bounded) until every record that was dead-lettered before now is stored.
    pub(super) async fn aside_stored(&self, mesh: &Mesh) {
        let queue = tg_mesh::dead_letter::subscription();
        let end = tokio::time::Instant::now() + STORED;
        while tokio::time::Instant::now() < end {
            let state = mesh.bus().queue_state(&queue).await;
            let waiting = state.ok().flatten().map_or(0, |state| state.ready);
            if waiting == 0 && self.reading.load(Ordering::Acquire) == 0 {
                return;
            }
            tokio::time::sleep(STORED_LOOK).await;
        }
    }

    /// Sends due retries back to the one subscription each belongs to. Runs as long as the process.
    pub(super) async fn retry_due(&self, mesh: &Mesh) {
        let mut link = mesh.bus().link();
        if let Err(error) = self.tell_rooms(mesh).await {
            tracing::debug!(%error, "how full the quotas are is announced later");
        }
        loop {
            let pause = match self.retry_batch(mesh).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::debug!(%error, "retries wait");
                    let _ = self.room_made(mesh).await;
                    let up = link.wait_for(|link| matches!(link, Link::Up { .. }));
                    let _ = tokio::time::timeout(LOOK, up).await;
                    Duration::from_secs(1)
                }
            };
            let _ = tokio::time::timeout(pause, self.kept.notified()).await;
        }
    }

    /// One batch; returns how long to wait for the next.
    async fn retry_batch(&self, mesh: &Mesh) -> Result<Duration, Error> {
        let _publishing = self.publishing.read().await;
        let store = self.store().await?;
        let stopping: Vec<(String, String)> = {
            let stopping = self.stopping.lock();
            stopping
                .keys()
                .map(|(ws, id)| Ok((present(mesh, ws.as_str())?.to_string(), id.to_string())))
                .collect::<Result<_, Error>>()?
        };
        let now = clock::millis();
        let Due { records, next } = store.due(now, BATCH, stopping).await?;
        let full = records.len() == BATCH as usize;
        for kept in records {
            if is_over(mesh, &WorkspaceKey::parse(&kept.record.workspace)) {
                store.forget(vec![kept.id]).await?;
                continue;
            }
            // One body at a time: they may be large.
            let Some(kept) = store.whole(&kept.record.workspace, kept.id, None).await? else {
                continue;
            };
            let (id, size) = (kept.id, kept.size);
            match publish(mesh, kept.record, None).await {
                Ok(Routed::Queued) => store.forget(vec![id]).await?,
                Ok(Routed::Unroutable) => {
                    let why = "its flow does not run any more";
                    store.reclassify(id, Reason::Parked, why).await?;
                }
                Err(BusError::TooLarge { .. }) => {
                    tracing::warn!(id, size, "a dead letter is larger than the bus carries");
                    store
                        .reclassify(id, Reason::Dead, "is larger than the bus carries")
                        .await?;
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        self.room_made(mesh).await?;
        let wait = next.map_or(LOOK, |due| {
            Duration::from_millis(due.saturating_sub(now).max(0) as u64)
        });
        Ok(if full { Duration::ZERO } else { wait.min(LOOK) })
    }

    pub(crate) async fn list_dead_letter(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let asked = Asked::read(&request.operation, request.limit, &request.after)?;
        let select = Select {
            after: asked.after_as()?.unwrap_or(0),
            limit: STRIDE,
            ..select(&present(mesh, workspace.as_str())?, request)?
        };
        let store = self.store().await?;
        let page = page(&store, select, asked).await?;
        Ok(FlowResponse {
            next: page.next,
            ..reply::with("put-aside", &page.entries)
        })
    }

    pub(crate) async fn show_dead_letter(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let workspace = present(mesh, workspace.as_str())?;
        let id = one(&workspace, request)?;
        let store = self.store().await?;
        let kept = store.whole(workspace.as_str(), id, Some(SHOWN)).await?;
        let kept = &kept.ok_or_else(gone)?;
        let mut shown = line(kept);
        shown["topic"] = json!(kept.record.topic);
        let mut headers: Value =
            serde_json::from_slice(kept.record.headers.as_bytes()).unwrap_or_default();
        if let Some(headers) = headers.as_object_mut() {
            headers.retain(|name, _| !ADDRESSES.contains(&name.as_str()));
        }
        shown["headers"] = headers;
        shown["content-type"] = json!(kept.record.content_type);
        let body = &kept.record.body;
        match std::str::from_utf8(body) {
            Ok(text) => shown["body"] = json!(text),
            Err(_) => shown["body-base64"] = json!(STANDARD.encode(body)),
        }
        shown["truncated"] = json!((body.len() as i64) < kept.size);
        Ok(reply::with("put-aside", &shown))
    }

    /// Publishes records again, under the current epoch of their flow.
    pub(crate) async fn replay_dead_letter(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let select = chosen(&present(mesh, workspace.as_str())?, request)?;
        let single = select.id.is_some();
        let _publishing = self.publishing.read().await;
        let store = self.store().await?;
        let records = store.list(select).await?;
        if single && records.is_empty() {
            return Err(gone());
        }
        let mut epochs = std::collections::HashMap::new();
        let mut replayed = Vec::new();
        for kept in records {
            let flow = kept.record.flow.clone();
            let epoch = match epochs.get(&flow) {
                Some(epoch) => *epoch,
                None => {
                    let epoch = self.epoch(mesh, workspace, &flow).await?;
                    epochs.insert(flow.clone(), epoch);
                    epoch
                }
            };
            let Some(epoch) = epoch else {
                return Err(conflict(format!(
                    "flow-id: flow '{flow}' does not run; start it, then replay"
                )));
            };
            // One body at a time: they may be large. One that somebody else replayed meanwhile is gone.
            let Some(whole) = store.whole(&kept.record.workspace, kept.id, None).await? else {
                continue;
            };
            match publish(mesh, whole.record, Some(epoch)).await? {
                Routed::Queued => {
                    store.forget(vec![kept.id]).await?;
                    replayed.push(line(&kept));
                }
                Routed::Unroutable => {
                    let text = "the flow runs, but nothing in it takes this record";
                    return Err(Error::new(ErrorCode::NobodyServes, text));
                }
            }
        }
        self.room_made(mesh).await?;
        Ok(reply::with("put-aside", &replayed))
    }

    /// Forgets records.
    pub(crate) async fn discard_dead_letter(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let select = chosen(&present(mesh, workspace.as_str())?, request)?;
        let single = select.id.is_some();
        let store = self.store().await?;
        let records = store.list(select).await?;
        if single && records.is_empty() {
            return Err(gone());
        }
        store
            .forget(records.iter().map(|kept| kept.id).collect())
            .await?;
        self.room_made(mesh).await?;
        let shown: Vec<Value> = records.iter().map(line).collect();
        Ok(reply::with("put-aside", &shown))
    }

    /// Epoch of a running flow.
    async fn epoch(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        flow: &str,
    ) -> Result<Option<u64>, Error> {
        let Ok(flow) = tg_schemas::FlowId::new(flow) else {
            return Ok(None);
        };
        let key: FlowKey = (workspace.clone(), flow);
        let record = self.record(mesh, &key).await?;
        Ok(record
            .filter(|record| record.status == Status::Running)
            .map(|record| record.epoch))
    }
}

/// Publishes a record to the one subscription it belongs to. With an epoch: as a first try under it.
async fn publish(mesh: &Mesh, record: NewRecord, epoch: Option<u64>) -> Result<Routed, BusError> {
    let Ok(topic) = Topic::parse(&record.topic) else {
        return Ok(Routed::Unroutable);
    };
    let mut headers: Headers =
        serde_json::from_slice(record.headers.as_bytes()).unwrap_or_default();
    if let Some(epoch) = epoch {
        headers.epoch = (epoch > 0).then_some(epoch);
        headers.attempt = None;
        headers.deadline = None;
    }
    let envelope = Envelope {
        headers: Arc::new(headers),
        content_type: ContentType::parse(&record.content_type),
        body: Bytes::from(record.body),
        ..Envelope::default()
    };
    let target = Target::Subscription(Subscription {
        topic,
        name: record.subscription,
    });
    mesh.bus()
        .publish(&target, envelope, PublishMode::Confirmed)
        .await
}

/// The selected records, as many as a page has room for.
async fn page(store: &Store, mut select: Select, asked: Asked) -> Result<Page<Value>, Error> {
    let mut page = Page::new(asked);
    loop {
        let found = store.list(select.clone()).await?;
        let Some(last) = found.last() else {
            return Ok(page);
        };
        select.after = last.id;
        for kept in &found {
            if page.is_full() {
                return Ok(page);
            }
            page.add(kept.id, line(kept))?;
        }
    }
}

fn line(kept: &StoredRecord) -> Value {
    let record = &kept.record;
    json!({
        "id": kept.id.to_string(),
        "flow-id": record.flow,
        "subscription": record.subscription,
        "reason": record.reason.as_str(),
        "detail": record.detail,
        "kind": record.kind,
        "due": (record.reason == Reason::Retry).then(|| instant(record.due)),
        "attempt": record.attempt,
        "since": instant(record.since),
        "size": kept.size,
    })
}

fn instant(millis: i64) -> String {
    let time = chrono::DateTime::from_timestamp_millis(millis).unwrap_or_default();
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

fn argument<'a>(request: &'a FlowRequest, name: &str) -> Option<&'a str> {
    request
        .parameters
        .get(name)
        .map(String::as_str)
        .filter(|text| !text.is_empty())
}

fn select(workspace: &WorkspaceKey, request: &FlowRequest) -> Result<Select, Error> {
    let reason = match argument(request, "reason") {
        None => None,
        Some(text) => Some(
            Reason::parse(text)
                .ok_or_else(|| bad("reason: must be retry, dead, stale or parked"))?,
        ),
    };
    let flow = Some(request.flow_id.as_str()).filter(|flow| !flow.is_empty());
    let id = match argument(request, "put-aside-id").or_else(|| argument(request, "id")) {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| gone())?),
    };
    Ok(Select {
        workspace: workspace.to_string(),
        id,
        flow: flow
            .or_else(|| argument(request, "flow-id"))
            .map(str::to_owned),
        reason,
        after: 0,
        limit: MOST,
    })
}

/// The id of the one record that is named.
fn one(workspace: &WorkspaceKey, request: &FlowRequest) -> Result<i64, Error> {
    let select = select(workspace, request)?;
    select.id.ok_or_else(|| bad("put-aside-id: is required"))
}

/// One record by id, or those of a flow.
fn chosen(workspace: &WorkspaceKey, request: &FlowRequest) -> Result<Select, Error> {
    let mut select = select(workspace, request)?;
    if select.id.is_none() && select.flow.is_none() {
        return Err(bad("put-aside-id: is required, or a flow-id"));
    }
    if let Some(text) = argument(request, "limit") {
        let limit: u32 = text
            .parse()
            .map_err(|_| bad("limit: must be a whole number"))?;
        select.limit = limit.clamp(1, MOST);
    }
    Ok(select)
}

fn gone() -> Error {
    Error::new(ErrorCode::NotFound, "put-aside-id: there is no such record")
}
