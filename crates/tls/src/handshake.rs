//! Why two sides did not come to a secure connection, as far as one of them can know.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Why a connection did not become a secure one, as its client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// By nobody that is trusted.
    #[error("the certificate is signed by no authority that is trusted")]
    Untrusted,
    /// Not for the host that was asked for.
    #[error("the certificate is for another host")]
    OtherHost,
    /// It has ended, or has not begun.
    #[error("the certificate is not valid at this time")]
    NotNow,
    /// Nobody can tell who made it, or what for.
    #[error("the certificate is not valid")]
    Invalid,
    /// The other side does not speak it.
    #[error("the other side speaks no TLS")]
    NoTls,
    /// The other side wants to be shown one.
    #[error("the other side asks for a certificate")]
    Required,
    /// The other side does not take the one that it was shown.
    #[error("the other side refuses the certificate that it is shown")]
    Refused,
    /// Anything else.
    #[error("the two sides find no way to a secure connection")]
    Other,
}

impl HandshakeError {
    /// What an error has to do with TLS; `None`: nothing.
    pub fn of(error: &(dyn StdError + 'static)) -> Option<Self> {
        cause(error).map(Self::read)
    }

    fn read(fault: &Error) -> Self {
        match fault {
            Error::InvalidCertificate(fault) => Self::certificate(fault),
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => Self::NoTls,
            Error::AlertReceived(alert) => Self::alert(*alert),
            _ => Self::Other,
        }
    }

    fn certificate(fault: &CertificateError) -> Self {
        match fault {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::OtherHost
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::NotNow,
            _ => Self::Invalid,
        }
    }

    /// With older versions of the protocol a server that misses a certificate only says that it failed.
    fn alert(alert: AlertDescription) -> Self {
        match alert {
            AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
                Self::Required
            }
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied => Self::Refused,
            _ => Self::Other,
        }
    }
}

/// The fault of TLS in an error, however deep.
fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    let mut at = Some(error);
    while let Some(error) = at {
        let boxed = || error.downcast_ref::<Box<Error>>().map(|held| &**held);
        if let Some(fault) = error.downcast_ref::<Error>().or_else(boxed) {
            return Some(fault);
        }
        // An I/O error passes over what it holds when it is asked for its source.
        at = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(held) => Some(held),
            None => error.source(),
        };
    }
    None
}
