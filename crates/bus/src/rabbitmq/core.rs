//! What is shared by the bus, its consumers and its supervisor: the present session and what outlives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::RwLock;
use tg_schemas::topic::Class;
use tg_schemas::{Subscription, Topic};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::claims::Claims;
use super::connected::Connected;
use super::consumers::{Entry, Registry};
use super::endpoint::Endpoint;
use super::lanes::Address;
use super::options::{INBOX_EXCHANGE, RabbitOptions};
use super::session::Session;
use super::topology;
use super::wire::short;
use crate::bus::{BusError, Link, Target};
use crate::mode::WireRules;
use crate::task::{Starter, Tasks};

/// What the bus, its consumers and its supervisor share.
pub(super) struct Core {
    pub(super) rules: &'static WireRules,
    pub(super) options: RabbitOptions,
    pub(super) endpoint: Endpoint,
    pub(super) session: RwLock<Option<Arc<Connected>>>,
    pub(super) link: watch::Sender<Link>,
    pub(super) generation: AtomicU64,
    /// A frame came that was longer than is agreed: from then on readers take the longest there are.
    pub(super) reads_longest: AtomicBool,
    pub(super) consumers: Registry,
    pub(super) claims: Claims,
    pub(super) tasks: Tasks,
    pub(super) starter: Starter,
    pub(super) closing: CancellationToken,
}

impl Core {
    /// The session, if there is one now.
    pub(super) fn session(&self) -> Result<Arc<Connected>, BusError> {
        if self.closing.is_cancelled() {
            return Err(BusError::Closed);
        }
        let session = self.session.read().clone().ok_or(BusError::Down)?;
        match session.connected() {
            true => Ok(session),
            false => Err(BusError::Down),
        }
    }

    /// Waits while the broker takes no messages.
    pub(super) async fn publishing_session(&self) -> Result<Arc<Connected>, BusError> {
        let session = self.session()?;
        if *self.link.borrow() == Link::Blocked {
            let mut link = self.link.subscribe();
            let _ = link.wait_for(|link| *link != Link::Blocked).await;
            return self.session();
        }
        Ok(session)
    }

    /// A session is in place.
    pub(super) fn raise(&self, session: Arc<Connected>) {
        let generation = session.generation;
        *self.session.write() = Some(session);
        self.link.send_replace(Link::Up { generation });
    }

    /// The session is over.
    pub(super) fn lower(&self) {
        *self.session.write() = None;
        self.claims.suspend();
        self.link.send_replace(Link::Down);
    }

    pub(super) fn exchange(&self, topic: &Topic) -> String {
        topic.exchange(self.rules.prefix)
    }

    pub(super) fn queue(&self, of: &Subscription) -> String {
        of.queue(self.rules.prefix)
    }

    pub(super) async fn stop(&self, entry: &Entry) {
        let session = self.session().ok();
        self.consumers
            .stop(session.as_deref().map(|connected| &**connected), entry)
            .await;
    }

    /// Where a message goes; `None` if the topic does not exist.
    pub(super) async fn address(
        &self,
        session: &Session,
        target: &Target,
    ) -> Result<Option<Address>, BusError> {
        Ok(Some(match target {
            Target::Topic(topic) => {
                let exchange = self.exchange(topic);
                // Publishing to an exchange that does not exist would kill the channel for all.
                if !session.exchange_exists(&exchange, false).await? {
                    return Ok(None);
                }
                Address {
                    exchange: short(exchange)?,
                    key: "".into(),
                    record: topic.class() == Class::Flow,
                }
            }
            Target::Subscription(of) => Address {
                exchange: "".into(),
                key: short(self.queue(of))?,
                record: of.topic.class() == Class::Flow,
            },
            Target::Inbox(name) => self.inbox(name.to_string())?,
            Target::Liveness(inbox) => self.inbox(topology::liveness(inbox))?,
        }))
    }

    /// Where a message to an inbox goes, or to the queue that says whether its process is there.
    fn inbox(&self, key: String) -> Result<Address, BusError> {
        let exchange = match self.options.inbox_exchange {
            true => INBOX_EXCHANGE,
            false => "",
        };
        Ok(Address {
            exchange: exchange.into(),
            key: short(key)?,
            record: false,
        })
    }
}
