//! Whether something was revoked since it was known last that somebody may stay. Meanwhile nothing more is handed to
//! them: what looks is no faster than what is asked of the iam service, and what streams is.

use std::pin::Pin;
use std::sync::Arc;

use futures::stream::{Peekable, Stream, StreamExt};
use tokio::sync::watch;

/// Counts of revocations.
type Count = watch::Receiver<u64>;

/// A doubt about somebody. It is over when iam has said that they may stay, or cannot be asked.
#[derive(Clone, Default)]
pub(crate) struct Doubt(Option<Arc<(Count, Count)>>);

impl Doubt {
    /// `known` are the revocations that were looked at; there is a doubt while it is behind `revoked`.
    pub(super) fn new(revoked: Count, known: Count) -> Self {
        Self(Some(Arc::new((revoked, known))))
    }

    /// The next of what streams to them, once there is no doubt that it may: also of what came while there was one.
    /// Loses nothing when it is dropped.
    pub(crate) async fn next<S: Stream + Unpin>(&self, parts: &mut Peekable<S>) -> Option<S::Item> {
        Pin::new(&mut *parts).peek().await;
        self.over().await;
        parts.next().await
    }

    /// Waits until there is none. Somebody must look meanwhile.
    async fn over(&self) {
        let Some(counts) = &self.0 else { return };
        let is_over = |(revoked, known): &(Count, Count)| *revoked.borrow() == *known.borrow();
        if is_over(counts) {
            return;
        }
        let mut counts = (**counts).clone();
        while !is_over(&counts) {
            let changed = tokio::select! {
                changed = counts.0.changed() => changed,
                changed = counts.1.changed() => changed,
            };
            // Nobody looks any more: whoever did says how it ended.
            if changed.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn what_came_before_a_doubt_waits_and_is_not_lost() {
        let (revoked, known) = (watch::channel(0), watch::channel(0));
        let doubt = Doubt::new(revoked.1, known.1);
        let (came, mut parts) = tokio::sync::mpsc::unbounded_channel();
        let mut taken = futures::stream::poll_fn(move |cx| parts.poll_recv(cx)).peekable();
        {
            let mut next = pin!(doubt.next(&mut taken));
            assert!(next.as_mut().now_or_never().is_none(), "nothing is there");
            revoked.0.send_replace(1);
            came.send("part").unwrap();
            assert!(next.as_mut().now_or_never().is_none(), "there is a doubt");
        }
        known.0.send_replace(1);
        assert_eq!(doubt.next(&mut taken).await, Some("part"));
        drop(came);
        assert_eq!(doubt.next(&mut taken).await, None);
    }

    #[tokio::test]
    async fn what_is_to_be_handed_over_waits_until_it_is_known_that_it_may_be() {
        let (revoked, known) = (watch::channel(3), watch::channel(3));
        let doubt = Doubt::new(revoked.1, known.1);
        assert!(doubt.over().now_or_never().is_some());
        revoked.0.send_replace(5);
        {
            let mut over = pin!(doubt.over());
            assert!(over.as_mut().now_or_never().is_none());
            known.0.send_replace(4);
            assert!(over.as_mut().now_or_never().is_none(), "one more came");
            known.0.send_replace(5);
            over.await;
        }
        revoked.0.send_replace(6);
        drop(known.0);
        doubt.over().await;
        Doubt::default().over().await;
    }
}
