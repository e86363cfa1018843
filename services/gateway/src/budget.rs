//! How much memory requests may need while they are read. JSON of a few bytes can need a hundred times as much when
//! it is a tree of values: what it will need is estimated before the first value is made.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tg_schemas::{Error, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fault::Fault;

/// What is larger is read off the runtime's threads.
const LARGE: usize = 1 << 20;
/// Longest wait for others to be done with their reading.
const PATIENCE: Duration = Duration::from_secs(30);
/// A permit of the budget stands for so many bytes.
const UNIT: usize = 1 << 10;
/// A vector of values has room for four of 72 bytes from the first on.
const LIST: usize = 320;
/// A map has an index, and room for entries with a key and a hash each.
const OBJECT: usize = 640;
/// An item of a vector that grew to twice its need.
const ITEM: usize = 150;
/// A key of its own on the heap, and its part of the index.
const ENTRY: usize = 200;

/// The memory that all requests share while they are read.
pub(crate) struct Budget {
    parsing: Arc<Semaphore>,
    total: usize,
    receiving: Arc<Semaphore>,
}

/// Bytes that count until they are dropped.
pub(crate) type Share = OwnedSemaphorePermit;

impl Budget {
    /// With so many bytes for reading, and so many for bodies on their way.
    pub(crate) fn new(parsing: usize, receiving: usize) -> Self {
        let total = (parsing / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            parsing: Arc::new(Semaphore::new(total)),
            total,
            receiving: Arc::new(Semaphore::new(receiving.clamp(1, Semaphore::MAX_PERMITS))),
        }
    }

    /// Counts bytes of a body that is on its way.
    pub(crate) fn receive(&self, bytes: usize) -> Result<Share, Fault> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let share = self.receiving.clone().try_acquire_many_owned(bytes);
        share.map_err(|_| Fault::busy("here"))
    }

    /// Reads bytes when there is memory for it. What is made of them counts while the share is held.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        bytes: Bytes,
        parse: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<(T, Share), Fault> {
        if bytes.len() <= LARGE {
            let share = self.share(need(&bytes)).await?;
            return Ok((parse(&bytes), share));
        }
        let counted = bytes.clone();
        let need = off(move || need(&counted)).await?;
        let share = self.share(need).await?;
        Ok((off(move || parse(&bytes)).await?, share))
    }

    async fn share(&self, need: usize) -> Result<Share, Fault> {
        let units = need.div_ceil(UNIT);
        if units > self.total {
            return Err(too_much());
        }
        let units = u32::try_from(units).map_err(|_| too_much())?;
        let share = self.parsing.clone().acquire_many_owned(units);
        match tokio::time::timeout(PATIENCE, share).await {
            Ok(Ok(share)) => Ok(share),
            Ok(Err(_)) | Err(_) => Err(Fault::busy("here")),
        }
    }
}

fn too_much() -> Fault {
    Fault::Service(Error::new(
        ErrorCode::TooLarge,
        "the request has too many values; send it in parts",
    ))
}

async fn off<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        let text = "the request could not be read";
        Fault::Service(Error::new(ErrorCode::Internal, text))
    })
}

/// Memory that a text of JSON needs as a tree of values, at most. Counts signs inside strings, too: seldom much.
fn need(bytes: &[u8]) -> usize {
    let of = |byte: &u8| match byte {
        b'[' => LIST,
        b'{' => OBJECT,
        b',' => ITEM,
        b':' => ENTRY,
        _ => 1,
    };
    let mut inside = false;
    let mut escaped = false;
    let mut sum = 0_usize;
    for byte in bytes {
        sum += match (inside, byte) {
            (true, _) => 1,
            (false, byte) => of(byte),
        };
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = inside,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    async fn read(budget: &Budget, text: String) -> Result<usize, Fault> {
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).is_ok();
        let read = budget.read(Bytes::from(text), parse).await;
        read.map(|(_, share)| share.num_permits())
    }

    #[tokio::test]
    async fn what_would_not_fit_is_never_made() {
        let budget = Budget::new(1 << 20, 1 << 20);
        let bomb = format!("[{}0]", "[0],".repeat(4000));
        assert_eq!(read(&budget, bomb).await, Err(too_much()));
        let text = format!("\"{}\"", "[{,:".repeat(100_000));
        assert!(read(&budget, text).await.unwrap() < 512);
        let large = format!("\"{}\"", "x".repeat(2 << 20));
        assert_eq!(read(&budget, large).await, Err(too_much()));
    }

    #[tokio::test]
    async fn who_finds_no_room_waits_for_it() {
        let budget = Arc::new(Budget::new(1 << 20, 10));
        let list = || Bytes::from(format!("[{}0]", "0,".repeat(4000)));
        let first = budget.read(list(), |_| ()).await.unwrap();
        let second = budget.read(list(), |_| ());
        tokio::pin!(second);
        assert!(
            tokio::time::timeout(Duration::from_millis(20), &mut second)
                .await
                .is_err()
        );
        drop(first);
        assert!(second.await.is_ok());
        let held = budget.receive(8).unwrap();
        assert!(budget.receive(8).is_err());
        drop(held);
        assert!(budget.receive(8).is_ok());
    }

    #[test]
    fn quotes_within_texts_end_nothing() {
        assert_eq!(need(br#""a\"[[[[" "#), 10);
        assert_eq!(need(b"[1,2]"), LIST + ITEM + 3);
    }
}
