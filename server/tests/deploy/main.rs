//! What is in `deploy/` is made from the table of deployed services: manifests for Kubernetes, a file for Compose, alert rules
//! and a dashboard. A file that
//! differs from what the table gives fails, as does one that nobody makes. `UPDATE=1 cargo test -p tg-server --test deploy`
//! writes them.

mod checks;
mod compose;
mod manifests;
mod monitoring;
mod pod;
mod policies;
mod production;
mod yaml;

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Text of each generated file, by its path below `deploy/`.
pub type Files = BTreeMap<String, String>;

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
