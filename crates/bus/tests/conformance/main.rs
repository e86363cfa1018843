//! One suite for every bus in both modes, then what only one of them promises.

mod embedded;
mod rabbitmq;
mod suite;
