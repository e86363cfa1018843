//! Upload sessions in their tables.

use async_trait::async_trait;
use tg_storage::StorageError;
use tg_storage::blob::BlobId;
use tg_storage::rusqlite::{Connection, Transaction};

use super::{SqliteLibrary, adding, content, document, upload, usage};
use crate::engine::quota::Quota;
use crate::engine::upload::Session;
use crate::error::existing_document;
use crate::store::documents::New;
use crate::store::uploads::{Arrived, Listed, UploadStore};

#[async_trait]
impl UploadStore for SqliteLibrary {
    async fn begin_upload(&self, session: Session, quota: Quota) -> Result<Session, StorageError> {
        self.write(move |tx| {
            if let Some(begun) = upload::get(tx, &session.id)? {
                return Ok(begun);
            }
            if is_taken(tx, &session, |there| announces(&session, there))? {
                return Err(StorageError::Refused(existing_document()));
            }
            if let Some(open) = gone_on_with(tx, &session)? {
                return Ok(open);
            }
            let adds = [(session.document.clone(), session.size)];
            let more = usage::more(tx, &session.workspace, &adds)?;
            let used = usage::of(tx, &session.workspace)?;
            quota.check(used, more).map_err(StorageError::Refused)?;
            upload::insert(tx, &session)?;
            Ok(session)
        })
        .await
    }

    async fn session(&self, id: &str) -> Result<Option<Session>, StorageError> {
        let id = id.to_owned();
        self.read(move |conn| upload::get(conn, &id)).await
    }

    async fn sessions(
        &self,
        workspace: &str,
        after: i64,
        most: u32,
    ) -> Result<Vec<Listed>, StorageError> {
        let workspace = workspace.to_owned();
        self.read(move |conn| upload::list(conn, &workspace, after, most))
            .await
    }

    async fn adopting(&self, after: &str, most: u32) -> Result<Vec<String>, StorageError> {
        let after = after.to_owned();
        self.read(move |conn| upload::adopting(conn, &after, most))
            .await
    }

    async fn begun_before(&self, moment: i64, most: u32) -> Result<Vec<String>, StorageError> {
        self.read(move |conn| upload::begun_before(conn, moment, most))
            .await
    }

    async fn uploads_of(&self, workspace: &str, most: u32) -> Result<Vec<String>, StorageError> {
        let workspace = workspace.to_owned();
        self.read(move |conn| upload::of_workspace(conn, &workspace, most))
            .await
    }

    async fn parts(&self, id: &str) -> Result<Vec<Arrived>, StorageError> {
        let id = id.to_owned();
        self.read(move |conn| upload::parts(conn, &id)).await
    }

    async fn part(&self, id: &str, position: u64) -> Result<Option<BlobId>, StorageError> {
        let id = id.to_owned();
        self.read(move |conn| upload::part(conn, &id, position))
            .await
    }

    async fn set_part(&self, id: &str, arrived: Arrived) -> Result<(), StorageError> {
        let id = id.to_owned();
        self.write(move |tx| upload::set_part(tx, &id, arrived))
            .await
    }

    async fn drop_part(&self, id: &str, position: u64) -> Result<(), StorageError> {
        let id = id.to_owned();
        self.write(move |tx| upload::drop_part(tx, &id, position))
            .await
    }

    async fn reopen_upload(&self, id: &str, lost: Vec<u64>) -> Result<(), StorageError> {
        let id = id.to_owned();
        self.write(move |tx| {
            upload::set_adopting(tx, &id, "")?;
            lost.iter()
                .try_for_each(|at| upload::drop_part(tx, &id, *at))
        })
        .await
    }

    async fn begin_adopting(&self, session: &Session, hash: BlobId) -> Result<bool, StorageError> {
        let session = session.clone();
        self.write(move |tx| {
            if is_taken(tx, &session, |there| *there == hash)? {
                upload::remove(tx, &session.id)?;
                return Ok(false);
            }
            upload::set_adopting(tx, &session.id, &hash.to_string())?;
            Ok(true)
        })
        .await
    }

    async fn complete_upload(
        &self,
        session: Session,
        new: New,
    ) -> Result<Option<Session>, StorageError> {
        self.write(move |tx| {
            let hash = new.1.hash;
            if is_taken(tx, &session, |there| *there == hash)? {
                // The content stays as a file that nobody uses; it is tidied away.
                upload::remove(tx, &session.id)?;
                return Ok(None);
            }
            let (document, prepared) = &new;
            match document::get(tx, &session.workspace, &document.id)? {
                None => adding::insert(tx, &session.workspace, document, prepared)?,
                Some(known) => {
                    document::update(tx, &session.workspace, document)?;
                    document::set_content(tx, &known, prepared)?;
                }
            }
            let object = prepared.hash.to_string();
            upload::complete(tx, &session.id, &object)?;
            Ok(Some(Session {
                adopting: object.clone(),
                object,
                ..session
            }))
        })
        .await
    }

    async fn remove_upload(&self, id: &str) -> Result<(), StorageError> {
        let id = id.to_owned();
        self.write(move |tx| upload::remove(tx, &id)).await
    }
}

/// The open session that one which announces a hash goes on with; what it says of the document is noted.
fn gone_on_with(tx: &Transaction<'_>, new: &Session) -> Result<Option<Session>, StorageError> {
    if new.announced.is_empty() {
        return Ok(None);
    }
    let same = upload::same(tx, new)?;
    let Some(open) = same.filter(|open| !open.expired(new.created)) else {
        return Ok(None);
    };
    upload::set_metadata(tx, &open.id, &new.metadata)?;
    Ok(Some(Session {
        metadata: new.metadata.clone(),
        ..open
    }))
}

/// Whether the document is there with other content although the upload does not replace one.
fn is_taken(
    conn: &Connection,
    session: &Session,
    is_same: impl FnOnce(&BlobId) -> bool,
) -> Result<bool, StorageError> {
    if session.replaces {
        return Ok(false);
    }
    let Some(known) = document::get(conn, &session.workspace, &session.document)? else {
        return Ok(false);
    };
    Ok(!content::hash(conn, known.content)?.is_some_and(|there| is_same(&there)))
}

/// Whether the upload said in advance that it brings this content: a repetition of one whose end its sender did not hear of.
fn announces(session: &Session, content: &BlobId) -> bool {
    !session.announced.is_empty() && session.takes(content)
}
