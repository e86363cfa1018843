//! `POST /api/v1/import-core` and `GET /api/v1/export-core`: a knowledge core as a file, streamed.
//!
//! Neither holds more than a record or a part of a document at once.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tg_core_file::msgpack::{self, Scanner};
use tg_core_file::record::{to_put, to_record};
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::bulk::refused;
use super::read;
use super::whole::Whole;
use crate::ask::Part;
use crate::auth::Identity;
use crate::budget::{Reader, Reading};
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, error_value};
use crate::error::{RequestError, json_response};
use crate::received::Received;
use crate::registry::{self, Gate, Unknown};
use crate::running::Running;
use crate::state::{App, Shared};

/// Whoever may do this may do everything.
const GATE: Gate = Gate::Needs("users:admin");
/// Records that are put side by side.
const WINDOW: usize = 16;

/// The query string.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    id: Option<String>,
    workspace: Option<String>,
    /// Export: `kg` or `de`.
    kind: Option<String>,
}

/// Puts every record of the body into a core.
pub(crate) async fn import(
    State(app): State<Shared>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let identity = match admit(&app, &wanted, &meta, &headers).await {
        Ok(identity) => identity,
        Err(fault) => return refused(fault),
    };
    let Some(core) = wanted.id.filter(|id| !id.is_empty()) else {
        return refused(fault("id", "is required").into());
    };
    let taking = Taking {
        app: &app,
        identity: &identity,
        core: &core,
        workspace: wanted.workspace,
        meta,
        counts: Map::new(),
    };
    taking.run(body).await
}

struct Taking<'a> {
    app: &'a App,
    identity: &'a Identity,
    core: &'a str,
    workspace: Option<String>,
    meta: Meta,
    counts: Map<String, Value>,
}

impl Taking<'_> {
    async fn run(mut self, body: HttpBody) -> Response {
        let reader = Reader::known(self.identity);
        let received = Received::new(&self.app.budget, reader, None);
        let limit = self.app.options.settings.frame_bytes;
        let mut records = Records::new(body, limit, received);
        let mut lapse = self.app.auth.lapse(self.identity, GATE, Default::default());
        let outcome = tokio::select! {
            outcome = self.take_all(&mut records) => outcome,
            error = &mut lapse => Err(error),
        };
        let mut reply = std::mem::take(&mut self.counts);
        match outcome {
            Ok(()) => json_response(StatusCode::OK, &reply),
            Err(error) => {
                reply.insert("error".to_owned(), error_value(&error));
                let status = StatusCode::from_u16(error.code().status());
                json_response(status.unwrap_or(StatusCode::BAD_REQUEST), &reply)
            }
        }
    }

    async fn take_all(&mut self, records: &mut Records) -> Result<(), Error> {
        let mut waiting = FuturesUnordered::new();
        while let Some(record) = records.next().await? {
            let number = records.number;
            let read = self.read(&mut waiting, (record, number));
            let (put, reading) = read.await?;
            let (key, items) = count(&put);
            // A document follows its metadata, a child its parent; everything else is in no order.
            let in_order = key.starts_with("library");
            while waiting.len() >= WINDOW || (in_order && !waiting.is_empty()) {
                let done: Option<Result<(), Error>> = waiting.next().await;
                done.unwrap_or(Ok(()))?;
            }
            self.note(key, items);
            let (app, identity) = (self.app, self.identity);
            let (workspace, meta) = (self.workspace.clone(), self.meta.clone());
            waiting.push(async move {
                let done = ask(app, identity, put, workspace, meta).await;
                let reply = match done {
                    Ok(running) => {
                        let mut running = running.holding(reading);
                        Whole::Last.collect(&mut running).await
                    }
                    Err(fault) => Err(fault),
                };
                let reply = reply.map_err(|fault| numbered(number, fault.error()))?;
                match reply.get("error") {
                    Some(error) => {
                        let error = serde_json::from_value(error.clone()).unwrap_or_default();
                        Err(numbered(number, error))
                    }
                    None => Ok(()),
                }
            });
        }
        while let Some(done) = waiting.next().await {
            done?;
        }
        Ok(())
    }

    /// The request of a record, once there is memory for it. Those under way go on meanwhile, and give memory back.
    async fn read<F: Future<Output = Result<(), Error>>>(
        &self,
        waiting: &mut FuturesUnordered<F>,
        (record, number): (Bytes, u64),
    ) -> Result<(Body, Reading), Error> {
        let (reader, core) = (Reader::known(self.identity), self.core.to_owned());
        // What the request has is a copy of what the record has.
        let weigh = |record: &[u8], _: usize| 2 * msgpack::weight(record);
        let parse = move |record: &[u8]| put_of(record, &core, number);
        let read = self.app.budget.read_weighed(&reader, record, weigh, parse);
        let mut read = std::pin::pin!(read);
        loop {
            tokio::select! {
                biased;
                Some(done) = waiting.next(), if !waiting.is_empty() => done?,
                read = &mut read => {
                    let (put, reading) = read.map_err(|fault| numbered(number, fault.error()))?;
                    return Ok((put?, reading));
                }
            }
        }
    }

    fn note(&mut self, key: &str, items: usize) {
        for (key, more) in [("records", 1), (key, items as u64)] {
            let sum = self.counts.get(key).and_then(Value::as_u64).unwrap_or(0) + more;
            self.counts.insert(key.to_owned(), sum.into());
        }
    }
}

