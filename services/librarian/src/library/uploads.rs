//! Documents that arrive in chunks, over any time up to a day, through restarts of both sides.

use tg_schemas::msg::{DocumentMetadata, UploadSession};
use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;
use tg_storage::blob::{Adopted, Part, StageId};

use super::{Asker, Library, add, complete, hashed};
use crate::engine::ids;
use crate::engine::upload::{self, Session};
use crate::fault::{existing_document, invalid, wire};
use crate::store::content::Prepared;
use crate::store::upload::{self as rows, Arrived};
use crate::store::{document, from_json, json};

/// Missing chunks named in an error.
const NAMED: usize = 10;

/// Where an upload stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) session: Session,
    /// Positions that arrived, sorted; empty once complete.
    pub(crate) arrived: Vec<u64>,
    pub(crate) bytes: u64,
}

impl Standing {
    /// Number of chunks that arrived.
    pub(crate) fn received(&self) -> u64 {
        match self.session.object.as_str() {
            "" => self.arrived.len() as u64,
            _ => self.session.chunks(),
        }
    }
}

impl Library {
    /// Begins an upload.
    pub(crate) async fn begin_upload(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        total: i64,
        chunk: i64,
    ) -> Result<Session, Error> {
        let document = complete(document)?;
        let (size, chunk) = upload::sizes(total, chunk)?;
        let asker = asker.clone();
        self.write(move |tx| {
            // The same question again has begun already.
            let id = ids::of_question("upload", &asker.question);
            if let Some(begun) = rows::get(tx, &id)? {
                return Ok(begun);
            }
            if document::exists(tx, &asker.workspace, &document.id)? {
                return Err(StorageError::Refused(existing_document()));
            }
            let session = Session {
                id,
                document: document.id.clone(),
                metadata: json(&document)?,
                workspace: asker.workspace,
                size,
                chunk,
                created: asker.now,
                object: String::new(),
            };
            rows::insert(tx, &session)?;
            Ok(session)
        })
        .await
    }

    /// Takes a chunk. One that arrived already is left alone; other content replaces it.
    pub(crate) async fn upload_chunk(
        &self,
        asker: &Asker,
        id: &str,
        position: i64,
        content: Vec<u8>,
    ) -> Result<Standing, Error> {
        let _alone = self.upload_lock(id).await;
        let session = self.open_session(asker, id).await?;
        let offset = session.check(position, content.len() as u64)?;
        let (hash, content) = hashed(content).await?;
        let part = Part {
            length: content.len() as u64,
            hash,
        };
        let arrived = Arrived {
            position: position.unsigned_abs(),
            part,
        };
        let stage = stage(id)?;
        let of = id.to_owned();
        let known = self.read(move |conn| rows::part(conn, &of, arrived.position));
        let known = known.await?;
        if known != Some(part.hash) {
            if known.is_some() {
                let of = id.to_owned();
                self.write(move |tx| rows::drop_part(tx, &of, arrived.position))
                    .await?;
            }
            let written = self.content.stage_write(&stage, offset, content).await;
            written.map_err(wire)?;
            let of = id.to_owned();
            self.write(move |tx| rows::set_part(tx, &of, arrived))
                .await?;
        }
        self.standing(session).await
    }

    /// Makes the document. Doing it again says the same.
    pub(crate) async fn complete_upload(&self, asker: &Asker, id: &str) -> Result<Session, Error> {
        let _alone = self.upload_lock(id).await;
        let session = match self.session(asker, id).await? {
            Some(done) if !done.object.is_empty() => return Ok(done),
            Some(open) => open,
            None => return Err(no_session()),
        };
        let of = id.to_owned();
        let parts = self.read(move |conn| rows::parts(conn, &of)).await?;
        let arrived: Vec<u64> = parts.iter().map(|part| part.position).collect();
        complain(&session.missing(&arrived))?;
        let _shared = self.uses.read().await;
        let stage = stage(id)?;
        let wanted = parts.iter().map(|part| part.part).collect();
        let hash = match self.content.adopt(&stage, wanted).await.map_err(wire)? {
            Adopted::Blob(hash) => hash,
            Adopted::Damaged(lost) => {
                let lost: Vec<u64> = lost.into_iter().map(|at| at as u64).collect();
                let (of, again) = (id.to_owned(), lost.clone());
                self.write(move |tx| {
                    again
                        .iter()
                        .try_for_each(|at| rows::drop_part(tx, &of, *at))
                })
                .await?;
                return Err(complain(&lost).err().unwrap_or_else(no_session));
            }
        };
        let workspace = asker.workspace.clone();
        self.write(move |tx| {
            let mut session = session;
            let document: DocumentMetadata = from_json(&session.metadata);
            if document::exists(tx, &workspace, &document.id)? {
                rows::remove(tx, &session.id)?;
                // The content stays as a file that nobody uses; it is tidied away.
                return Ok(Err(existing_document()));
            }
            let prepared = Prepared {
                hash,
                size: session.size,
                body: None,
            };
            add::insert(tx, &workspace, &document, &prepared)?;
            session.object = hash.to_string();
            rows::complete(tx, &session.id, &session.object)?;
            Ok(Ok(session))
        })
        .await?
    }

