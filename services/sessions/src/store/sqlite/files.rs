//! The files: one for each workspace, named by its key, opened when it is asked for. A few stay open; of those that nothing
//! uses, the one that was not used for longest makes room for another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tg_mesh::OpenError;
use tg_mesh::leased_store::off_runtime;
use tg_schemas::{Error, ErrorCode};
use tg_storage::{Database, Durability, OneWorkspace, StorageError};
use tokio::sync::Mutex;

/// Files that are open at a time. Each has a few threads of its own.
const OPEN: usize = 16;
/// Under which their commits are counted, with those of the index.
const STORE: &str = "agent_sessions";
/// What the names of files end in.
const ENDING: &str = ".sqlite";
/// A database and the files that lie beside it, in the order in which they are deleted. The database is the last: as long as it is
/// there, whoever was killed in between finds what is left.
const DELETED: [&str; 4] = ["-wal", "-shm", ".lock", ""];
/// What stays as it is in the name of a file.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE session (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  surface TEXT NOT NULL CHECK (surface IN ('a1', 'conversation')),
  agent TEXT NOT NULL,
  user TEXT NOT NULL,
  title TEXT,
  knowledge TEXT NOT NULL DEFAULT '[]',
  strategy TEXT NOT NULL CHECK (strategy IN ('auto', 'manual', 'off')),
  keep INTEGER NOT NULL CHECK (keep BETWEEN 0 AND 200),
  mask INTEGER NOT NULL,
  messages INTEGER NOT NULL DEFAULT 0,
  live INTEGER NOT NULL DEFAULT 0,
  last_at INTEGER NOT NULL DEFAULT 0,
  parent TEXT UNIQUE,
  successor TEXT UNIQUE,
  loop_window TEXT NOT NULL DEFAULT '[]',
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  archived INTEGER,
  CHECK (successor IS NULL OR archived IS NOT NULL)
) STRICT;
CREATE INDEX session_by_owner ON session (surface, agent, user, created DESC, id);
CREATE TABLE part (hash BLOB PRIMARY KEY, content TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE message (
  session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  id TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('user', 'agent', 'system', 'tool')),
  content TEXT,
  part BLOB REFERENCES part (hash),
  tool_name TEXT,
  tool_calls TEXT,
  usage TEXT,
  synthetic INTEGER NOT NULL DEFAULT 0,
  compacted INTEGER,
  request TEXT,
  turn INTEGER NOT NULL,
  result TEXT,
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX message_by_request ON message (session, request) WHERE request IS NOT NULL;
CREATE UNIQUE INDEX message_by_turn ON message (session, turn) WHERE result IS NOT NULL;
CREATE INDEX message_by_part ON message (part) WHERE part IS NOT NULL;
",
    "
CREATE TABLE agent (
  id TEXT PRIMARY KEY,
  request TEXT NOT NULL,
  template TEXT,
  body TEXT NOT NULL,
  created INTEGER NOT NULL UNIQUE,
  updated INTEGER NOT NULL
) STRICT;
",
    "
ALTER TABLE session ADD COLUMN characters INTEGER NOT NULL DEFAULT 0;
UPDATE session SET characters =
  (SELECT coalesce(sum(length(coalesce(m.content, part.content, ''))), 0)
   FROM message m LEFT JOIN part ON part.hash = m.part WHERE m.session = session.number);
ALTER TABLE message ADD COLUMN origin TEXT;
CREATE TABLE summary (
  id TEXT PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
  successor TEXT,
  kind TEXT NOT NULL CHECK (kind IN ('lineage', 'in_place')),
  tier TEXT NOT NULL CHECK (tier IN ('full', 'partial', 'note', 'hard_clear')),
  content TEXT NOT NULL,
  model TEXT NOT NULL,
  prompt TEXT NOT NULL,
  mask INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  messages INTEGER NOT NULL,
  tokens_before INTEGER NOT NULL,
  tokens_after INTEGER NOT NULL,
  cause TEXT NOT NULL,
  request TEXT NOT NULL,
  at INTEGER NOT NULL,
  CHECK (kind = 'in_place' OR tier IN ('full', 'partial'))
) STRICT;
CREATE INDEX summary_by_session ON summary (session, at);
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
CREATE TABLE memory (
  id TEXT PRIMARY KEY,
  user TEXT NOT NULL CHECK (user <> ''),
  subject TEXT NOT NULL,
  predicate TEXT NOT NULL,
  object TEXT NOT NULL,
  agent TEXT NOT NULL,
  session TEXT NOT NULL,
  message TEXT NOT NULL,
  at INTEGER NOT NULL UNIQUE,
  UNIQUE (user, subject, predicate, object)
) STRICT;
CREATE INDEX memory_by_user ON memory (user, at);
",
    "
CREATE TABLE seeded (number INTEGER PRIMARY KEY CHECK (number = 1)) STRICT;
CREATE TABLE llm_service (
  id TEXT PRIMARY KEY,
  request TEXT NOT NULL,
  body TEXT NOT NULL,
  created INTEGER NOT NULL UNIQUE,
  updated INTEGER NOT NULL
) STRICT;
",
    "
ALTER TABLE session ADD COLUMN request TEXT;
ALTER TABLE session ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE session SET bytes = 512 +
  (SELECT coalesce(sum(512 + length(CAST(coalesce(m.content, part.content, '') AS BLOB))), 0)
   FROM message m LEFT JOIN part ON part.hash = m.part WHERE m.session = session.number);
CREATE TABLE kept (
  number INTEGER PRIMARY KEY CHECK (number = 1),
  sessions INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT;
INSERT INTO kept SELECT 1, count(*), coalesce(sum(bytes), 0) +
  (SELECT coalesce(sum(512 + length(CAST(body AS BLOB))), 0) FROM agent) FROM session;
CREATE TRIGGER session_added AFTER INSERT ON session BEGIN
  UPDATE kept SET sessions = sessions + 1, bytes = bytes + NEW.bytes;
END;
CREATE TRIGGER session_removed AFTER DELETE ON session BEGIN
  UPDATE kept SET sessions = sessions - 1, bytes = bytes - OLD.bytes;
END;
CREATE TRIGGER session_grown AFTER UPDATE OF bytes ON session BEGIN
  UPDATE kept SET bytes = bytes + NEW.bytes - OLD.bytes;
END;
CREATE TRIGGER agent_added AFTER INSERT ON agent BEGIN
  UPDATE kept SET bytes = bytes + 512 + length(CAST(NEW.body AS BLOB));
END;
CREATE TRIGGER agent_removed AFTER DELETE ON agent BEGIN
  UPDATE kept SET bytes = bytes - 512 - length(CAST(OLD.body AS BLOB));
END;
CREATE TRIGGER agent_changed AFTER UPDATE OF body ON agent BEGIN
  UPDATE kept SET bytes = bytes + length(CAST(NEW.body AS BLOB)) - length(CAST(OLD.body AS BLOB));
END;
",
    "
UPDATE kept SET bytes = bytes + (SELECT coalesce(sum(512 + length(CAST(body AS BLOB))), 0) FROM llm_service);
CREATE TRIGGER llm_service_added AFTER INSERT ON llm_service BEGIN
  UPDATE kept SET bytes = bytes + 512 + length(CAST(NEW.body AS BLOB));
END;
CREATE TRIGGER llm_service_removed AFTER DELETE ON llm_service BEGIN
  UPDATE kept SET bytes = bytes - 512 - length(CAST(OLD.body AS BLOB));
END;
CREATE TRIGGER llm_service_changed AFTER UPDATE OF body ON llm_service BEGIN
  UPDATE kept SET bytes = bytes + length(CAST(NEW.body AS BLOB)) - length(CAST(OLD.body AS BLOB));
END;
",
    "ALTER TABLE llm_service ADD COLUMN kind TEXT NOT NULL DEFAULT 'llm';",
    "
ALTER TABLE session ADD COLUMN said_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE session SET said_bytes =
  (SELECT coalesce(sum(length(CAST(coalesce(m.content, part.content, '') AS BLOB))), 0)
   FROM message m LEFT JOIN part ON part.hash = m.part WHERE m.session = session.number AND m.compacted IS NULL);
",
    "
CREATE TABLE unsearched (
  session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  failed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
",
];

/// One file that is open.
struct Open {
    file: Arc<Database>,
    used: u64,
}

#[derive(Default)]
struct State {
    open: BTreeMap<String, Open>,
    clock: u64,
}

/// See the module.
pub(crate) struct Files {
    root: PathBuf,
    durability: Durability,
    /// Its lock guards all files.
    index: Database,
    /// Held while a file is opened: none is opened twice.
    state: Mutex<State>,
}

impl Files {
    /// Opens the index and makes the directory. Blocks.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process has it; otherwise what the file system says.
    pub(super) fn open(
        index: &Path,
        root: &Path,
        durability: Durability,
    ) -> Result<Self, StorageError> {
        let index = Database::open(index, &[], durability)?;
        std::fs::create_dir_all(root).map_err(|error| StorageError::from_io(&error))?;
        Ok(Self {
            root: root.to_owned(),
            durability,
            index,
            state: Mutex::default(),
        })
    }

    /// Where it stands which configuration was known.
    pub(crate) fn index(&self) -> &Database {
        &self.index
    }

    /// The file of a workspace; makes it.
    ///
    /// # Errors
    /// It cannot be opened, or too many are in use.
    pub(super) async fn create(&self, workspace: &str) -> Result<Arc<Database>, StorageError> {
        let file = self.get(workspace, true).await?;
        file.ok_or(StorageError::Missing)
    }

    /// The file of a workspace; `None`: it has none.
    ///
    /// # Errors
    /// It cannot be opened, or too many are in use.
    pub(super) async fn find(
        &self,
        workspace: &str,
    ) -> Result<Option<Arc<Database>>, StorageError> {
        self.get(workspace, false).await
    }

    async fn get(
        &self,
        workspace: &str,
        make: bool,
    ) -> Result<Option<Arc<Database>>, StorageError> {
        let mut state = self.state.lock().await;
        state.clock += 1;
        let used = state.clock;
        if let Some(open) = state.open.get_mut(workspace) {
            open.used = used;
            return Ok(Some(open.file.clone()));
        }
        if state.open.len() >= OPEN {
            let idle = idlest(&state).ok_or_else(busy)?;
            close(state.open.remove(&idle)).await?;
        }
        let (path, durability) = (self.path(workspace), self.durability);
        let opened = blocking(move || {
            if !make && !path.exists() {
                return Ok(None);
            }
            Database::open_as(STORE, &path, MIGRATIONS, durability).map(Some)
        });
        let Some(file) = opened.await? else {
            return Ok(None);
        };
        let file = Arc::new(file);
        let open = Open {
            file: file.clone(),
            used,
        };
        state.open.insert(workspace.to_owned(), open);
        Ok(Some(file))
    }

    /// The workspaces that have a file.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) async fn workspaces(&self) -> Result<Vec<String>, StorageError> {
        let root = self.root.clone();
        blocking(move || {
            let io = |error: std::io::Error| StorageError::from_io(&error);
            let mut found = Vec::new();
            for entry in std::fs::read_dir(&root).map_err(io)? {
                let name = entry.map_err(io)?.file_name();
                let key = name.to_str().and_then(|name| name.strip_suffix(ENDING));
                let key = key.and_then(|key| percent_decode_str(key).decode_utf8().ok());
                found.extend(key.map(|key| key.into_owned()));
            }
            found.sort();
            Ok(found)
        })
        .await
    }

    /// Deletes the file of a workspace; none is fine.
    ///
    /// # Errors
    /// It is in use, or what the file system says; some of it may be gone then.
    pub(crate) async fn remove(&self, workspace: &str) -> Result<(), StorageError> {
        let mut state = self.state.lock().await;
        let is_used = |open: &Open| Arc::strong_count(&open.file) > 1;
        if state.open.get(workspace).is_some_and(is_used) {
            return Err(busy());
        }
        close(state.open.remove(workspace)).await?;
        let path = self.path(workspace);
        blocking(move || {
            for ending in DELETED {
                let mut name = path.clone().into_os_string();
                name.push(ending);
                match std::fs::remove_file(name) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(StorageError::from_io(&error));
                    }
                    _ => {}
                }
            }
            Ok(())
        })
        .await
    }

    fn path(&self, workspace: &str) -> PathBuf {
        self.root.join(file_name(workspace))
    }
}

