//! `violations`: what did not fit the ontologies, to be looked at, replayed once an ontology was corrected, or discarded.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tg_clients::flow_records;
use tg_clients::library::Library;
use tg_mesh::{Ask, Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::determinants::ONTOLOGY;
use tg_schemas::flow_record::FlowRecord;
use tg_schemas::msg::{
    EntityContexts, Metadata, Triples, Violation, ViolationsRequest, ViolationsResponse,
};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Class, Error, ErrorCode, Message, Topic};

use crate::engine::found::{Found, How, RECORD, Source};
use crate::engine::items::Items;
use crate::engine::ontology::{Ontologies, check};
use crate::ontologies::ReadyOntologies;
use crate::options::Options;
use crate::store::{Ledger, Quarantine, Quarantined, Which};

/// Read from the store at once.
const STRIDE: u32 = 256;
/// Stands for the fingerprint of what was replayed.
const REPLAY: &str = "replayed";
/// Statements of one replay; its answer says how to go on.
const REPLAYED: u32 = 256;

/// Serves `violations` of workspaces.
pub(crate) struct Violations {
    store: Arc<LeasedStore<Ledger>>,
    ready: ReadyOntologies,
}

#[async_trait]
impl RequestHandler<ViolationsRequest, ViolationsResponse> for Violations {
    async fn serve(
        &self,
        cx: Cx,
        ask: ViolationsRequest,
        mut out: Responder<ViolationsResponse>,
    ) -> Result<(), Error> {
        let which = Which {
            number: match ask.id.as_str() {
                "" => None,
                id => Some(id.parse().map_err(|_| missing())?),
            },
            flow: ask.flow.clone(),
            collection: ask.collection.clone(),
        };
        let store = self.store.get().await?;
        let workspace = cx.workspace_key().to_string();
        let reply = match ask.operation.as_str() {
            "list-violations" => list(&cx, &store, workspace, which, &ask).await?,
            "replay-violations" => self.replay(&cx, &store, workspace, which, &ask).await?,
            "discard-violations" => {
                let one = which.number.is_some();
                let discarded = store.forget_all(workspace, which).await?;
                if one && discarded == 0 {
                    return Err(missing());
                }
                ViolationsResponse {
                    discarded,
                    ..ViolationsResponse::default()
                }
            }
            "" => return Err(Error::new(ErrorCode::BadRequest, "operation: is required")),
            _ => {
                let text = "operation: is not known to the violations service";
                return Err(Error::new(ErrorCode::BadOperation, text));
            }
        };
        out.send(reply).await
    }
}

fn missing() -> Error {
    Error::new(ErrorCode::NotFound, "id: there is no such violation")
}

/// Whether what a statement was for is still the same collection.
fn is_current(cx: &Cx, kept: &Quarantined) -> bool {
    let of = &kept.origin;
    let generation = cx
        .config()
        .collection_generation(cx.workspace(), &of.collection);
    generation == of.generation
}

async fn list(
    cx: &Cx,
    store: &Ledger,
    workspace: String,
    which: Which,
    ask: &ViolationsRequest,
) -> Result<ViolationsResponse, Error> {
    let asked = Asked::read("list-violations", ask.limit, &ask.after)?;
    let mut after = asked.after_as::<i64>()?.unwrap_or(0);
    let mut page = Page::new(asked);
    'pages: loop {
        let some = store.rejected(workspace.clone(), which.clone(), after, STRIDE);
        let some = some.await?;
        let Some(last) = some.last() else { break };
        after = last.number;
        for kept in some {
            if !is_current(cx, &kept) {
                continue;
            }
            if page.is_full() {
                break 'pages;
            }
            page.add(kept.number, told(kept))?;
        }
    }
    if which.number.is_some() && page.entries.is_empty() {
        return Err(missing());
    }
    Ok(ViolationsResponse {
        violations: page.entries,
        next: page.next,
        dropped: store.dropped(workspace).await?,
        ..ViolationsResponse::default()
    })
}

fn told(kept: Quarantined) -> Violation {
    Violation {
        id: kept.number.to_string(),
        flow: kept.origin.flow,
        collection: kept.origin.collection,
        document: kept.origin.document,
        chunk: kept.origin.chunk,
        statement: kept.rejected.statement,
        reason: kept.rejected.reason,
        model: kept.origin.model,
        asked_at: kept.origin.asked_at,
    }
}

impl Violations {
    pub(crate) fn new(store: Arc<LeasedStore<Ledger>>, options: Options) -> Self {
        Self {
            store,
            ready: ReadyOntologies::new(options),
        }
    }

