//! Files in PEM form, bounded, and what may be wrong with one.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Largest file: all authorities of a distribution are a quarter of that.
const LONGEST: u64 = 1 << 20;

/// Which of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The authorities that are trusted.
    Ca,
    /// The certificate.
    Cert,
    /// Its key.
    Key,
}

/// As the settings of files end.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ca => "ca",
            Self::Cert => "cert",
            Self::Key => "key",
        })
    }
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// There is none, or not for us.
    #[error("the file cannot be read ({0})")]
    Unreadable(ErrorKind),
    /// Nothing that holds certificates is as large.
    #[error("the file must be at most 1 MiB")]
    TooLarge,
    /// No certificate in it, or a broken one.
    #[error("the file must hold certificates in PEM form")]
    NoCertificate,
    /// No key in it, or one that needs a password.
    #[error(
        "the file must hold a private key in PEM form (PKCS#8, PKCS#1 or SEC1) that is not encrypted"
    )]
    NoKey,
    /// A key that TLS has no use for.
    #[error("the key must be an RSA, ECDSA or Ed25519 key")]
    OtherKind,
    /// A certificate and the key of another.
    #[error("the key must be the one that the certificate was made for")]
    Mismatch,
    /// Certificates of a kind that TLS has no use for.
    #[error("the file must hold certificates that TLS can use")]
    Unfit,
}

/// A file that cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {why}")]
pub struct FileError {
    /// Which one.
    pub part: Part,
    /// What is wrong with it.
    pub why: PemError,
}

impl Part {
    pub(crate) fn fault(self, why: PemError) -> FileError {
        FileError { part: self, why }
    }
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, PemError> {
    let unreadable = |fault: std::io::Error| PemError::Unreadable(fault.kind());
    // Asked first: opening a pipe waits until somebody writes.
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(PemError::Unreadable(ErrorKind::InvalidInput));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    match bytes.len() as u64 > LONGEST {
        true => Err(PemError::TooLarge),
        false => Ok(bytes),
    }
}

/// All certificates of a text, at least one.
pub(crate) fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let all = all.map_err(|_| PemError::NoCertificate)?;
    match all.is_empty() {
        true => Err(PemError::NoCertificate),
        false => Ok(all),
    }
}

/// The first key of a text.
pub(crate) fn key(text: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|_| PemError::NoKey)
}
