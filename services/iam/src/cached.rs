//! The directory of this process: reads from memory; changes to the store, then memory, one at a time.

use std::sync::Arc;

use parking_lot::RwLock;
use tg_mesh::clock;
use tg_schemas::msg::{AuditDropped, AuditEntry, IamRequest, IamResponse};
use tg_schemas::{Error, WorkspaceKey};
use tg_storage::StorageError;
use tokio::sync::Mutex;

use crate::engine::{self, Call, Change, Directory, Effect, Signing, User};
use crate::error::wire;
use crate::password::Proof;
use crate::store::{AuditBatch, AuditWanted, DirectoryStore, Revocations};

/// Rows read at once when the store is opened.
const PAGE: u32 = 1000;

/// An operation, worked out on the directory as it is.
pub(crate) type Operation = fn(&Directory, &Call, &IamRequest) -> Result<Effect, Error>;

/// The open store and its directory in memory.
pub(crate) struct CachedDirectory {
    store: Arc<dyn DirectoryStore>,
    directory: RwLock<Directory>,
    changing: Mutex<()>,
}

impl CachedDirectory {
    /// Reads the store into memory.
    pub(crate) async fn load(store: Arc<dyn DirectoryStore>) -> Result<Self, StorageError> {
        let mut directory = Directory::default();
        for change in store.access().await? {
            directory.apply(&change);
        }
        let mut after = String::new();
        loop {
            let page = store.workspaces(&after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            let put = |one| directory.apply(&Change::PutWorkspace(one));
            page.into_iter().for_each(put);
        }
        after.clear();
        loop {
            let page = store.users(&after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            let put = |one| directory.apply(&Change::PutUser(one));
            page.into_iter().for_each(put);
        }
        after.clear();
        loop {
            let page = store.keys(&after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            let put = |one| directory.apply(&Change::PutKey(one));
            page.into_iter().for_each(put);
        }
        if directory.signing().all(|one| one.retired.is_some()) {
            let key = tg_jwt::SigningKey::generate();
            let first = [Change::PutSigning(Signing {
                key: key.map_err(|fault| StorageError::Corrupt(fault.to_string()))?,
                created: clock::now(),
                retired: None,
            })];
            store.commit(&first, false, &[]).await?;
            first.iter().for_each(|change| directory.apply(change));
        }
        Ok(Self {
            store,
            directory: RwLock::new(directory),
            changing: Mutex::default(),
        })
    }

    /// Whether there is no user yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.directory.read().users().len() == 0
    }

    /// What is kept of a user's password, and whose it is; `None` where there is no user or no password.
    pub(crate) fn password_of(
        &self,
        find: impl FnOnce(&Directory) -> Result<Option<&User>, Error>,
    ) -> Result<Option<Proof>, Error> {
        let directory = self.directory.read();
        let kept = |user: &User| {
            Some(Proof {
                user_id: user.id.clone(),
                against: user.password.clone()?,
            })
        };
        Ok(find(&directory)?.and_then(kept))
    }

    /// What an operation that changes nothing answers; `None` if it would change something.
    pub(crate) fn read(
        &self,
        operation: Operation,
        call: &Call,
        ask: &IamRequest,
    ) -> Result<Option<IamResponse>, Error> {
        let effect = operation(&self.directory.read(), call, ask)?;
        Ok(effect.changes.is_empty().then_some(effect.answer))
    }

    /// Runs an operation. Says which revocation everybody is to be told of, if it made one. Must not be dropped
    /// half-way: memory would fall behind the store; so callers give it a task of its own.
    pub(crate) async fn change(
        &self,
        operation: Operation,
        call: &Call,
        ask: &IamRequest,
    ) -> Result<(IamResponse, Option<i64>), Error> {
        let _turn = self.changing.lock().await;
        let Effect {
            changes,
            answer,
            quiet,
        } = operation(&self.directory.read(), call, ask)?;
        if changes.is_empty() {
            return Ok((answer, None));
        }
        // What is made may take the place of something that others remember.
        let takes = |change: &Change| matches!(change, Change::RemoveKey(_));
        let revokes = !quiet && (engine::revokes(&ask.operation) || changes.iter().any(takes));
        let committed = self.commit(&changes, revokes, ask).await?;
        Ok((answer, revokes.then_some(committed.made)))
    }

    /// Makes changes durable with what is written down of them, then visible. Call with the turn to change.
    async fn commit(
        &self,
        changes: &[Change],
        revokes: bool,
        ask: &IamRequest,
    ) -> Result<Revocations, Error> {
        let told = engine::audit::told(&self.directory.read(), changes, ask);
        let told: Vec<AuditEntry> = told.into_iter().map(dated).collect();
        let committed = self.store.commit(changes, revokes, &told).await;
        let committed = committed.map_err(wire)?;
        let mut directory = self.directory.write();
        for change in changes {
            directory.apply(change);
        }
        Ok(committed)
    }

    /// Makes the changes that something about a workspace in a generation asks for. Must not be dropped half-way, as
    /// [`Self::change`].
    pub(crate) async fn about(
        &self,
        key: &WorkspaceKey,
        what: fn(&Directory, &WorkspaceKey) -> Vec<Change>,
    ) -> Result<(), Error> {
        let _turn = self.changing.lock().await;
        let changes = what(&self.directory.read(), key);
        if changes.is_empty() {
            return Ok(());
        }
        let ask = IamRequest {
            operation: "end-workspace".to_owned(),
            ..IamRequest::default()
        };
        self.commit(&changes, false, &ask).await.map(drop)
    }

    /// That an operation was refused, as it is written down.
    pub(crate) fn refused(&self, ask: &IamRequest, error: &Error) -> AuditEntry {
        engine::audit::refused(&self.directory.read(), ask, error)
    }

    /// Writes down that somebody got a token.
    pub(crate) async fn came_in(&self, user_id: &str, ask: &IamRequest) -> Result<(), Error> {
        let entry = engine::audit::came_in(&self.directory.read(), user_id, ask);
        let kept = self.store.commit(&[], false, &[dated(entry)]).await;
        kept.map(drop).map_err(wire)
    }

    /// Whose one a token is that was made for a user by id or name, or for who asks.
    pub(crate) fn meant(&self, ask: &IamRequest) -> String {
        let directory = self.directory.read();
        match (ask.user_id.as_str(), directory.named(&ask.username)) {
            ("", Some(user)) => user.id.clone(),
            ("", None) => ask.actor.clone(),
            (id, _) => id.to_owned(),
        }
    }

    /// Keeps a batch of what happened elsewhere. What was decided about a workspace that is gone since is kept, too.
    pub(crate) async fn keep(&self, batch: &mut AuditBatch) -> Result<(), Error> {
        {
            let directory = self.directory.read();
            let named = batch.entries.iter().map(|one| &one.workspace);
            let unknown = named.filter(|id| !id.is_empty() && directory.workspace(id).is_none());
            batch.unknown = unknown.cloned().collect();
        }
        self.store.keep(batch).await.map_err(wire)
    }

    /// From when on somebody sees what happened in a workspace, in milliseconds; `None`: from the beginning. Who does not
    /// see everything sees nothing of one that had the name before.
    pub(crate) fn seen_since(&self, asker: &str, workspace: &str) -> Result<Option<i64>, Error> {
        let directory = self.directory.read();
        if engine::audit::sees_all(&directory, asker) {
            return Ok(None);
        }
        let seen = engine::audit::sees(&directory, asker, workspace);
        let known = directory.workspace(workspace).filter(|_| seen);
        let known = known.ok_or_else(|| engine::not_found("workspace"))?;
        Ok(Some(known.created.timestamp_millis()))
    }

    /// What happened, and what of it is not there any more.
    pub(crate) async fn events(
        &self,
        wanted: &AuditWanted,
    ) -> Result<(Vec<AuditEntry>, Vec<AuditDropped>), Error> {
        let page = self.store.page(wanted).await.map_err(wire)?;
        let dropped = self.store.dropped(wanted.workspace.as_deref()).await;
        Ok((page, dropped.map_err(wire)?))
    }

    /// Forgets what is too old.
    pub(crate) async fn forget(&self) -> Result<(), Error> {
        while self.store.forget(clock::millis()).await.map_err(wire)? {}
        Ok(())
    }

    /// The key of a workspace, where its generation is known.
    pub(crate) fn key(&self, id: &str) -> Option<WorkspaceKey> {
        self.directory.read().workspace(id)?.key()
    }

    /// Workspaces whose generation is not known yet.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let directory = self.directory.read();
        let unsettled = directory
            .workspaces()
            .filter(|one| one.generation.is_none());
        unsettled.map(|one| one.id.clone()).collect()
    }

    /// The text forms of the keys of workspaces.
    pub(crate) fn settled(&self) -> Vec<String> {
        let directory = self.directory.read();
        let keys = directory.workspaces().filter_map(|one| one.key());
        keys.map(|key| key.to_string()).collect()
    }

    /// Where it is kept.
    pub(crate) fn store(&self) -> &dyn DirectoryStore {
        &*self.store
    }

    /// How revocations stand.
    pub(crate) async fn revocations(&self) -> Result<Revocations, Error> {
        self.store.revocations().await.map_err(wire)
    }

    /// Everybody was told of revocations up to one.
    pub(crate) async fn told(&self, up_to: i64) -> Result<(), Error> {
        self.store.told(up_to).await.map_err(wire)
    }

    /// Whether a workspace is there.
    pub(crate) fn workspace(&self, ask: &IamRequest) -> Result<String, Error> {
        Ok(engine::existing(&self.directory.read(), ask)?.id.clone())
    }
}

/// What happens at this moment.
fn dated(entry: AuditEntry) -> AuditEntry {
    let now = clock::millis();
    AuditEntry {
        time: now,
        until: now,
        ..entry
    }
}

#[cfg(test)]
mod tests;
