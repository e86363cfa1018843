//! Stored responses that begin: equal requests begin one after the other. So the one that cannot begin deletes its session while no
//! other uses it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// The order in which equal requests begin.
type Order = Arc<tokio::sync::Mutex<()>>;

/// Sessions for which a response begins, by their ids. Bounded by the requests in progress.
#[derive(Default)]
pub(crate) struct Beginnings(Mutex<HashMap<String, Order>>);

/// The right to begin, until it is dropped.
pub(crate) struct Beginning<'a> {
    // In this order: the last request of a session looks whether any other has its order.
    _order: OwnedMutexGuard<()>,
    _place: Place<'a>,
}

/// A place among equal requests. The last one takes their order away.
struct Place<'a> {
    all: &'a Beginnings,
    session: &'a str,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        let order = all.get(self.session);
        if order.is_some_and(|order| Arc::strong_count(order) == 1) {
            all.remove(self.session);
        }
    }
}

impl Beginnings {
    /// Waits until no other response begins in the session.
    pub(crate) async fn enter<'a>(&'a self, session: &'a str) -> Beginning<'a> {
        let place = Place { all: self, session };
        let order = self.0.lock().entry(session.to_owned()).or_default().clone();
        Beginning {
            _order: order.lock_owned().await,
            _place: place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls it once: it waits.
    async fn waits<T>(work: &mut (impl Future<Output = T> + Unpin)) {
        tokio::select! {
            biased;
            _ = work => panic!("it does not wait"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn equal_requests_begin_one_after_the_other_and_leave_nothing_behind() {
        let all = Beginnings::default();
        let first = all.enter("s").await;
        let other = all.enter("t").await;
        let mut second = Box::pin(all.enter("s"));
        waits(&mut second).await;
        let mut left = Box::pin(all.enter("s"));
        waits(&mut left).await;
        drop((left, first, other));
        assert_eq!(all.0.lock().len(), 1);
        drop(second.await);
        assert!(all.0.lock().is_empty());
    }
}
