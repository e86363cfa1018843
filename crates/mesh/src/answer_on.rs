//! Answers the questions of one queue, for a program that hosts no processors: without epochs, generations and memory that
//! workspaces share, which those have.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tg_bus::{Consume, Consumer, Delivery, Handover, Sink, TaskKind};
use tg_rpc::responder::failure;
use tg_rpc::{Peer, ReplyAddress, ReplyServer, ReplyStream, Responder, interrupted};
use tg_schemas::{Error, ErrorCode, Message, Reply, Subscription};
use tokio::sync::Semaphore;

/// Questions that are handed out at once, where the bus counts them.
const PREFETCH: u16 = 16;
/// Questions that are worked on at once.
const AT_ONCE: usize = 1024;

/// Answers what is asked on a subscription, as long as what is returned lives. A question that is worked on already is not
/// begun again, one of which an answer was begun elsewhere is refused as interrupted, and one too many as busy; one whose
/// handler panics or says nothing is answered by a failure.
///
/// # Errors
/// As of [`tg_bus::Bus::consume`].
pub async fn answer_on<Q: Message, R: Reply, F>(
    peer: &Peer,
    of: Subscription,
    handle: impl Fn(Q, Responder<R>) -> F + Send + Sync + 'static,
) -> Result<Box<dyn Consumer>, Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let sink = Answers {
        room: Arc::new(Semaphore::new(AT_ONCE)),
        peer: peer.clone(),
        of: of.clone(),
        handle,
        messages: std::marker::PhantomData,
    };
    let how = Consume::prefetch(PREFETCH);
    Ok(peer.bus().consume(&of, how, Arc::new(sink)).await?)
}

struct Answers<H, Q, R> {
    peer: Peer,
    of: Subscription,
    handle: H,
    room: Arc<Semaphore>,
    messages: std::marker::PhantomData<fn(Q) -> R>,
}

impl<H, Q: Message, R: Reply, F> Sink for Answers<H, Q, R>
where
    H: Fn(Q, Responder<R>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    fn deliver(&self, mut delivery: Delivery) {
        let asked = std::mem::take(&mut delivery.envelope);
        delivery.ack();
        let address = match self.peer.rules().framed {
            true => ReplyAddress::of(&asked.headers),
            false => ReplyAddress::plain(&asked.headers, &self.of.topic),
        };
        let Some(address) = address else { return };
        let server = self.peer.server().clone();
        // Asked again, it learns how far it is.
        if server.is_held(&address) {
            return;
        }
        // Parts were sent of an answer that is not here: begun again it would say something twice.
        if address.seq > 0 {
            server.refuse(&asked.headers, &interrupted());
            return;
        }
        let Ok(room) = self.room.clone().try_acquire_owned() else {
            let text = "too many requests in progress, try again later";
            let busy = Error::new(ErrorCode::Busy, text);
            // A plain asker understands only the type's own failure reply.
            let held = address.plain.then(|| server.open(&address)).flatten();
            match held {
                Some(held) => self.peer.spawn(TaskKind::Handler, async move {
                    fail::<R>(&server, &held, busy).await;
                }),
                None => server.refuse(&asked.headers, &busy),
            }
            return;
        };
        let Some(held) = server.open(&address) else {
            return;
        };
        let out = Responder::new(server.clone(), held.clone());
        let work = asked.read::<Q>().map(|question| {
            let work = AssertUnwindSafe(|| (self.handle)(question, out));
            std::panic::catch_unwind(work).map(|work| AssertUnwindSafe(work).catch_unwind())
        });
        self.peer.spawn(TaskKind::Handler, async move {
            let _room = room;
            let error = match work {
                Ok(Ok(work)) => work.await.ok().and_then(Result::err),
                Ok(Err(_)) => None,
                Err(unreadable) => Some(unreadable.into()),
            };
            if held.settled() {
                return;
            }
            let failed = || Error::new(ErrorCode::Internal, "the handler failed");
            fail::<R>(&server, &held, error.unwrap_or_else(failed)).await;
        });
    }
}

async fn fail<R: Reply>(server: &ReplyServer, held: &Arc<ReplyStream>, error: Error) {
    if let Ok(body) = failure::<R>(error) {
        let body = vec![(body, Handover::default())];
        server.send(held, body, true).await.ok();
    }
}
