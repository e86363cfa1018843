//! Long answers give way: turning a part into the syntax of its reader takes a while, and an answer that always has the next
//! part ready would keep a thread of the runtime from everybody else, whose answers are as good.

use futures::stream::{Stream, StreamExt};

/// The same items. After each is made, whoever else is ready has a turn.
pub(crate) fn giving_way<S: Stream>(items: S) -> impl Stream<Item = S::Item> {
    items.then(|item| async {
        tokio::task::yield_now().await;
        item
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn others_have_a_turn_between_two_items_that_are_ready() {
        let (made, turns) = (Cell::new(0), Cell::new(0));
        let items = stream::repeat_with(|| made.set(made.get() + 1)).take(100);
        let mut items = std::pin::pin!(giving_way(items));
        let reading = async {
            while items.next().await.is_some() {
                assert!(
                    turns.get() >= made.get() - 1,
                    "{} of {}",
                    turns.get(),
                    made.get()
                );
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
    }
}
