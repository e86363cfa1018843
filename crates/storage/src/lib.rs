//! Where services keep things: one SQLite file per service behind one writer thread with group commit
//! and a small pool of readers, and files named by the hash of their content.
//!
//! A [`Database`] belongs to one process at a time: a lock file beside it says so to a second one.
//! This crate knows no table of any service; SQL lives in the services' `store/` modules. It never
//! blocks the async runtime for longer than a short write to the page cache takes
//! ([`Database::write_short`], [`Database::read_short`]), and no error text meant for clients holds a path or a statement.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use tg_storage::Database;
//!
//! let db = Database::in_memory(&["CREATE TABLE note (text TEXT NOT NULL)"]).unwrap();
//! db.write(|tx| {
//!     tx.prepare_cached("INSERT INTO note VALUES (?1)")?.execute(["hello"])?;
//!     Ok(())
//! })
//! .await
//! .unwrap();
//! let count: i64 = db
//!     .read(|conn| Ok(conn.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?))
//!     .await
//!     .unwrap();
//! assert_eq!(count, 1);
//! # });
//! ```

pub mod blob;
mod config_known;
mod connection;
mod database;
mod done_once;
mod erased;
mod error;
mod full_disk;
mod group;
mod identity;
mod lock;
pub mod memory;
mod mover;
mod one_workspace;
mod private;
mod query;
mod reader;
mod snapshot;
mod wal;
mod writer;

pub use config_known::ConfigKnown;
pub use database::Database;
pub use done_once::DoneOnce;
pub use error::StorageError;
pub use full_disk::log_full_disk;
pub use group::{GroupBounds, GroupCommitter, survived};
pub use identity::identity_of;
pub use lock::OwnerLock;
pub use one_workspace::{OneWorkspace, read_file};
pub use query::query_rows;
pub use rusqlite;
use serde::{Deserialize, Serialize};
pub use snapshot::Snapshot;

/// Stack of the threads that read and write, in bytes: said here, as the process may say another default.
const STACK: usize = 2 << 20;

/// What a committed write survives. Printed in every benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Survives the death of the process, not a power loss just after (`synchronous=NORMAL`).
    #[default]
    Process,
    /// Survives power loss (`synchronous=FULL`).
    Power,
}

impl Durability {
    /// As written in settings and benchmarks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Power => "power",
        }
    }

    /// Reads the settings' word.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "process" => Some(Self::Process),
            "power" => Some(Self::Power),
            _ => None,
        }
    }
}

impl std::fmt::Display for Durability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
