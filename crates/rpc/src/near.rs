//! Servers of this process that its own questions reach without the broker, as long as no other process serves them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use tg_bus::{Delivery, Envelope, Sink};
use tg_schemas::Topic;

/// Whether no other process serves the same.
pub type Alone = Box<dyn Fn() -> bool + Send + Sync>;

/// The servers, by the topic of their questions. Cheap to clone.
#[derive(Clone, Default)]
pub struct NearServers(Arc<Inner>);

#[derive(Default)]
struct Inner {
    servers: RwLock<HashMap<Topic, Vec<Server>>>,
    next: AtomicU64,
}

struct Server {
    id: u64,
    sink: Arc<dyn Sink>,
    alone: Alone,
}

impl NearServers {
    /// Adds a server, until what is returned is dropped.
    pub fn add(&self, topic: Topic, sink: Arc<dyn Sink>, alone: Alone) -> NearServer {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let server = Server { id, sink, alone };
        let mut servers = self.0.servers.write();
        servers.entry(topic.clone()).or_default().push(server);
        drop(servers);
        NearServer {
            of: self.clone(),
            topic,
            id,
        }
    }

    /// Hands a question to the server of this process. It comes back where there is none, or where the broker has to choose one.
    pub(crate) fn pass(&self, topic: &Topic, question: Envelope) -> Option<Envelope> {
        let servers = self.0.servers.read();
        let one = match servers.get(topic).map(Vec::as_slice) {
            Some([one]) if (one.alone)() => one,
            _ => return Some(question),
        };
        // Under the lock: nothing is handed over once a server was removed. A sink never waits.
        one.sink.deliver(Delivery {
            envelope: question,
            redelivered: false,
            settle: None,
        });
        None
    }
}

/// A server among the near ones.
pub struct NearServer {
    of: NearServers,
    topic: Topic,
    id: u64,
}

impl Drop for NearServer {
    fn drop(&mut self) {
        let mut servers = self.of.0.servers.write();
        let Some(all) = servers.get_mut(&self.topic) else {
            return;
        };
        let at = all.iter().position(|one| one.id == self.id);
        let gone = at.map(|at| all.swap_remove(at));
        if all.is_empty() {
            servers.remove(&self.topic);
        }
        drop(servers);
        // What ends with a sink may come back here.
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use tg_schemas::Class;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Sink for Counted {
        fn deliver(&self, _: Delivery) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_question_is_near_where_one_server_is_alone() {
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
        drop(other);
        assert!(!passes());
        assert_eq!(sink.0.load(Ordering::Relaxed), 2);
        assert!(near.0.servers.read().is_empty());
    }
}