fn numbered(number: u64, error: Error) -> Error {
    Error::typed(&error.kind, format!("record {number}: {}", error.message))
}

/// The request that puts a record into a core. Its errors name the record by its number.
pub(super) fn put_of(record: &[u8], core: &str, number: u64) -> Result<Body, Error> {
    let read = msgpack::decode(record)
        .map_err(|fault| Error::new(ErrorCode::BadRequest, fault.to_string()));
    let put = read.and_then(|record| to_put(record, core));
    put.map_err(|error| numbered(number, error))
}

/// What a record holds, and how many of it.
fn count(put: &Body) -> (&'static str, usize) {
    for (key, list, name) in [
        ("triples", "triples", "triples"),
        ("graph-embeddings", "entities", "entities"),
        ("document-embeddings", "chunks", "chunks"),
    ] {
        if let Some(payload) = put.get(key) {
            return (name, payload[list].as_array().map_or(0, Vec::len));
        }
    }
    match put.contains_key("library-blob") {
        true => ("library-blobs", 1),
        false => ("library-metadata", 1),
    }
}

/// Cuts a body into records of bounded size.
pub(super) struct Records {
    body: axum::body::BodyDataStream,
    buffer: BytesMut,
    scanner: Scanner,
    number: u64,
    limit: usize,
    /// What the buffer counts.
    received: Received,
}

impl Records {
    pub(super) fn new(body: HttpBody, limit: usize, received: Received) -> Self {
        Self {
            body: body.into_data_stream(),
            buffer: BytesMut::new(),
            scanner: Scanner::default(),
            number: 0,
            limit,
            received,
        }
    }

    /// The bytes of the next record. They count until the one after it is asked for.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        self.received.need(self.buffer.len());
        loop {
            let wrong = |number: u64, fault: msgpack::Malformed| {
                let text = format!("record {}: {fault}", number + 1);
                Error::new(ErrorCode::BadRequest, text)
            };
            let end = self.scanner.end(&self.buffer);
            if let Some(end) = end.map_err(|fault| wrong(self.number, fault))? {
                self.scanner = Scanner::default();
                self.number += 1;
                return Ok(Some(self.buffer.split_to(end).freeze()));
            }
            if self.buffer.len() > self.limit {
                let text = format!(
                    "record {}: larger than {} bytes",
                    self.number + 1,
                    self.limit
                );
                return Err(Error::new(ErrorCode::TooLarge, text));
            }
            match self.body.next().await {
                Some(Ok(bytes)) => {
                    self.buffer.extend_from_slice(&bytes);
                    let kept = self.received.hold_in_time(self.buffer.len());
                    kept.await.map_err(|fault| fault.error())?;
                }
                None if self.buffer.is_empty() => return Ok(None),
                Some(Err(_)) | None => {
                    return Err(wrong(self.number, msgpack::Malformed::Short));
                }
            }
        }
    }
}

/// Streams a core.
pub(crate) async fn export(
    State(app): State<Shared>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let opened = async {
        let identity = admit(&app, &wanted, &meta, &headers).await?;
        let id = wanted.id.as_deref().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| fault("id", "is required"))?;
        let operation = match wanted.kind.as_deref() {
            None | Some("" | "kg") => "get-kg-core",
            Some("de") => "get-de-core",
            Some(_) => return Err(fault("kind", "must be kg or de").into()),
        };
        let body = json!({"operation": operation, "id": id, "blob-parts": true});
        let body = body.as_object().cloned().unwrap_or_default();
        let mut running = ask(&app, &identity, body, wanted.workspace.clone(), meta).await?;
        // A core that is not there is known before anything is sent.
        let mut writer = Writer::default();
        let first = writer.next(&mut running).await.transpose()?;
        Ok((first, writer, running, app.sending.outlet(&identity)))
    };
    match opened.await {
        Ok((first, writer, running, outlet)) => {
            let state = (first, writer, running, false);
            let rest = stream::unfold(state, |(first, mut writer, mut running, over)| async move {
                if let Some(first) = first {
                    return Some((Ok(first), (None, writer, running, over)));
                }
                if over {
                    return None;
                }
                let chunk = writer.next(&mut running).await?;
                let failed = chunk.is_err();
                let chunk = chunk.map_err(|error| std::io::Error::other(error.message));
                Some((chunk, (None, writer, running, failed)))
            });
            let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
            (kind, outlet.body(rest)).into_response()
        }
        Err(fault) => refused(fault),
    }
}

