//! What never happens, held: the list of ARCHITECTURE.md, one file per kind of rule.

mod circles;
mod docs;
mod habits;
mod rings;
mod shape;
mod sizes;
