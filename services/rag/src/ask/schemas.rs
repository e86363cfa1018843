//! The workspace's schemas of rows, as its configuration has them.

use tg_mesh::Cx;
use tg_schemas::table::{TABLE, Table};

use crate::engine::schemas;

/// The schemas of the workspace of a question.
pub fn schemas_of(cx: &Cx) -> Vec<Table> {
    let rows = cx.config().values(cx.workspace(), TABLE);
    schemas::read(
        rows.iter()
            .map(|(key, value)| (key.as_str(), value.as_ref())),
    )
}
