//! A session with its way out: what is in place while the broker is there.

use std::ops::Deref;
use std::sync::Arc;

use super::endpoint::Endpoint;
use super::lanes::Lanes;
use super::options::RabbitOptions;
use super::patience::patient;
use super::session::Session;
use crate::task::Tasks;

/// A session and its publishing lanes.
pub(super) struct Connected {
    session: Arc<Session>,
    pub(super) lanes: Lanes,
}

impl Connected {
    /// Connects and opens the lanes. Fails if the broker is not there or does not let us in.
    pub(super) async fn open(
        endpoint: &Endpoint,
        reads_longest: bool,
        generation: u64,
        tasks: &Tasks,
        options: &RabbitOptions,
    ) -> lapin::Result<Arc<Self>> {
        let session = Session::open(endpoint, reads_longest, generation, options.queues).await?;
        let lanes = patient(Lanes::start(&session, tasks, options.publishers)).await?;
        Ok(Arc::new(Self { session, lanes }))
    }
}

impl Deref for Connected {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}
