//! The mesh over the embedded bus: what handlers and askers may rely on.

mod again;
mod dialogs;
mod fake_config;
mod forwards;
mod owners;
mod records;
mod serving;
mod stopping;
mod together;
