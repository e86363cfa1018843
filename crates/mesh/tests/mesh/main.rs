//! The mesh on both buses: what handlers and askers may rely on.

mod again;
mod answering;
mod config_reads;
mod dialogs;
mod forwards;
mod idle;
mod large;
mod near;
mod owners;
mod records;
mod refused_purges;
mod serving;
mod slow;
mod spans;
mod stopping;
mod three;
mod together;
