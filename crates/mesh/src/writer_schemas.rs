//! Records of another release: their writers' schemas are looked up in the configuration by fingerprint, so that
//! what waited in a queue, or was dead-lettered, through an upgrade can be read.

use std::time::Duration;

use tg_rpc::{Ask, Deadline};
use tg_schemas::codec;
use tg_schemas::msg::{ConfigKey, ConfigRequest, ConfigResponse};
use tg_schemas::processors::fabric;
use tg_schemas::{Error, records};

use crate::mesh::Mesh;

/// A schema that is not there now may come with the release that writes it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Looks a schema up and makes it known. `false` where nobody has kept it yet.
///
/// # Errors
/// When the configuration cannot be asked, or what it holds is no schema.
pub(crate) async fn learn(mesh: &Mesh, fingerprint: &str) -> Result<bool, Error> {
    let request = ConfigRequest {
        operation: "get".into(),
        workspace: records::WORKSPACE.into(),
        keys: vec![ConfigKey {
            r#type: records::TYPE.into(),
            key: fingerprint.into(),
        }],
        ..ConfigRequest::default()
    };
    let ask = Ask {
        deadline: Some(Deadline::after(TIMEOUT)),
        ..Ask::default()
    };
    let answer = mesh.ask::<_, ConfigResponse>(&fabric::configuration(), &request, ask);
    let kept = answer.last().await?.values.into_iter().next();
    match kept.filter(|row| !row.value.is_empty()) {
        Some(row) => Ok(codec::register(&row.value)? == fingerprint),
        None => Ok(false),
    }
}