    /// Holds statements against the ontologies as they are now. What fits is written to the flow that it comes from, and
    /// forgotten once it is safe there; replaying it twice changes nothing more.
    async fn replay(
        &self,
        cx: &Cx,
        store: &Ledger,
        workspace: String,
        which: Which,
        ask: &ViolationsRequest,
    ) -> Result<ViolationsResponse, Error> {
        let after = match ask.after.as_str() {
            "" => 0,
            after => after.parse().map_err(|_| tg_schemas::paging::no_cursor())?,
        };
        let ontologies = self.ready.get(cx).await.map_err(Error::from)?;
        let one = which.number.is_some();
        let some = store.rejected(workspace.clone(), which, after, REPLAYED);
        let some = some.await?;
        if one && some.is_empty() {
            return Err(missing());
        }
        let mut reply = ViolationsResponse::default();
        if some.len() == REPLAYED as usize {
            reply.next = some.last().map_or(0, |last| last.number).to_string();
        }
        let library = Library::of_workspace(cx);
        for kept in some {
            let number = kept.number;
            if !is_current(cx, &kept) {
                store.forget(workspace.clone(), number).await?;
                reply.discarded += 1;
                continue;
            }
            // Facts of a text that is gone would name a source that is not there.
            let fitting = match library.find(&kept.origin.chunk).await? {
                Some(_) => fitting(&ontologies, &kept),
                None => Err("its chunk is not in the library any more".to_owned()),
            };
            match fitting {
                Ok((found, ontology)) => {
                    write(cx, &kept, found, ontology).await?;
                    store.forget(workspace.clone(), number).await?;
                    reply.replayed += 1;
                }
                Err(reason) => {
                    store.still(workspace.clone(), number, reason).await?;
                    reply.kept += 1;
                }
            }
        }
        Ok(reply)
    }
}

/// What a statement says if it fits now, and along which ontology; else why it does not.
fn fitting<'a>(
    ontologies: &'a Ontologies,
    kept: &Quarantined,
) -> Result<(Found, Option<&'a str>), String> {
    let statement: Value = serde_json::from_slice(kept.rejected.statement.as_bytes())
        .map_err(|_| "the statement cannot be read".to_owned())?;
    let items = Items {
        values: vec![statement],
        bad: 0,
    };
    let mut checked = check(ontologies, &items);
    match checked.told.pop() {
        Some(reason) => Err(reason),
        None if checked.found.is_empty() => Err(kept.rejected.reason.clone()),
        None => {
            let mut used = checked.used.iter().map(|at| ontologies.ontology_of(*at));
            let first = used.next();
            let only = first.filter(|first| used.all(|other| other == *first));
            Ok((checked.found, only))
        }
    }
}

/// Writes it as the extractor would have.
async fn write(
    cx: &Cx,
    kept: &Quarantined,
    found: Found,
    ontology: Option<&str>,
) -> Result<(), Error> {
    let origin = &kept.origin;
    let flow = flow_records::get(cx.config(), cx.workspace(), &origin.flow);
    let flow = flow.filter(FlowRecord::runs).ok_or_else(|| {
        let text = format!("flow: '{}' does not run now", origin.flow);
        Error::new(ErrorCode::NotFound, text)
    })?;
    let source = Source {
        chunk: origin.chunk.clone(),
        metadata: Metadata {
            id: origin.chunk.clone(),
            root: origin.document.clone(),
            collection: origin.collection.clone(),
        },
        // Whatever supersedes what the extractor made of the chunk supersedes this, too.
        fingerprint: REPLAY.to_owned(),
    };
    let how = How {
        extractor: ONTOLOGY.processor,
        version: env!("CARGO_PKG_VERSION"),
        asked_at: &origin.asked_at,
        model: &origin.model,
        prompt_version: &origin.prompt_version,
        ontology,
    };
    for part in found.triples(&source, &how).chunks(RECORD) {
        let record = Triples {
            metadata: Some(source.metadata.clone()),
            triples: part.to_vec(),
        };
        publish(cx, &flow, "triples-store", &record).await?;
    }
    let record = EntityContexts {
        entities: found.into_contexts(&source, ONTOLOGY.processor),
        metadata: Some(source.metadata),
    };
    // Flows made for other releases lack it.
    match flow.topic(CONTEXTS, Class::Flow) {
        Some(_) if !record.entities.is_empty() => publish(cx, &flow, CONTEXTS, &record).await,
        _ => Ok(()),
    }
}

/// The interface that takes what is said of entities.
const CONTEXTS: &str = "entity-contexts-load";

async fn publish<M: Message>(
    cx: &Cx,
    flow: &FlowRecord,
    interface: &str,
    record: &M,
) -> Result<(), Error> {
    let topic = flow.topic(interface, Class::Flow).ok_or_else(|| {
        let text = format!("flow: it has no '{interface}'");
        Error::new(ErrorCode::NotFound, text)
    })?;
    let options = Ask {
        epoch: flow.start(),
        workspace: cx.scope.workspace.clone(),
        cancel: cx.cancel.clone(),
        user_id: cx.headers.user_id.clone(),
        traceparent: cx.headers.traceparent.clone(),
        request_id: cx.headers.request_id.clone(),
        ..Ask::default()
    };
    cx.mesh.record(&Topic::parse(topic)?, record, options).await
}
