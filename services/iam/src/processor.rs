//! The processor `iam-svc`, its settings, and the store that it opens when it first serves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tg_mesh::Processor;
use tg_schemas::{Error, ErrorCode};
use tg_storage::{Durability, StorageError};
use tokio::sync::OnceCell;

use crate::handler::Handler;
use crate::service::{Service, wire};
use crate::store::Store;

/// Id of the processor.
pub const PROCESSOR: &str = "iam-svc";

/// Where the service keeps its directory below the data directory.
const FILE: &str = "iam.sqlite";

/// Who is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Regime {
    /// Everybody, as one administrator. For a machine of one's own.
    #[default]
    None,
    /// Holders of API keys, as far as their roles go.
    Iam,
}

impl Regime {
    /// As written in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Iam => "iam",
        }
    }

    /// Reads the settings' word.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            "iam" => Some(Self::Iam),
            _ => None,
        }
    }
}

/// The identity service over a file in `data_dir`. The file is opened, and its lock taken, when this
/// process is asked first: a process that stands by leaves it alone.
pub fn processors(
    regime: Regime,
    data_dir: &Path,
    durability: Durability,
) -> Result<Vec<Processor>, Error> {
    let owned = Arc::new(Owned {
        file: data_dir.join(FILE),
        durability,
        open: OnceCell::new(),
    });
    let processor = Processor::new(PROCESSOR)
        .serves_system("iam", Arc::new(Handler { owned, regime }))
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
                "another process owns the identity store",
            )),
            Err(fault) => Err(wire(fault)),
        }
    }
}
