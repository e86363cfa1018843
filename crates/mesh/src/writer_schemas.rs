//! Records of another release: their writers' schemas are looked up in the configuration by fingerprint, so that
//! what waited in a queue, or was dead-lettered, through an upgrade can be read.

use std::time::Duration;

use tg_schemas::codec;
use tg_schemas::{Error, records};

use crate::mesh::Mesh;

/// A schema that is not there now may come with the release that writes it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Looks a schema up and makes it known. `false` where nobody has kept it yet.
///
/// # Errors
/// When the configuration cannot be asked, or what it holds is no schema.
pub(crate) async fn learn(mesh: &Mesh, fingerprint: &str) -> Result<bool, Error> {
    let keys = [(records::TYPE.to_owned(), fingerprint.to_owned())];
    let source = mesh.config_source();
    let kept = source.values(mesh, records::WORKSPACE, &keys, TIMEOUT);
    match kept.await?.into_iter().next().flatten() {
        Some(schema) => Ok(codec::register(&schema)? == fingerprint),
        None => Ok(false),
    }
}
