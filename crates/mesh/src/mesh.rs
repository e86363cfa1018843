//! What a process sees of the mesh: a peer on the bus, the watched configuration, and what all processes say of
//! themselves. Hosting is the business of [`crate::Host`].

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tg_rpc::{Ask, Peer};
use tg_schemas::{Error, Message, Topic};
use tokio_util::sync::CancellationToken;

use crate::config_source::ConfigSource;
use crate::config_view::ConfigView;
use crate::intake::Intakes;
use crate::middleware::Middleware;
use crate::presence::PresenceView;
use crate::room::QuestionRoom;

/// A process's view of the mesh. Cheap to clone.
#[derive(Clone)]
pub struct Mesh(Arc<Inner>);

struct Inner {
    peer: Peer,
    stopping: CancellationToken,
    config: ConfigView,
    config_source: Arc<dyn ConfigSource>,
    presence: PresenceView,
    middleware: Option<Arc<dyn Middleware>>,
    /// Bytes that wait in all taps.
    tapped: Arc<AtomicUsize>,
    room: QuestionRoom,
    intakes: Intakes,
}

/// A mesh asks, answers and writes records as the peer that it is.
impl Deref for Mesh {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.0.peer
    }
}

impl Mesh {
    pub(crate) fn new(
        peer: Peer,
        config_source: Arc<dyn ConfigSource>,
        middleware: Option<Arc<dyn Middleware>>,
    ) -> Self {
        Self(Arc::new(Inner {
            presence: PresenceView::new(peer.inbox().into()),
            room: QuestionRoom::new(peer.options().questions),
            peer,
            stopping: CancellationToken::new(),
            config: ConfigView::default(),
            config_source,
            middleware,
            tapped: Arc::default(),
            intakes: Intakes::default(),
        }))
    }

    /// The watched configuration.
    pub fn config(&self) -> &ConfigView {
        &self.0.config
    }

    pub(crate) fn config_source(&self) -> &dyn ConfigSource {
        &*self.0.config_source
    }

    /// What all processes say of themselves.
    pub fn presence(&self) -> &PresenceView {
        &self.0.presence
    }

    /// Cancelled when the process begins to stop: what only waits gives up, what is in progress may end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    pub(crate) fn tapped(&self) -> Arc<AtomicUsize> {
        self.0.tapped.clone()
    }

    /// Room for what is large, of all that this process hosts.
    pub(crate) fn room(&self) -> &QuestionRoom {
        &self.0.room
    }

    /// What the consumers of this process take.
    pub(crate) fn intakes(&self) -> &Intakes {
        &self.0.intakes
    }

    /// Processors of this process with a consumer that took none of the messages that wait for it;
    /// [`crate::Host::watch_intake`] looks for them.
    pub fn idle_consumers(&self) -> Vec<String> {
        self.0.intakes.idle()
    }

    /// Those of [`Mesh::idle_consumers`] that have as many messages in hand as they take at once: they are slow, or hang.
    pub fn full_consumers(&self) -> Vec<String> {
        self.0.intakes.full()
    }

    /// Writes a record, as [`Peer::record`] does; one of the pipeline says for which generation of its collection, unless
    /// the options do: it changes nothing in a later one.
    ///
    /// # Errors
    /// As [`Peer::record`].
    pub async fn record<M: Message>(
        &self,
        topic: &Topic,
        record: &M,
        ask: Ask,
    ) -> Result<(), Error> {
        let ask = self.stamped(ask, record.for_collection());
        self.0.peer.record(topic, record, ask).await
    }

    /// As [`Mesh::record`], of one that its writer goes on with.
    ///
    /// # Errors
    /// As [`Peer::record`].
    pub(crate) async fn record_shared<M: Message>(
        &self,
        topic: &Topic,
        record: &Arc<M>,
        ask: Ask,
    ) -> Result<(), Error> {
        let ask = self.stamped(ask, record.for_collection());
        self.0.peer.record_shared(topic, record, ask).await
    }

    /// Options that say for which generation of its collection a record is.
    pub(crate) fn stamped(&self, ask: Ask, collection: Option<&str>) -> Ask {
        let (Some(collection), Some(workspace), None) =
            (collection, &ask.workspace, &ask.collection)
        else {
            return ask;
        };
        let now = self.config().stamp(workspace.as_str(), collection);
        Ask {
            collection: now.map(|_| collection.to_owned()),
            collection_generation: now,
            ..ask
        }
    }

    pub(crate) fn middleware(&self) -> Option<&dyn Middleware> {
        self.0.middleware.as_deref()
    }
}
