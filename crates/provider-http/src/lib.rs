//! How the services speak to servers of others (model providers, rerankers, MCP servers) over HTTP.
//!
//! * [`HttpClient`] sends requests and reads bounded answers; [`client`] makes the bare client for libraries
//!   that bring their own protocol. Both work on machines without certificates.
//! * [`HttpError`] says what kind of failure it was, never in the words of the other side.
//! * [`retry_after`] reads the pause that a refusal asks for; [`Backoff`] decides when to try again.
//! * [`Outage`] says why a server is away, and [`Origin`] which one it is, for operators.
//! * [`Look`] holds the list of a server's models against the one that is asked for; a [`ProviderClient`] takes looks, and tells
//!   failures with where they come from.
//! * [`Secret`] holds a key that must never be shown.
//! * A server on loopback is never asked through a proxy that the environment names ([`is_loopback`]).
//! * Where addresses are denied, names resolve to others only ([`Limits::reach`], [`Reach`]).
//! * [`address`], [`sendable`] and [`ollama_address`] are what the settings of providers have in common; [`is_listened_on`] and
//!   [`not_of_gateway`] find the gateway itself, and its keys, in the place of a provider and of its key.
//!
//! Nothing here logs an address, a header or a body; who logs an address takes it from [`Origin`], without credentials. Nothing names
//! a provider's vocabulary, but for the words by which [`Refusal::excess`] knows that less may be taken, or one of our services.
//!
//! ```
//! use std::time::Duration;
//! use tg_provider_http::{Again, Backoff, Secret};
//!
//! let backoff = Backoff { attempts: 3, ..Backoff::default() };
//! let left = Duration::from_secs(60);
//! // The first failure; the other side asked for two seconds; chance adds nothing here.
//! let pause = backoff.pause(Again::After(Duration::from_secs(2)), 1, left, 0.0);
//! assert_eq!(pause, Some(Duration::from_secs(2)));
//! assert_eq!(format!("{:?}", Secret::new("sk-1")), "***");
//! ```

mod answer;
mod backoff;
mod client;
mod credentials;
mod egress;
mod error;
mod listing;
mod outage;
mod provider_client;
mod retry_after;
mod secret;
mod settings;

pub use answer::Answer;
pub use backoff::{Again, Backoff};
pub use client::{HttpClient, Limits, client, client_with};
pub use credentials::{Credentials, Keys};
pub use egress::{DeniedAddress, Reach, is_public};
pub use error::{Excess, HttpError, NoClient, Refusal};
pub use listing::{Listed, Look};
pub use outage::{Cause, Origin, Outage, without_credentials};
pub use provider_client::{Failure, Lists, ProviderClient, within};
pub use retry_after::retry_after;
pub use secret::{Secret, by_reference};
pub use settings::{
    address, is_listened_on, is_loopback, is_same_server, not_of_gateway, ollama_address, sendable,
};

#[cfg(test)]
mod tests;
