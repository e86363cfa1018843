//! Exports: what passes through an interface of a flow from now on, or the triples that are stored.
//!
//! A live export looks on and holds nothing up: a client that reads too slowly is told so and closed. It ends
//! with its flow, or when the client goes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use tg_mesh::{Answer, Ask, Mesh, Tap};
use tg_schemas::msg::{
    DEFAULT_COLLECTION, DocumentEmbeddings, EntityContexts, GraphEmbeddings, Metadata, Triples,
    TriplesQueryRequest, TriplesQueryResponse,
};
use tg_schemas::{Error, ErrorCode, Topic};

use super::heart::Heart;
use super::import::reason;
use crate::auth::{Identity, Lapse};
use crate::dispatch::Meta;
use crate::engine::scrub::scrub;
use crate::engine::translate::Body;
use crate::engine::translate::bulk::{
    BulkKind, show_document_embeddings, show_entity_contexts, show_graph_embeddings, show_triples,
};
use crate::engine::translate::fields::fault;
use crate::error::RequestError;
use crate::flows::{self, Flow};
use crate::iam_call;
use crate::registry::Unknown;
use crate::state::App;

/// How long a client may take to read a goodbye and answer it.
const GOODBYE: Duration = Duration::from_secs(10);
/// Triples of a frame of a stored export.
const BATCH: i64 = 1000;

/// Frames; an error is the last.
pub(super) type Frames = BoxStream<'static, Result<Body, Error>>;

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
) -> Result<Frames, RequestError> {
    let flow = from.flow;
    if filter.stored {
        if kind != BulkKind::Triples {
            return Err(fault("stored", "is for triples only").into());
        }
        let topic = flow.request("triples")?;
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
        return Ok(stored(&app.mesh, &topic, filter, options));
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
    let wanted = filter.collection;
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
        BulkKind::Rows => return Err(RequestError::Unknown(Unknown::Export)),
    };
    frames.map_err(|error| RequestError::Service(scrub(error)))
}

async fn live<M: tg_schemas::Message>(
    mesh: &Mesh,
    topic: &Topic,
    collection: Option<String>,
    show: fn(&M) -> Body,
) -> Result<Frames, Error> {
    let tap: Tap<M> = mesh.tap(topic).await?;
    let state = (tap, collection, false);
    let frames = stream::unfold(state, move |(mut tap, collection, over)| async move {
        if over {
            return None;
        }
        loop {
            let missed = tap.missed();
            if missed > 0 {
                let text = format!("{missed} records passed unseen: the reader is too slow");
                let error = Error::new(ErrorCode::TooLarge, text);
                return Some((Err(error), (tap, collection, true)));
            }
            let record = match tap.next().await? {
                Ok(record) => record,
                // Somebody wrote what is no such record; it is not for this client either.
                Err(_) => continue,
            };
            let body = show(&record);
            let of = body["metadata"]["collection"].as_str().unwrap_or_default();
            if collection.as_deref().is_none_or(|wanted| wanted == of) {
                return Some((Ok(body), (tap, collection, false)));
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

/// Sends frames until they end, the client goes or the flow does. What the client sends is ignored.
pub(super) async fn run(
    app: &App,
    mut socket: WebSocket,
    frames: Frames,
    flow: Arc<Flow>,
    mut lapse: Lapse,
) {
    let mut heart = Heart::new(app.options.ping);
    let (mut frames, doubt) = (frames.peekable(), lapse.doubt());
    let mut sent = 0_u64;
    let close = loop {
        let frame = tokio::select! {
            biased;
            () = flow.leaving.cancelled() => break fault_frame(close_code::AWAY, &flows::stopped()),
            () = app.closing.cancelled() => break CloseFrame {
                code: close_code::AWAY,
                reason: "the gateway is closing".into(),
            },
            error = &mut lapse => break fault_frame(close_code::POLICY, &error),
            () = heart.beat() => {
                let _ = socket.send(Message::Ping(Bytes::new())).await;
                continue;
            }
            message = socket.recv() => match message {
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
                let sending = socket.send(Message::Text(text.into()));
                let sending = tokio::select! {
                    biased;
                    sending = sending => sending,
                    () = flow.leaving.cancelled() => break fault_frame(close_code::AWAY, &flows::stopped()),
                    () = app.closing.cancelled() => return,
                    error = &mut lapse => break fault_frame(close_code::POLICY, &error),
                };
                match sending {
                    Ok(()) => sent += 1,
                    Err(_) => return,
                }
            }
            Some(Err(error)) => break fault_frame(close_code::ERROR, &error),
            None => break reason(close_code::NORMAL, "", &format!("sent {sent}")),
        }
    };
    // No more is taken while the goodbye is under way.
    drop(frames);
    let goodbye = async {
        let _ = socket.send(Message::Close(Some(close))).await;
        while let Some(Ok(_)) = socket.recv().await {}
    };
    let _ = tokio::time::timeout(GOODBYE, goodbye).await;
}

fn fault_frame(code: u16, error: &Error) -> CloseFrame {
    reason(code, &error.to_string(), "")
}
