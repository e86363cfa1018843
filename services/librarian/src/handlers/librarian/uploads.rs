//! The operations of chunked uploads.

use tg_mesh::TaskKind;
use tg_schemas::msg::{LibrarianRequest, LibrarianResponse};
use tg_schemas::{Error, ErrorCode};
use tokio::sync::oneshot;

use super::base64::decode;
use super::{Call, number};
use crate::engine::upload::{Session, Wanted};
use crate::library::UploadStatus;
use tg_schemas::paging::Asked;

impl Call<'_> {
    pub(super) async fn upload(&self, ask: LibrarianRequest) -> Result<LibrarianResponse, Error> {
        let (library, asker) = (&self.librarian.library, &self.asker);
        let id = ask.upload_id.as_str();
        Ok(match ask.operation.as_str() {
            "begin-upload" => {
                let (total, chunk) = (ask.total_size, ask.chunk_size);
                let wanted = Wanted {
                    total,
                    chunk,
                    replaces: ask.replace,
                    hash: ask.content_hash,
                };
                // Who does not say the hash cannot go on with an upload, and is told what it always was.
                let resumable = !wanted.hash.is_empty();
                let begun = library.begin_upload(asker, ask.document_metadata, wanted);
                let begun = begun.await?;
                match resumable {
                    true => status(&begun),
                    false => about(&begun.session),
                }
            }
            "upload-chunk" => {
                let content = decode("content", &ask.content)?;
                let taken = library.upload_chunk(asker, id, ask.chunk_index, content);
                LibrarianResponse {
                    chunk_index: ask.chunk_index,
                    ..standing(&taken.await?)
                }
            }
            "complete-upload" => {
                let done = self.complete(ask.upload_id).await?;
                LibrarianResponse {
                    object_id: done.object,
                    document_id: done.document,
                    ..LibrarianResponse::default()
                }
            }
            "abort-upload" => {
                library.abort_upload(asker, id).await?;
                LibrarianResponse::default()
            }
            "get-upload-status" => match library.upload_status(asker, id).await? {
                Some(found) => status(&found),
                None => LibrarianResponse {
                    upload_id: ask.upload_id,
                    upload_state: "expired".to_owned(),
                    ..LibrarianResponse::default()
                },
            },
            _ => {
                let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
                let page = library.list_uploads(asker, asked).await?;
                LibrarianResponse {
                    upload_sessions: page.entries,
                    next: page.next,
                    ..LibrarianResponse::default()
                }
            }
        })
    }

    /// Completes an upload in a task of its own: looking through a large document takes longer than a question
    /// may, and must not be given up with the question. Asked again it says how it came out.
    async fn complete(&self, id: String) -> Result<Session, Error> {
        let (told, heard) = oneshot::channel();
        let (librarian, asker) = (self.librarian.clone(), self.asker.clone());
        self.mesh.spawn(TaskKind::Handler, async move {
            let done = librarian.library.complete_upload(&asker, &id).await;
            // Nobody may be there to hear it any more.
            let _ = told.send(done);
        });
        let stopping = |_| Error::new(ErrorCode::Unavailable, "the process is stopping");
        heard.await.map_err(stopping)?
    }
}

fn about(session: &Session) -> LibrarianResponse {
    LibrarianResponse {
        upload_id: session.id.clone(),
        chunk_size: number(session.chunk),
        total_chunks: number(session.chunks()),
        ..LibrarianResponse::default()
    }
}

fn standing(standing: &UploadStatus) -> LibrarianResponse {
    LibrarianResponse {
        chunks_received: number(standing.received()),
        bytes_received: number(standing.bytes),
        total_bytes: number(standing.session.size),
        ..about(&standing.session)
    }
}

fn status(found: &UploadStatus) -> LibrarianResponse {
    let numbers = |positions: Vec<u64>| positions.into_iter().map(number).collect();
    let (state, arrived) = match found.session.object.as_str() {
        "" => ("in-progress", found.arrived.clone()),
        _ => ("completed", (0..found.session.chunks()).collect()),
    };
    LibrarianResponse {
        upload_state: state.to_owned(),
        document_id: found.session.document.clone(),
        missing_chunks: numbers(found.session.missing(&arrived)),
        received_chunks: numbers(arrived),
        ..standing(found)
    }
}
