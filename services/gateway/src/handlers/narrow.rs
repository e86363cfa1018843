//! The bytes of a WebSocket as the library that speaks the protocol gets to see them. That library makes room for a
//! whole frame as soon as it has read the frame's head, and knows one limit. So heads are read here first: a stranger's
//! frames are small, and a large one of somebody who is known goes on when there is memory for it among all that is being
//! received. Until then nothing more is read, and the client waits.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use tg_schemas::ErrorCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::frame_heads::{Head, Heads, Part};
use crate::budget::{Budget, Reader, Share, UNCOUNTED};
use crate::error::RequestError;
use crate::patience::Patience;

/// Largest payload of a frame that is not part of a message, by the protocol.
const CONTROL: u64 = 125;
/// A message takes no longer than this from its head on, in seconds, but for pauses.
const LONGEST: usize = 1800;

/// What a socket may send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Largest message.
    pub(super) limit: usize,
    /// Largest message of a stranger.
    pub(super) stranger: usize,
    /// Least rate of one that is large, in bytes a second.
    pub(super) rate: usize,
}

/// Says whose frames they are, and why no more of them is read.
#[derive(Debug)]
pub(super) struct FrameGate {
    known: OnceLock<Reader>,
    refusal: OnceLock<Refusal>,
}

/// Why no more is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// The message is larger than it may be.
    Size,
    /// There was no memory for it for too long.
    NoRoom,
    /// It came too slowly.
    Slow,
}

impl FrameGate {
    /// Of a stranger, or of somebody who is known.
    pub(super) fn new(known: Option<Reader>) -> Self {
        Self {
            known: known.map_or_else(OnceLock::new, OnceLock::from),
            refusal: OnceLock::new(),
        }
    }

    /// Whoever is there is known. What they send counts as theirs from now on, whoever they say they are later.
    pub(super) fn open(&self, reader: Reader) {
        let _ = self.known.set(reader);
    }

    /// How a socket is closed of which no more is read.
    pub(super) fn refusal(&self) -> Option<CloseFrame> {
        let (code, reason) = match self.refusal.get()? {
            Refusal::Size => (CloseCode::Size, TOO_LARGE),
            Refusal::NoRoom => (
                CloseCode::Again,
                "there is no room for so large a message now; try again",
            ),
            Refusal::Slow => (CloseCode::Policy, "the message arrives too slowly"),
        };
        Some(CloseFrame {
            code,
            reason: reason.into(),
        })
    }

    fn refuse(&self, why: Refusal) -> io::Error {
        let _ = self.refusal.set(why);
        io::ErrorKind::InvalidData.into()
    }
}

/// What is said of a message beyond the limit.
pub(super) const TOO_LARGE: &str = "the message is larger than the limit";

/// The bytes.
pub(super) struct Narrow<S> {
    inner: S,
    /// Read, and not passed on. Begins with the last byte of a head.
    withheld: BytesMut,
    usher: Usher,
}

/// Looks at heads, and keeps what the message under way counts.
struct Usher {
    gate: Arc<FrameGate>,
    sizes: Sizes,
    budget: Budget,
    heads: Heads,
    /// Nothing while it is small.
    share: Option<Share>,
    /// For a head that waits for room.
    wait: Option<BoxFuture<'static, Result<Share, RequestError>>>,
    patience: Patience,
}

impl<S> Narrow<S> {
    pub(super) fn new(inner: S, gate: Arc<FrameGate>, sizes: Sizes, budget: Budget) -> Self {
        Self {
            inner,
            withheld: BytesMut::new(),
            usher: Usher {
                gate,
                sizes,
                budget,
                heads: Heads::default(),
                share: None,
                wait: None,
                patience: Patience::new(sizes.rate),
            },
        }
    }
}

