//! The gateway's endpoints as a client sees them: REST, the multiplexed socket, the import and
//! export sockets.
//!
//! Nothing here prints or knows a command.

mod error;
mod events;
mod export;
mod http;
mod import;
mod operations;
mod pages;
mod settled;
mod socket;
mod tls;

pub use error::{Error, NO_FLOW, Result};
pub use events::Events;
pub use export::{Export, Passed};
pub use http::{Http, Streamed, base_url};
pub use import::{Import, Tell};
pub use settled::Settled;
pub use socket::{Call, Replies, Socket};

use std::sync::Once;

/// Makes ring the process's TLS provider; later calls do nothing.
pub fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that another provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
