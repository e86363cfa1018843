//! Long answers give way: turning a part into the syntax of its reader takes a while, and an answer that always has the next
//! part ready would keep a thread of the runtime from everybody else, whose answers are as good.

use std::task::Poll;
use std::time::Duration;

use futures::stream::{self, Stream};
use tokio::time::Instant;

/// So long an answer may make parts before others have a turn. Small parts that are there together are sent together.
const TURN: Duration = Duration::from_micros(200);

/// The same items. After so long, whoever else is ready has a turn.
pub(crate) fn giving_way<S: Stream>(items: S) -> impl Stream<Item = S::Item> {
    by_clock(items, Instant::now)
}

fn by_clock<S: Stream>(items: S, mut now: impl FnMut() -> Instant) -> impl Stream<Item = S::Item> {
    let mut items = Box::pin(items);
    let mut spent = Duration::ZERO;
    stream::poll_fn(move |cx| {
        if spent >= TURN {
            spent = Duration::ZERO;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let began = now();
        let next = items.as_mut().poll_next(cx);
        spent = match next {
            Poll::Ready(_) => spent + (now() - began),
            // Others have a turn now.
            Poll::Pending => Duration::ZERO,
        };
        next
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::StreamExt;

    use super::*;

    /// Turns of another task while 100 items are read, each of which takes so long to make; and the most that it lacked of one for
    /// each.
    async fn turns(takes: Duration) -> (u32, u32) {
        let (made, turns, lacked) = (Cell::new(0_u32), Cell::new(0_u32), Cell::new(0_u32));
        let start = Instant::now();
        let items = stream::repeat_with(|| made.set(made.get() + 1)).take(100);
        let mut items = std::pin::pin!(by_clock(items, || start + takes * made.get()));
        let reading = async {
            while items.next().await.is_some() {
                let before = made.get().saturating_sub(1);
                lacked.set(lacked.get().max(before.saturating_sub(turns.get())));
            }
        };
        let other = async {
            while made.get() < 100 {
                turns.set(turns.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        futures::future::join(reading, other).await;
        assert_eq!(made.get(), 100);
        (turns.get(), lacked.get())
    }

    #[tokio::test]
    async fn others_have_a_turn_between_two_items_that_take_long() {
        let (_, lacked) = turns(TURN).await;
        assert_eq!(lacked, 0);
    }

    #[tokio::test]
    async fn small_items_that_are_ready_come_together() {
        let (none, _) = turns(Duration::ZERO).await;
        assert_eq!(none, 0);
        let (some, _) = turns(TURN / 10).await;
        assert!((5..=20).contains(&some), "{some}");
    }
}
