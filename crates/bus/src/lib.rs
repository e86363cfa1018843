//! What a bus can do, and the two buses that do it: [`embedded`] (inside this process, records on disk) and
//! [`rabbitmq`] (lapin).
//!
//! Records are **durable** and delivered **at least once**: they are kept until they are acknowledged, on the embedded bus
//! in a **write-ahead log**, and come again (**redelivery**) if their consumer goes before that. A publisher waits for
//! the **publisher confirm**; a consumer holds at most its **prefetch**, and what is beyond waits in the queue, which is
//! the bus's **backpressure**. An exclusive name is the bus's half of a **lease**.
//!
//! A bus moves envelopes between topics, subscriptions and inboxes. It knows nothing of answers, deadlines,
//! flows, retries or configuration: those are the layers above (`tg-rpc`, `tg-mesh`). One conformance suite
//! (`tests/conformance`) holds both adapters to the trait [`Bus`].

pub mod bus;
pub mod embedded;
pub mod handover;
mod in_hand;
pub mod mode;
pub mod pause;
pub mod rabbitmq;
mod tap;
pub mod task;

pub use bus::{
    Bus, BusError, Claim, Consume, Consumer, Delete, Deleted, Delivery, Envelope, Link,
    PublishMode, QueueState, Routed, Settle, Sink, Target,
};
pub use handover::Handover;
pub use mode::{Mode, WireRules};
pub use tap::Tap;
pub use task::{TaskKind, Tasks};
