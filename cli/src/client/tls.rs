//! Whom a command trusts to be the gateway: the machine's authorities, or those of a file. There is no way not to ask.

use std::error::Error as StdError;

use tg_tls::rustls::ClientConfig;
use tg_tls::{ClientFiles, HandshakeError};

use super::error::{Error, Result};
use crate::args::Options;

/// How connections to the gateway are made secure.
///
/// # Errors
/// [`Error::Usage`] where the file with the authorities cannot serve.
pub(super) fn config(options: &Options) -> Result<ClientConfig> {
    let files = ClientFiles::trusting(options.ca_file.as_deref());
    files.config().map_err(|fault| {
        let path = options.ca_file.clone().unwrap_or_default();
        Error::Usage(format!("--ca-file {}: {}", path.display(), fault.why))
    })
}

/// Why a connection did not become a secure one, where that is why it failed.
pub(super) fn reason(error: &(dyn StdError + 'static)) -> Option<String> {
    let text = match HandshakeError::of(error)? {
        HandshakeError::Untrusted => {
            "its certificate is signed by no authority that is trusted here; --ca-file names the file of the one that \
             signed it"
        }
        HandshakeError::OtherHost => {
            "its certificate is for another host: --url must name one that it is for"
        }
        HandshakeError::NotNow => "its certificate is not valid at this time",
        HandshakeError::NoTls => "this port speaks http, not https",
        other => return Some(other.to_string()),
    };
    Some(text.to_owned())
}
