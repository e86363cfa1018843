//! The schema of a workspace: a query field per table, with typed filters.
//!
//! Per table `t`: `t(where: TFilter, order_by: String, direction: SortDirection, limit: Int = 100,
//! offset: Int = 0): [TType!]!`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_graphql::Value as Gql;
use async_graphql::dynamic::{
    Enum, Field, FieldFuture, FieldValue, InputObject, InputValue, Object, Schema, SchemaError,
    TypeRef,
};
use tg_schemas::table::{Field as Column, Kind, Table};

use super::arguments;
use super::named::Named;
use super::names::{Names, capitalised};
use super::target::Target;
use crate::engine::select::USUAL;
use crate::engine::value::Value;

/// Deepest nesting of a query; introspection needs 13.
const DEPTH: usize = 16;
/// Most fields of a query, counted with repeats.
const COMPLEXITY: usize = 2_000;
/// Most fields of a query that search inside texts.
const SEARCHES: usize = 20;
/// Name of the query type and of the types that every schema has.
const QUERY: &str = "Query";
const DIRECTION: &str = "SortDirection";

/// A schema, and the tables that are not part of it.
pub struct Built {
    pub(super) schema: Schema,
    /// Key and fault of each table that was left out.
    pub left_out: Vec<(String, String)>,
}

/// Builds the schema from config rows of type `schema`. One that cannot be read is left out by itself.
///
/// # Errors
/// Why the tables together do not make a schema.
pub fn build<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Built, SchemaError> {
    let mut left_out = Vec::new();
    let mut types = Names::without(&[
        QUERY,
        DIRECTION,
        "StringFilter",
        "IntFilter",
        "FloatFilter",
        "BooleanFilter",
        "DateFilter",
        "String",
        "Int",
        "Float",
        "Boolean",
        "ID",
    ]);
    let mut queries = Names::default();
    let mut query = Object::new(QUERY);
    let mut objects = Vec::new();
    let mut filters = Vec::new();
    for (key, text) in rows {
        let table = match Table::read(key, text) {
            Ok(table) => table,
            Err(why) => {
                left_out.push((key.to_owned(), why));
                continue;
            }
        };
        let mut names = Names::default();
        let fields = table
            .fields
            .iter()
            .map(|field| names.give(&field.name))
            .collect();
        let named = Arc::new(Named { table, fields });
        let type_of = |types: &mut Names, what: &str| {
            types.give(&format!("{}{what}", capitalised(&named.table.key)))
        };
        let (row_type, filter_type) = (type_of(&mut types, "Type"), type_of(&mut types, "Filter"));
        objects.push(row_object(&row_type, &named));
        filters.push(filter_object(&filter_type, &named));
        let name = queries.give(&named.table.key);
        query = query.field(table_field(&name, &row_type, &filter_type, named));
    }
    if objects.is_empty() {
        // A schema needs a field; this one says why there is nothing to ask.
        let none = Field::new(
            "_schemas",
            TypeRef::named_nn_list_nn(TypeRef::STRING),
            |_| FieldFuture::from_value(Some(Gql::List(Vec::new()))),
        );
        query = query.field(none.description("No schema is configured in this workspace."));
    }
    let direction = Enum::new(DIRECTION).item("ASC").item("DESC");
    let mut builder = Schema::build(QUERY, None, None)
        .register(query)
        .register(direction)
        .limit_depth(DEPTH)
        .limit_complexity(COMPLEXITY);
    for filter in arguments::filters() {
        builder = builder.register(filter);
    }
    for object in objects {
        builder = builder.register(object);
    }
    for filter in filters {
        builder = builder.register(filter);
    }
    Ok(Built {
        schema: builder.finish()?,
        left_out,
    })
}

fn row_object(name: &str, named: &Arc<Named>) -> Object {
    let mut object = Object::new(name);
    if !named.table.description.is_empty() {
        object = object.description(&named.table.description);
    }
    for (at, (column, name)) in named.table.fields.iter().zip(&named.fields).enumerate() {
        let field = Field::new(name, column_type(column), move |cx| {
            let row = cx.parent_value.downcast_ref::<Vec<Value>>();
            FieldFuture::from_value(row.and_then(|row| row.get(at)).map(shown))
        });
        object = object.field(match column.description.as_str() {
            "" => field,
            text => field.description(text),
        });
    }
    object
}

fn column_type(column: &Column) -> TypeRef {
    let name = match column.kind {
        Kind::Integer => TypeRef::INT,
        Kind::Float => TypeRef::FLOAT,
        Kind::Boolean => TypeRef::BOOLEAN,
        _ => TypeRef::STRING,
    };
    if column.required || column.primary_key {
        TypeRef::named_nn(name)
    } else {
        TypeRef::named(name)
    }
}

fn filter_object(name: &str, named: &Named) -> InputObject {
    let columns = named.table.fields.iter().zip(&named.fields);
    columns.fold(InputObject::new(name), |object, (column, name)| {
        let filter = TypeRef::named(arguments::filter_of(column.kind));
        object.field(InputValue::new(name, filter))
    })
}

fn table_field(name: &str, row: &str, filter: &str, named: Arc<Named>) -> Field {
    let field = Field::new(name, TypeRef::named_nn_list_nn(row), move |cx| {
        let named = named.clone();
        FieldFuture::new(async move {
            let select = arguments::select(&named, &cx)?;
            let target = cx.data::<Target>()?;
            if select.searches() && target.searches.fetch_add(1, Ordering::Relaxed) >= SEARCHES {
                let text = format!("at most {SEARCHES} fields of a query may search inside texts");
                return Err(async_graphql::Error::new(text));
            }
            let rows = target.store.select(&target.key, &named.table, select).await;
            let rows = rows.map_err(|fault| {
                tracing::error!(%fault, "rows cannot be read");
                async_graphql::Error::new("the rows could not be read")
            })?;
            Ok(Some(FieldValue::list(
                rows.into_iter().map(FieldValue::owned_any),
            )))
        })
    });
    let usual = |count: usize| Gql::from(i32::try_from(count).unwrap_or(i32::MAX));
    field
        .argument(InputValue::new("where", TypeRef::named(filter)))
        .argument(InputValue::new("order_by", TypeRef::named(TypeRef::STRING)))
        .argument(InputValue::new("direction", TypeRef::named(DIRECTION)))
        .argument(
            InputValue::new("limit", TypeRef::named(TypeRef::INT)).default_value(usual(USUAL)),
        )
        .argument(InputValue::new("offset", TypeRef::named(TypeRef::INT)).default_value(usual(0)))
}

fn shown(value: &Value) -> Gql {
    match value {
        Value::Null => Gql::Null,
        Value::Text(text) => Gql::from(text.as_str()),
        Value::Integer(number) => Gql::from(*number),
        Value::Float(number) => Gql::from(*number),
        Value::Boolean(truth) => Gql::from(*truth),
    }
}
