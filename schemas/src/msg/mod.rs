//! Message bodies, one module per area. Every field of an incoming message may be absent or `null`.

pub mod agent;
pub mod audit;
pub mod chat;
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
pub mod measure;
pub mod metadata;
pub mod native;
pub mod neighbours;
pub mod operations;
pub mod policy;
pub mod rag;
pub mod receipts;
pub mod reindex;
pub mod reranker;
pub mod run;
pub mod streams;
pub mod structured;
pub mod tasks;
pub mod threads;
pub mod traces;
pub mod usage;
pub mod violations;

pub use agent::*;
pub use audit::*;
pub use chat::*;
pub use control::*;
pub use data::*;
pub use embeddings::*;
pub use graph::*;
pub use iam::*;
pub use image::*;
pub use knowledge::*;
pub use library::*;
pub use llm::*;
pub use measure::*;
pub use metadata::*;
pub use native::*;
pub use neighbours::*;
pub use operations::*;
pub use policy::*;
pub use rag::*;
pub use receipts::*;
pub use reindex::*;
pub use reranker::*;
pub use run::*;
pub use streams::*;
pub use structured::*;
pub use tasks::*;
pub use threads::*;
pub use traces::*;
pub use usage::*;
pub use violations::*;

/// Ties a body type to its name and its checked-in Avro schema. A record is told as one by `RECORD`; of the pipeline by `metadata`, the
/// field that says what it is about.
macro_rules! message {
    ($name:ident $(, $about:ident)? $(; $record:ident)?) => {
        impl crate::Message for $name {
            $(const $record: bool = true;)?
            $(
                const RECORD: bool = true;

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