    /// Gives an upload up.
    pub(crate) async fn abort_upload(&self, asker: &Asker, id: &str) -> Result<(), Error> {
        let _alone = self.upload_lock(id).await;
        let Some(session) = self.session(asker, id).await? else {
            return Err(no_session());
        };
        self.drop_session(session.id).await
    }

    /// Where an upload stands; `None` if there is none, or not any more.
    pub(crate) async fn upload_status(
        &self,
        asker: &Asker,
        id: &str,
    ) -> Result<Option<Standing>, Error> {
        match self.session(asker, id).await? {
            Some(session) => self.standing(session).await.map(Some),
            None => Ok(None),
        }
    }

    /// Uploads in progress.
    pub(crate) async fn list_uploads(&self, asker: &Asker) -> Result<Vec<UploadSession>, Error> {
        let asker = asker.clone();
        self.read(move |conn| {
            let mut all = Vec::new();
            for session in rows::list(conn, &asker.workspace)? {
                if session.expired(asker.now) {
                    continue;
                }
                let (received, _) = rows::received(conn, &session.id)?;
                let (chunks, created) = (session.chunks() as i64, instant(session.created));
                all.push(UploadSession {
                    upload_id: session.id,
                    document_id: session.document,
                    document_metadata_json: session.metadata,
                    total_size: session.size as i64,
                    chunk_size: session.chunk as i64,
                    total_chunks: chunks,
                    chunks_received: received as i64,
                    created_at: created,
                });
            }
            Ok(all)
        })
        .await
    }

    /// Forgets sessions that are over, with their parts.
    pub(super) async fn expire_uploads(&self, now: i64) -> Result<(), Error> {
        let before = now - upload::LIFE;
        let over = self.read(move |conn| rows::begun_before(conn, before));
        for id in over.await? {
            let _alone = self.upload_lock(&id).await;
            self.drop_session(id.clone()).await?;
        }
        // Files of sessions that no row speaks of.
        for stage in self.content.stages().await.map_err(wire)? {
            let id = stage.to_string();
            let _alone = self.upload_lock(&id).await;
            let known = self.read(move |conn| rows::get(conn, &id)).await?;
            if known.is_none_or(|session| !session.object.is_empty()) {
                self.content.stage_remove(&stage).await.map_err(wire)?;
            }
        }
        Ok(())
    }

    pub(super) async fn drop_session(&self, id: String) -> Result<(), Error> {
        let stage = stage(&id)?;
        self.write(move |tx| rows::remove(tx, &id)).await?;
        self.content.stage_remove(&stage).await.map_err(wire)
    }

    /// A session of the asker's workspace that is not over.
    async fn session(&self, asker: &Asker, id: &str) -> Result<Option<Session>, Error> {
        if id.is_empty() {
            return Err(invalid("upload-id: is required"));
        }
        let id = id.to_owned();
        let session = self.read(move |conn| rows::get(conn, &id)).await?;
        Ok(session
            .filter(|session| session.workspace == asker.workspace && !session.expired(asker.now)))
    }

    async fn open_session(&self, asker: &Asker, id: &str) -> Result<Session, Error> {
        let session = self.session(asker, id).await?;
        session
            .filter(|session| session.object.is_empty())
            .ok_or_else(no_session)
    }

    async fn standing(&self, session: Session) -> Result<Standing, Error> {
        let id = session.id.clone();
        let parts = self.read(move |conn| rows::parts(conn, &id)).await?;
        let bytes = match session.object.as_str() {
            "" => parts.iter().map(|part| part.part.length).sum(),
            _ => session.size,
        };
        Ok(Standing {
            arrived: parts.iter().map(|part| part.position).collect(),
            bytes,
            session,
        })
    }
}

fn stage(id: &str) -> Result<StageId, Error> {
    StageId::parse(id).ok_or_else(no_session)
}

/// Another workspace's session reads like none.
fn no_session() -> Error {
    Error::new(ErrorCode::NotFound, "Upload session not found or expired")
}

fn complain(missing: &[u64]) -> Result<(), Error> {
    if missing.is_empty() {
        return Ok(());
    }
    let first = &missing[..missing.len().min(NAMED)];
    let more = if missing.len() > NAMED { "..." } else { "" };
    Err(invalid(format!("Missing chunks: {first:?}{more}")))
}

/// A moment as people read it: UTC.
fn instant(millis: i64) -> String {
    let time = chrono::DateTime::from_timestamp_millis(millis).unwrap_or_default();
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}
