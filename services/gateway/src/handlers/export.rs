//! Exports: what passes through an interface of a flow from now on, or the triples or rows that are stored.
//!
//! A live export looks on and holds nothing up: a client that reads too slowly is told so and closed. It ends
//! with its flow, or when the client goes; its end says how many records passed that could not be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use futures::stream::{self, BoxStream};
use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tg_mesh::{Answer, Ask, Mesh, Tap};
use tg_schemas::msg::{
    DEFAULT_COLLECTION, DocumentEmbeddings, EntityContexts, ExtractedObject, GraphEmbeddings,
    Metadata, RowsQueryRequest, RowsQueryResponse, Triples, TriplesQueryRequest,
    TriplesQueryResponse,
};
use tg_schemas::{Error, ErrorCode, Topic};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::heart::Heart;
use super::import::reason;
use super::upgrade::Socket;
use crate::auth::{Identity, Lapse};
use crate::call::Meta;
use crate::engine::scrub::scrub;
use crate::engine::translate::Body;
use crate::engine::translate::bulk::{
    BulkKind, show_document_embeddings, show_entity_contexts, show_graph_embeddings, show_rows,
    show_triples,
};
use crate::engine::translate::fields::fault;
use crate::error::RequestError;
use crate::flows::{self, Flow};
use crate::iam_call;
use crate::sending::Outlet;
use crate::state::App;

/// How long a client may take to read a goodbye and answer it.
const GOODBYE: Duration = Duration::from_secs(10);
/// Triples of a frame of a stored export.
const BATCH: i64 = 1000;

/// Frames; an error is the last.
pub(super) type Frames = BoxStream<'static, Result<Body, Error>>;

/// An open export.
pub(super) struct Export {
    pub(super) frames: Frames,
    /// Where they wait for their reader.
    pub(super) outlet: Outlet,
    /// Records that passed and could not be read.
    unreadable: Arc<AtomicU64>,
}

impl Export {
    /// How many records passed so far that could not be read.
    pub(super) fn unreadable(&self) -> Unreadable {
        Unreadable(self.unreadable.clone())
    }
}

/// Counts what could not be read.
#[derive(Clone)]
pub(super) struct Unreadable(Arc<AtomicU64>);

