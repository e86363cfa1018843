//! The fabric: everything that happens is a message on a named queue.
//!
//! * [`bus`]: what a bus can do; adapters [`embedded`] (in this process, records on disk) and
//!   [`rabbitmq`] (lapin).
//! * [`Mesh`]: one per process. Questions ([`Mesh::ask`](tg_rpc::Peer::ask)) are answered once, in order, or end with an
//!   error before their deadline. Records ([`Mesh::record`](tg_rpc::Peer::record)) live until their effect does.
//! * [`Processor`]: what a service hosts. Handlers implement [`RequestHandler`] (questions) or [`RecordConsumer`] (records)
//!   and see a [`Cx`]; the runtime attaches them per system, workspace or flow as config says.
//! * [`ConfigView`]: the configuration that this process watches, always whole, never half a change.
//!
//! A record is handled **at least once**: it is acknowledged after its effect. One that cannot be handled now becomes a
//! **dead letter** ([`dead_letter`]), to be retried, parked or kept; what was sent in a **generation** of its workspace that
//! has ended by a **tombstone** is not handled at all. A store has one owner at a time, who holds its **lease**
//! ([`leased_store`]); others are on **standby**. A message of another **epoch** of a flow is refused.
//!
//! Handlers never see headers' bookkeeping, acknowledgements, retries or queue names.
//!
//! ```
//! # use std::sync::Arc;
//! # use async_trait::async_trait;
//! # use tg_mesh::{Cx, Host, Processor, RequestHandler, Responder};
//! # use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
//! # use tg_schemas::processors::text_completion;
//! # use tg_schemas::Error;
//! struct Echo;
//!
//! #[async_trait]
//! impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Echo {
//!     async fn serve(
//!         &self,
//!         cx: Cx,
//!         question: TextCompletionRequest,
//!         mut out: Responder<TextCompletionResponse>,
//!     ) -> Result<(), Error> {
//!         // One part or many; the last has `end_of_stream` set. An error becomes the type's failure reply.
//!         // `cx.cancel` and `cx.deadline` bound the work.
//!         out.send(TextCompletionResponse {
//!             response: question.prompt,
//!             model: cx.parameter("model").map(str::to_owned),
//!             end_of_stream: true,
//!             ..TextCompletionResponse::default()
//!         })
//!         .await
//!     }
//! }
//!
//! # async fn start(host: Host) -> Result<(), Error> {
//! let completion = Processor::new(text_completion::PROCESSOR).serves(text_completion::REQUEST, Arc::new(Echo));
//! host.host(completion).await
//! # }
//! ```

mod announce;
mod answer_on;
mod attached;
pub mod config_source;
pub mod config_view;
mod config_watch;
mod consume_sink;
pub mod dead_letter;
mod derived;
mod erased;
pub mod fair;
mod handler;
mod host;
mod instance;
mod instance_state;
mod intake;
mod lease_record;
pub mod leased_store;
mod leases;
pub mod mesh;
pub mod middleware;
mod near;
pub mod presence;
pub mod processor;
mod receipt;
mod room;
mod runtime;
pub mod scope;
mod serve_sink;
pub mod tap;
mod wiring;
mod writer_schemas;

pub use announce::{tell_disk, tell_full_rooms, tell_purging};
pub use answer_on::answer_on;
pub use config_source::ConfigSource;
pub use config_view::ConfigView;
pub use derived::Derived;
pub use handler::{ConsumeError, IsDone, RecordConsumer, RequestHandler};
pub use host::Host;
pub use leased_store::{Leased, LeasedStore, OpenError};
pub use mesh::Mesh;
pub use presence::PresenceView;
pub use processor::Processor;
pub use scope::{Cx, InstanceScope};
pub use tap::Tap;
pub use tg_bus::TaskKind;
pub use tg_bus::{self, Bus, BusError, Envelope, Mode, WireRules, bus, embedded, rabbitmq, task};
pub use tg_rpc::{
    Answer, Ask, AskerState, Awaited, Deadline, PartFate, Peer, PeerOptions as MeshOptions, Relay,
    ReplyAddress, Responder, Stands, answer, clock, deadline, responder,
};
pub use tg_telemetry::{self as telemetry, Span, SpanKind};
#[doc(hidden)]
pub use tracing;