/// How a backup keeps one workspace of the index, which names none.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(&[], &[]);

/// Name of the file of a workspace, by its key. Nothing of another one is in it.
pub fn file_name(workspace: &str) -> String {
    let name = utf8_percent_encode(workspace, PLAIN);
    format!("{name}{ENDING}")
}

/// The workspace whose file was not used for longest, of those that nothing uses now.
fn idlest(state: &State) -> Option<String> {
    let idle = state.open.iter();
    let idle = idle.filter(|(_, open)| Arc::strong_count(&open.file) == 1);
    let idlest = idle.min_by_key(|(_, open)| open.used);
    idlest.map(|(workspace, _)| workspace.clone())
}

/// Closing a file joins its threads.
async fn close(open: Option<Open>) -> Result<(), StorageError> {
    blocking(move || {
        drop(open);
        Ok(())
    })
    .await
}

/// Runs something beside the runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    off_runtime(work).await.map_err(|error| match error {
        OpenError::InUse => StorageError::InUse,
        OpenError::Failed(error) => StorageError::Refused(error),
    })
}

fn busy() -> StorageError {
    let text = "too many workspaces use their sessions at once; try again later";
    StorageError::Refused(Error::new(ErrorCode::Busy, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn more_workspaces_than_open_files_are_served_in_turn() {
        let dir = tempfile::tempdir().unwrap();
        let (index, root) = (dir.path().join("i.sqlite"), dir.path().join("all"));
        let files = Files::open(&index, &root, Durability::Process).unwrap();
        assert!(files.find("w").await.unwrap().is_none());
        for at in 0..OPEN + 2 {
            files.create(&format!("w{at}")).await.unwrap();
        }
        assert_eq!(files.workspaces().await.unwrap().len(), OPEN + 2);
        assert!(files.state.lock().await.open.len() <= OPEN);
        assert!(files.find("w0").await.unwrap().is_some());
        let held = files.create("a/../b").await.unwrap();
        assert!(files.remove("a/../b").await.is_err());
        drop(held);
        files.remove("a/../b").await.unwrap();
        files.remove("a/../b").await.unwrap();
        let left = files.workspaces().await.unwrap();
        assert!(left.len() == OPEN + 2 && !left.contains(&"a/../b".to_owned()));
    }

    #[tokio::test]
    async fn a_purge_that_stops_on_its_way_is_found_and_done_again() {
        let dir = tempfile::tempdir().unwrap();
        let (index, root) = (dir.path().join("i.sqlite"), dir.path().join("all"));
        let files = Files::open(&index, &root, Durability::Process).unwrap();
        files.create("w").await.unwrap();
        // No file can be deleted that is a directory.
        let beside = root.join("w.sqlite.lock");
        std::fs::remove_file(&beside).unwrap();
        std::fs::create_dir(&beside).unwrap();
        assert!(files.remove("w").await.is_err());
        assert_eq!(files.workspaces().await.unwrap(), ["w"]);
        std::fs::remove_dir(&beside).unwrap();
        files.remove("w").await.unwrap();
        assert!(files.workspaces().await.unwrap().is_empty());
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
    }
}
