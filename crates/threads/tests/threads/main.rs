//! Threads as their promises say, each test under the number of its line of the contract.

mod boot_and_console;
mod chains;
mod costs;
mod faults;
mod mapping;
mod properties;
mod world;
