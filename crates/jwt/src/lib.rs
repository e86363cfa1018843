//! Signed tokens of the iam service: compact JWS with Ed25519 and nothing else. Who verifies chooses the algorithm, never
//! the token; a key is found by its id among those that are known, and none is ever taken from a token.
//!
//! Also what else is signed by such keys, as texts with a signature beside them.
//!
//! Pure: no clock, no store. Over `ring`, which TLS brings anyway; a library for every algorithm of JOSE would be many
//! times this.

mod claims;
mod detached;
mod keys;
mod token;

pub use claims::{Claims, ISSUER, LIFETIME};
pub use keys::{KeyError, PublicKey, PublicKeys, SigningKey};
pub use token::{LONGEST, Refusal, SKEW, is_plausible};

#[cfg(test)]
mod tests;
