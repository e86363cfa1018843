//! The processor `librarian`, and the library that it opens when it first serves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tg_mesh::Processor;
use tg_schemas::{Error, ErrorCode};
use tg_storage::{Durability, StorageError};
use tokio::sync::OnceCell;

use crate::collections::Collections;
use crate::fault::wire;
use crate::handler::Handler;
use crate::library::Library;

/// Id of the processor.
pub const PROCESSOR: &str = "librarian";

/// Below the data directory: rows, and content by hash.
const FILE: &str = "librarian.sqlite";
const CONTENT: &str = "content";

/// Requests in progress at once: each run of an agent stores a text or two at its end.
const CONCURRENCY: usize = 512;

/// The librarian over `data_dir`. Its file is opened, and its lock taken, when this process is asked
/// first: a process that stands by leaves it alone.
pub fn processors(data_dir: &Path, durability: Durability) -> Result<Vec<Processor>, Error> {
    let owned = Arc::new(Owned {
        dir: data_dir.to_owned(),
        durability,
        open: OnceCell::new(),
    });
    let processor = Processor::new(PROCESSOR)
        .serves_workspace("librarian", Arc::new(Handler(owned)))
        .serves_workspace("collection", Arc::new(Collections))
        .concurrency(CONCURRENCY)
        .exclusive();
    Ok(vec![processor])
}

/// The library, once this process owns it.
pub(crate) struct Owned {
    dir: PathBuf,
    durability: Durability,
    open: OnceCell<Arc<Library>>,
}

impl Owned {
    /// The open library. Fails while another process holds it; the next call tries again.
    pub(crate) async fn library(&self) -> Result<Arc<Library>, Error> {
        self.open.get_or_try_init(|| self.open()).await.cloned()
    }

    async fn open(&self) -> Result<Arc<Library>, Error> {
        let (dir, durability) = (self.dir.clone(), self.durability);
        let opened = tokio::task::spawn_blocking(move || {
            Library::open(&dir.join(FILE), &dir.join(CONTENT), durability)
        });
        let opened = opened.await.unwrap_or(Err(StorageError::Panicked));
        opened.map(Arc::new).map_err(|fault| match fault {
            StorageError::InUse => {
                Error::new(ErrorCode::Unavailable, "another process owns the library")
            }
            fault => wire(fault),
        })
    }
}
