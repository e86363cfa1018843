//! One suite for every bus in both modes, then what only one of them promises.

mod cluster;
mod embedded;
mod held;
mod in_hand;
mod queues;
mod rabbitmq;
mod rooms;
mod suite;
