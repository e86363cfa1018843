//! Ended answers, which are kept for some time: their askers may lack parts of them. The oldest go first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::stream::ReplyStream;

/// How long an ended answer is kept for repeats.
pub(crate) const KEEP_ENDED: Duration = Duration::from_secs(10);
/// What one takes beside its parts, in bytes.
const OWN: usize = 512;

/// In the order of their ends, so that a look at them touches only those that go.
pub(crate) struct Ended {
    /// Bytes of them that are kept at most.
    most: usize,
    bytes: usize,
    /// Each with what it took when it came here.
    all: VecDeque<(Instant, usize, Arc<ReplyStream>)>,
}

impl Ended {
    /// Of so many bytes at most.
    pub(crate) fn within(most: usize) -> Self {
        Self {
            most,
            bytes: 0,
            all: VecDeque::new(),
        }
    }

    /// Adds those that ended lately, each with when.
    pub(crate) fn add(&mut self, mut some: Vec<(Instant, Arc<ReplyStream>)>) {
        some.sort_unstable_by_key(|(since, _)| *since);
        for (since, held) in some {
            let size = held.kept_bytes() + OWN;
            self.bytes += size;
            self.all.push_back((since, size, held));
        }
    }

    /// The time of all of them counts from now.
    pub(crate) fn begin_anew(&mut self, now: Instant) {
        for (since, ..) in &mut self.all {
            *since = now;
        }
    }

    /// Takes those out that are old, and the oldest of those that are too large together.
    pub(crate) fn let_go(&mut self, now: Instant) -> Vec<Arc<ReplyStream>> {
        let mut gone = Vec::new();
        while let Some((since, size, held)) = self.all.front_mut() {
            if now - *since <= KEEP_ENDED {
                // What its asker has used up meanwhile is not kept any more.
                if self.bytes > self.most {
                    let left = (*size).min(held.kept_bytes() + OWN);
                    self.bytes -= *size - left;
                    *size = left;
                }
                if self.bytes <= self.most {
                    break;
                }
            }
            if let Some((_, size, held)) = self.all.pop_front() {
                self.bytes -= size;
                gone.push(held);
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::address::ReplyAddress;

    const SECOND: Duration = Duration::from_secs(1);

    fn answer(bytes: usize) -> Arc<ReplyStream> {
        let address = ReplyAddress {
            id: "q".to_owned(),
            reply_to: "asker".to_owned(),
            ..ReplyAddress::default()
        };
        let held = ReplyStream::new(&address, CancellationToken::new()).unwrap();
        held.state.lock().kept_bytes = bytes;
        Arc::new(held)
    }

    #[test]
    fn the_oldest_go_when_there_is_too_much_and_each_when_it_is_old() {
        let now = Instant::now();
        let mut all = Ended::within(4 * OWN);
        let [first, second, third] = [OWN, OWN, OWN].map(answer);
        // They come in any order.
        all.add(vec![(now + SECOND, second.clone()), (now, first.clone())]);
        assert!(all.let_go(now + SECOND).is_empty(), "they fit");
        all.add(vec![(now + 2 * SECOND, third.clone())]);
        let gone = all.let_go(now + 2 * SECOND);
        assert!(gone.len() == 1 && Arc::ptr_eq(&gone[0], &first));
        // Of one that was used up meanwhile nothing is kept.
        second.state.lock().kept_bytes = 0;
        all.add(vec![(now + 3 * SECOND, answer(0))]);
        assert!(all.let_go(now + 3 * SECOND).is_empty());
        let gone = all.let_go(now + KEEP_ENDED + 2 * SECOND);
        assert!(gone.len() == 1 && Arc::ptr_eq(&gone[0], &second));
        all.begin_anew(now + KEEP_ENDED);
        assert!(all.let_go(now + 2 * KEEP_ENDED).is_empty());
        assert_eq!(all.let_go(now + 2 * KEEP_ENDED + SECOND).len(), 2);
        assert_eq!(all.bytes, 0);
    }
}
