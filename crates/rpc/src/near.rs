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
pub struct NearServers(Arc<RwLock<Servers>>);

type Servers = HashMap<Topic, Vec<Arc<Server>>>;

pub(crate) struct Server {
    tap: Arc<Tap>,
    alone: Alone,
}

impl Server {
    /// Whether no other process serves the same.
    pub(crate) fn is_alone(&self) -> bool {
        (self.alone)()
    }

    /// Hands a question over. It comes back where the broker has to choose a server, or this one has stopped.
    pub(crate) fn pass(&self, question: Envelope) -> Option<Envelope> {
        match self.is_alone() {
            true => self.tap.pass(question),
            false => Some(question),
        }
    }
}

impl NearServers {
    /// Adds a server, until what is returned is stopped or dropped.
    pub fn add(&self, topic: Topic, sink: Arc<dyn Sink>, alone: Alone) -> NearServer {
        let tap = Tap::new(sink);
        let server = Arc::new(Server { tap, alone });
        let mut servers = self.0.write();
        servers
            .entry(topic.clone())
            .or_default()
            .push(server.clone());
        drop(servers);
        NearServer {
            of: self.clone(),
            topic,
            server,
        }
    }

    /// The only server of a topic in this process. Nothing is locked while it is asked.
    pub(crate) fn only(&self, topic: &Topic) -> Option<Arc<Server>> {
        let servers = self.0.read();
        match servers.get(topic)?.as_slice() {
            [one] => Some(one.clone()),
            _ => None,
        }
    }
}

/// A server among the near ones.
pub struct NearServer {
    of: NearServers,
    topic: Topic,
    server: Arc<Server>,
}

impl NearServer {
    /// Takes no more questions: nothing is handed over once this returns.
    pub async fn stop(&self) {
        self.remove();
        self.server.tap.shut().await;
    }

    /// The server itself is dropped with this, while nothing is locked.
    fn remove(&self) {
        let mut servers = self.of.0.write();
        let Some(all) = servers.get_mut(&self.topic) else {
            return;
        };
        all.retain(|one| !Arc::ptr_eq(one, &self.server));
        if all.is_empty() {
            servers.remove(&self.topic);
        }
    }
}

impl Drop for NearServer {
    fn drop(&mut self) {
        self.remove();
        self.server.tap.close();
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

    fn passes(near: &NearServers, topic: &Topic) -> bool {
        let only = near.only(topic);
        only.is_some_and(|one| one.pass(Envelope::default()).is_none())
    }

    /// Counts how often it found nothing locked: when it was asked, and when it was dropped.
    struct Looks(NearServers, Arc<AtomicUsize>);

    impl Looks {
        fn look(&self) -> bool {
            let free = self.0.0.try_write().is_some();
            self.1.fetch_add(usize::from(free), Ordering::Relaxed);
            free
        }
    }

    impl Drop for Looks {
        fn drop(&mut self) {
            self.look();
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
        let passes = || passes(&near, &topic);
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
        let found = near.only(&topic).expect("it is alone");
        one.stop().await;
        assert!(found.pass(Envelope::default()).is_some());
        assert_eq!(sink.0.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn nothing_is_locked_while_a_server_is_asked_or_dropped() {
        let near = NearServers::default();
        let topic = Topic::system(Class::Request, "near");
        let free = Arc::new(AtomicUsize::new(0));
        let looks = Looks(near.clone(), free.clone());
        let sink = Arc::new(Counted::default());
        let one = near.add(topic.clone(), sink, Box::new(move || looks.look()));
        assert!(passes(&near, &topic));
        assert_eq!(free.load(Ordering::Relaxed), 1);
        drop(one);
        assert_eq!(free.load(Ordering::Relaxed), 2);
    }
}