/// Writes frames of an answer as records.
#[derive(Default)]
struct Writer {
    /// Bytes of the document under way that are written.
    written: u64,
}

impl Writer {
    async fn next(&mut self, running: &mut Running) -> Option<Result<Bytes, Error>> {
        loop {
            let body = match running.next().await? {
                Part::Body { body, .. } => body.into_tree(),
                Part::Error(error) => return Some(Err(error)),
            };
            if let Some(error) = body.get("error") {
                return Some(Err(
                    serde_json::from_value(error.clone()).unwrap_or_default()
                ));
            }
            let mut out = Vec::new();
            match self.part(&body, &mut out) {
                Ok(true) => {}
                Ok(false) => match to_record(&body) {
                    Some(record) => msgpack::encode(&record, &mut out),
                    None => continue,
                },
                Err(error) => return Some(Err(error)),
            }
            return Some(Ok(out.into()));
        }
    }

    /// Writes a part of a document; `false` if it is none. The length is announced with the first.
    fn part(&mut self, body: &Body, out: &mut Vec<u8>) -> Result<bool, Error> {
        let Some(Value::Object(blob)) = body.get("library-blob") else {
            return Ok(false);
        };
        let number = |key: &str| blob.get(key).and_then(Value::as_u64);
        let (Some(offset), Some(total)) = (number("offset"), number("total")) else {
            return Ok(false);
        };
        let text = |key: &str| blob.get(key).and_then(Value::as_str).unwrap_or_default();
        if offset == 0 {
            self.written = 0;
            msgpack::encode_list_head(2, out);
            msgpack::encode(&json!("lb"), out);
            msgpack::encode_map_head(2, out);
            msgpack::encode(&json!("i"), out);
            msgpack::encode(&json!(text("id")), out);
            msgpack::encode(&json!("d"), out);
            let letters = total.div_ceil(3).saturating_mul(4);
            msgpack::encode_text_head(letters as usize, out);
        }
        let data = text("data");
        let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count() as u64;
        let length = (data.len() as u64 / 4 * 3).saturating_sub(padding);
        let last = offset.saturating_add(length) == total;
        if offset != self.written || (padding > 0 && !last) {
            let text = "the document came in parts that do not fit";
            return Err(Error::new(ErrorCode::Internal, text));
        }
        self.written += length;
        out.extend_from_slice(data.as_bytes());
        Ok(true)
    }
}

/// Who asks, if they may.
async fn admit(
    app: &App,
    wanted: &Wanted,
    meta: &Meta,
    headers: &HeaderMap,
) -> Result<Identity, RequestError> {
    let identity = app.known(read::bearer(headers), meta).await?;
    let named = wanted.workspace.as_deref();
    let admitted = app.workspace(&identity, named, GATE).await;
    if let Err(fault) = &admitted {
        // What is admitted is decided once more when it is asked.
        let workspace = named.unwrap_or(&identity.workspace);
        let about = ("knowledge:write", "knowledge".to_owned());
        let asked = app.asked_for(&identity, about, workspace, meta);
        app.decided(asked, Some(fault));
    }
    admitted.map(|_| identity)
}

async fn ask(
    app: &App,
    identity: &Identity,
    body: Body,
    workspace: Option<String>,
    meta: Meta,
) -> Result<Running, RequestError> {
    let operation = body.get("operation").and_then(Value::as_str);
    let call = Call {
        target: Target::Service {
            service: registry::service("knowledge")
                .ok_or(RequestError::Unknown(Unknown::Service))?,
            operation: operation.unwrap_or_default().to_owned(),
            gate: GATE,
        },
        body,
        workspace,
        timeout: None,
        leave: Leave::Cancel,
        whole: false,
        meta,
    };
    app.start(identity, call, CancellationToken::new()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(data: &str, offset: usize, total: usize) -> Body {
        let value =
            json!({"library-blob": {"id": "d", "data": data, "offset": offset, "total": total}});
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_document_in_parts_is_one_record() {
        let mut writer = Writer::default();
        let mut out = Vec::new();
        for body in [part("aGVs", 0, 8), part("bG8h", 3, 8), part("ISE=", 6, 8)] {
            assert_eq!(writer.part(&body, &mut out), Ok(true));
        }
        assert_eq!(
            msgpack::decode(&out).unwrap(),
            json!(["lb", {"i": "d", "d": "aGVsbG8hISE="}])
        );
        assert!(writer.part(&part("aGVs", 9, 12), &mut out).is_err());
    }
}
