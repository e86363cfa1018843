//! The clients and the commands against a gateway made by hand.

mod added;
mod clients;
mod commands;
mod console;
mod embeds;
mod fake;
mod files;
mod imported;
mod models;
mod program;
mod sessions;
mod streams;
mod structured;
mod tables;
mod talk;
mod traces;
mod uploads;
mod verified;
