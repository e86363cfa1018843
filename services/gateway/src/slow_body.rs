//! A request's body with a sense of time: one that stops ends with an error, and so does one that trickles. One that is
//! merely long does not.

use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::patience::Patience;

/// The body, which must go on coming at this rate in bytes a second.
pub(crate) fn paced<B>(body: B, rate: usize) -> Body
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + Unpin + 'static,
{
    Body::new(Paced {
        body,
        patience: Patience::new(rate),
    })
}

/// The body, which must be there as a whole in this time, from the first look at it.
pub(crate) fn within(body: Body, time: Duration) -> Body {
    Body::new(Within {
        body,
        time,
        until: None,
    })
}

/// Whether a body ended because it came too slowly.
pub(crate) fn too_slow(fault: &axum::Error) -> bool {
    let mut cause = fault.source();
    while let Some(inner) = cause {
        let timed_out = inner.downcast_ref::<io::Error>().map(io::Error::kind);
        if timed_out == Some(io::ErrorKind::TimedOut) {
            return true;
        }
        cause = inner.source();
    }
    false
}

type Piece = Poll<Option<Result<Frame<Bytes>, axum::Error>>>;

fn late() -> Option<Result<Frame<Bytes>, axum::Error>> {
    Some(Err(axum::Error::new(io::Error::from(
        io::ErrorKind::TimedOut,
    ))))
}

struct Paced<B> {
    body: B,
    patience: Patience,
}

impl<B> HttpBody for Paced<B>
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Piece {
        if let Poll::Ready(piece) = Pin::new(&mut self.body).poll_frame(cx) {
            let data = piece.as_ref().and_then(|piece| piece.as_ref().ok());
            let bytes = data.and_then(Frame::data_ref).map_or(0, Bytes::len);
            self.patience.came(bytes);
            return Poll::Ready(piece.map(|piece| piece.map_err(axum::Error::new)));
        }
        self.patience.poll(cx).map(|()| late())
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct Within {
    body: Body,
    time: Duration,
    until: Option<Pin<Box<Sleep>>>,
}

impl HttpBody for Within {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Piece {
        let time = self.time;
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(time)));
        // The time first: bytes that come one by one are no reason to look away from it.
        if until.as_mut().poll(cx).is_ready() {
            return Poll::Ready(late());
        }
        Poll::Ready(ready!(Pin::new(&mut self.body).poll_frame(cx)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::PAUSE;
    use futures::{StreamExt, stream};
    use tokio::time::Instant;

    const RATE: usize = 256;

    /// Pieces of so many bytes, one after each pause, without an end.
    fn pieces(bytes: usize, pause: Duration) -> Body {
        Body::from_stream(stream::unfold((), move |()| async move {
            sleep(pause).await;
            Some((Ok::<_, io::Error>(Bytes::from(vec![b'x'; bytes])), ()))
        }))
    }

    fn stopped() -> Body {
        let first = stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"x"))]);
        Body::from_stream(first.chain(stream::pending()))
    }

    /// Reads to the end, or for an hour: when it ended, and whether because it was too slow.
    async fn end(body: Body) -> Option<(Duration, bool)> {
        let start = Instant::now();
        let mut pieces = body.into_data_stream();
        let read = async {
            while let Some(piece) = pieces.next().await {
                if let Err(fault) = piece {
                    return (start.elapsed(), too_slow(&fault));
                }
            }
            (start.elapsed(), false)
        };
        tokio::time::timeout(Duration::from_secs(3_600), read)
            .await
            .ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_ends_after_the_longest_pause() {
        let (took, slow) = end(paced(stopped(), RATE)).await.unwrap();
        assert!(slow && took >= PAUSE && took < PAUSE + Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_ends_hardly_later_and_a_steady_one_goes_on() {
        for pause in [1, 7, 29] {
            let trickle = pieces(1, Duration::from_secs(pause));
            let (took, slow) = end(paced(trickle, RATE)).await.unwrap();
            assert!(slow && took < PAUSE + Duration::from_secs(2), "{took:?}");
        }
        let steady = pieces(RATE * 2, Duration::from_secs(2));
        assert_eq!(end(paced(steady, RATE)).await, None);
        let in_bursts = pieces(RATE * 40, Duration::from_secs(29));
        assert_eq!(end(paced(in_bursts, RATE)).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_before_gives_no_more_than_one_pause() {
        let much = stream::iter([Ok::<_, io::Error>(Bytes::from(vec![0; 1 << 20]))]);
        let body = Body::from_stream(much.chain(stream::pending()));
        let (took, slow) = end(paced(body, RATE)).await.unwrap();
        assert!(slow && took < PAUSE + Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_waits_does_not_count() {
        let two = [(); 2].map(|()| Ok::<_, io::Error>(Bytes::from_static(b"x")));
        let body = Body::from_stream(stream::iter(two));
        let mut pieces = paced(body, RATE).into_data_stream();
        assert!(pieces.next().await.unwrap().is_ok());
        sleep(PAUSE * 3).await;
        assert!(pieces.next().await.unwrap().is_ok());
        assert!(pieces.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_body_has_its_time_however_it_comes() {
        let time = Duration::from_secs(10);
        let bodies = [
            stopped(),
            pieces(1, Duration::from_secs(3)),
            pieces(1_000, Duration::from_millis(10)),
        ];
        for body in bodies {
            let (took, slow) = end(within(paced(body, RATE), time)).await.unwrap();
            assert!(slow && took >= time && took < time + Duration::from_secs(1));
        }
        let quick: [Result<Bytes, io::Error>; 1] = [Ok(Bytes::from_static(b"{}"))];
        let (_, slow) = end(within(Body::from_stream(stream::iter(quick)), time))
            .await
            .unwrap();
        assert!(!slow);
    }

    #[test]
    fn a_body_that_breaks_off_is_not_slow() {
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(!too_slow(&axum::Error::new(reset)));
    }
}
