//! The librarian's endpoint: decodes, has it done, answers.

mod base64;
#[cfg(test)]
mod fuzz;
mod uploads;

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::clock;
use tg_mesh::{Cx, LeasedStore, Mesh, RequestHandler, Responder};
use tg_schemas::msg::{LibrarianRequest, LibrarianResponse};
use tg_schemas::{Error, limits};

use self::base64::{decode, encode};
use crate::engine::asker::Asker;
use crate::error::invalid;
use crate::librarian::Librarian;
use crate::library::Listed;
use tg_schemas::paging::Asked;

/// Bytes of a streamed piece when the asker names none.
const PIECE: u64 = limits::STREAM_PIECE as u64;
/// Most bytes of a streamed piece.
const LARGEST: u64 = limits::LARGEST_PIECE as u64;

/// The endpoint of a workspace's library.
pub(crate) struct Handler(pub(crate) Arc<LeasedStore<Librarian>>);

#[async_trait]
impl RequestHandler<LibrarianRequest, LibrarianResponse> for Handler {
    async fn serve(
        &self,
        cx: Cx,
        ask: LibrarianRequest,
        mut out: Responder<LibrarianResponse>,
    ) -> Result<(), Error> {
        let librarian = self.0.get().await?;
        let asker = Asker {
            workspace: cx.workspace_key().to_string(),
            question: cx.id.to_string(),
            thread: cx.headers.thread.clone().unwrap_or_default(),
            now: clock::millis(),
        };
        let call = Call {
            librarian: &librarian,
            mesh: &cx.mesh,
            asker,
        };
        if ask.operation == "stream-document" {
            return call.stream(&ask, &mut out).await;
        }
        out.send(call.answer(ask).await?).await
    }
}

/// One question.
struct Call<'a> {
    librarian: &'a Arc<Librarian>,
    mesh: &'a Mesh,
    asker: Asker,
}

