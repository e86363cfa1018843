//! Sessions in SQLite, one file for each workspace. All SQL of this crate is here and below.

mod agent;
mod files;
#[cfg(test)]
mod late;
mod message;
mod more;
mod part;
mod room;
mod service;
mod session;
mod setting;
mod summary;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::Quota;
use tg_schemas::WorkspaceKey;
use tg_storage::rusqlite::Connection;
use tg_storage::{Durability, StorageError};

use self::files::Files;
pub use self::files::{ONE_WORKSPACE, file_name};
use super::{
    Agent, AgentRow, AgentStore, Answer, Asked, Began, Finished, Message, NewSession, Owner, Page,
    Session, SessionStore, Span, Unasked,
};
use crate::engine::cursor::Key;

/// Bytes of messages that are read on the thread of a task, at most.
const SHORT: usize = 64 << 10;

/// What else is done when a workspace is purged.
pub type Purged =
    Arc<dyn Fn(WorkspaceKey) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Sessions of all workspaces. Clones share the files.
pub struct SqliteSessions {
    files: Files,
    /// What one workspace may keep.
    quota: Quota,
    purged: Option<Purged>,
}

impl SqliteSessions {
    /// Opens the directory and takes its lock; the index file there says whose it is. Blocks.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process has it; otherwise what is wrong with the file.
    pub fn open(index: &Path, root: &Path, durability: Durability) -> Result<Self, StorageError> {
        Ok(Self {
            files: Files::open(index, root, durability)?,
            quota: Quota::UNLIMITED,
            purged: None,
        })
    }

    /// The same store, in which a workspace may keep so much.
    #[must_use]
    pub fn holding(self, quota: Quota) -> Self {
        Self { quota, ..self }
    }

    /// The same store, which has others forget a workspace that it purges.
    #[must_use]
    pub fn purging(self, purged: Purged) -> Self {
        let purged = Some(purged);
        Self { purged, ..self }
    }

    /// Removes the file of a workspace, and what others keep of it.
    pub(super) async fn purge_whole(&self, key: &WorkspaceKey) -> Result<(), StorageError> {
        self.files.remove(key.as_str()).await?;
        if let Some(purged) = &self.purged {
            purged(key.clone()).await;
        }
        Ok(())
    }

    /// The files below.
    pub(super) fn files(&self) -> &Files {
        &self.files
    }
}

#[async_trait]
impl SessionStore for SqliteSessions {
    async fn create(&self, workspace: &str, new: NewSession) -> Result<Session, StorageError> {
        let file = self.files.create(workspace).await?;
        let quota = self.quota;
        file.write(move |tx| session::create(tx, &new, &quota, 0))
            .await
    }

