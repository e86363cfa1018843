//! Runs: jobs that spread over many records and whose end somebody wants to know.
//!
//! A record whose header `thread` is a [`JobId`] and that has an id is *tracked*: what its handler writes through
//! `Cx::record` belongs to the same run and gets an id that is the same each time the record is handled again; when the
//! handler is done, a **completion report** goes to whoever counts (see [`report`]), and only then is the record
//! acknowledged. A question asked inside a run carries the run along, so that its handler can see it, but what that
//! handler writes is not part of the run.
//!
//! Nothing here counts anything: the reader of the reports does, and it drops repeats. It plugs into the mesh as
//! [`Middleware`]; handlers use [`RunContext`].

mod context;
pub mod report;
mod run_id;
mod track;

use std::sync::Arc;

use tg_mesh::middleware::{Follow, Middleware};
use tg_mesh::{Bus, ConfigSource, Host, MeshOptions};
use tg_schemas::{Error, Headers, Subscription};

pub use context::RunContext;
pub use run_id::JobId;

use crate::report::Reports;
use crate::track::Track;

/// Follows the records of runs.
#[derive(Default)]
pub struct Runs(Arc<Reports>);

impl Middleware for Runs {
    fn follow(&self, headers: &Headers, by: Option<&Subscription>) -> Option<Arc<dyn Follow>> {
        let track = Track::of(&self.0, headers, by)?;
        Some(Arc::new(track))
    }
}

/// Joins the mesh as a host whose handlers belong to runs.
///
/// # Errors
/// As [`Host::start`].
pub async fn start(
    bus: Arc<dyn Bus>,
    config: Arc<dyn ConfigSource>,
    options: MeshOptions,
) -> Result<Host, Error> {
    Host::start_with(bus, config, options, Some(Arc::new(Runs::default()))).await
}
