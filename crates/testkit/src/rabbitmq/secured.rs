//! A node that speaks TLS, too.

use std::path::PathBuf;

/// What a node shows on a port of its own for TLS.
#[derive(Debug, Clone)]
pub struct Secured {
    /// Whose certificates it takes.
    pub ca: PathBuf,
    /// Its certificate.
    pub cert: PathBuf,
    /// The key of that.
    pub key: PathBuf,
    /// Whether it lets only those in that show a certificate.
    pub asks: bool,
}

impl Secured {
    /// The same in the node's own words.
    pub(super) fn lines(&self, port: u16) -> String {
        let verify = if self.asks {
            "verify_peer"
        } else {
            "verify_none"
        };
        format!(
            "listeners.ssl.1 = 127.0.0.1:{port}\nssl_options.cacertfile = {}\nssl_options.certfile = {}\n\
             ssl_options.keyfile = {}\nssl_options.verify = {verify}\nssl_options.fail_if_no_peer_cert = {}\n",
            self.ca.display(),
            self.cert.display(),
            self.key.display(),
            self.asks
        )
    }
}
