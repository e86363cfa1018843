//! How much memory requests may need while they are read. JSON of a few bytes can need a hundred times as much when
//! it is a tree of values: what it will need is estimated before the first value is made.
//!
//! There are two lanes, so that small requests never wait behind large ones, and each user has a share of either.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tg_mesh::fair::{NotTaken, Pool};
use tg_schemas::{Error, ErrorCode};

use crate::auth::Identity;
use crate::error::RequestError;
use crate::options::AuthMode;

/// What is larger is read off the runtime's threads.
const LARGE: usize = 1 << 20;
/// Longest wait for others to be done with their reading.
const TIMEOUT: Duration = Duration::from_secs(30);
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

/// What needs no more goes in the lane of the small ones.
const SMALL: usize = 64 << 10;
/// Bytes of a message on a socket that are not counted while it comes.
pub(crate) const UNCOUNTED: usize = SMALL;
/// Of what is for receiving, messages that are arriving on sockets have this part: they wait for each other only, never for
/// what is kept longer.
const ARRIVING_PART: usize = 4;
/// Of the whole, the lane of the small ones has this part.
const SMALL_PART: usize = 8;
/// Of a lane, one user may have this part at once; or one large request.
const USER_PART: usize = 2;

/// The memory that all requests share while they are read. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Budget {
    parsing: Lanes,
    receiving: Lanes,
    arriving: Pool,
}

/// Bytes that count until they are dropped.
pub(crate) type Share = tg_mesh::fair::Share;

/// What is made of a request counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Reading {
    share: Share,
    /// Of the request.
    bytes: usize,
}

impl Reading {
    /// The tree is gone and its message is on the way: it counts as its bytes, as long as somebody may have to send it again.
    pub(crate) fn sent(mut self) -> Share {
        self.share.shrink(self.bytes.div_ceil(UNIT));
        self.share
    }
}

/// Whose request is read. Strangers are one user together.
#[derive(Debug, Clone)]
pub(crate) struct Reader(Arc<str>);

impl Reader {
    /// Somebody who is known.
    pub(crate) fn known(identity: &Identity) -> Self {
        Self(identity.id.clone())
    }

    /// Somebody who is not.
    pub(crate) fn stranger() -> Self {
        Self("".into())
    }

    /// As budgets know them.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.0
    }

    /// Somebody by name.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        Self(name.into())
    }
}

#[derive(Clone)]
struct Lanes {
    small: Pool,
    large: Pool,
    /// Most units of a small one.
    bound: usize,
}

impl Lanes {
    fn new(units: usize, small: usize, users: Users) -> Self {
        let part = (units / SMALL_PART).max(1);
        let rest = (units - part.min(units)).max(1);
        let share = |lane: usize| users.part(lane);
        Self {
            small: Pool::new(part, share(part)),
            large: Pool::new(rest, share(rest)),
            bound: small.min(share(part)),
        }
    }

    fn lane(&self, units: usize) -> &Pool {
        match units <= self.bound {
            true => &self.small,
            false => &self.large,
        }
    }
}

/// Whether there is anybody to share with: without authentication all callers are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    One,
    Many,
}

impl Users {
    /// What one may have of so much.
    pub(crate) fn part(self, of: usize) -> usize {
        match self {
            Self::One => of,
            Self::Many => of.div_ceil(USER_PART),
        }
    }
}

impl From<AuthMode> for Users {
    fn from(auth_mode: AuthMode) -> Self {
        match auth_mode {
            AuthMode::None => Self::One,
            AuthMode::Iam => Self::Many,
        }
    }
}

impl Budget {
    /// With so many bytes for reading, and so many for bodies on their way.
    pub(crate) fn new(parsing: usize, receiving: usize, users: Users) -> Self {
        let arriving = receiving / ARRIVING_PART;
        Self {
            parsing: Lanes::new(parsing / UNIT, SMALL / UNIT, users),
            receiving: Lanes::new(receiving - arriving, SMALL, users),
            // Also where all are one: no message takes all the room.
            arriving: Pool::new(arriving, arriving.div_ceil(USER_PART)),
        }
    }

    /// Bytes of a body at most: a longer one would find no room, were its user the only one.
    pub(crate) fn largest_body(&self) -> usize {
        self.receiving.large.each()
    }

    /// Counts more bytes of a body of which so many have come.
    pub(crate) fn receive(
        &self,
        of: &Reader,
        bytes: usize,
        before: usize,
    ) -> Result<Share, RequestError> {
        let lane = self.receiving.lane(before + bytes);
        if before + bytes > lane.each() {
            // However long it waited.
            return Err(too_large());
        }
        lane.try_take(&of.0, bytes)
            .ok_or_else(|| RequestError::busy("here"))
    }

