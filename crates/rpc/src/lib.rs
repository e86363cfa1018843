//! Questions with resumable answers, and records, over a bus.
//!
//! * [`Peer`]: a process's place among others: it asks ([`Peer::ask`]), answers (through [`ReplyServer`]) and
//!   writes records ([`Peer::record`]).
//! * [`RequestClient`]: the asking end. It matches parts by **correlation id**, orders them by sequence number,
//!   requests **retransmission**, detects a server that died, and enforces the deadline.
//! * [`ReplyServer`]: the answering end. It numbers the parts, keeps them in a **retransmit buffer**, sends a
//!   **heartbeat** while silent, applies **backpressure** by a window of parts and bytes, and stops on cancel.
//! * [`near::NearServers`]: servers of this process that its own questions reach without the broker.
//! * [`AwaitedReceipts`]: the receipts that the writer of records waits for; [`ReceiptSender`] sends them for
//!   records that were kept or refused.
//! * [`Answer`] reads one answer, [`Responder`] writes one.
//!
//! A question's id is its **idempotency key**: asked again under it, work that is still going on is found again, and work
//! that a ledger knows is not done twice. A record is written **at least once**; its readers know it by its id.
//!
//! Nothing here knows processors, flows or configuration. The state of one exchange is a pure machine
//! (`exchange.rs`); clocks come in as instants, so its timing is tested on paused time.

pub mod address;
pub mod answer;
mod ask;
pub mod awaited;
mod cancelled;
pub mod client;
pub mod clock;
pub mod control;
pub mod deadline;
mod ended;
mod exchange;
#[cfg(test)]
mod fuzz;
mod joined;
mod liveness;
pub mod near;
#[cfg(test)]
mod noted;
pub mod peer;
pub mod port;
mod question;
pub mod receipts;
pub(crate) mod relays;
pub(crate) mod reorder;
pub mod responder;
mod rivals;
pub mod server;
pub mod stream;
pub mod together;
pub mod window;

pub use address::{AskerState, ReplyAddress};
pub use answer::Answer;
pub use ask::Ask;
pub use awaited::{Awaited, AwaitedReceipts, PartFate};
pub use client::RequestClient;
pub use deadline::Deadline;
pub use exchange::Stands;
pub use peer::{Peer, PeerOptions};
pub use port::Port;
pub use receipts::ReceiptSender;
pub use reorder::interrupted;
pub use responder::Responder;
pub use server::ReplyServer;
pub use stream::ReplyStream;
pub use together::Relay;