impl Unreadable {
    /// So many by now.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What of it is wanted.
pub(super) struct Filter {
    pub(super) stored: bool,
    pub(super) collection: Option<String>,
    pub(super) graph: Option<String>,
}

/// Where it comes from, and for whom.
pub(super) struct Source {
    pub(super) flow: Arc<Flow>,
    /// Of the workspace, as the caller was let in.
    pub(super) generation: i64,
    pub(super) identity: Identity,
}

/// Opens an export.
pub(super) async fn open(
    app: &App,
    kind: BulkKind,
    from: Source,
    filter: Filter,
    meta: &Meta,
) -> Result<Export, RequestError> {
    let flow = from.flow;
    let unreadable = Arc::new(AtomicU64::new(0));
    let outlet = app.sending.outlet(&from.identity);
    if filter.stored {
        let interface = match kind {
            BulkKind::Triples => "triples",
            BulkKind::Rows if filter.graph.is_none() => "rows",
            BulkKind::Rows => return Err(fault("graph", "is for stored triples only").into()),
            _ => return Err(fault("stored", "is for triples and rows only").into()),
        };
        let topic = flow.request(interface)?;
        let options = Ask {
            streaming: true,
            cancel: app.closing.clone(),
            epoch: flow.epoch,
            workspace: Some(flow.workspace.clone()),
            generation: Some(from.generation),
            user_id: Some(from.identity.id.to_string()),
            user_context: iam_call::context(&from.identity),
            traceparent: Some(meta.traceparent.to_string()),
            request_id: Some(meta.request_id.to_string()),
            ..Ask::default()
        };
        let frames = match kind {
            BulkKind::Rows => stored_rows(&app.mesh, &topic, filter.collection, options),
            _ => stored(&app.mesh, &topic, filter, options),
        };
        return Ok(Export {
            frames,
            outlet,
            unreadable,
        });
    }
    if filter.graph.is_some() {
        return Err(fault("graph", "is for stored triples only").into());
    }
    if from.identity.context.is_some() {
        // What passes by is judged by nobody.
        let why =
            "is required: policies are about what is stored, and your token has a user context";
        return Err(fault("stored", why).into());
    }
    let (mesh, topic) = (&app.mesh, flow.input(kind.interface())?);
    let wanted = Live {
        collection: filter.collection,
        unreadable: unreadable.clone(),
    };
    let frames = match kind {
        BulkKind::Triples => live::<Triples>(mesh, &topic, wanted, show_triples).await,
        BulkKind::GraphEmbeddings => {
            live::<GraphEmbeddings>(mesh, &topic, wanted, show_graph_embeddings).await
        }
        BulkKind::DocumentEmbeddings => {
            live::<DocumentEmbeddings>(mesh, &topic, wanted, show_document_embeddings).await
        }
        BulkKind::EntityContexts => {
            live::<EntityContexts>(mesh, &topic, wanted, show_entity_contexts).await
        }
        BulkKind::Rows => live::<ExtractedObject>(mesh, &topic, wanted, show_rows).await,
    };
    let frames = frames.map_err(|error| RequestError::Service(scrub(error)))?;
    Ok(Export {
        frames,
        outlet,
        unreadable,
    })
}

/// What of the records that pass is wanted, and the count of those that cannot be read.
struct Live {
    collection: Option<String>,
    unreadable: Arc<AtomicU64>,
}

async fn live<M: tg_schemas::Message>(
    mesh: &Mesh,
    topic: &Topic,
    wanted: Live,
    show: fn(&M) -> Body,
) -> Result<Frames, Error> {
    let tap: Tap<M> = mesh.tap(topic).await?;
    let state = (tap, wanted, false);
    let frames = stream::unfold(state, move |(mut tap, wanted, over)| async move {
        if over {
            return None;
        }
        loop {
            let missed = tap.missed();
            if missed > 0 {
                let text = format!("{missed} records passed unseen: the reader is too slow");
                let error = Error::new(ErrorCode::TooLarge, text);
                return Some((Err(error), (tap, wanted, true)));
            }
            let record = match tap.next().await? {
                Ok(record) => record,
                // Somebody wrote what is no such record. Those that are go on; the end tells of it.
                Err(_) => {
                    wanted.unreadable.fetch_add(1, Ordering::AcqRel);
                    continue;
                }
            };
            let body = show(&record);
            let of = body["metadata"]["collection"].as_str().unwrap_or_default();
            if wanted
                .collection
                .as_deref()
                .is_none_or(|wanted| wanted == of)
            {
                return Some((Ok(body), (tap, wanted, false)));
            }
        }
    });
    Ok(frames.boxed())
}

/// Everything that matches, in batches.
fn stored(mesh: &Mesh, topic: &Topic, filter: Filter, options: Ask) -> Frames {
    let collection = filter
        .collection
        .unwrap_or_else(|| DEFAULT_COLLECTION.to_owned());
    let question = TriplesQueryRequest {
        collection: collection.clone(),
        g: filter.graph.filter(|graph| graph != "*"),
        limit: 0,
        streaming: true,
        batch_size: BATCH,
        ..TriplesQueryRequest::default()
    };
    let answer: Answer<TriplesQueryResponse> = mesh.ask(topic, &question, options);
    let metadata = Metadata {
        collection,
        ..Metadata::default()
    };
    let state = (answer, metadata, false);
    stream::unfold(state, |(mut answer, metadata, over)| async move {
        if over {
            return None;
        }
        let part = answer.next().await?;
        let part = part.and_then(|part| match part.error {
            Some(error) => Err(error),
            None => Ok(part),
        });
        match part {
            Ok(part) => {
                let record = Triples {
                    metadata: Some(metadata.clone()),
                    triples: part.triples,
                };
                Some((Ok(show_triples(&record)), (answer, metadata, part.is_final)))
            }
            Err(error) => Some((Err(scrub(error)), (answer, metadata, true))),
        }
    })
    .filter(|frame| {
        let empty = matches!(frame, Ok(body) if body["triples"] == Value::Array(Vec::new()));
        std::future::ready(!empty)
    })
    .boxed()
}

/// All rows of a collection, page by page: each is asked for when the one before it was taken.
fn stored_rows(mesh: &Mesh, topic: &Topic, collection: Option<String>, options: Ask) -> Frames {
    let collection = collection.unwrap_or_else(|| DEFAULT_COLLECTION.to_owned());
    let (mesh, topic) = (mesh.clone(), topic.clone());
    stream::unfold(Some(String::new()), move |after| {
        let question = after.map(|after| RowsQueryRequest {
            collection: collection.clone(),
            export: true,
            after,
            ..RowsQueryRequest::default()
        });
        let (mesh, topic, options) = (mesh.clone(), topic.clone(), options.clone());
        async move {
            let question = question?;
            let answer: Answer<RowsQueryResponse> = mesh.ask(&topic, &question, options);
            match answer.last().await.and_then(whole_page) {
                Ok(page) => {
                    // A place that does not move on would be asked for without end.
                    let next = Some(page.next.clone());
                    let next = next.filter(|next| !next.is_empty() && *next != question.after);
                    Some((Ok(page_frame(page, question.collection)), next))
                }
                Err(error) => Some((Err(scrub(error)), None)),
            }
        }
    })
    .filter(|frame| {
        let empty = matches!(frame, Ok(body) if body["values"] == Value::Array(Vec::new()));
        std::future::ready(!empty)
    })
    .boxed()
}

/// A page that is one: services of others take the question for an empty query.
fn whole_page(page: RowsQueryResponse) -> Result<RowsQueryResponse, Error> {
    match (page.error, page.errors.first()) {
        (Some(error), _) => Err(error),
        (None, Some(fault)) => Err(Error::new(ErrorCode::BadRequest, fault.message.clone())),
        (None, None) => Ok(RowsQueryResponse {
            error: None,
            ..page
        }),
    }
}

fn page_frame(page: RowsQueryResponse, collection: String) -> Body {
    show_rows(&ExtractedObject {
        metadata: Some(Metadata {
            collection,
            ..Metadata::default()
        }),
        schema_name: page.schema_name,
        values: page.rows,
        confidence: 1.0,
        ..ExtractedObject::default()
    })
}

/// Sends frames until they end, the client goes or the flow does. What the client sends is ignored.
pub(super) async fn run(
    app: &App,
    mut socket: Socket,
    export: Export,
    flow: Arc<Flow>,
    mut lapse: Lapse,
) {
    let mut heart = Heart::new(app.options.ping);
    let (unreadable, outlet) = (export.unreadable(), export.outlet);
    let (mut frames, doubt) = (export.frames.peekable(), lapse.doubt());
    let mut sent = 0_u64;
    let (code, said, sent) = loop {
        let frame = tokio::select! {
            biased;
            () = flow.leaving.cancelled() => break (CloseCode::Away, flows::stopped().to_string(), None),
            () = app.closing.cancelled() => break (CloseCode::Away, "the gateway is closing".to_owned(), None),
            error = &mut lapse => break (CloseCode::Policy, error.to_string(), None),
            () = heart.beat() => {
                let _ = socket.send(Message::Ping(Bytes::new())).await;
                continue;
            }
            message = socket.next() => match message {
                Some(Ok(Message::Close(_))) | Some(Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            frame = doubt.next(&mut frames) => frame,
        };
        match frame {
            Some(Ok(body)) => {
                let text = Value::Object(body).to_string();
                // The connection notices a client that takes nothing; one that takes a little is never cut. While it
                // is slow, the flow may end and the caller be turned away.
                let sending = async {
                    let _place = outlet.take(text.len()).await;
                    socket.send(Message::Text(text.into())).await
                };
                let sending = tokio::select! {
                    biased;
                    sending = sending => sending,
                    () = flow.leaving.cancelled() => break (CloseCode::Away, flows::stopped().to_string(), None),
                    () = app.closing.cancelled() => return,
                    error = &mut lapse => break (CloseCode::Policy, error.to_string(), None),
                };
                match sending {
                    Ok(()) => sent += 1,
                    Err(_) => return,
                }
            }
            Some(Err(error)) => break (CloseCode::Error, error.to_string(), None),
            None => break (CloseCode::Normal, String::new(), Some(sent)),
        }
    };
    let close = reason(code, &said, &counters(sent, unreadable.count()));
    // No more is taken while the goodbye is under way.
    drop(frames);
    let goodbye = async {
        let _ = socket.send(Message::Close(Some(close))).await;
        while let Some(Ok(_)) = socket.next().await {}
    };
    let _ = tokio::time::timeout(GOODBYE, goodbye).await;
}

/// What the end tells: how many frames a whole export had, and how many records could not be read.
fn counters(sent: Option<u64>, unreadable: u64) -> String {
    let sent = sent.map(|sent| format!("sent {sent}"));
    let unreadable = (unreadable > 0).then(|| format!("unreadable {unreadable}"));
    let told: Vec<String> = sent.into_iter().chain(unreadable).collect();
    told.join(", ")
}
