//! How much of answers may wait until clients have read them, over sockets and over HTTP. Whoever finds no room waits, and
//! so does who asked in their turn: nothing is kept here for a client that reads slowly, and nobody is cut off.
//!
//! Each connection has a little for itself, so that what is small never waits for what others read; the rest is shared
//! by all, and a user has a part of it.

use std::sync::Arc;

use axum::BoxError;
use axum::body::Body as HttpBody;
use bytes::Bytes;
use futures::stream::{Stream, StreamExt};
use tg_mesh::fair::{Pool, Share, UnitsInUse};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::Identity;
use crate::budget::{Reader, Users};

/// Bytes that a connection needs for itself at most.
const OWN: usize = 64 << 10;
/// Bytes that wait for one connection at most, however much is free: who reads slowly gains nothing by more. A larger message
/// waits alone.
const AT_ONCE: usize = 8 << 20;

/// What all connections have together.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    shared: Pool,
    own: usize,
}

/// What one connection has: a socket, or the response that is under way.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    shared: Pool,
    own: Arc<Semaphore>,
    at_once: Arc<Semaphore>,
    held: UnitsInUse,
}

/// The place of a message that waits, until it is dropped.
#[derive(Debug)]
pub(crate) enum SendPermit {
    /// In what the connection has for itself.
    Own { _own: OwnedSemaphorePermit },
    /// In what is shared.
    Shared {
        _share: Share,
        _at_once: OwnedSemaphorePermit,
    },
}

impl Sending {
    /// With so many bytes for so many connections.
    pub(crate) fn new(bytes: usize, connections: usize, users: Users) -> Self {
        let own = (bytes / 2 / connections.max(1)).min(OWN);
        let shared = (bytes - own * connections).max(1);
        Self {
            shared: Pool::new(shared, users.part(shared)),
            own,
        }
    }

    /// For a response to somebody.
    pub(crate) fn outlet(&self, to: &Identity) -> Outlet {
        Outlet {
            room: self.room(),
            reader: Reader::known(to),
        }
    }

    /// For one more socket.
    pub(crate) fn room(&self) -> Room {
        Room {
            shared: self.shared.clone(),
            own: Arc::new(Semaphore::new(self.own)),
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
            held: UnitsInUse::default(),
        }
    }
}

impl Room {
    /// Waits for a place for so many bytes. None where the process ends.
    pub(crate) async fn take(&self, of: &Reader, bytes: usize) -> Option<SendPermit> {
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
        if let Ok(_own) = self.own.clone().try_acquire_many_owned(permits) {
            return Some(SendPermit::Own { _own });
        }
        let most = u32::try_from(bytes.min(AT_ONCE)).ok()?;
        let at_once = self.at_once.clone().acquire_many_owned(most).await;
        let _at_once = at_once.ok()?;
        // Whoever reads slowly leaves room for what others read.
        let half = (self.shared.total() / 2).max(1);
        let units = bytes.min(self.shared.each()).min(half);
        let share = self.shared.take_at(of.name(), units, &self.held);
        let _share = share.await.ok()?;
        Some(SendPermit::Shared { _share, _at_once })
    }
}

/// Where pieces of one response wait until its reader has taken them.
#[derive(Debug, Clone)]
pub(crate) struct Outlet {
    room: Room,
    reader: Reader,
}

/// A piece and its place.
struct Placed {
    piece: Bytes,
    _place: Option<SendPermit>,
}

impl AsRef<[u8]> for Placed {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Outlet {
    /// Who it is for.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The piece, once there is room for it. It has its place until the last copy of it is dropped, which the HTTP library
    /// does when it has written it. Whoever else is ready has a turn first: pieces are made on the threads of the runtime, and
    /// an answer that always has the next one ready would keep those from everybody.
    pub(crate) async fn hold(&self, piece: Bytes) -> Bytes {
        if piece.is_empty() {
            return piece;
        }
        tokio::task::yield_now().await;
        self.hold_whole(piece).await
    }

    /// As [`Self::hold`], of an answer that is one piece. No next one follows that would keep the thread from others, and the answer
    /// does not wait until all others had a turn.
    pub(crate) async fn hold_whole(&self, piece: Bytes) -> Bytes {
        if piece.is_empty() {
            return piece;
        }
        let _place = self.take(piece.len()).await;
        Bytes::from_owner(Placed { piece, _place })
    }

    /// A body of pieces, each of which comes when there is room for it.
    pub(crate) fn body<E: Into<BoxError> + Send + 'static>(
        self,
        pieces: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> HttpBody {
        HttpBody::from_stream(pieces.then(move |piece| {
            let outlet = self.clone();
            async move { Ok::<_, E>(outlet.hold(piece?).await) }
        }))
    }

