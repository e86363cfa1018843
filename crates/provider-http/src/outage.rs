//! Why a server brought no answer, as operators read of it.

use std::error::Error;
use std::fmt;
use std::io;

use crate::egress::DeniedAddress;

/// Why there was no connection, or no answer on one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// Nobody listens at the address.
    #[error("connection refused")]
    Refused,
    /// The host's name is not known.
    #[error("the host's name is not known")]
    Unresolved,
    /// There was no connection in time.
    #[error("no connection in time")]
    Slow,
    /// No network leads to the address.
    #[error("no route to the host")]
    NoRoute,
    /// No encrypted connection: no certificate that is trusted, or no TLS at all.
    #[error("no trusted TLS connection")]
    Untrusted,
    /// It is, or leads to, an address that this client does not go to.
    #[error("it leads to an address that is not allowed")]
    Denied,
    /// The connection broke before an answer began.
    #[error("the connection was lost")]
    Broken,
}

impl Cause {
    /// What a failure of the transport says.
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        let mut inner: Option<&(dyn Error + 'static)> = error.source();
        while let Some(here) = inner {
            if here.is::<rustls::Error>() {
                return Self::Untrusted;
            }
            if here.is::<DeniedAddress>() {
                return Self::Denied;
            }
            if let Some(io) = here.downcast_ref::<io::Error>() {
                match io.kind() {
                    io::ErrorKind::ConnectionRefused => return Self::Refused,
                    io::ErrorKind::TimedOut => return Self::Slow,
                    io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                        return Self::NoRoute;
                    }
                    _ => {}
                }
                let wrapped = io.get_ref();
                if wrapped.is_some_and(|wrapped| wrapped.is::<rustls::Error>()) {
                    return Self::Untrusted;
                }
            }
            // The resolver has no error of its own kind, but where the name stands for addresses that are denied.
            if here.to_string() == "dns error" {
                let mut causes = std::iter::successors(here.source(), |cause| (*cause).source());
                return match causes.any(|cause| cause.is::<DeniedAddress>()) {
                    true => Self::Denied,
                    false => Self::Unresolved,
                };
            }
            inner = here.source();
        }
        match error.is_timeout() {
            true => Self::Slow,
            false => Self::Broken,
        }
    }
}

/// A server that is away, out of order for now, or refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// It cannot be reached.
    Unreachable(Cause),
    /// It answers with a status that passes, such as 503.
    Status(u16),
    /// It refuses the request with a status that stays, such as 401.
    Refused(u16),
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(cause) => cause.fmt(f),
            Self::Status(status) | Self::Refused(status) => write!(f, "HTTP {status}"),
        }
    }
}

/// A server as operators know it: where it is, which setting or variable says so, and the model that is asked there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its address, without credentials.
    address: String,
    /// The setting or variable that chose it.
    set_by: &'static str,
    /// Name of the model.
    model: String,
}

impl Origin {
    /// A server at an address, of which credentials are left out.
    pub fn new(url: &str, set_by: &'static str, model: &str) -> Self {
        Self {
            address: without_credentials(url),
            set_by,
            model: model.to_owned(),
        }
    }

    /// The same server, asked for another model, if one is named.
    #[must_use]
    pub fn asked_for(&self, model: Option<&str>) -> Self {
        Self {
            model: model.unwrap_or(&self.model).to_owned(),
            ..self.clone()
        }
    }

    /// The address, without credentials.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Who chose the server, and the model.
    pub fn told(&self) -> String {
        format!("set by {}; model {}", self.set_by, self.model)
    }

    /// A failure as whoever asks reads it: with the address only where whoever asks runs the system.
    pub fn for_clients(&self, outage: Option<Outage>, failure: &str, with_address: bool) -> String {
        let (at, told) = (&self.address, self.told());
        match (outage, with_address) {
            (Some(outage), true) => format!("{failure} ({outage} at {at}); {told}"),
            (Some(outage), false) => format!("{failure} ({outage}); {told}"),
            (None, true) => format!("{failure} ({at}); {told}"),
            (None, false) => format!("{failure}; {told}"),
        }
    }

    /// A failure as who runs the system reads it, in a log or a check.
    pub fn for_operators(&self, outage: Option<Outage>, failure: &str) -> String {
        let (at, told) = (&self.address, self.told());
        match outage {
            Some(Outage::Unreachable(cause)) => format!("cannot reach {at} ({cause}); {told}"),
            Some(outage @ Outage::Status(_)) => {
                format!("{at} is failing ({outage}); {told}")
            }
            Some(Outage::Refused(_)) | None => self.for_clients(outage, failure, true),
        }
    }
}

/// An address without user, password and query, which may hold keys.
pub fn without_credentials(url: &str) -> String {
    let Ok(mut parsed) = reqwest::Url::parse(url) else {
        return "an address that cannot be read".to_owned();
    };
    // Only addresses that have no host have no place for a user.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.set_fragment(None);
    parsed.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_told_without_credentials() {
        let origin = Origin::new("http://u:hidden@h.example:1/v1/?key=hidden", "llm.url", "m");
        assert_eq!(origin.address(), "http://h.example:1/v1");
        let refused = Some(Outage::Refused(401));
        for (outage, with_address, told) in [
            (None, false, "it broke; set by llm.url; model m"),
            (
                refused,
                false,
                "it broke (HTTP 401); set by llm.url; model m",
            ),
            (
                refused,
                true,
                "it broke (HTTP 401 at http://h.example:1/v1); set by llm.url; model m",
            ),
        ] {
            assert_eq!(origin.for_clients(outage, "it broke", with_address), told);
        }
        for (outage, told) in [
            (
                Some(Outage::Unreachable(Cause::Refused)),
                "cannot reach http://h.example:1/v1 (connection refused); set by llm.url; model m",
            ),
            (
                Some(Outage::Status(503)),
                "http://h.example:1/v1 is failing (HTTP 503); set by llm.url; model m",
            ),
            (
                refused,
                "it broke (HTTP 401 at http://h.example:1/v1); set by llm.url; model m",
            ),
            (
                None,
                "it broke (http://h.example:1/v1); set by llm.url; model m",
            ),
        ] {
            assert_eq!(origin.for_operators(outage, "it broke"), told);
        }
        let other = origin.asked_for(Some("n"));
        assert_eq!((other.model(), other.asked_for(None).model()), ("n", "n"));
        assert!(!format!("{origin:?}").contains("hidden"));
        assert!(!without_credentials("hidden").contains("hidden"));
    }
}
