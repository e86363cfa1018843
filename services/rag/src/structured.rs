//! Questions over rows: as a query (`nlp-query`), answered (`structured-query`), and how data becomes rows
//! (`structured-diag`).

mod diagnosis;
mod nlp;
mod query;

use tg_mesh::Cx;
use tg_schemas::table::{TABLE, Table};

pub use diagnosis::Diagnosis;
pub use nlp::Nlp;
pub use query::Structured;

use crate::engine::schemas;

const SELECT: &str = "schema-selection";

/// The workspace's schemas.
fn schemas_of(cx: &Cx) -> Vec<Table> {
    let rows = cx.config().values(cx.workspace(), TABLE);
    schemas::read(
        rows.iter()
            .map(|(key, value)| (key.as_str(), value.as_ref())),
    )
}