impl Usher {
    /// How many of these bytes may pass: all, or those before the last byte of a head for whose payload there is no room yet.
    fn sift(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let (used, head) = self.heads.next(&bytes[at..]);
            at += used;
            if let Some(head) = head
                && !self.grants(head)?
            {
                return Ok(at - 1);
            }
        }
        if self.heads.between_messages() {
            // Whoever reads the message counts it in its own way.
            self.share = None;
            self.patience.rest();
        }
        Ok(at)
    }

    /// Whether the payload of a head may be read now; else it waits.
    fn grants(&mut self, head: Head) -> io::Result<bool> {
        if head.part == Part::Control {
            return match head.length <= CONTROL {
                true => Ok(true),
                false => Err(self.gate.refuse(Refusal::Size)),
            };
        }
        if head.part == Part::First {
            self.share = None;
        }
        let Some(reader) = self.gate.known.get() else {
            return match head.message <= self.sizes.stranger as u64 {
                true => Ok(true),
                false => Err(self.gate.refuse(Refusal::Size)),
            };
        };
        let too_large = || self.gate.refuse(Refusal::Size);
        let message = usize::try_from(head.message).map_err(|_| too_large())?;
        if message > self.sizes.limit {
            return Err(too_large());
        }
        if message <= UNCOUNTED {
            return Ok(true);
        }
        let before = message - head.length as usize;
        let counted = if before <= UNCOUNTED { 0 } else { before };
        if message == counted {
            return Ok(true);
        }
        // However slow a line may be: what is announced is not kept for whoever sends next to nothing of it.
        self.patience.at_least(message / LONGEST);
        match self.budget.arrive(reader, message - counted) {
            Some(share) => {
                self.hold(share);
                Ok(true)
            }
            None => {
                let (budget, reader) = (self.budget.clone(), reader.clone());
                let wait = async move { budget.arrives(&reader, message - counted, counted).await };
                self.wait = Some(wait.boxed());
                Ok(false)
            }
        }
    }

    /// What another part of the message counts.
    fn hold(&mut self, more: Share) {
        match &mut self.share {
            Some(share) => share.join(more),
            none => *none = Some(more),
        }
    }

    /// Waits for room for a head that was withheld, if one is. Ready with whether one was.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Some(wait) = &mut self.wait else {
            return Poll::Ready(Ok(false));
        };
        let share = ready!(wait.as_mut().poll(cx));
        self.wait = None;
        Poll::Ready(match share {
            Ok(share) => {
                self.hold(share);
                Ok(true)
            }
            Err(fault) if fault.error().code() == ErrorCode::TooLarge => {
                Err(self.gate.refuse(Refusal::Size))
            }
            Err(_) => Err(self.gate.refuse(Refusal::NoRoom)),
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Narrow<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        while buffer.remaining() > 0 {
            // What was withheld begins with the last byte of a head, which may pass now.
            let walked = usize::from(ready!(this.usher.poll_room(cx))?);
            if this.withheld.is_empty() {
                if Pin::new(&mut this.inner)
                    .poll_read(cx, buffer)?
                    .is_pending()
                {
                    if this.usher.share.is_some() && this.usher.patience.poll(cx).is_ready() {
                        return Poll::Ready(Err(this.usher.gate.refuse(Refusal::Slow)));
                    }
                    return Poll::Pending;
                }
                let came = buffer.filled().len() - before;
                this.usher.patience.came(came);
                let sifted = this.usher.sift(&buffer.filled()[before..]);
                let passes = *sifted.as_ref().unwrap_or(&0);
                (this.withheld).extend_from_slice(&buffer.filled()[before + passes..]);
                buffer.set_filled(before + passes);
                sifted?;
                if came == 0 {
                    return Poll::Ready(Ok(()));
                }
            } else {
                let most = this.withheld.len().min(buffer.remaining());
                let passes = walked + this.usher.sift(&this.withheld[walked..most])?;
                buffer.put_slice(&this.withheld[..passes]);
                this.withheld.advance(passes);
            }
            if buffer.filled().len() > before {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Narrow<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::super::frame_heads::tests::{frame, head};
    use super::*;
    use crate::budget::Users;

    const KIB: usize = 1 << 10;
    /// A quarter of it is for messages that arrive, half of that for one user: one of 600 KiB.
    const ROOM: usize = 8 << 20;

    fn narrow(budget: &Budget, known: Option<&str>) -> (DuplexStream, Narrow<DuplexStream>) {
        let (client, server) = tokio::io::duplex(4 << 20);
        let gate = Arc::new(FrameGate::new(known.map(Reader::named)));
        let sizes = Sizes {
            limit: 900 * KIB,
            stranger: 4096,
            rate: 1 << 20,
        };
        let narrow = Narrow::new(server, gate, sizes, budget.clone());
        (client, narrow)
    }

    fn budget() -> Budget {
        Budget::new(1 << 20, ROOM, Users::One)
    }

    /// What can be read within a moment.
    async fn readable(narrow: &mut Narrow<DuplexStream>) -> Vec<u8> {
        let mut all = Vec::new();
        let mut piece = vec![0; 10_000];
        while let Ok(Ok(read)) =
            tokio::time::timeout(Duration::from_millis(10), narrow.read(&mut piece)).await
        {
            if read == 0 {
                break;
            }
            all.extend_from_slice(&piece[..read]);
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_message_waits_at_its_head_until_there_is_room() {
        let budget = budget();
        let _others = ["c", "d"].map(|name| budget.arrive(&Reader::named(name), 500 << 10));
        let (mut ann, mut of_ann) = narrow(&budget, Some("ann"));
        let (mut bob, mut of_bob) = narrow(&budget, Some("bob"));
        let large = frame(0x82, 600 << 10);
        ann.write_all(&large[..1000]).await.unwrap();
        assert_eq!(readable(&mut of_ann).await, large[..1000]);
        // Something small, the head of something large, and something small behind it.
        let small = frame(0x81, 100);
        let whole = [small.as_slice(), &large, &small].concat();
        bob.write_all(&whole).await.unwrap();
        let before = readable(&mut of_bob).await;
        let withheld = head(0x82, 600 << 10).len() - 1;
        assert_eq!(before, whole[..small.len() + withheld]);
        assert!(readable(&mut of_bob).await.is_empty());
        ann.write_all(&large[1000..]).await.unwrap();
        assert_eq!(readable(&mut of_ann).await, large[1000..]);
        assert_eq!(readable(&mut of_bob).await, whole[before.len()..]);
    }

    #[tokio::test(start_paused = true)]
    async fn parts_of_a_message_count_together_and_end_with_it() {
        let budget = budget();
        let (mut ann, mut narrow) = narrow(&budget, Some("ann"));
        for _ in 0..3 {
            let parts = [(0x02, 40), (0x89, 0), (0x00, 40), (0x80, 500)];
            let parts = parts.map(|(first, kib)| frame(first, kib << 10));
            let message = parts.concat();
            ann.write_all(&message).await.unwrap();
            assert_eq!(readable(&mut narrow).await, message);
            assert!(narrow.usher.share.is_none());
        }
        ann.write_all(&frame(0x02, 600 << 10)).await.unwrap();
        assert!(!readable(&mut narrow).await.is_empty());
        // Parts of nothing count nothing.
        let nothing = frame(0x00, 0).repeat(1000);
        ann.write_all(&nothing).await.unwrap();
        readable(&mut narrow).await;
        let held = narrow.usher.share.as_ref().map(Share::units);
        assert_eq!(held, Some(600 << 10));
        ann.write_all(&frame(0x00, 400 << 10)).await.unwrap();
        readable(&mut narrow).await;
        let refusal = narrow.usher.gate.refusal().unwrap();
        assert_eq!(refusal.code, CloseCode::Size);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_says_why() {
        let refused = async |known: Option<&str>, bytes: &[u8]| {
            let budget = budget();
            let (mut client, mut narrow) = narrow(&budget, known);
            let taken = ["eve", "eva"].map(|name| budget.arrive(&Reader::named(name), 800 << 10));
            client.write_all(bytes).await.unwrap();
            let mut all = Vec::new();
            let ended = narrow.read_to_end(&mut all);
            let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
            drop(taken);
            assert!(ended.unwrap().is_err());
            narrow.usher.gate.refusal().unwrap().code
        };
        for too_large in [head(0x81, 4097), head(0x81, u64::MAX), frame(0x89, 126)] {
            assert_eq!(refused(None, &too_large).await, CloseCode::Size);
        }
        let too_large = head(0x82, 901 << 10);
        assert_eq!(refused(Some("ann"), &too_large).await, CloseCode::Size);
        let no_room = frame(0x82, 600 << 10);
        assert_eq!(refused(Some("ann"), &no_room).await, CloseCode::Again);
        let never_comes = frame(0x82, 300 << 10);
        let (never_comes, _) = never_comes.split_at(1000);
        assert_eq!(refused(Some("ann"), never_comes).await, CloseCode::Policy);
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_nothing_between_messages_is_waited_for() {
        let (mut ann, mut narrow) = narrow(&budget(), Some("ann"));
        let large = frame(0x82, 300 << 10);
        for _ in 0..3 {
            ann.write_all(&large).await.unwrap();
            assert_eq!(readable(&mut narrow).await, large);
            tokio::time::sleep(Duration::from_secs(300)).await;
            assert!(readable(&mut narrow).await.is_empty());
        }
        assert_eq!(narrow.usher.gate.refusal(), None);
    }
}
