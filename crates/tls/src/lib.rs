//! TLS from files in PEM form: what a server shows of itself, and whom a client trusts.
//!
//! * [`PairFiles`] are a certificate and its key; [`Pair`] is what they hold, held against each other, as the gateway
//!   serves it ([`Pair::server`]) and a client shows it.
//! * [`ClientFiles`] say whom a client trusts and what it shows: [`ClientFiles::config`]. Without a file of authorities
//!   these are the machine's, or the well-known ones that are compiled in; with one, those in it and nobody else.
//! * [`HandshakeError`] is what an error says of a connection that did not become a secure one.
//!
//! One provider, ring, and no way to leave verification out. Nothing here opens a connection, waits or logs; errors say
//! what is wrong with a file, never where it is or what it holds. Reading blocks.

mod client;
mod handshake;
mod pair;
mod pem;

pub use client::ClientFiles;
pub use handshake::HandshakeError;
pub use pair::{Pair, PairFiles};
pub use pem::{FileError, Part, PemError};
pub use rustls;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// What computes, for servers and clients alike.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
