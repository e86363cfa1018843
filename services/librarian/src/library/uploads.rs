//! Documents that arrive in chunks, over any time up to a day, through restarts of both sides.

use tg_schemas::msg::{DocumentMetadata, UploadSession};
use tg_schemas::{Error, ErrorCode};
use tg_storage::blob::{BlobId, Part, StageId, Staged};

use super::tidy::PAGE;
use super::{Library, complete, hashed};
use crate::engine::asker::Asker;
use crate::engine::ids;
use crate::engine::upload::{self, Session, Wanted};
use crate::error::{existing_document, invalid, unreadable, wire};
use crate::store::documents::Prepared;
use crate::store::uploads::{Arrived, Listed};
use tg_schemas::paging::{Asked, Page};

/// Missing chunks named in an error.
const NAMED: usize = 10;

/// Where an upload stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UploadStatus {
    pub(crate) session: Session,
    /// Positions that arrived, sorted; empty once complete.
    pub(crate) arrived: Vec<u64>,
    pub(crate) bytes: u64,
}

impl UploadStatus {
    /// Number of chunks that arrived.
    pub(crate) fn received(&self) -> u64 {
        match self.session.object.as_str() {
            "" => self.arrived.len() as u64,
            _ => self.session.chunks(),
        }
    }
}

impl Library {
    /// Begins an upload. One whose client says the hash of the content goes on with the open upload of the same
    /// content for the same document, if there is one: what is said of the document is what was said last.
    pub(crate) async fn begin_upload(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        wanted: Wanted,
    ) -> Result<UploadStatus, Error> {
        let document = complete(document)?;
        let (size, chunk) = upload::sizes(wanted.total, wanted.chunk)?;
        let announced = upload::announced(&wanted.hash)?;
        let session = Session {
            // The same question again has begun already.
            id: ids::of_question("upload", &asker.question),
            metadata: serde_json::to_string(&document).map_err(unreadable)?,
            document: document.id,
            workspace: asker.workspace.clone(),
            size,
            chunk,
            created: asker.now,
            object: String::new(),
            adopting: String::new(),
            replaces: wanted.replaces,
            announced,
        };
        let begun = self.rows.begin_upload(session, self.quota);
        let begun = begun.await.map_err(wire)?;
        self.standing(begun).await
    }