impl Call<'_> {
    async fn answer(&self, ask: LibrarianRequest) -> Result<LibrarianResponse, Error> {
        match ask.operation.as_str() {
            "begin-upload" | "upload-chunk" | "complete-upload" | "abort-upload"
            | "get-upload-status" | "list-uploads" => self.upload(ask).await,
            "add-processing" | "remove-processing" | "list-processing" | "processing-status"
            | "retry-processing" | "load-document" | "reindex" => self.processing(ask).await,
            _ => self.document(ask).await,
        }
    }

    async fn document(&self, ask: LibrarianRequest) -> Result<LibrarianResponse, Error> {
        let (library, asker) = (&self.librarian.library, &self.asker);
        let asked = || Asked::read(&ask.operation, ask.limit, &ask.after);
        let mut reply = LibrarianResponse::default();
        match ask.operation.as_str() {
            "add-document" => {
                let content = decode("content", &ask.content)?;
                library.add(asker, ask.document_metadata, content).await?;
            }
            "add-child-document" => {
                let content = decode("content", &ask.content)?;
                let added = library.add_child(asker, ask.document_metadata, content);
                reply.document_id = added.await?;
            }
            "ensure-document" => {
                let content = decode("content", &ask.content)?;
                let ensured = library.ensure(asker, ask.document_metadata, content);
                reply.document_id = ensured.await?;
            }
            "add-documents" => {
                let contents = decode_all(&ask.contents)?;
                let added = library.add_all(asker, ask.document_metadatas, contents);
                reply.document_metadatas = added.await?;
            }
            "add-children" => {
                let contents = decode_all(&ask.contents)?;
                let apart = ask.hands_on_readers;
                let added = library.add_children(asker, ask.document_metadatas, contents, apart);
                let added = added.await?;
                (reply.document_metadatas, reply.readers) = (added.unchanged, added.readers);
            }
            "finish-children" => {
                let id = document_id(&ask)?.to_owned();
                let finished = library.finish_children(asker, &id, ask.document_ids);
                reply.document_metadatas = finished.await?;
            }
            "update-document" => {
                let content = match ask.content.as_str() {
                    "" => None,
                    content => Some(decode("content", content)?),
                };
                library
                    .update(asker, ask.document_metadata, content)
                    .await?;
            }
            "remove-document" => {
                library.remove(asker, document_id(&ask)?).await?;
                self.librarian.wake.notify_one();
            }
            "get-document-metadata" | "get-document" => {
                let found = library.metadata(asker, document_id(&ask)?).await?;
                reply.document_metadata = Some(found);
            }
            "get-document-content" => {
                let content = library.content(asker, document_id(&ask)?).await?;
                reply.content = encode(content);
            }
            "get-contents" => {
                let (contents, found) = library.contents(asker, ask.document_ids).await?;
                let contents = contents.into_iter().map(Option::unwrap_or_default);
                reply.contents = contents.map(encode).collect();
                reply.document_metadatas = found;
            }
            "list-documents" => {
                let listed = Listed {
                    everything: ask.include_children,
                    criteria: ask.criteria,
                    collection: ask.collection,
                };
                let page = library.list(asker, listed, asked()?).await?;
                (reply.document_metadatas, reply.next) = (page.entries, page.next);
            }
            "list-children" => {
                let id = document_id(&ask)?;
                let page = library.children(asker, id, asked()?).await?;
                (reply.document_metadatas, reply.next) = (page.entries, page.next);
            }
            other => return Err(unknown(other)),
        }
        Ok(reply)
    }

    async fn processing(&self, ask: LibrarianRequest) -> Result<LibrarianResponse, Error> {
        let (librarian, mesh, asker) = (self.librarian, self.mesh, &self.asker);
        let mut reply = LibrarianResponse::default();
        match ask.operation.as_str() {
            "add-processing" if ask.dry_run => {
                let content = decode("content", &ask.content)?;
                reply.estimate = librarian.estimate(mesh, asker, &ask, content).await?;
            }
            "add-processing" => {
                let added = librarian.add_processing(mesh, asker, ask.processing_metadata);
                reply.processing_metadatas = vec![added.await?];
            }
            "load-document" => {
                let content = decode("content", &ask.content)?;
                let (document, given) = (ask.document_metadata, ask.processing_metadata);
                let loaded = librarian.load_document(mesh, asker, document, content, given);
                let (id, processing) = loaded.await?;
                reply.document_id = id;
                reply.processing_metadatas = vec![processing];
            }
            "remove-processing" => {
                let removed = librarian.remove_processing(asker, processing_id(&ask)?);
                reply.processing_metadatas = removed.await?.into_iter().collect();
            }
            "processing-status" => {
                let shown = librarian.processing_status(asker, processing_id(&ask)?);
                reply.processing_metadatas = vec![shown.await?];
            }
            "reindex" => {
                let reindexed = librarian.reindex(mesh, asker, &ask).await?;
                (reply.reindexed, reply.next) = reindexed;
            }
            "retry-processing" => {
                let retried = librarian.retry_processing(mesh, asker, processing_id(&ask)?);
                reply.processing_metadatas = vec![retried.await?];
            }
            _ => {
                let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
                let page = librarian.list_processing(asker, asked).await?;
                (reply.processing_metadatas, reply.next) = (page.entries, page.next);
            }
        }
        Ok(reply)
    }

    async fn stream(
        &self,
        ask: &LibrarianRequest,
        out: &mut Responder<LibrarianResponse>,
    ) -> Result<(), Error> {
        let id = document_id(ask)?;
        let pieces = self.librarian.library.pieces(&self.asker, id, piece(ask));
        let mut pieces = pieces.await?;
        if ask.only_chunk {
            let piece = pieces.at(ask.chunk_index).await?;
            return out.send(shown(&piece)).await;
        }
        while let Some(piece) = pieces.next().await? {
            let part = LibrarianResponse {
                is_final: pieces.ended(),
                ..shown(&piece)
            };
            out.send(part).await?;
        }
        Ok(())
    }
}

fn piece(ask: &LibrarianRequest) -> u64 {
    match u64::try_from(ask.chunk_size).unwrap_or(0) {
        0 => PIECE,
        size => size.min(LARGEST),
    }
}

fn shown(piece: &crate::library::Piece) -> LibrarianResponse {
    LibrarianResponse {
        content: encode(&piece.bytes),
        chunk_index: number(piece.index),
        total_chunks: number(piece.pieces),
        chunks_received: number(piece.index + 1),
        bytes_received: number(piece.received),
        total_bytes: number(piece.total),
        ..LibrarianResponse::default()
    }
}

fn decode_all(contents: &[String]) -> Result<Vec<Vec<u8>>, Error> {
    let contents = contents.iter().enumerate();
    contents
        .map(|(at, one)| decode(&format!("contents[{at}]"), one))
        .collect()
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn document_id(ask: &LibrarianRequest) -> Result<&str, Error> {
    match ask.document_id.as_str() {
        "" => Err(invalid("document-id: is required")),
        id => Ok(id),
    }
}

fn processing_id(ask: &LibrarianRequest) -> Result<&str, Error> {
    match ask.processing_id.as_str() {
        "" => Err(invalid("processing-id: is required")),
        id => Ok(id),
    }
}

fn unknown(operation: &str) -> Error {
    match operation {
        "" => invalid("operation: is required"),
        _ => invalid("operation: is not known to the librarian"),
    }
}
