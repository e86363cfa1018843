//! Authorities and certificates of the moment, in files as programs are given them; and what a server shows.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tg_tls::ClientFiles;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longest wait for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Whoever signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// One of this name.
    ///
    /// # Errors
    /// No key can be made.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self(issuer))
    }

    /// Its own certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for this machine, good until the year 4096.
    ///
    /// # Errors
    /// No key can be made.
    pub fn issue(&self) -> Result<Issued> {
        self.issue_until(4096)
    }

    /// One that ends as a year begins.
    ///
    /// # Errors
    /// No key can be made.
    pub fn issue_until(&self, year: i32) -> Result<Issued> {
        self.issue_for(&["localhost", "127.0.0.1"], year)
    }

    /// One for other names.
    ///
    /// # Errors
    /// No key can be made, or a name cannot be one.
    pub fn issue_for(&self, names: &[&str], year: i32) -> Result<Issued> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(Issued {
            cert: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().to_vec(),
        })
    }
}

/// A certificate with its key.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate, in PEM form.
    pub cert: String,
    /// The key, in PEM form.
    pub key: String,
    /// The certificate, as it is shown.
    pub der: Vec<u8>,
}

/// A certificate in files, with those of its authority beside it.
pub struct Certified {
    folder: TempDir,
    /// Who signed it.
    pub authority: Authority,
    /// What was put into the files last.
    pub issued: Issued,
}

impl Certified {
    /// One for this machine, of an authority of its own.
    ///
    /// # Errors
    /// No key can be made, or no file be written.
    pub fn new() -> Result<Self> {
        let authority = Authority::new("Authority of a test")?;
        let issued = authority.issue()?;
        let mut certified = Self {
            folder: TempDir::new()?,
            authority,
            issued: issued.clone(),
        };
        write(&certified.ca(), &certified.authority.pem())?;
        certified.put(issued)?;
        Ok(certified)
    }

    /// Puts another one into the files, as a program does that renews certificates.
    ///
    /// # Errors
    /// No file can be written.
    pub fn put(&mut self, issued: Issued) -> Result<()> {
        write(&self.cert(), &issued.cert)?;
        write(&self.key(), &issued.key)?;
        self.issued = issued;
        Ok(())
    }

    /// Writes what is no certificate.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn spoil(&self) -> Result<()> {
        write(&self.cert(), "-----BEGIN CERTIFICATE-----\nno\n")
    }

    /// File of the authority's certificate.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// File of the certificate.
    pub fn cert(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// File of its key.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// What a server shows at a port of this machine, which the authority must have signed.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn shown(&self, port: u16) -> Result<Vec<u8>> {
        let stream = self.connect(port).await?;
        let (_, session) = stream.get_ref();
        let shown = session.peer_certificates().and_then(<[_]>::first);
        Ok(shown.context("no certificate")?.to_vec())
    }

    /// A secure connection to a port of this machine.
    ///
    /// # Errors
    /// Nobody listens there, or shows no certificate of the authority.
    pub async fn connect(&self, port: u16) -> Result<TlsStream<TcpStream>> {
        let config = Arc::new(ClientFiles::trusting(Some(&self.ca())).config()?);
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let name = ServerName::try_from("localhost")?;
        let connecting = TlsConnector::from(config).connect(name, stream);
        Ok(tokio::time::timeout(HANDSHAKE, connecting).await??)
    }

    /// A client that trusts the authority and nobody else.
    ///
    /// # Errors
    /// The client cannot be set up.
    pub fn client(&self) -> Result<reqwest::Client> {
        client(&self.authority.pem())
    }
}

/// A client that trusts an authority and nobody else.
pub(crate) fn client(authority: &str) -> Result<reqwest::Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root = reqwest::Certificate::from_pem(authority.as_bytes())?;
    Ok(reqwest::Client::builder().tls_certs_only([root]).build()?)
}

/// Whoever reads the file meanwhile reads the one before.
fn write(path: &Path, text: &str) -> Result<()> {
    let fresh = path.with_extension("new");
    let mut file: File = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(text.as_bytes())?;
    Ok(fs::rename(&fresh, path)?)
}
