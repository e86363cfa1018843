//! Reading files that the user names; `-` is standard input. It never writes.

use std::io::Read;
use std::path::Path;

use crate::client::{Error, Result};

/// A whole file, or standard input for `-`.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| Error::file("<stdin>", error))?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(|error| Error::file(path, error))
}

/// A whole text file, or standard input for `-`.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_bytes(path)?).map_err(|_| Error::file(path, "is not UTF-8 text"))
}
