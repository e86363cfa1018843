//! Streams that one gateway keeps and another one asks for. Each gateway answers on a topic of its own, which is named by its mark
//! and goes with it.

use std::time::Duration;

use tg_mesh::tg_bus::{Consumer, Delete};
use tg_mesh::{Answer, Peer, Responder, answer_on};
use tg_schemas::msg::{KeptStreamRequest, KeptStreamResponse};
use tg_schemas::processors::api_gateway;
use tg_schemas::{Class, Error, Subscription, Topic};

use crate::caller::Caller;
use crate::neighbours::Neighbours;

/// What the names of these topics begin with.
const STREAMS: &str = "kept-streams";
/// How long the other gateway may take to find a stream or to cancel it.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long a stream may be read.
const READ: Duration = Duration::from_secs(3600);

/// Topic on which the gateway with a mark is asked.
fn topic(mark: &str) -> Topic {
    Topic::system(Class::Request, &format!("{STREAMS}:{mark}"))
}

/// Whether gateways of other processes are on the bus and ask each other.
fn have_others(peer: &Peer) -> bool {
    !peer.bus().in_process() && Neighbours::of(peer).ask_gateways()
}

/// The streams of another gateway.
pub struct KeptStreams {
    caller: Caller<KeptStreamRequest, KeptStreamResponse>,
}

impl KeptStreams {
    /// Those of the gateway with a mark. `None`: gateways do not ask each other here.
    pub fn of(peer: &Peer, mark: &str) -> Option<Self> {
        have_others(peer).then(|| Self {
            caller: Caller::of_process(peer, topic(mark)),
        })
    }

    /// Finds a stream, or cancels it.
    ///
    /// # Errors
    /// How the question failed; `nobody-serves` where the gateway is gone.
    pub async fn ask(&self, request: &KeptStreamRequest) -> Result<KeptStreamResponse, Error> {
        self.caller.clone().patient(TIMEOUT).last(request).await
    }

    /// What a stream sends from a part on, to its end.
    ///
    /// # Errors
    /// Where the question cannot be asked.
    pub fn read(&self, request: &KeptStreamRequest) -> Result<Answer<KeptStreamResponse>, Error> {
        self.caller.clone().patient(READ).ask(request)
    }
}

/// A gateway that other gateways can ask.
pub struct Asked {
    peer: Peer,
    of: Subscription,
    consumer: Box<dyn Consumer>,
}

impl Asked {
    /// Nobody can ask it any more. Where its process dies instead, its queue goes with the connection.
    pub async fn end(self) {
        self.consumer.stop().await;
        let bus = self.peer.bus();
        // The bus lets go of the queue only a moment after its consumer, and a topic with a queue stays.
        let deleted = match bus.delete_queue(&self.of, Delete::Always).await {
            Ok(_) => bus.delete_topic(&self.of.topic).await,
            Err(error) => Err(error),
        };
        if let Err(error) = deleted {
            tracing::debug!(%error, "the topic of this gateway's streams stays behind");
        }
    }
}

/// Has other gateways ask the one with a mark, as long as what is returned lives. `None`: gateways do not ask each other here.
///
/// # Errors
/// As of [`tg_mesh::answer_on`].
pub async fn serve<F>(
    peer: &Peer,
    mark: &str,
    handle: impl Fn(KeptStreamRequest, Responder<KeptStreamResponse>) -> F + Send + Sync + 'static,
) -> Result<Option<Asked>, Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    if !have_others(peer) {
        return Ok(None);
    }
    let of = Subscription::service(topic(mark), api_gateway::PROCESSOR.id);
    let consumer = answer_on(peer, of.clone(), handle).await?;
    Ok(Some(Asked {
        peer: peer.clone(),
        of,
        consumer,
    }))
}
