//! A connection's bytes with a sense of time: who is slow with a request's head, idle for too long, or takes nothing
//! of what is sent to it, is gone. Who takes a little, steadily, never is.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Longest time from the first byte of a request's head to its last; on a new connection, from its start, so that a handshake
/// of TLS is part of it.
pub(crate) const HEAD: Duration = Duration::from_secs(10);
/// Longest pause between two requests of a connection.
const IDLE: Duration = Duration::from_secs(75);
/// A peer that takes not one byte for this long is gone.
const STUCK: Duration = Duration::from_secs(60);

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    Head,
    Next,
    /// A request is served, or the connection is a socket: others look after the time.
    Served,
}

/// What is known of a connection's progress; shared with whoever serves it.
#[derive(Debug)]
pub(crate) struct Life(Mutex<State>);

#[derive(Debug)]
struct State {
    waits: Waits,
    since: Instant,
}

impl Life {
    fn new(now: Instant) -> Self {
        Self(Mutex::new(State {
            waits: Waits::Head,
            since: now,
        }))
    }

    /// A request is being served.
    pub(crate) fn serves(&self) {
        self.set(Waits::Served);
    }

    /// It was answered; the next may come.
    pub(crate) fn rests(&self) {
        self.set(Waits::Next);
    }

    fn set(&self, waits: Waits) {
        let mut state = self.0.lock();
        state.waits = waits;
        state.since = Instant::now();
    }

    fn came(&self) {
        let mut state = self.0.lock();
        if state.waits == Waits::Next {
            state.waits = Waits::Head;
            state.since = Instant::now();
        }
    }

    /// Until when something must come.
    fn until(&self) -> Option<Instant> {
        let state = self.0.lock();
        match state.waits {
            Waits::Head => Some(state.since + HEAD),
            Waits::Next => Some(state.since + IDLE),
            Waits::Served => None,
        }
    }
}

/// A connection, with what it holds as long as it lives.
pub(crate) struct Wire<H> {
    stream: TcpStream,
    life: Arc<Life>,
    read: Alarm,
    write: Alarm,
    _held: H,
}

impl<H> Wire<H> {
    /// Around a fresh connection.
    pub(crate) fn new(stream: TcpStream, held: H) -> Self {
        Self {
            stream,
            life: Arc::new(Life::new(Instant::now())),
            read: Alarm::default(),
            write: Alarm::default(),
            _held: held,
        }
    }

    /// Its progress.
    pub(crate) fn life(&self) -> Arc<Life> {
        self.life.clone()
    }

    /// The first byte, which is still to be read; `None` if the other side sends nothing.
    pub(crate) async fn first(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let seen = self.stream.peek(&mut byte).await?;
        Ok((seen > 0).then_some(byte[0]))
    }
}

/// A timer that is there only while something waits.
#[derive(Default)]
struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// An error when the time has come; wakes the task then.
    fn poll(&mut self, until: Option<Instant>, cx: &mut Context<'_>) -> Poll<io::Error> {
        let Some(until) = until else {
            self.0 = None;
            return Poll::Pending;
        };
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        sleep
            .as_mut()
            .poll(cx)
            .map(|()| io::ErrorKind::TimedOut.into())
    }
}

impl<H: Unpin> Wire<H> {
    fn written(
        &mut self,
        outcome: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if outcome.is_ready() {
            self.write.0 = None;
            return outcome;
        }
        let until = match &self.write.0 {
            Some(running) => running.deadline(),
            None => Instant::now() + STUCK,
        };
        self.write.poll(Some(until), cx).map(Err)
    }
}

impl<H: Unpin> AsyncRead for Wire<H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if outcome.is_ready() {
            if buffer.filled().len() > before {
                self.life.came();
            }
            // A byte now and then is no progress of a head.
            return outcome;
        }
        let until = self.life.until();
        self.read.poll(until, cx).map(Err)
    }
}

impl<H: Unpin> AsyncWrite for Wire<H> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(outcome, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.written(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn pair() -> (Wire<()>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, server) = tokio::join!(client, listener.accept());
        (Wire::new(server.unwrap().0, ()), client.unwrap())
    }

    #[tokio::test]
    async fn a_head_that_comes_byte_by_byte_is_cut_and_a_served_request_is_not() {
        let (mut wire, mut client) = pair().await;
        let mut byte = [0];
        client.write_all(b"G").await.unwrap();
        wire.read_exact(&mut byte).await.unwrap();
        tokio::time::pause();
        let start = Instant::now();
        let fault = wire.read_exact(&mut byte).await.unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < HEAD + Duration::from_secs(1));
        wire.life().serves();
        let patient = tokio::time::timeout(IDLE * 2, wire.read_exact(&mut byte));
        assert!(patient.await.is_err());
        wire.life().rests();
        let fault = wire.read_exact(&mut byte).await.unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_connection_between_two_requests_is_cut_when_it_is_idle_and_the_next_head_has_its_time()
     {
        let (mut wire, mut client) = pair().await;
        let mut byte = [0];
        for idle in [true, false] {
            let second = Duration::from_secs(1);
            let begun = Instant::now();
            wire.life().serves();
            client.write_all(b"G").await.unwrap();
            wire.read_exact(&mut byte).await.unwrap();
            wire.life().rests();
            if !idle {
                client.write_all(b"G").await.unwrap();
                wire.read_exact(&mut byte).await.unwrap();
            }
            tokio::time::pause();
            let start = Instant::now();
            let fault = wire.read_exact(&mut byte).await.unwrap_err();
            assert_eq!(fault.kind(), io::ErrorKind::TimedOut);
            let bound = if idle { IDLE } else { HEAD };
            let took = start.elapsed();
            // The clock went on until it was stopped: the bound begins after `begun`.
            assert!(
                begun.elapsed() >= bound && took < bound + second,
                "{took:?}"
            );
            tokio::time::resume();
        }
    }

    #[tokio::test]
    async fn who_takes_nothing_is_cut_and_who_takes_a_little_is_not() {
        let (mut wire, mut client) = pair().await;
        let chunk = vec![7; 1 << 20];
        let fill = async |wire: &mut Wire<()>| loop {
            let more = tokio::time::timeout(Duration::from_millis(300), wire.write(&chunk));
            if more.await.is_err() {
                return;
            }
        };
        fill(&mut wire).await;
        let mut taken = vec![0; 8 << 20];
        let reads = client.read(&mut taken).await.unwrap();
        assert!(reads > 0);
        for _ in 0..64 {
            if client.try_read(&mut taken).is_err() {
                break;
            }
        }
        fill(&mut wire).await;
        tokio::time::pause();
        let fault = wire.write_all(&chunk).await.unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::TimedOut);
    }
}
