//! A certificate and its key.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::pem::{self, FileError, Part, PemError};
use crate::provider;

/// The only protocol that is spoken over a connection.
const PROTOCOL: &[u8] = b"http/1.1";
/// What others than the owner may do with a file.
const OTHERS: u32 = 0o077;

/// Where a certificate and its key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairFiles {
    /// The certificate, and those between it and its authority.
    pub cert: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

impl PairFiles {
    /// Reads both, and holds them against each other.
    ///
    /// # Errors
    /// [`FileError`]: the file that is at fault, and how.
    pub fn read(&self) -> Result<Pair, FileError> {
        let of = |part: Part| move |why| part.fault(why);
        let cert = pem::read(&self.cert).map_err(of(Part::Cert))?;
        let chain = pem::certificates(&cert).map_err(of(Part::Cert))?;
        let key = pem::read(&self.key).map_err(of(Part::Key))?;
        let key = pem::key(&key).map_err(of(Part::Key))?;
        let (begins, ends) = validity(&chain).map_err(of(Part::Cert))?;
        matched(&chain, &key)?;
        Ok(Pair {
            chain,
            key,
            begins,
            ends,
            is_open: is_open(&self.key),
        })
    }
}

/// What the files of a pair hold. Its key is never shown.
#[derive(PartialEq, Eq)]
pub struct Pair {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    begins: i64,
    ends: i64,
    is_open: bool,
}

impl Pair {
    /// When the certificate ends, in seconds since 1970.
    pub fn ends(&self) -> i64 {
        self.ends
    }

    /// Whether the certificate is good at a time, in seconds since 1970.
    pub fn is_valid_at(&self, now: i64) -> bool {
        (self.begins..=self.ends).contains(&now)
    }

    /// Whether others than its owner may read the file with the key.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// How a server of HTTP shows it.
    ///
    /// # Errors
    /// [`FileError`] where TLS knows no such certificate.
    pub fn server(&self) -> Result<Arc<ServerConfig>, FileError> {
        let unfit = |_| Part::Cert.fault(PemError::Unfit);
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(unfit)?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(unfit)?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Arc::new(config))
    }

    /// Chain and key, for who shows them as a client.
    pub(crate) fn into_parts(self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.chain, self.key)
    }
}

/// From when until when the first certificate is good.
fn validity(chain: &[CertificateDer<'static>]) -> Result<(i64, i64), PemError> {
    let first = chain.first().ok_or(PemError::NoCertificate)?;
    let (_, read) = X509Certificate::from_der(first).map_err(|_| PemError::NoCertificate)?;
    let validity = read.validity();
    Ok((
        validity.not_before.timestamp(),
        validity.not_after.timestamp(),
    ))
}

/// Whether the key is one for TLS, and the certificate's.
fn matched(
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
) -> Result<(), FileError> {
    match CertifiedKey::from_der(chain.to_vec(), key.clone_key(), &provider()) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => Err(Part::Key.fault(PemError::Mismatch)),
        Err(rustls::Error::InvalidCertificate(_)) => Err(Part::Cert.fault(PemError::Unfit)),
        Err(_) => Err(Part::Key.fault(PemError::OtherKind)),
    }
}

fn is_open(path: &Path) -> bool {
    let about = std::fs::metadata(path);
    about.is_ok_and(|about| about.permissions().mode() & OTHERS != 0)
}
