//! Whom a client trusts, and what it shows of itself.

use std::path::{Path, PathBuf};

use rustls::{ClientConfig, RootCertStore};

use crate::pair::PairFiles;
use crate::pem::{self, FileError, Part, PemError};
use crate::provider;

/// What a client is given in files; nothing of it is what most need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// The authorities that are trusted. Without it those of the machine are; where it has none, the well-known ones.
    pub ca: Option<PathBuf>,
    /// What the client shows to a server that asks who it is.
    pub pair: Option<PairFiles>,
}

impl ClientFiles {
    /// Trusts the authorities of a file, or those of the machine.
    pub fn trusting(ca: Option<&Path>) -> Self {
        Self {
            ca: ca.map(Path::to_path_buf),
            pair: None,
        }
    }

    /// How a client connects. The files are read now.
    ///
    /// # Errors
    /// [`FileError`]: the file that is at fault, and how.
    pub fn config(&self) -> Result<ClientConfig, FileError> {
        let roots = match &self.ca {
            Some(path) => named(path).map_err(|why| Part::Ca.fault(why))?,
            None => of_the_machine(),
        };
        let unfit = |_| Part::Cert.fault(PemError::Unfit);
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(unfit)?
            .with_root_certificates(roots);
        match &self.pair {
            None => Ok(builder.with_no_client_auth()),
            Some(files) => {
                let (chain, key) = files.read()?.into_parts();
                builder.with_client_auth_cert(chain, key).map_err(unfit)
            }
        }
    }
}

fn named(path: &Path) -> Result<RootCertStore, PemError> {
    let mut roots = RootCertStore::empty();
    for certificate in pem::certificates(&pem::read(path)?)? {
        roots.add(certificate).map_err(|_| PemError::Unfit)?;
    }
    Ok(roots)
}

/// Also where the environment says that they are (`SSL_CERT_FILE`, `SSL_CERT_DIR`), as for other programs.
fn of_the_machine() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // A machine has old ones that nobody can read; those that can be are enough.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}
