//! Questions over rows: as a query (`nlp-query`), answered (`structured-query`), and how data becomes rows
//! (`structured-diag`).

mod diagnosis;
mod nlp;
mod query;

use tg_mesh::Cx;

pub use diagnosis::Diagnosis;
pub use nlp::Nlp;
pub use query::Structured;

use crate::engine::schemas::{self, Schema};
use crate::processors::SCHEMAS;

const SELECT: &str = "schema-selection";

/// The workspace's schemas.
fn schemas_of(cx: &Cx) -> Vec<Schema> {
    let rows = cx.config().values(cx.workspace(), SCHEMAS);
    schemas::read(
        rows.iter()
            .map(|(key, value)| (key.as_str(), value.as_ref())),
    )
}
