//! Servers of this process that its own questions reach without the broker, as long as no other process serves them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tg_bus::{Envelope, Sink, Tap};
use tg_schemas::Topic;

/// Whether no other process serves the same.
pub type Alone = Box<dyn Fn() -> bool + Send + Sync>;

/// The servers, by the topic of their questions. Cheap to clone.
#[derive(Clone, Default)]
pub struct NearServers(Arc<RwLock<HashMap<Topic, Vec<Server>>>>);

struct Server {
    tap: Arc<Tap>,
    alone: Alone,
}

impl NearServers {
    /// Adds a server, until what is returned is stopped or dropped.
    pub fn add(&self, topic: Topic, sink: Arc<dyn Sink>, alone: Alone) -> NearServer {
        let tap = Tap::new(sink);
        let server = Server {
            tap: tap.clone(),
            alone,
        };
        let mut servers = self.0.write();
        servers.entry(topic.clone()).or_default().push(server);
        drop(servers);
        NearServer {
            of: self.clone(),
            topic,
            tap,
        }
    }

    /// Hands a question to the server of this process. It comes back where there is none, or where the broker has to choose one.
    pub(crate) fn pass(&self, topic: &Topic, question: Envelope) -> Option<Envelope> {
        match self.alone(topic) {
            Some(tap) => tap.pass(question),
            None => Some(question),
        }
    }

    /// The only server of a topic.
    fn alone(&self, topic: &Topic) -> Option<Arc<Tap>> {
        let servers = self.0.read();
        match servers.get(topic)?.as_slice() {
            [one] if (one.alone)() => Some(one.tap.clone()),
            _ => None,
        }
    }
}

/// A server among the near ones.
pub struct NearServer {
    of: NearServers,
    topic: Topic,
    tap: Arc<Tap>,
}

impl NearServer {
    /// Takes no more questions: nothing is handed over once this returns.
    pub async fn stop(&self) {
        self.remove();
        self.tap.shut().await;
    }

    fn remove(&self) {
        let mut servers = self.of.0.write();
        let Some(all) = servers.get_mut(&self.topic) else {
            return;
        };
        all.retain(|one| !Arc::ptr_eq(&one.tap, &self.tap));
        if all.is_empty() {
            servers.remove(&self.topic);
        }
    }
}

impl Drop for NearServer {
    fn drop(&mut self) {
        self.remove();
        self.tap.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use tg_bus::Delivery;
    use tg_schemas::Class;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Sink for Counted {
        fn deliver(&self, _: Delivery) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_question_is_near_where_one_server_is_alone() {
        let near = NearServers::default();
        let topic = Topic::system(Class::Request, "near");
        let sink = Arc::new(Counted::default());
        let alone = Arc::new(AtomicBool::new(true));
        let add = || {
            let alone = alone.clone();
            let is_alone: Alone = Box::new(move || alone.load(Ordering::Relaxed));
            near.add(topic.clone(), sink.clone(), is_alone)
        };
        let passes = || near.pass(&topic, Envelope::default()).is_none();
        assert!(!passes(), "nobody serves");
        let one = add();
        assert!(passes());
        alone.store(false, Ordering::Relaxed);
        assert!(!passes(), "another process serves, too");
        alone.store(true, Ordering::Relaxed);
        let other = add();
        assert!(!passes(), "the broker gives it to both");
        drop(one);
        assert!(passes());
        other.stop().await;
        assert!(!passes());
        assert_eq!(sink.0.load(Ordering::Relaxed), 2);
        assert!(near.0.read().is_empty());
    }

    /// One that its asker looked up before it stopped takes nothing any more: the question goes to the broker.
    #[tokio::test]
    async fn a_server_that_stops_gives_the_question_back() {
        let near = NearServers::default();
        let topic = Topic::system(Class::Request, "near");
        let sink = Arc::new(Counted::default());
        let one = near.add(topic.clone(), sink.clone(), Box::new(|| true));
        let found = near.alone(&topic).expect("it is alone");
        one.stop().await;
        assert!(found.pass(Envelope::default()).is_some());
        assert_eq!(sink.0.load(Ordering::Relaxed), 0);
    }
}
