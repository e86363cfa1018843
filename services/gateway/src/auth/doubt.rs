//! Whether something was revoked since it was known last that somebody may stay. Meanwhile nothing more is handed to
//! them: what looks is no faster than what is asked of the iam service, and what streams is.

use std::sync::Arc;

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

    /// Waits until there is none. Somebody must look meanwhile.
    pub(crate) async fn over(&self) {
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
