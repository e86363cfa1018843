//! The processor `iam-svc`, its settings, and the store that this process opens when it becomes its owner.

use std::path::Path;
use std::sync::Arc;

use tg_mesh::leased_store::off_runtime;
use tg_mesh::{OwnedStore, Processor};
use tg_schemas::Error;
use tg_storage::Durability;

use crate::bootstrap_code::CodeFile;
use crate::handler::Handler;
use crate::service::Service;
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

/// The identity service over a file in `data_dir`. A process that stands by leaves the
/// file alone.
pub fn processors(
    regime: Regime,
    data_dir: &Path,
    durability: Durability,
) -> Result<Vec<Processor>, Error> {
    let file = data_dir.join(FILE);
    let code = CodeFile::new(data_dir);
    let opened_code = code.clone();
    let store = OwnedStore::new(PROCESSOR, move || {
        let (file, code) = (file.clone(), opened_code.clone());
        async move {
            let store = off_runtime(move || Store::open(&file, durability)).await?;
            let service = Service::load(store).await?;
            let needed = regime == Regime::Iam && service.is_empty();
            off_runtime(move || code.keep(needed)).await?;
            Ok(service)
        }
    });
    store.kept_in(data_dir.join(FILE));
    let processor = Processor::new(PROCESSOR)
        .serves_system(
            "iam",
            Arc::new(Handler {
                store: store.clone(),
                regime,
                code,
            }),
        )
        .concurrency(512)
        .owns(store);
    Ok(vec![processor])
}
