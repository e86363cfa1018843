//! How it stands with a server: whether it answers and has the model, and how its failures are reported. Whoever asks reads
//! what failed, with its status and cause, and which setting is behind it; the address is for those who run the system.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::listing::{Listed, Look};
use crate::outage::{Origin, Outage};

/// How long the look at start may take.
const AT_START: Duration = Duration::from_secs(10);
/// What is kept of a look's time for its answer to travel.
const MARGIN: Duration = Duration::from_millis(200);
/// Most that is kept of a question's time for its failure to travel: whoever asks reads it instead of silence.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long a server may take where an answer is waited for as long as this.
pub fn within(left: Duration) -> Duration {
    left - (left / 5).min(LAST_WORDS)
}

/// A failure, as far as it is reported.
pub trait Failure: Display {
    /// Why the server is away, or the status that it refused with.
    fn outage(&self) -> Option<Outage>;

    /// Whether it is the server that failed, and not the question or this machine.
    fn is_the_providers(&self) -> bool;
}

/// A client of a server that can be asked for its models.
pub trait Lists: Sync {
    /// What the server is called: `the model provider`.
    const SERVER: &'static str;
    /// What is said where there is none, as this process does the work.
    const NONE: &'static str;

    /// Asks for the models.
    fn listed(
        &self,
        within: Duration,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Listed> + Send;
}

/// A client with what is known of its server.
#[derive(Debug, Clone)]
pub struct ProviderClient<C> {
    /// The client.
    pub client: C,
    /// The server; `None` where this process does the work.
    pub origin: Option<Origin>,
    /// Whether looks and errors say the address.
    pub tells_address: bool,
}

impl<C: Lists> ProviderClient<C> {
    /// A failure as whoever runs the system reads it, and as whoever asked does, to whom it is `told` in these words.
    /// `None`: the server has no part in it.
    pub fn failed(
        &self,
        model: Option<&str>,
        error: &impl Failure,
        told: &str,
    ) -> Option<(String, String)> {
        let origin = self.origin.as_ref().filter(|_| error.is_the_providers())?;
        let (origin, outage) = (origin.asked_for(model), error.outage());
        let operators = origin.for_operators(outage, &error.to_string());
        Some((
            operators,
            origin.for_clients(outage, told, self.tells_address),
        ))
    }

    /// Whether the server answers and has the model, in a sentence.
    ///
    /// # Errors
    /// The sentence, where it does not.
    pub async fn look(
        &self,
        model: Option<&str>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let Some(origin) = &self.origin else {
            return Ok(C::NONE.to_owned());
        };
        let look = self.ask(&origin.asked_for(model), within, cancel).await;
        look.told(self.tells_address)
    }

    /// Looks once.
    ///
    /// # Errors
    /// What is wrong, for those who run the system.
    pub async fn look_at_start(&self, cancel: &CancellationToken) -> Result<(), String> {
        let Some(origin) = &self.origin else {
            return Ok(());
        };
        let looked = self.ask(origin, AT_START, cancel).await.operators;
        match cancel.is_cancelled() {
            true => Ok(()),
            false => looked.map(drop),
        }
    }

    async fn ask(&self, origin: &Origin, within: Duration, cancel: &CancellationToken) -> Look {
        let within = within.saturating_sub(MARGIN);
        Look::at(origin, C::SERVER, self.client.listed(within, cancel).await)
    }
}
