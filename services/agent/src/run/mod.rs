//! Runs: a step record takes one step, a ledger row comes before whatever follows from it.
//!
//! `route` settles by which pattern, as `routers` has it from configuration · `step` begins steps, at once or from their
//! records · `execution` takes one step · `think` asks the model, `saying` sends what it says, `compact` what it is shown of earlier steps · `plan` has it plan ahead · `subagents` splits a question, `delegate` gives work
//! to other agents, `giving` gives it without waiting, `graphs` gives several that depend on each other, `tasking` is what is not waited for, with what this process knows of it in `tasks`, `announce` announces what came of it, `program` has a program do it, `fan_in` waits for the runs that they are, within `slots`,
//! `went` is what a subagent's step gives to that · `texts` is what a step leaves in the library, `entries` what in the trace · `act` uses the tool, `together` several side by side, `calling` is one call, `again` when a call is repeated, `ready` what it is made with, `confirm` asks the user before, `hooks` the flow ·
//! `guard` breaks loops · `polls` has a poll wait · `budget` ends what takes too much, `ahead` reserves for the next step, `stopped` is how, `outside` are calls that no run makes · `ids` are those of new runs · `recorded` is
//! whether it may say what it thinks · `leases` is what this process knows of steps under way · `agent` is what all share ·
//! `telling` is what a step knows of who may join its run, `transcript` what it has told, within `rooms`, `remembered` how that comes there, `grace` how
//! long a run goes on without anybody who listens · `forgetting` takes what is too old out of the ledger ·
//! `record` keeps what is heard of the outside, which is by `hearing` where it is a model, and by `rows` where it is
//! configuration, `servers` being what servers of tools have; `replay` runs it again, with `playback` in place of the outside, and subagents by `subagents_again` · `summaries` is what was summed up, after the fact.

mod act;
mod again;
pub(crate) mod agent;
mod ahead;
mod announce;
mod asks;
pub(crate) mod budget;
mod calling;
mod compact;
mod confirm;
pub(crate) mod day;
mod delegate;
mod entries;
pub(crate) mod execution;
mod fan_in;
pub(crate) mod forgetting;
mod giving;
pub(crate) mod grace;
mod graphs;
mod guard;
mod hearing;
mod hooks;
pub(crate) mod ids;
mod late;
pub(crate) mod leases;
pub(crate) mod outside;
mod plan;
mod playback;
mod polls;
mod program;
mod ready;
pub(crate) mod record;
pub(crate) mod recorded;
mod remembered;
pub(crate) mod replay;
mod rooms;
pub(crate) mod route;
mod routers;
mod rows;
mod saying;
mod servers;
mod slots;
pub(crate) mod step;
mod stopped;
mod subagents;
mod subagents_again;
pub(crate) mod summaries;
pub(crate) mod tasking;
mod tasks;
mod telling;
mod texts;
mod think;
mod titles;
mod together;
mod tools;
pub(crate) mod transcript;
mod went;

pub use agent::Agent;
pub(crate) use agent::STORE;
pub use tools::WATCHED;

#[cfg(test)]
mod tests;
