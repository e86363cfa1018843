//! All files that are generated, and where they are.

use std::path::PathBuf;

use crate::{compose, manifests, monitoring, yaml::Files};

/// `deploy/` of this checkout.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy"))
}

/// All files that are generated.
pub fn files() -> Files {
    let mut files = manifests::files();
    files.insert("compose.yaml".to_owned(), compose::text());
    files.extend(monitoring::files());
    files
}
