//! `knowledge`: the operations on cores.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::clock;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::msg::{DEFAULT_COLLECTION, KnowledgeRequest, KnowledgeResponse, Metadata};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::vocabulary::POLICY_GRAPH;
use tg_schemas::{Error, ErrorCode};
use tokio::sync::Notify;

use crate::engine::key::{CoreKey, Kind};
use crate::engine::piece::{self, Piece};
use crate::error;
use crate::library::Library;
use crate::load::{self, Counts, Loader};
use crate::store::{Cores, KnowledgeStore, Stored};

/// Names looked at in one step of a listing.
const STRIDE: u32 = 512;

/// Answers what is asked of a workspace's cores.
pub(crate) struct Knowledge<S> {
    pub(crate) store: Arc<LeasedStore<S>>,
    /// Something was deleted.
    pub(crate) wake: Arc<Notify>,
}

#[async_trait]
impl<S: KnowledgeStore> RequestHandler<KnowledgeRequest, KnowledgeResponse> for Knowledge<S> {
    async fn serve(
        &self,
        cx: Cx,
        ask: KnowledgeRequest,
        mut out: Responder<KnowledgeResponse>,
    ) -> Result<(), Error> {
        let cores = self.store.get().await?;
        let call = Call {
            cx: &cx,
            cores: &*cores,
        };
        let reply = match ask.operation.as_str() {
            "list-kg-cores" => call.list(Kind::Graph, &ask).await?,
            "list-de-cores" => call.list(Kind::Document, &ask).await?,
            "get-kg-core" => return call.get(Kind::Graph, &ask.id, &mut out).await,
            "get-de-core" => return call.get(Kind::Document, &ask.id, &mut out).await,
            "put-kg-core" => call.put_graph(ask).await?,
            "put-de-core" => call.put_document(ask).await?,
            "delete-kg-core" => {
                self.delete(&call, &[Kind::Graph, Kind::Document], &ask.id)
                    .await?
            }
            "delete-de-core" => self.delete(&call, &[Kind::Document], &ask.id).await?,
            "load-kg-core" => call.load(Kind::Graph, ask).await?,
            "load-de-core" => call.load(Kind::Document, ask).await?,
            "unload-kg-core" => call.unload(Kind::Graph, ask).await?,
            "unload-de-core" => call.unload(Kind::Document, ask).await?,
            "" => return Err(error::field("operation", "is required")),
            _ => {
                let text = "operation: is not known to the knowledge service";
                return Err(Error::new(ErrorCode::BadOperation, text));
            }
        };
        out.send(reply).await
    }
}

impl<S: KnowledgeStore> Knowledge<S> {
    /// Deletes the cores of a name. One of them is enough.
    async fn delete(
        &self,
        call: &Call<'_>,
        kinds: &[Kind],
        id: &str,
    ) -> Result<KnowledgeResponse, Error> {
        let keys = kinds.iter().map(|kind| call.key(*kind, id));
        let keys = keys.collect::<Result<_, _>>()?;
        // A core that is not there is as deleted as can be: asking again is no mistake.
        if call.cores.delete(keys).await? {
            self.wake.notify_one();
        }
        Ok(KnowledgeResponse::default())
    }
}

/// One question.
struct Call<'a> {
    cx: &'a Cx,
    cores: &'a Cores,
}