    /// Waits until so many more bytes of a body may come.
    pub(crate) async fn received(
        &self,
        of: &Reader,
        bytes: usize,
        before: usize,
    ) -> Result<Share, RequestError> {
        match self.receive(of, bytes, before) {
            Err(fault) if fault == too_large() => Err(fault),
            Err(_) => {
                let lane = self.receiving.lane(before + bytes);
                granted(lane.take(&of.0, bytes)).await
            }
            taken => taken,
        }
    }

    /// Counts more bytes of a message on a socket, if there is room for them now.
    pub(crate) fn arrive(&self, of: &Reader, bytes: usize) -> Option<Share> {
        self.arriving.try_take(&of.0, bytes)
    }

    /// Waits for that room. A message of which so many bytes were counted is never larger than what one user may have.
    pub(crate) async fn arrives(
        &self,
        of: &Reader,
        bytes: usize,
        before: usize,
    ) -> Result<Share, RequestError> {
        match before + bytes > self.arriving.each() {
            true => Err(too_large()),
            false => granted(self.arriving.take(&of.0, bytes)).await,
        }
    }

    /// Reads JSON when there is memory for it. What is made of it counts while the share is held.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        of: &Reader,
        bytes: Bytes,
        parse: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<(T, Reading), RequestError> {
        let reading = |share: Share| Reading {
            share,
            bytes: bytes.len(),
        };
        if bytes.len() <= LARGE {
            let share = self.share(of, need(&bytes)).await?;
            return Ok((parse(&bytes), reading(share)));
        }
        let counted = bytes.clone();
        let need = off(move || need(&counted)).await?;
        let reading = reading(self.share(of, need).await?);
        Ok((off(move || parse(&bytes)).await?, reading))
    }

    /// Reads another syntax. `weigh` says how many bytes of memory what is made of it needs, at most; it may stop counting beyond
    /// the bytes that it is given. A few bytes may need long work, so it is done off the runtime's threads.
    pub(crate) async fn read_weighed<T: Send + 'static>(
        &self,
        of: &Reader,
        bytes: Bytes,
        weigh: impl FnOnce(&[u8], usize) -> usize + Send + 'static,
        parse: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<(T, Reading), RequestError> {
        let most = self.parsing.large.total().saturating_mul(UNIT);
        let counted = bytes.clone();
        let need = off(move || weigh(&counted, most)).await?;
        let reading = Reading {
            share: self.share(of, need).await?,
            bytes: bytes.len(),
        };
        Ok((off(move || parse(&bytes)).await?, reading))
    }

    async fn share(&self, of: &Reader, need: usize) -> Result<Share, RequestError> {
        let units = need.div_ceil(UNIT);
        let lane = self.parsing.lane(units);
        if units > lane.total() {
            return Err(too_much(units, lane.total()));
        }
        granted(lane.take(&of.0, units)).await
    }
}

/// A share that comes in time.
async fn granted(
    share: impl Future<Output = Result<Share, NotTaken>>,
) -> Result<Share, RequestError> {
    match tokio::time::timeout(TIMEOUT, share).await {
        Ok(Ok(share)) => Ok(share),
        Ok(Err(NotTaken::TooLarge)) => Err(too_large()),
        Ok(Err(NotTaken::Gone)) | Err(_) => Err(RequestError::busy("here")),
    }
}

fn too_large() -> RequestError {
    let text = "the request is larger than what may be received at once; send it in parts";
    RequestError::Service(Error::new(ErrorCode::TooLarge, text))
}

fn too_much(units: usize, limit: usize) -> RequestError {
    let mib = |units: usize| units >> 10;
    let text = format!(
        "the request is too large: reading it would need about {} MiB of memory, and a request may need {} MiB; send it \
         in parts",
        mib(units).max(1),
        mib(limit)
    );
    RequestError::Service(Error::new(ErrorCode::TooLarge, text))
}

async fn off<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RequestError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        let text = "the request could not be read";
        RequestError::Service(Error::new(ErrorCode::Internal, text))
    })
}

/// Memory that a text of JSON needs as a tree of values, at most. What stands inside strings is passed over in strides: nearly all
/// of a large request is one.
pub(crate) fn need(bytes: &[u8]) -> usize {
    let mut sum = bytes.len();
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'"' => behind_string(after),
            _ => after,
        };
        sum += match byte {
            b'[' => LIST - 1,
            b'{' => OBJECT - 1,
            b',' => ITEM - 1,
            b':' => ENTRY - 1,
            _ => 0,
        };
    }
    sum
}

