//! Several messages as one record: durable together, with one confirmation, each for readers of its own.

use std::sync::Arc;

use tg_bus::{BusError, Envelope, Handover, Link, Routed, Target};
use tg_schemas::codec::ContentType;
use tg_schemas::limits;
use tg_schemas::sections::Sections;
use tg_schemas::{Error, ErrorCode, Headers, Topic};
use tokio::time::{Instant, timeout_at};

use crate::ask::Ask;
use crate::peer::{Peer, UNREAD, UNREAD_PAUSE, nobody_reads};

/// A topic whose records go on to the readers of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relay {
    /// Where it is published.
    pub from: Topic,
    /// Who gets it.
    pub to: Vec<Topic>,
}

impl Peer {
    /// Writes several messages as one record to the first of these relays, which are made where they are missing.
    /// `Ok` means: durable, and in the queues of all readers.
    ///
    /// # Errors
    /// [`ErrorCode::TooLarge`] when no message can hold them together, [`ErrorCode::NobodyServes`] when one of the topics
    /// is not there; else as [`Peer::record`].
    pub async fn record_together(
        &self,
        relays: &[Relay],
        mut sections: Sections,
        ask: Ask,
    ) -> Result<(), Error> {
        let Some(first) = relays.first() else {
            return Err(Error::new(ErrorCode::Internal, "no topic is given"));
        };
        let shared = sections.take_shared();
        let (header, body) = sections.finish();
        if body.len() > limits::RECORD {
            return Err(BusError::TooLarge {
                limit: limits::RECORD,
            }
            .into());
        }
        let cancel = ask.cancel.clone();
        let epoch = ask.epoch;
        let envelope = Envelope {
            headers: Arc::new(Headers {
                sections: Some(header),
                ..self.record_headers(ask)
            }),
            content_type: ContentType::Avro,
            handover: Handover::sections(self.bus().in_process(), &body, shared),
            body,
        };
        let target = Target::Topic(first.from.clone());
        for _ in 0..=UNREAD {
            self.relay(relays, epoch).await?;
            match self.publish_once(&target, &envelope, &cancel).await? {
                Routed::Queued => return Ok(()),
                Routed::Unroutable => self.relays().forget(),
            }
            tokio::time::sleep(UNREAD_PAUSE).await;
        }
        Err(nobody_reads())
    }

    /// Makes relays that are not known to be there.
    async fn relay(&self, relays: &[Relay], epoch: Option<u64>) -> Result<(), Error> {
        let until = Instant::now() + self.record_patience();
        let mut link = self.bus().link();
        let mut left = relays;
        while let Some((relay, rest)) = left.split_first() {
            let connection = match *link.borrow() {
                Link::Up { generation } => Some(generation),
                Link::Down | Link::Blocked => None,
            };
            let made = (relay.from.clone(), epoch, connection);
            if self.relays().has(&made) {
                left = rest;
                continue;
            }
            match self.bus().relay(&relay.from, &relay.to).await {
                Ok(()) => {
                    self.relays().note(made);
                    left = rest;
                }
                Err(BusError::Refused) => return Err(nobody_reads()),
                Err(BusError::Down) if Instant::now() < until => {
                    let up = link.wait_for(|link| !matches!(link, Link::Down));
                    let _ = timeout_at(until, up).await;
                    tokio::time::sleep(UNREAD_PAUSE).await;
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(())
    }
}
