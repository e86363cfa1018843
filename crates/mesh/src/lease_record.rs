//! Which store served last under a name: one durable record on the bus, which only the holder of the claim reads and
//! writes. A process whose store is another one, an empty one above all, learns from it that the data is elsewhere.

use tg_bus::{Bus, Envelope, PublishMode, Target};
use tg_schemas::{Class, Error, Subscription, Topic};

/// What the record says of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lease {
    /// This store served last, or none did and now this one is noted.
    Ours,
    /// Another store served last.
    Others,
}

/// Each store has a topic of its own, so that a broker's user may write the lease of its own store and no other.
fn topic(store: &str) -> Topic {
    Topic::system(Class::Flow, &format!("store-lease:{store}"))
}

/// Looks whether this store served last, and notes it where none did. With `adopt` it is noted in any case.
///
/// # Errors
/// When the bus is away; nothing is known then.
pub(crate) async fn check(
    bus: &dyn Bus,
    store: &str,
    identity: &str,
    adopt: bool,
) -> Result<Lease, Error> {
    let topic = topic(store);
    let queue = Subscription::service(topic.clone(), store);
    bus.declare(std::slice::from_ref(&topic), std::slice::from_ref(&queue))
        .await?;
    if let Some(delivery) = bus.take(&queue).await? {
        let ours = delivery.envelope.body == identity.as_bytes();
        if ours || !adopt {
            // Dropped, it goes back to its queue.
            return Ok(if ours { Lease::Ours } else { Lease::Others });
        }
        delivery.ack();
    }
    let record = Envelope {
        body: identity.to_owned().into(),
        ..Envelope::default()
    };
    bus.publish(&Target::Topic(topic), record, PublishMode::Confirmed)
        .await?;
    Ok(Lease::Ours)
}

#[cfg(test)]
mod tests {
    use tg_bus::embedded::EmbeddedBus;

    use super::*;

    #[tokio::test]
    async fn the_first_store_is_noted_and_another_is_refused_until_it_is_adopted() {
        let bus = EmbeddedBus::in_memory();
        let look = |identity: &'static str, adopt| {
            let bus = &bus;
            async move { check(bus, "graph", identity, adopt).await.unwrap() }
        };
        assert_eq!(look("a", false).await, Lease::Ours);
        assert_eq!(look("a", false).await, Lease::Ours);
        assert_eq!(look("b", false).await, Lease::Others);
        assert_eq!(look("a", false).await, Lease::Ours);
        assert_eq!(look("b", true).await, Lease::Ours);
        assert_eq!(look("a", false).await, Lease::Others);
        assert_eq!(check(&bus, "rows", "c", false).await.unwrap(), Lease::Ours);
    }
}
