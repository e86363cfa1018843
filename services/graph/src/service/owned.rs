//! The engine of this process, opened when it is first needed.

use std::path::PathBuf;

use tg_schemas::{Error, ErrorCode};
use tg_storage::{Durability, StorageError};
use tokio::sync::OnceCell;

use crate::{Engine, GraphError, Limits};

pub(super) struct Owned {
    file: PathBuf,
    durability: Durability,
    open: OnceCell<Engine>,
}

impl Owned {
    pub(super) fn new(file: PathBuf, durability: Durability) -> Self {
        Self {
            file,
            durability,
            open: OnceCell::new(),
        }
    }

    /// The open engine. Fails while another process holds the store; the next call tries again.
    pub(super) async fn engine(&self) -> Result<&Engine, Error> {
        self.open.get_or_try_init(|| self.open()).await
    }

    /// The engine if it is open already. Who does not serve must not open it.
    pub(super) fn opened(&self) -> Option<&Engine> {
        self.open.get()
    }

    async fn open(&self) -> Result<Engine, Error> {
        let (file, durability) = (self.file.clone(), self.durability);
        let opened =
            tokio::task::spawn_blocking(move || Engine::open(&file, durability, Limits::default()));
        let opened = opened.await.unwrap_or(Err(GraphError::Closed));
        opened.map_err(|error| match error {
            GraphError::Journal(StorageError::InUse) => Error::new(
                ErrorCode::Unavailable,
                "another process owns the graph store",
            ),
            error => {
                tracing::error!(%error, "the graph store cannot be opened");
                error.to_wire(ErrorCode::Storage.as_str())
            }
        })
    }
}
