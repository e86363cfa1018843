//! The service over the bus: flows, questions and stores as in a running system.

mod documents;
mod judged;
mod keeping;
mod loading;
mod world;
