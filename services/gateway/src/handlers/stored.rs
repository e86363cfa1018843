//! Exports of what is stored: triples as one streamed answer, all else page by page. Each page is asked for when the one before
//! it was taken.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use tg_mesh::{Answer, Ask, Mesh};
use tg_schemas::msg::{
    DEFAULT_COLLECTION, DocumentEmbeddings, DocumentEmbeddingsRequest, DocumentEmbeddingsResponse,
    EntityContext, EntityContexts, ExtractedObject, GraphEmbeddings, GraphEmbeddingsRequest,
    GraphEmbeddingsResponse, Metadata, RowsQueryRequest, RowsQueryResponse, Triples,
    TriplesQueryResponse,
};
use tg_schemas::{Error, ErrorCode, Message, Reply, Topic};

use crate::engine::scrub::scrub;
use crate::engine::translate::bulk::{
    BulkKind, show_document_embeddings, show_entity_contexts, show_graph_embeddings, show_rows,
    show_triples,
};
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, triples};
use crate::error::RequestError;
use crate::flows::Flow;
use crate::state::App;
use crate::turns::Lane;

/// Triples of a frame.
const BATCH: i64 = 1000;

/// Frames; an error is the last.
pub(super) type Frames = BoxStream<'static, Result<Body, Error>>;

/// What of it is wanted.
pub(super) struct Filter {
    pub(super) stored: bool,
    pub(super) collection: Option<String>,
    pub(super) graph: Option<String>,
}

/// Everything of a kind that a collection has.
pub(super) fn open(
    app: &App,
    kind: BulkKind,
    flow: &Flow,
    filter: Filter,
    options: Ask,
) -> Result<Frames, RequestError> {
    if filter.graph.is_some() && kind != BulkKind::Triples {
        return Err(fault("graph", "is for stored triples only").into());
    }
    let collection = filter
        .collection
        .unwrap_or_else(|| DEFAULT_COLLECTION.to_owned());
    let mesh = &app.mesh;
    Ok(match kind {
        BulkKind::Triples => {
            let topic = flow.request("triples")?;
            let answer = (mesh, &topic, app.turns.lane(flow.workspace.as_str()));
            everything(answer, (collection, filter.graph), options)
        }
        BulkKind::Rows => {
            let topic = flow.request("rows")?;
            pages::<Rows>(mesh, &topic, collection, options)
        }
        BulkKind::GraphEmbeddings => {
            let topic = flow.request("graph-embeddings")?;
            pages::<Entities>(mesh, &topic, collection, options)
        }
        BulkKind::DocumentEmbeddings => {
            let topic = flow.request("document-embeddings")?;
            pages::<Chunks>(mesh, &topic, collection, options)
        }
        BulkKind::EntityContexts => {
            let topic = flow.request("graph-embeddings")?;
            pages::<Contexts>(mesh, &topic, collection, options)
        }
    })
}

/// Everything that matches, in batches. They are translated in turns of the workspace.
fn everything(
    (mesh, topic, lane): (&Mesh, &Topic, Lane),
    (collection, graph): (String, Option<String>),
    options: Ask,
) -> Frames {
    let question = triples::everything(&collection, graph, BATCH);
    let answer: Answer<TriplesQueryResponse> = mesh.ask(topic, &question, options);
    let metadata = Metadata {
        collection,
        ..Metadata::default()
    };
    let state = (answer, metadata, lane, false);
    stream::unfold(state, |(mut answer, metadata, lane, over)| async move {
        if over {
            return None;
        }
        let part = answer.next().await?;
        let part = part.and_then(|part| match part.error {
            Some(error) => Err(error),
            None => Ok(part),
        });
        let shown = match part {
            Ok(part) => {
                let record = Triples {
                    metadata: Some(metadata.clone()),
                    triples: part.triples,
                };
                let frame = lane.run(move || show_triples(&record)).await;
                frame.map(|frame| (frame, part.is_final))
            }
            Err(error) => Err(scrub(error)),
        };
        Some(match shown {
            Ok((frame, last)) => (Ok(frame), (answer, metadata, lane, last)),
            Err(error) => (Err(error), (answer, metadata, lane, true)),
        })
    })
    .filter(|frame| {
        let empty = matches!(frame, Ok(body) if body["triples"] == Value::Array(Vec::new()));
        std::future::ready(!empty)
    })
    .boxed()
}

/// What is asked for page by page.
trait Paged: 'static {
    type Question: Message;
    type Answer: Reply;
    /// What a frame has its items under.
    const ITEMS: &'static str;

    /// Asks for the page of a collection from a place on.
    fn question(collection: String, after: String) -> Self::Question;

    /// The page as a frame, and where the next one begins: empty behind the last.
    fn page(page: Self::Answer, about: Metadata) -> Result<(Body, String), Error>;
}

