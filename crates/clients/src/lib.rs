//! Typed clients of our services, one file per service asked. A service knows another only through one of these or
//! as a queue.
//!
//! What a foreign service of the same kind needs instead (interop mode) is decided here, not in who asks.
//!
//! * [`agent_runs`]: which runs of the agent go on without their caller, and ending one.
//! * [`audit`]: what happened, counted, and where it is kept.
//! * [`collections`]: which collections there are, making one.
//! * [`config`]: rows of configuration, where it must be certain.
//! * [`embeddings`]: texts as vectors.
//! * [`flow_records`]: what a flow is, and what its processors have in it.
//! * [`flows`]: which flows there are, starting and stopping them.
//! * [`generations`]: whether the configuration lists deleted workspaces.
//! * [`graph`]: whether the graph is a store of ours.
//! * [`kept_streams`]: streams that another gateway keeps.
//! * [`library`]: documents, their content, what is made of them, uploads.
//! * [`listeners`]: whoever takes messages on a thread, and how they learn of threads that ended.
//! * [`model_calls`]: calls of models that no run makes, reserved and counted by the agent.
//! * [`neighbours`]: what may be counted on of others at all.
//! * [`operations`]: operations as types, served and called.
//! * [`pictures`]: what pictures show.
//! * [`prompt`]: texts that a model writes by a template.
//! * [`rendering`]: the prompts of workspaces, ready to be rendered where they are asked for.
//! * [`session_notices`]: what is said in a session beyond its turns.
//! * [`text_completion`]: which model replies.
//! * [`traces`]: what an answer leaves behind, its texts in the library and its entries in the graph.

pub mod agent_runs;
pub mod audit;
mod caller;
pub mod collections;
pub mod config;
pub mod embeddings;
pub mod flow_records;
pub mod flows;
pub mod generations;
pub mod graph;
pub mod kept_streams;
pub mod library;
pub mod listeners;
pub mod measure;
pub mod model_calls;
mod native;
pub mod neighbours;
pub mod operations;
pub mod pictures;
pub mod prompt;
pub mod rendering;
pub mod session_notices;
pub mod text_completion;
pub mod traces;
