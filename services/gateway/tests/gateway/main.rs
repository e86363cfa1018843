//! The gateway from outside: HTTP and WebSocket clients against a mesh in this process, whose services
//! are fakes hosted here.

mod access;
mod bulk;
mod fakes;
mod flows;
mod leaks;
mod observe;
mod rest;
mod socket;
mod world;