/// What comes after the quotation mark that ends a string; nothing where none does.
fn behind_string(mut inside: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', inside) {
        let ends = inside[at] == b'"';
        inside = inside
            .get(at + 1 + usize::from(!ends)..)
            .unwrap_or_default();
        if ends {
            return inside;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    async fn read(budget: &Budget, text: String) -> Result<usize, RequestError> {
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).is_ok();
        let read = budget.read(&reader("ann"), Bytes::from(text), parse).await;
        read.map(|(_, reading)| reading.share.units())
    }

    fn reader(name: &str) -> Reader {
        Reader::named(name)
    }

    /// Needs about 0.65 MiB.
    fn list() -> Bytes {
        Bytes::from(format!("[{}0]", "0,".repeat(4500)))
    }

    #[tokio::test]
    async fn what_would_not_fit_is_never_made() {
        let budget = Budget::new(2 << 20, 1 << 20, Users::Many);
        let bomb = format!("[{}0]", "[0],".repeat(4000));
        let refused = |read: Result<usize, RequestError>| read.unwrap_err().error().message;
        let told = refused(read(&budget, bomb).await);
        assert!(
            told.contains("about 1 MiB") && told.contains("may need 1 MiB"),
            "{told}"
        );
        let text = format!("\"{}\"", "[{,:".repeat(100_000));
        assert!(read(&budget, text).await.unwrap() < 512);
        let large = format!("\"{}\"", "x".repeat(2 << 20));
        let told = refused(read(&budget, large).await);
        assert!(told.contains("about 2 MiB"), "{told}");
    }

    #[tokio::test]
    async fn who_finds_no_room_waits_for_it_and_nobody_small_does() {
        let budget = Budget::new(2 << 20, 10, Users::Many);
        let (ann, bob, eve) = (reader("ann"), reader("bob"), reader("eve"));
        let first = budget.read(&ann, list(), |_| ()).await.unwrap();
        let _second = budget.read(&bob, list(), |_| ()).await.unwrap();
        let third = budget.read(&eve, list(), |_| ());
        tokio::pin!(third);
        let moment = Duration::from_millis(20);
        assert!(tokio::time::timeout(moment, &mut third).await.is_err());
        // Behind it nobody waits who needs little, not even of the same user.
        for reader in [&ann, &eve] {
            let small = budget.read(reader, Bytes::from_static(b"{\"a\": [1]}"), |_| ());
            let small = tokio::time::timeout(moment, small).await;
            assert!(small.is_ok_and(|read| read.is_ok()));
        }
        drop(first);
        assert!(third.await.is_ok());
    }

    #[tokio::test]
    async fn one_user_never_has_it_all() {
        // Three quarters are for bodies.
        let budget = Budget::new(2 << 20, (64 << 20) / 3, Users::Many);
        let (ann, bob, eve) = (reader("ann"), reader("bob"), reader("eve"));
        let receive = |of: &Reader| {
            let mut shares = Vec::new();
            while let Ok(share) = budget.receive(of, SMALL, SMALL * shares.len()) {
                shares.push(share);
            }
            shares
        };
        let held = receive(&ann);
        assert!((100..150).contains(&held.len()), "{}", held.len());
        let one = budget.receive(&eve, SMALL, SMALL * held.len()).err();
        assert_eq!(one, Some(too_large()), "no wait helps");
        assert!(SMALL * held.len() <= budget.largest_body());
        assert!(receive(&bob).len() > 100, "the other half is not hers");
        // What is small passes even then.
        assert!(budget.receive(&eve, SMALL, 0).is_ok());
        drop(held);
        assert!(receive(&ann).len() > 100);
        let _first = budget.read(&ann, list(), |_| ()).await.unwrap();
        let second = budget.read(&ann, list(), |_| ());
        tokio::pin!(second);
        let moment = Duration::from_millis(20);
        assert!(tokio::time::timeout(moment, &mut second).await.is_err());
        assert!(budget.read(&bob, list(), |_| ()).await.is_ok());
    }

    #[tokio::test]
    async fn what_is_on_the_way_counts_as_its_bytes() {
        let budget = Budget::new(2 << 20, 10, Users::Many);
        let (_, reading) = budget.read(&reader("ann"), list(), |_| ()).await.unwrap();
        assert!(reading.share.units() > 600);
        assert_eq!(reading.sent().units(), list().len().div_ceil(UNIT));
    }

    #[tokio::test]
    async fn who_is_alone_may_have_it_all() {
        let budget = Budget::new(2 << 20, 16 << 20, Users::One);
        let everybody = reader("anonymous");
        let _first = budget.read(&everybody, list(), |_| ()).await.unwrap();
        assert!(budget.read(&everybody, list(), |_| ()).await.is_ok());
    }

    #[test]
    fn quotes_within_texts_end_nothing() {
        assert_eq!(need(br#""a\"[[[[" "#), 10);
        assert_eq!(need(b"[1,2]"), LIST + ITEM + 3);
    }
}