    /// Takes a chunk. One that arrived already is left alone; other content replaces it.
    pub(crate) async fn upload_chunk(
        &self,
        asker: &Asker,
        id: &str,
        position: i64,
        content: Vec<u8>,
    ) -> Result<UploadStatus, Error> {
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
        let known = self.rows.part(id, arrived.position);
        let known = known.await.map_err(wire)?;
        let outcome = match known == Some(part.hash) {
            true => "repeated",
            false => "written",
        };
        metrics::counter!("tg_library_upload_chunks_total", "outcome" => outcome).increment(1);
        if known != Some(part.hash) {
            if known.is_some() {
                let dropped = self.rows.drop_part(id, arrived.position);
                dropped.await.map_err(wire)?;
            }
            let written = self.content.stage_write(&stage, offset, content).await;
            written.map_err(wire)?;
            self.rows.set_part(id, arrived).await.map_err(wire)?;
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
        self.adopt(session).await
    }

    /// Makes the content of a session whose parts all arrived a document's. Each step is noted before the next
    /// is done, so that it can be gone on with after any crash: first that the content is whole and which it is,
    /// then its file gets its name, then the document's row speaks for it. The caller is alone with the session.
    async fn adopt(&self, session: Session) -> Result<Session, Error> {
        let stage = stage(&session.id)?;
        let hash = self.whole(&session, &stage).await?;
        if !session.takes(&hash) {
            self.drop_session(&session.id).await?;
            return Err(other_content(&session, &hash));
        }
        let begun = self.rows.begin_adopting(&session, hash);
        if !begun.await.map_err(wire)? {
            self.content.stage_remove(&stage).await.map_err(wire)?;
            return Err(existing_document());
        }
        // Short: looking through the content is done.
        let _shared = self.uses.read().await;
        self.content.adopt(&stage, hash).await.map_err(wire)?;
        let document: DocumentMetadata =
            serde_json::from_slice(session.metadata.as_bytes()).map_err(unreadable)?;
        let prepared = Prepared {
            hash,
            size: session.size,
            body: None,
        };
        let completed = self.rows.complete_upload(session, (document, prepared));
        completed.await.map_err(wire)?.ok_or_else(existing_document)
    }

    /// The hash of a session's content, all of which is there. Parts that are not what they should be are
    /// forgotten, and named.
    async fn whole(&self, session: &Session, stage: &StageId) -> Result<BlobId, Error> {
        let parts = self.rows.parts(&session.id).await.map_err(wire)?;
        let arrived: Vec<u64> = parts.iter().map(|part| part.position).collect();
        complain(&session.missing(&arrived))?;
        let wanted = parts.iter().map(|part| part.part).collect();
        let lost = match self
            .content
            .staged_hash(stage, wanted)
            .await
            .map_err(wire)?
        {
            Staged::Whole(hash) => return Ok(hash),
            Staged::Damaged(lost) => lost.into_iter().map(|at| at as u64).collect(),
            Staged::Absent => {
                // It got its name already, before an earlier try broke off.
                if let Some(hash) = BlobId::parse(&session.adopting)
                    && self.content.size(hash).await.map_err(wire)? == Some(session.size)
                {
                    return Ok(hash);
                }
                arrived
            }
        };
        let reopened = self.rows.reopen_upload(&session.id, lost.clone());
        reopened.await.map_err(wire)?;
        Err(complain(&lost).err().unwrap_or_else(no_session))
    }

    /// Gives an upload up.
    pub(crate) async fn abort_upload(&self, asker: &Asker, id: &str) -> Result<(), Error> {
        let _alone = self.upload_lock(id).await;
        let Some(session) = self.session(asker, id).await? else {
            return Err(no_session());
        };
        self.drop_session(&session.id).await
    }

    /// Where an upload stands; `None` if there is none, or not any more.
    pub(crate) async fn upload_status(
        &self,
        asker: &Asker,
        id: &str,
    ) -> Result<Option<UploadStatus>, Error> {
        match self.session(asker, id).await? {
            Some(session) => self.standing(session).await.map(Some),
            None => Ok(None),
        }
    }

    /// Uploads in progress, or a page of them.
    pub(crate) async fn list_uploads(
        &self,
        asker: &Asker,
        asked: Asked,
    ) -> Result<Page<UploadSession>, Error> {
        let mut after = asked.after_as()?.unwrap_or(0);
        let mut page = Page::new(asked);
        loop {
            let found = self.rows.sessions(&asker.workspace, after, PAGE);
            let found = found.await.map_err(wire)?;
            let Some(last) = found.last() else {
                return Ok(page);
            };
            after = last.number;
            for listed in found {
                if listed.session.expired(asker.now) {
                    continue;
                }
                if page.is_full() {
                    return Ok(page);
                }
                page.add(listed.number, shown(listed))?;
            }
        }
    }

    /// Completes what was about to be complete when the process ended.
    async fn finish_adopting(&self) -> Result<(), Error> {
        let mut after = String::new();
        loop {
            let found = self.rows.adopting(&after, PAGE).await.map_err(wire)?;
            let Some(last) = found.last() else {
                return Ok(());
            };
            after.clone_from(last);
            for id in found {
                let _alone = self.upload_lock(&id).await;
                let session = self.rows.session(&id).await.map_err(wire)?;
                let Some(session) = session.filter(|session| session.object.is_empty()) else {
                    continue;
                };
                match self.adopt(session).await {
                    Ok(done) => tracing::info!(document = %done.document, "completed an upload"),
                    Err(error) => tracing::warn!(%error, "an upload cannot be completed"),
                }
            }
        }
    }

    /// Forgets sessions that are over, with their parts; completes those that were about to be.
    pub(super) async fn expire_uploads(&self, now: i64) -> Result<(), Error> {
        self.finish_adopting().await?;
        let before = now - upload::LIFE;
        loop {
            let over = self.rows.begun_before(before, PAGE).await.map_err(wire)?;
            if over.is_empty() {
                break;
            }
            for id in over {
                let _alone = self.upload_lock(&id).await;
                self.drop_session(&id).await?;
            }
        }
        // Files of sessions that no row speaks of.
        for stage in self.content.stages().await.map_err(wire)? {
            let id = stage.to_string();
            let _alone = self.upload_lock(&id).await;
            let known = self.rows.session(&id).await.map_err(wire)?;
            if known.is_none_or(|session| !session.object.is_empty()) {
                self.content.stage_remove(&stage).await.map_err(wire)?;
            }
        }
        Ok(())
    }

    pub(super) async fn drop_session(&self, id: &str) -> Result<(), Error> {
        let stage = stage(id)?;
        self.rows.remove_upload(id).await.map_err(wire)?;
        self.content.stage_remove(&stage).await.map_err(wire)
    }

    /// A session of the asker's workspace that is not over.
    async fn session(&self, asker: &Asker, id: &str) -> Result<Option<Session>, Error> {
        if id.is_empty() {
            return Err(invalid("upload-id: is required"));
        }
        let session = self.rows.session(id).await.map_err(wire)?;
        Ok(session
            .filter(|session| session.workspace == asker.workspace && !session.expired(asker.now)))
    }

    async fn open_session(&self, asker: &Asker, id: &str) -> Result<Session, Error> {
        let session = self.session(asker, id).await?;
        session
            .filter(|session| session.object.is_empty())
            .ok_or_else(no_session)
    }

    async fn standing(&self, session: Session) -> Result<UploadStatus, Error> {
        let parts = self.rows.parts(&session.id).await.map_err(wire)?;
        let bytes = match session.object.as_str() {
            "" => parts.iter().map(|part| part.part.length).sum(),
            _ => session.size,
        };
        Ok(UploadStatus {
            arrived: parts.iter().map(|part| part.position).collect(),
            bytes,
            session,
        })
    }
}

/// A session as a listing shows it.
fn shown(listed: Listed) -> UploadSession {
    let (session, received) = (listed.session, listed.received);
    UploadSession {
        total_chunks: session.chunks() as i64,
        created_at: instant(session.created),
        upload_id: session.id,
        document_id: session.document,
        document_metadata_json: session.metadata,
        total_size: session.size as i64,
        chunk_size: session.chunk as i64,
        chunks_received: received as i64,
    }
}

fn stage(id: &str) -> Result<StageId, Error> {
    StageId::parse(id).ok_or_else(no_session)
}

/// Another workspace's session reads like none.
fn no_session() -> Error {
    Error::new(ErrorCode::NotFound, "Upload session not found or expired")
}

/// All parts arrived, and together they are not what the client said.
fn other_content(session: &Session, hash: &BlobId) -> Error {
    invalid(format!(
        "content-hash: must be that of the content: {} was announced and {hash} arrived; nothing of it is kept",
        session.announced
    ))
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
