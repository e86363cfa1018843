//! The processor `config-svc`, and the store that it opens when it first serves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tg_mesh::{Mesh, Processor, TaskKind};
use tg_schemas::{Error, ErrorCode};
use tg_storage::{Durability, StorageError};
use tokio::sync::{Notify, OnceCell};

use crate::announce;
use crate::handler::Handler;
use crate::service::{Service, wire};
use crate::store::Store;

/// Id of the processor.
pub const PROCESSOR: &str = "config-svc";

/// Where the service keeps its rows below the data directory.
const FILE: &str = "config.sqlite";

/// The config service over a file in `data_dir`. The file is opened, and its lock taken, when this process
/// is asked first: a process that stands by leaves it alone.
///
/// Also starts the task that announces the version whenever a process begins to serve and after each
/// reconnect.
pub fn processors(
    mesh: &Mesh,
    data_dir: &Path,
    durability: Durability,
) -> Result<Vec<Processor>, Error> {
    let owned = Arc::new(Owned {
        file: data_dir.join(FILE),
        durability,
        open: OnceCell::new(),
    });
    let lost = Arc::new(Notify::new());
    let handler = Arc::new(Handler {
        owned,
        lost: lost.clone(),
    });
    mesh.spawn(TaskKind::Background, announce::run(mesh.clone(), lost));
    let processor = Processor::new(PROCESSOR)
        .serves_system("config", handler.clone())
        .serves_workspace("config", handler)
        .concurrency(512)
        .exclusive();
    Ok(vec![processor])
}

/// The store, once this process owns it.
pub(crate) struct Owned {
    file: PathBuf,
    durability: Durability,
    open: OnceCell<Arc<Service>>,
}

impl Owned {
    /// The open service. Fails while another process holds the store; the next call tries again.
    pub(crate) async fn service(&self) -> Result<Arc<Service>, Error> {
        self.open.get_or_try_init(|| self.open()).await.cloned()
    }

    async fn open(&self) -> Result<Arc<Service>, Error> {
        let (file, durability) = (self.file.clone(), self.durability);
        let store = tokio::task::spawn_blocking(move || Store::open(&file, durability))
            .await
            .map_err(|_| Error::new(ErrorCode::Internal, "the store could not be opened"))?;
        match store {
            Ok(store) => Service::load(store).await.map_err(wire),
            Err(StorageError::InUse) => Err(Error::new(
                ErrorCode::Unavailable,
                "another process owns the configuration store",
            )),
            Err(fault) => Err(wire(fault)),
        }
    }
}
