//! Exports: what passes through an interface of a flow from now on, or what is stored.
//!
//! A live export looks on and holds nothing up: a client that reads too slowly gets an error and is closed. It ends
//! with its flow, or when the client goes; its end says how many records passed that could not be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use futures::stream::{self, BoxStream};
use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tg_mesh::{Ask, Mesh, Tap};
use tg_schemas::msg::{
    DocumentEmbeddings, EntityContexts, ExtractedObject, GraphEmbeddings, Triples,
};
use tg_schemas::{Error, ErrorCode, Topic};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::heart::Heart;
use super::import::reason;
use super::stored::{self, Filter, Frames};
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
use crate::sight::{Judge, RECORDS};
use crate::state::App;

/// How long a client may take to read a goodbye and answer it.
const GOODBYE: Duration = Duration::from_secs(10);

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
        let options = Ask {
            streaming: true,
            ..options(app, &flow, from.generation, &from.identity, meta)
        };
        if options.user_context.is_some() && kind == BulkKind::EntityContexts {
            // As the texts of vectors are not.
            let why =
                "entity-contexts are texts, which no policies judge: ask without a user context";
            return Err(RequestError::Service(Error::typed(
                "policy-enforcement-error",
                why,
            )));
        }
        let judge = match kind {
            BulkKind::GraphEmbeddings | BulkKind::EntityContexts => {
                Judge::of(app, &flow, options.clone())?
            }
            _ => None,
        };
        let frames = stored::open(app, kind, &flow, filter, options)?;
        let frames = match judge {
            Some(judge) => without_hidden(frames, judge),
            None => frames,
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
    if from.identity.context.is_some() && !matches!(kind, BulkKind::Triples) {
        // Policies are about what is stored in graphs; nobody judges the rest.
        let why =
            "is required: policies are about what is stored, and your token has a user context";
        return Err(fault("stored", why).into());
    }
    let options = options(app, &flow, from.generation, &from.identity, meta);
    let (mesh, topic) = (&app.mesh, flow.input(kind.interface())?);
    let wanted = Live {
        collection: filter.collection,
        unreadable: unreadable.clone(),
    };
    let frames = match kind {
        BulkKind::Triples => match Judge::of(app, &flow, options)? {
            Some(judge) => judged(records(mesh, &topic, wanted, show_triples).await, judge),
            None => live::<Triples>(mesh, &topic, wanted, show_triples).await,
        },
        BulkKind::GraphEmbeddings => {
            let frames = live::<GraphEmbeddings>(mesh, &topic, wanted, show_graph_embeddings).await;
            match Judge::of(app, &flow, options)? {
                Some(judge) => frames.map(|frames| without_hidden(frames, judge)),
                None => frames,
            }
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

/// Frames without the entities that are not for whoever asked.
fn without_hidden(frames: Frames, judge: Judge) -> Frames {
    let state = (frames, judge, false);
    let shown = stream::unfold(state, |(mut frames, judge, over)| async move {
        if over {
            return None;
        }
        let frame = match frames.next().await? {
            Ok(mut frame) => {
                let collection = frame["metadata"]["collection"].as_str();
                let collection = collection.unwrap_or_default().to_owned();
                let judged = judge.without_hidden(&collection, &mut frame).await;
                judged.map(|()| frame).map_err(scrub)
            }
            Err(error) => Err(error),
        };
        let over = frame.is_err();
        Some((frame, (frames, judge, over)))
    });
    shown.boxed()
}

/// What of the records that pass is wanted, and the count of those that cannot be read.
struct Live {
    collection: Option<String>,
    unreadable: Arc<AtomicU64>,
}

/// How a caller's questions for an export are asked.
fn options(app: &App, flow: &Flow, generation: i64, identity: &Identity, meta: &Meta) -> Ask {
    Ask {
        cancel: app.closing.clone(),
        epoch: flow.epoch,
        workspace: Some(flow.workspace.clone()),
        generation: Some(generation),
        user_id: Some(identity.id.to_string()),
        user_context: iam_call::context(identity),
        traceparent: Some(meta.traceparent.to_string()),
        request_id: Some(meta.request_id.to_string()),
        ..Ask::default()
    }
}

async fn live<M: tg_schemas::Message>(
    mesh: &Mesh,
    topic: &Topic,
    wanted: Live,
    show: fn(&M) -> Body,
) -> Result<Frames, Error> {
    let records = records(mesh, topic, wanted, show).await?;
    let frames = records.map(move |record| record.map(|record| show(&record)));
    Ok(frames.boxed())
}

/// The triples that pass, as far as they are for who looks on.
fn judged(
    records: Result<BoxStream<'static, Result<Triples, Error>>, Error>,
    judge: Judge,
) -> Result<Frames, Error> {
    let seen = records?.map(move |record| {
        let judge = judge.clone();
        async move {
            let record = record?;
            let empty = record.triples.is_empty();
            let seen = judge.seen(record).await.map_err(scrub)?;
            // A record of which nothing is seen did not pass.
            let empty = empty && !judge.is_known();
            Ok((empty || !seen.triples.is_empty()).then(|| show_triples(&seen)))
        }
    });
    let frames = seen.buffered(RECORDS);
    let frames = frames.filter_map(|frame| std::future::ready(frame.transpose()));
    // An error is the last.
    let ended = frames.scan(false, |over, frame| {
        let frame = (!*over).then_some(frame);
        *over |= matches!(frame, Some(Err(_)));
        std::future::ready(frame)
    });
    Ok(ended.boxed())
}

/// The records that pass; an error is the last.
async fn records<M: tg_schemas::Message>(
    mesh: &Mesh,
    topic: &Topic,
    wanted: Live,
    show: fn(&M) -> Body,
) -> Result<BoxStream<'static, Result<M, Error>>, Error> {
    let tap: Tap<M> = mesh.tap(topic).await?;
    let state = (tap, wanted, false);
    let records = stream::unfold(state, move |(mut tap, wanted, over)| async move {
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
            let wants = wanted.collection.as_deref().is_none_or(|wanted| {
                show(&record)["metadata"]["collection"]
                    .as_str()
                    .unwrap_or_default()
                    == wanted
            });
            if wants {
                return Some((Ok(record), (tap, wanted, false)));
            }
        }
    });
    Ok(records.boxed())
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
