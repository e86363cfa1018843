//! Message bodies, one module per area. Every field of an incoming message may be absent or `null`.

pub mod agent;
pub mod audit;
pub mod control;
pub mod data;
pub mod embeddings;
pub mod graph;
pub mod iam;
pub mod image;
pub mod knowledge;
pub(crate) mod lenient;
pub mod library;
pub mod llm;
pub mod metadata;
pub mod native;
pub mod neighbours;
pub mod policy;
pub mod rag;
pub mod reindex;
pub mod structured;
pub mod traces;
pub mod violations;

pub use agent::*;
pub use audit::*;
pub use control::*;
pub use data::*;
pub use embeddings::*;
pub use graph::*;
pub use iam::*;
pub use image::*;
pub use knowledge::*;
pub use library::*;
pub use llm::*;
pub use metadata::*;
pub use native::*;
pub use neighbours::*;
pub use policy::*;
pub use rag::*;
pub use reindex::*;
pub use structured::*;
pub use traces::*;
pub use violations::*;

/// Ties a body type to its name and its checked-in Avro schema; `metadata` is the field that says what a record of the
/// pipeline is about.
macro_rules! message {
    ($name:ident $(, $about:ident)?) => {
        impl crate::Message for $name {
            $(
                fn for_collection(&self) -> Option<&str> {
                    self.$about.as_ref().map(|about| about.collection())
                }
            )?

            const NAME: &'static str = stringify!($name);
            const AVRO: &'static str =
                include_str!(concat!("../../avro/", stringify!($name), ".avsc"));
        }
    };
}
pub(crate) use message;