impl Call<'_> {
    fn key(&self, kind: Kind, id: &str) -> Result<CoreKey, Error> {
        CoreKey::new(self.cx.workspace_key().as_str(), kind, id, "id")
    }

    async fn list(&self, kind: Kind, ask: &KnowledgeRequest) -> Result<KnowledgeResponse, Error> {
        let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
        let page = page(self.cores, self.cx.workspace_key().as_str(), kind, asked).await?;
        Ok(KnowledgeResponse {
            ids: Some(page.entries),
            next: page.next,
            ..KnowledgeResponse::default()
        })
    }

    /// Streams a core: what it holds, its documents, the end.
    async fn get(
        &self,
        kind: Kind,
        id: &str,
        out: &mut Responder<KnowledgeResponse>,
    ) -> Result<(), Error> {
        let key = self.key(kind, id)?;
        if kind == Kind::Graph {
            if self.cx.headers.user_context.is_some() {
                return Err(error::not_judged());
            }
            // Nor is it read by who is not known to the policies, who would see nothing of the collection.
            if self.cores.is_judged(&key).await? {
                return Err(error::of_policies());
            }
        }
        let found = self.cores.find(&key).await?;
        let core = found.ok_or_else(error::no_such_core)?;
        let metadata = Metadata {
            id: key.id.clone(),
            root: String::new(),
            collection: DEFAULT_COLLECTION.to_owned(),
        };
        for part in load::parts(kind) {
            let mut after = 0;
            loop {
                let page = self.cores.page(core, *part, after).await?;
                let Some(last) = page.last() else { break };
                after = last.id;
                for Stored { piece, .. } in page {
                    out.send(piece.message(metadata.clone())?.into()).await?;
                }
            }
        }
        if kind == Kind::Graph {
            Library::new(self.cx).send_tree(&key.id, out).await?;
        }
        out.send(KnowledgeResponse {
            eos: true,
            ..KnowledgeResponse::default()
        })
        .await
    }

    async fn put_graph(&self, ask: KnowledgeRequest) -> Result<KnowledgeResponse, Error> {
        let mut any = false;
        if let Some(one) = ask.triples {
            let key = self.put_key(Kind::Graph, &one.metadata, "triples.metadata")?;
            let mut triples = one.triples.iter();
            if let Some(at) = triples.position(|one| one.g.as_deref() == Some(POLICY_GRAPH)) {
                let field = format!("triples.triples[{at}].g");
                return Err(error::field(
                    &field,
                    "policies are imported, and in no core",
                ));
            }
            self.keep(key, piece::of_triples(&one.triples)?).await?;
            any = true;
        }
        if let Some(one) = ask.graph_embeddings {
            let path = "graph-embeddings.metadata";
            let key = self.put_key(Kind::Graph, &one.metadata, path)?;
            let pieces = piece::of_entities(&one.model, one.entities)?;
            self.keep(key, pieces).await?;
            any = true;
        }
        if let Some(one) = ask.library_metadata {
            if one.id.is_empty() {
                return Err(error::field("library-metadata.id", "is required"));
            }
            let workspace = self.cx.workspace_key();
            self.cores
                .announce(workspace.as_str(), one, clock::millis())
                .await?;
            any = true;
        }
        if let Some(one) = ask.library_blob {
            if one.id.is_empty() {
                return Err(error::field("library-blob.id", "is required"));
            }
            Library::new(self.cx)
                .take(self.cores, clock::millis(), one)
                .await?;
            any = true;
        }
        match any {
            true => Ok(KnowledgeResponse::default()),
            false => Err(error::field("triples", "is required")),
        }
    }

    async fn put_document(&self, ask: KnowledgeRequest) -> Result<KnowledgeResponse, Error> {
        let one = ask.document_embeddings;
        let one = one.ok_or_else(|| error::field("document-embeddings", "is required"))?;
        let path = "document-embeddings.metadata";
        let key = self.put_key(Kind::Document, &one.metadata, path)?;
        let pieces = piece::of_chunks(&one.model, one.chunks)?;
        self.keep(key, pieces).await?;
        Ok(KnowledgeResponse::default())
    }

    /// What is put says itself which core it is of: its document's.
    fn put_key(&self, kind: Kind, of: &Option<Metadata>, path: &str) -> Result<CoreKey, Error> {
        let of = of
            .as_ref()
            .ok_or_else(|| error::field(path, "is required"))?;
        let (id, field) = match of.root.as_str() {
            "" => (of.id.as_str(), "id"),
            root => (root, "root"),
        };
        CoreKey::new(
            self.cx.workspace_key().as_str(),
            kind,
            id,
            &format!("{path}.{field}"),
        )
    }

    async fn keep(&self, key: CoreKey, pieces: Vec<Piece>) -> Result<(), Error> {
        let kept = self.cores.keep(key, pieces, None).await?;
        metrics::counter!("tg_knowledge_pieces_put_total").increment(kept as u64);
        Ok(())
    }

    async fn load(&self, kind: Kind, ask: KnowledgeRequest) -> Result<KnowledgeResponse, Error> {
        let loader = self.loader(kind, &ask)?;
        loader.load(&ask.collection).await.map(counted)
    }

    async fn unload(&self, kind: Kind, ask: KnowledgeRequest) -> Result<KnowledgeResponse, Error> {
        let loader = self.loader(kind, &ask)?;
        loader.unload(&ask.collection).await.map(counted)
    }

    fn loader(&self, kind: Kind, ask: &KnowledgeRequest) -> Result<Loader<'_>, Error> {
        Ok(Loader {
            cx: self.cx,
            cores: self.cores,
            core: self.key(kind, &ask.id)?,
            flow: ask.flow.clone(),
        })
    }
}

/// Names of cores, as many as a page has room for.
async fn page(
    cores: &Cores,
    workspace: &str,
    kind: Kind,
    asked: Asked,
) -> Result<Page<String>, Error> {
    let mut after = asked.after().unwrap_or_default().to_owned();
    let mut page = Page::new(asked);
    loop {
        let names = cores.list(workspace, kind, &after, STRIDE).await?;
        let Some(last) = names.last() else {
            return Ok(page);
        };
        after.clone_from(last);
        for name in names {
            if page.is_full() {
                return Ok(page);
            }
            page.add(name.clone(), name)?;
        }
    }
}

fn counted(counts: Counts) -> KnowledgeResponse {
    KnowledgeResponse {
        counts,
        ..KnowledgeResponse::default()
    }
}
