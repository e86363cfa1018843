//! A table as GraphQL names it.

use tg_schemas::table::Table;

/// A table with the GraphQL names of its fields.
pub(super) struct Named {
    pub(super) table: Table,
    /// One per field, in order.
    pub(super) fields: Vec<String>,
}

impl Named {
    /// Position of the field with a GraphQL name or, where that differs, its own.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let given = self.fields.iter().position(|field| field == name);
        given.or_else(|| {
            self.table
                .fields
                .iter()
                .position(|field| field.name == name)
        })
    }
}