fn pages<P: Paged>(mesh: &Mesh, topic: &Topic, collection: String, options: Ask) -> Frames {
    let (mesh, topic) = (mesh.clone(), topic.clone());
    let pages = stream::unfold(Some(String::new()), move |after| {
        let (mesh, topic, options) = (mesh.clone(), topic.clone(), options.clone());
        let collection = collection.clone();
        async move {
            let after = after?;
            let question = P::question(collection.clone(), after.clone());
            let answer: Answer<P::Answer> = mesh.ask(&topic, &question, options);
            let about = Metadata {
                collection,
                ..Metadata::default()
            };
            match answer.last().await.and_then(|page| P::page(page, about)) {
                // A place that does not move on would be asked for without end.
                Ok((frame, next)) => {
                    let next = Some(next).filter(|next| !next.is_empty() && *next != after);
                    Some((Ok(frame), next))
                }
                Err(error) => Some((Err(scrub(error)), None)),
            }
        }
    });
    let filled = pages.filter(|frame| {
        let empty = matches!(frame, Ok(body) if body[P::ITEMS] == Value::Array(Vec::new()));
        std::future::ready(!empty)
    });
    filled.boxed()
}

/// Rows, as they were written.
struct Rows;

impl Paged for Rows {
    type Question = RowsQueryRequest;
    type Answer = RowsQueryResponse;
    const ITEMS: &'static str = "values";

    fn question(collection: String, after: String) -> RowsQueryRequest {
        RowsQueryRequest {
            collection,
            export: true,
            after,
            ..RowsQueryRequest::default()
        }
    }

    fn page(page: RowsQueryResponse, about: Metadata) -> Result<(Body, String), Error> {
        // Services of others take the question for an empty query.
        match (page.error, page.errors.first()) {
            (Some(error), _) => return Err(error),
            (None, Some(fault)) => {
                return Err(Error::new(ErrorCode::BadRequest, fault.message.clone()));
            }
            (None, None) => {}
        }
        let frame = show_rows(&ExtractedObject {
            metadata: Some(about),
            schema_name: page.schema_name,
            values: page.rows,
            confidence: 1.0,
            ..ExtractedObject::default()
        });
        Ok((frame, page.next))
    }
}

/// A page of vectors is one only where it says so: stores of others find nothing near nothing.
fn whole(error: Option<Error>, page: bool) -> Result<(), Error> {
    match error {
        Some(error) => Err(error),
        None if !page => {
            let text = "the store of this flow gives no vectors away";
            Err(Error::new(ErrorCode::NotImplemented, text))
        }
        None => Ok(()),
    }
}

/// Vectors of entities.
struct Entities;

impl Paged for Entities {
    type Question = GraphEmbeddingsRequest;
    type Answer = GraphEmbeddingsResponse;
    const ITEMS: &'static str = "entities";

    fn question(collection: String, after: String) -> GraphEmbeddingsRequest {
        GraphEmbeddingsRequest {
            collection,
            export: true,
            after,
            ..GraphEmbeddingsRequest::default()
        }
    }

    fn page(page: GraphEmbeddingsResponse, about: Metadata) -> Result<(Body, String), Error> {
        whole(page.error, page.page)?;
        let frame = show_graph_embeddings(&GraphEmbeddings {
            metadata: Some(about),
            entities: page.stored,
            model: page.model,
        });
        Ok((frame, page.next))
    }
}

/// Contexts of entities: kept as the texts of the vectors that were made of them. A vector without its text says nothing of its
/// context, and is left out.
struct Contexts;

impl Paged for Contexts {
    type Question = GraphEmbeddingsRequest;
    type Answer = GraphEmbeddingsResponse;
    const ITEMS: &'static str = "entities";

    fn question(collection: String, after: String) -> GraphEmbeddingsRequest {
        Entities::question(collection, after)
    }

    fn page(page: GraphEmbeddingsResponse, about: Metadata) -> Result<(Body, String), Error> {
        whole(page.error, page.page)?;
        let mut entities = page.stored;
        entities.retain(|one| !one.text.is_empty());
        let entities = entities.into_iter().map(|one| EntityContext {
            entity: one.entity,
            context: one.text,
            chunk_id: one.chunk_id,
            rdf_type: one.rdf_type,
            attributes: one.attributes,
            ..EntityContext::default()
        });
        let frame = show_entity_contexts(&EntityContexts {
            metadata: Some(about),
            entities: entities.collect(),
        });
        Ok((frame, page.next))
    }
}

/// Vectors of chunks.
struct Chunks;

impl Paged for Chunks {
    type Question = DocumentEmbeddingsRequest;
    type Answer = DocumentEmbeddingsResponse;
    const ITEMS: &'static str = "chunks";

    fn question(collection: String, after: String) -> DocumentEmbeddingsRequest {
        DocumentEmbeddingsRequest {
            collection,
            export: true,
            after,
            ..DocumentEmbeddingsRequest::default()
        }
    }

    fn page(page: DocumentEmbeddingsResponse, about: Metadata) -> Result<(Body, String), Error> {
        whole(page.error, page.page)?;
        let frame = show_document_embeddings(&DocumentEmbeddings {
            metadata: Some(about),
            chunks: page.stored,
            model: page.model,
        });
        Ok((frame, page.next))
    }
}
