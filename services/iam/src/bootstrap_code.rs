//! The one-time code for the first key: in a file beside the store that only its owner may read, as long as there is no
//! user. Whoever can read it, or sits at the terminal, may have the first key; nobody else.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rand::RngCore;
use sha2::{Digest, Sha256};
use tg_storage::StorageError;

/// Name of the file below the data directory.
const FILE: &str = "bootstrap-code";

/// The code that waits to be used, for the greeting.
pub fn bootstrap_code(data_dir: &Path) -> Option<String> {
    CodeFile::new(data_dir).read()
}

/// Where that code is, if there is one.
pub fn bootstrap_code_file(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// The file with the code.
#[derive(Debug, Clone)]
pub(crate) struct CodeFile(PathBuf);

impl CodeFile {
    /// Below a data directory.
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self(bootstrap_code_file(data_dir))
    }

    /// Makes a code while one is needed and none is there; removes one that is not needed any more.
    pub(crate) fn keep(&self, needed: bool) -> Result<(), StorageError> {
        match (needed, self.read()) {
            (false, _) => self.remove(),
            (true, Some(_)) => {}
            (true, None) => self.write()?,
        }
        Ok(())
    }

    /// Whether this is the code. Takes the same time whatever is given.
    pub(crate) fn is(&self, given: &str) -> bool {
        self.read()
            .is_some_and(|code| Sha256::digest(code.as_bytes()) == Sha256::digest(given.as_bytes()))
    }

    /// It was used.
    pub(crate) fn remove(&self) {
        // That there is none is the rule; that it cannot be removed does no harm once there is a user.
        let _ = std::fs::remove_file(&self.0);
    }

    fn read(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.0).ok()?;
        let code = text.trim();
        (!code.is_empty()).then(|| code.to_owned())
    }

    fn write(&self) -> Result<(), StorageError> {
        let mut random = [0; 16];
        rand::rng().fill_bytes(&mut random);
        // A file of another's making may be readable by others.
        self.remove();
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.0)
            .map_err(fault)?;
        writeln!(file, "{}", hex::encode(random)).map_err(fault)?;
        tracing::info!(
            file = FILE,
            "the code for the first key is in the data directory"
        );
        Ok(())
    }
}

fn fault(error: std::io::Error) -> StorageError {
    StorageError::Io(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_code_is_made_once_kept_secret_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = CodeFile::new(dir.path());
        assert!(!file.is("") && bootstrap_code(dir.path()).is_none());
        file.keep(true).unwrap();
        let code = bootstrap_code(dir.path()).unwrap();
        file.keep(true).unwrap();
        assert!(file.is(&code) && !file.is("") && !file.is("wrong"));
        let mode = std::fs::metadata(dir.path().join(FILE))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        file.keep(false).unwrap();
        assert!(bootstrap_code(dir.path()).is_none());
    }
}
