//! The processor `iam-svc`, and the store that this process opens when it becomes its owner.

use std::sync::Arc;

use tg_clients::audit::AuditBuffer;
use tg_collections::reaper;
use tg_mesh::leased_store::off_runtime;
use tg_mesh::{LeasedStore, Mesh, Processor, TaskKind};
use tg_schemas::processors::iam_svc;
use tokio::sync::Notify;

use crate::bootstrap_code::CodeFile;
use crate::cached::CachedDirectory;
use crate::generations;
use crate::handlers::{Audit, Handler};
use crate::login::Passwords;
use crate::oidc::Issuer;
use crate::options::{AuthMode, Options};
use crate::places::{LONG, Places, STRANGERS};
use crate::store::SqliteDirectory;
use crate::{revocations, trail};

/// Id of the processor.
pub const PROCESSOR: &str = iam_svc::PROCESSOR.id;

/// Where the service keeps its directory below the data directory.
const FILE: &str = "iam.sqlite";

/// Requests in progress at once. Far more than those that take long ([`LONG`]): the rest are checks, which are done as soon
/// as they begin, and refusals.
const CONCURRENCY: usize = 4_096;

/// Fewer requests in progress at once than this would let what takes long keep the checks out, which have no places.
pub const LEAST_CONCURRENCY: u16 = 1_024;

const _: () = assert!(LONG + STRANGERS + 256 <= LEAST_CONCURRENCY as usize);
const _: () = assert!(LEAST_CONCURRENCY as usize <= CONCURRENCY);

/// The identity service over a file in the data directory. A process that stands by leaves the
/// file alone.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let (auth_mode, durability) = (options.auth_mode, options.durability);
    let bounds = options.audit();
    let kept = options.data_dir.join(FILE);
    let code = CodeFile::new(&options.data_dir);
    let opened = Arc::new(Notify::new());
    let (own_file, own_code, told) = (kept.clone(), code.clone(), opened.clone());
    let store = LeasedStore::new(PROCESSOR, move || {
        let (file, code, told) = (own_file.clone(), own_code.clone(), told.clone());
        async move {
            let store =
                off_runtime(move || SqliteDirectory::open(&file, durability, bounds)).await?;
            let directory = CachedDirectory::load(Arc::new(store)).await?;
            let needed = auth_mode == AuthMode::Iam && directory.is_empty();
            off_runtime(move || code.keep(needed)).await?;
            told.notify_one();
            Ok(directory)
        }
    });
    store.kept_in(kept);
    let left = revocations::run(mesh.clone(), store.clone(), opened);
    mesh.spawn(TaskKind::Background, left);
    let settled = generations::settle(mesh.clone(), store.clone());
    mesh.spawn(TaskKind::Background, settled);
    reaper::start(mesh, PROCESSOR, store.clone());
    let refusals = Arc::new(AuditBuffer::default());
    let written = trail::run(mesh.clone(), store.clone(), refusals.clone());
    mesh.spawn(TaskKind::Closing, written);
    let audit = Audit {
        store: store.clone(),
        auth_mode,
        places: Places::default(),
    };
    let issuer = Issuer::new(&options.oidc).unwrap_or_else(|error| {
        tracing::error!(%error, "nobody comes in by the external issuer");
        None
    });
    let handler = Handler {
        store: store.clone(),
        auth_mode,
        workspace_users: options.workspace_users,
        code,
        passwords: Passwords::default(),
        issuer,
        places: Places::default(),
        refusals,
    };
    let processor = Processor::new(iam_svc::PROCESSOR)
        .serves(iam_svc::IAM, Arc::new(handler))
        .serves(iam_svc::AUDIT, Arc::new(audit))
        .concurrency(CONCURRENCY)
        .owns(store);
    vec![processor]
}