    /// Waits for a place for so many bytes. None where the process ends.
    pub(crate) async fn take(&self, bytes: usize) -> Option<SendPermit> {
        self.room.take(&self.reader, bytes).await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const MIB: usize = 1 << 20;

    fn reader(name: &str) -> Reader {
        Reader::named(name)
    }

    #[tokio::test]
    async fn a_message_waits_until_there_is_room_and_a_large_one_until_it_is_alone() {
        let room = Sending::new(2 * MIB + OWN, 1, Users::One).room();
        let ann = reader("ann");
        let of = |bytes: usize| room.take(&ann, bytes);
        let own = of(OWN).await;
        // A half is left free.
        let first = of(MIB).await;
        assert!(of(1).now_or_never().is_none());
        drop(first);
        let large = of(20 * MIB).await;
        assert!(of(1).now_or_never().is_none());
        drop(own);
        let small = of(1).await;
        assert!(small.is_some(), "what is small waits for nobody");
        drop(large);
        assert!(of(MIB).await.is_some());
    }

    #[tokio::test]
    async fn an_answer_that_is_always_ready_gives_way_after_each_piece() {
        use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        let outlet = Sending::new(256 * MIB, 2, Users::One).outlet(&Identity::plain("ann", "w"));
        let (made, turns) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let counted = made.clone();
        let pieces = futures::stream::iter(0..100).map(move |_| {
            counted.fetch_add(1, Relaxed);
            Ok::<_, std::io::Error>(Bytes::from_static(b"piece"))
        });
        let mut read = outlet.body(pieces).into_data_stream();
        let reading = async {
            while read.next().await.is_some() {
                let (made, turns) = (made.load(Relaxed), turns.load(Relaxed));
                assert!(turns + 1 >= made, "{turns} turns beside {made} pieces");
            }
        };
        let other = async {
            while made.load(Relaxed) < 100 {
                turns.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
            }
        };
        futures::future::join(reading, other).await;
    }

    #[tokio::test]
    async fn an_answer_of_one_piece_waits_for_room_only() {
        let outlet = Sending::new(2 * MIB, 2, Users::One).outlet(&Identity::plain("ann", "w"));
        let piece = Bytes::from_static(b"piece");
        assert!(outlet.hold(piece.clone()).now_or_never().is_none());
        let whole = outlet.hold_whole(piece.clone()).now_or_never();
        assert_eq!(whole, Some(piece));
        let large = Bytes::from(vec![0; 20 * MIB]);
        let held = outlet.hold_whole(large.clone()).await;
        assert!(outlet.hold_whole(large).now_or_never().is_none());
        drop(held);
    }

    #[tokio::test]
    async fn one_socket_has_no_more_than_its_part_however_much_is_free() {
        let sending = Sending::new(256 * MIB, 2, Users::One);
        let (room, other) = (sending.room(), sending.room());
        let ann = reader("ann");
        let mut held = Vec::new();
        while let Some(place) = room.take(&ann, MIB).now_or_never() {
            held.push(place);
        }
        assert_eq!(held.len(), AT_ONCE / MIB);
        assert!(other.take(&ann, MIB).now_or_never().flatten().is_some());
        held.pop();
        assert!(room.take(&ann, MIB).now_or_never().flatten().is_some());
        held.clear();
        let large = room.take(&ann, 20 * MIB).now_or_never().flatten();
        assert!(large.is_some() && room.take(&ann, MIB).now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_piece_has_its_place_until_nobody_has_it_any_more() {
        let sending = Sending::new(2 * MIB, 2, Users::One);
        let outlet = sending.outlet(&Identity::plain("ann", "default"));
        let large = Bytes::from(vec![0; 20 * MIB]);
        let held = outlet.hold(large.clone()).await;
        assert_eq!(held, large);
        let copy = held.slice(MIB..);
        drop(held);
        let mut next = Box::pin(outlet.hold(large));
        assert!((&mut next).now_or_never().is_none());
        drop(copy);
        assert!(next.now_or_never().is_some());
        let nothing = outlet.hold(Bytes::new()).now_or_never();
        assert_eq!(nothing, Some(Bytes::new()));
    }

    #[tokio::test]
    async fn all_sockets_share_what_there_is_and_no_user_has_it_all() {
        let sending = Sending::new(16 * MIB, 4, Users::Many);
        let (ann, bob) = (reader("ann"), reader("bob"));
        let rooms: Vec<Room> = (0..8).map(|_| sending.room()).collect();
        let mut held = Vec::new();
        for room in &rooms {
            held.extend(room.take(&ann, 3 * MIB).now_or_never());
        }
        assert_eq!(held.len(), 2, "a half is hers");
        for room in &rooms {
            held.extend(room.take(&bob, 3 * MIB).now_or_never());
        }
        assert_eq!(held.len(), 4);
        // Both wait with what is large, and with nothing that is small.
        let mut large = Box::pin(rooms[0].take(&ann, 20 * MIB));
        assert!((&mut large).now_or_never().is_none());
        for user in [&ann, &bob] {
            let small = rooms[7].take(user, 20_000).now_or_never();
            assert!(small.flatten().is_some());
        }
        held.clear();
        assert!(large.now_or_never().flatten().is_some());
    }
}