    async fn session(&self, workspace: &str, id: &str) -> Result<Option<Session>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let id = id.to_owned();
        file.read_short(move |conn| session::get(conn, &id)).await
    }

    async fn sessions(
        &self,
        workspace: &str,
        owner: Owner,
        after: Option<Key>,
        most: usize,
    ) -> Result<Vec<Session>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Vec::new());
        };
        file.read(move |conn| session::list(conn, &owner, after.as_ref(), most))
            .await
    }

    async fn rename(
        &self,
        workspace: &str,
        id: &str,
        title: Option<String>,
        knowledge: Vec<String>,
    ) -> Result<Option<Session>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let id = id.to_owned();
        file.write(move |tx| session::rename(tx, &id, title.as_deref(), &knowledge))
            .await
    }

    async fn give(
        &self,
        workspace: &str,
        id: &str,
        to: Owner,
    ) -> Result<Option<Session>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let id = id.to_owned();
        file.write(move |tx| session::give(tx, &id, &to)).await
    }

    async fn forget_collection(
        &self,
        workspace: &str,
        collection: &str,
    ) -> Result<usize, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(0);
        };
        let collection = collection.to_owned();
        file.write(move |tx| session::forget_collection(tx, &collection))
            .await
    }

    async fn delete(&self, workspace: &str, id: &str, request: &str) -> Result<bool, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(false);
        };
        let (id, request) = (id.to_owned(), request.to_owned());
        file.write(move |tx| room::once(tx, &request, &id, || session::delete(tx, &id)))
            .await
    }

    async fn delete_empty(&self, workspace: &str, id: &str) -> Result<bool, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(false);
        };
        let id = id.to_owned();
        file.write(move |tx| session::delete_empty(tx, &id)).await
    }

    async fn is_done(
        &self,
        workspace: &str,
        request: &str,
        id: &str,
    ) -> Result<bool, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(false);
        };
        let (id, request) = (id.to_owned(), request.to_owned());
        file.read(move |conn| room::is_done(conn, &request, &id))
            .await
    }

    async fn begin(
        &self,
        workspace: &str,
        session: &str,
        asked: Asked,
    ) -> Result<Option<Began>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let (session, quota) = (session.to_owned(), self.quota);
        file.write_short(asked.content.len(), move |tx| {
            message::begin(tx, &session, &asked, &quota)
        })
        .await
    }

    async fn finish(
        &self,
        workspace: &str,
        session: &str,
        turn: i64,
        answer: Answer,
    ) -> Result<Option<Finished>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let session = session.to_owned();
        file.write_short(answer.bytes(), move |tx| {
            message::finish(tx, &session, turn, &answer)
        })
        .await
    }

    async fn announce(
        &self,
        workspace: &str,
        session: &str,
        said: Unasked,
    ) -> Result<bool, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(false);
        };
        let (session, quota) = (session.to_owned(), self.quota);
        file.write(move |tx| message::announce(tx, &session, &said, &quota))
            .await
    }

    async fn messages(
        &self,
        workspace: &str,
        session: &str,
        span: Span,
    ) -> Result<Page<Message>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Page::default());
        };
        let session = session.to_owned();
        file.read(move |conn| message::list(conn, &session, &span))
            .await
    }

    async fn newest(
        &self,
        workspace: &str,
        session: &str,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Message>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Vec::new());
        };
        let session = session.to_owned();
        file.read(move |conn| message::newest(conn, &session, most, bytes))
            .await
    }

    async fn past(
        &self,
        workspace: &str,
        session: &str,
        (after, before): (i64, i64),
        bytes: usize,
    ) -> Result<Vec<Message>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Vec::new());
        };
        let session = session.to_owned();
        let read = move |conn: &Connection| message::past(conn, &session, (after, before), bytes);
        match bytes <= SHORT {
            true => file.read_short(read).await,
            false => file.read(read).await,
        }
    }
}

#[async_trait]
impl AgentStore for SqliteSessions {
    async fn add_agent(
        &self,
        workspace: &str,
        new: AgentRow,
    ) -> Result<Option<Agent>, StorageError> {
        let file = self.files.create(workspace).await?;
        let quota = self.quota;
        file.write(move |tx| agent::add(tx, &new, &quota)).await
    }

    async fn seed(&self, workspace: &str, agents: Vec<AgentRow>) -> Result<(), StorageError> {
        let file = self.files.create(workspace).await?;
        file.write(move |tx| agent::seed(tx, &agents)).await
    }

    async fn is_seeded(&self, workspace: &str) -> Result<bool, StorageError> {
        match self.files.find(workspace).await? {
            None => Ok(false),
            Some(file) => file.read(agent::is_seeded).await,
        }
    }

    async fn agent(&self, workspace: &str, id: &str) -> Result<Option<Agent>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let id = id.to_owned();
        file.read_short(move |conn| agent::get(conn, &id)).await
    }

    async fn agents(
        &self,
        workspace: &str,
        after: Option<Key>,
        most: usize,
        bytes: usize,
    ) -> Result<Page<Agent>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Page::default());
        };
        file.read(move |conn| agent::list(conn, after.as_ref(), most, bytes))
            .await
    }

    async fn change_agent(
        &self,
        workspace: &str,
        id: &str,
        body: String,
        at: i64,
    ) -> Result<Option<Agent>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let (id, quota) = (id.to_owned(), self.quota);
        file.write(move |tx| agent::change(tx, &id, &body, at, &quota))
            .await
    }

    async fn remove_agent(
        &self,
        workspace: &str,
        id: &str,
        request: &str,
    ) -> Result<bool, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(false);
        };
        let (id, request) = (id.to_owned(), request.to_owned());
        file.write(move |tx| agent::remove(tx, &id, &request)).await
    }
}
