//! Bytes of a request that are kept as they come. They count among all that is being received, a step at a time.

use crate::budget::{Budget, Reader, Share};
use crate::error::RequestError;

/// Bytes that are counted at once.
pub(crate) const STEP: usize = 64 << 10;

/// What is kept of one request counts until this is dropped.
pub(crate) struct Received {
    budget: Budget,
    reader: Reader,
    step: usize,
    shares: Vec<Share>,
}

impl Received {
    /// Of nothing yet. Of a request that says how long it is no more is counted at once.
    pub(crate) fn new(budget: &Budget, reader: Reader, announced: Option<usize>) -> Self {
        Self {
            budget: budget.clone(),
            reader,
            step: announced.map_or(STEP, |length| length.clamp(1, STEP)),
            shares: Vec::new(),
        }
    }

    /// So many bytes are kept now, if there is room for what is more than before.
    ///
    /// # Errors
    /// When there is no room at the moment, or never will be.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), RequestError> {
        self.need(bytes);
        while self.counted() < bytes {
            let share = (self.budget).receive(&self.reader, self.step, self.counted())?;
            self.shares.push(share);
        }
        Ok(())
    }

    /// The same once there is room: whoever sends them waits.
    ///
    /// # Errors
    /// When there was no room for too long, or never will be.
    pub(crate) async fn hold_in_time(&mut self, bytes: usize) -> Result<(), RequestError> {
        self.need(bytes);
        while self.counted() < bytes {
            let share = (self.budget).received(&self.reader, self.step, self.counted());
            self.shares.push(share.await?);
        }
        Ok(())
    }

    /// No more than so many are kept any longer.
    pub(crate) fn need(&mut self, bytes: usize) {
        self.shares.truncate(bytes.div_ceil(self.step));
    }

    fn counted(&self) -> usize {
        self.shares.len() * self.step
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::budget::Users;

    #[tokio::test]
    async fn what_is_kept_counts_and_what_is_not_any_more_does_not() {
        // Three quarters are for bodies: 16 steps, of which two are for what is small.
        let budget = Budget::new(1 << 20, 64 * STEP / 3, Users::One);
        let of = |name: &str| Received::new(&budget, Reader::named(name), None);
        let (mut ann, mut bob) = (of("ann"), of("bob"));
        ann.hold(10 * STEP).unwrap();
        bob.hold(STEP).unwrap();
        assert!(bob.hold(10 * STEP).is_err());
        let mut waits = Box::pin(bob.hold_in_time(10 * STEP));
        assert!((&mut waits).now_or_never().is_none());
        ann.need(STEP + 1);
        assert_eq!(ann.shares.len(), 2);
        assert_eq!((&mut waits).now_or_never(), Some(Ok(())));
        drop(waits);
        assert!(ann.hold(10 * STEP).is_err());
        drop(bob);
        ann.hold(10 * STEP).unwrap();
        let never = ann.hold_in_time(16 * STEP).now_or_never();
        assert!(never.is_some_and(|never| never.is_err()));
    }
}
