//! What never happens, held: the list of ARCHITECTURE.md, one file per kind of rule.

mod bans;
mod beside;
mod circles;
mod clocks;
mod declared;
mod docs;
mod habits;
mod limits;
mod listed;
mod logs;
mod metrics;
mod named;
mod once;
mod rings;
mod shape;
mod sizes;
mod texts;
