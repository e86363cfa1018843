//! Queries over tables: types, conditions and refusals.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tg_schemas::table::Table;

use super::*;
use crate::engine::value::row;
use crate::store::sqlite::SqliteRows;

const ORDERS: &str = r#"{"fields": [
    {"name": "id", "type": "integer", "primary_key": true},
    {"name": "checked_in", "type": "boolean"},
    {"name": "due", "type": "date"},
    {"name": "net weight", "type": "float"}]}"#;

async fn store() -> Arc<SqliteRows> {
    let store = SqliteRows::in_memory().unwrap();
    let table = Table::read("my-orders", ORDERS).unwrap();
    let rows = [
        [
            ("id", "1"),
            ("checked_in", "True"),
            ("due", "2026-01-05"),
            ("net weight", "2.5"),
        ],
        [
            ("id", "2"),
            ("checked_in", "False"),
            ("due", "2026-02-01"),
            ("net weight", "10"),
        ],
    ];
    let rows = rows.iter().map(|pairs| {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        row(&table, &pairs.iter().map(own).collect::<BTreeMap<_, _>>()).unwrap()
    });
    let key = CollectionKey::new("w", "c");
    store
        .write(&key, table.clone(), rows.collect(), String::new())
        .await
        .unwrap();
    Arc::new(store)
}

async fn ask(rows: &[(&str, &str)], text: &str, variables: Json) -> Outcome {
    let built = build(rows.iter().copied()).unwrap();
    let query = Query {
        text: text.to_owned(),
        variables: variables.as_object().cloned().unwrap_or_default(),
        operation: None,
    };
    built
        .run(store().await, CollectionKey::new("w", "c"), query)
        .await
}

/// The parser would take more stack than there is, and the process would end.
#[tokio::test]
async fn a_query_that_nests_without_end_is_refused() {
    for unit in ["{ a ", "{ a(b: [", "[", "query Q($a: [["] {
        let text = unit.repeat(20_000);
        let outcome = ask(&[("my-orders", ORDERS)], &text, json!({})).await;
        let told: Vec<_> = outcome.errors.into_iter().map(|one| one.message).collect();
        assert_eq!(told, ["query: is nested more than 64 deep"], "{unit}");
    }
}

#[tokio::test]
async fn values_and_variables_keep_their_types() {
    let text = "query ($in: Boolean, $least: Float) { my_orders(where: {checked_in: {eq: $in}, net_weight: {gt: $least}}) \
                { id checked_in due net_weight } }";
    let outcome = ask(
        &[("my-orders", ORDERS)],
        text,
        json!({"in": true, "least": 1}),
    )
    .await;
    assert_eq!(outcome.errors, []);
    assert_eq!(
        outcome.data,
        json!({"my_orders": [{"id": 1, "checked_in": true, "due": "2026-01-05", "net_weight": 2.5}]})
    );
}

#[tokio::test]
async fn dates_are_compared_and_ordered() {
    let text = r#"{ my_orders(where: {due: {gte: "2026-01-01"}}, order_by: "due", direction: DESC, limit: 1) { id } }"#;
    let outcome = ask(&[("my-orders", ORDERS)], text, Json::Null).await;
    assert_eq!(
        outcome.data,
        json!({"my_orders": [{"id": 2}]}),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn one_bad_schema_is_left_out_by_itself_and_says_why() {
    let rows = [
        ("bad", "{"),
        ("none", r#"{"fields": []}"#),
        ("my-orders", ORDERS),
        ("My-Orders", ORDERS),
    ];
    let outcome = ask(&rows, "{ my_orders { id } My_Orders { id } }", Json::Null).await;
    assert_eq!(outcome.errors, []);
    let outcome = ask(&rows, "{ none { id } }", Json::Null).await;
    let told: Vec<_> = outcome
        .errors
        .iter()
        .map(|fault| fault.message.as_str())
        .collect();
    assert!(
        told.iter()
            .any(|text| text.contains("schema 'none' is left out: fields: is required")),
        "{told:?}"
    );
    let outcome = ask(&[], "{ _schemas }", Json::Null).await;
    assert_eq!(outcome.data, json!({"_schemas": []}));
}

#[tokio::test]
async fn bad_and_boundless_queries_are_refused() {
    let rows = [("my-orders", ORDERS)];
    for (text, told) in [
        (
            "{ my_orders(limit: 100000) { id } }",
            "limit: must not be above",
        ),
        (
            "{ my_orders(limit: -1) { id } }",
            "limit: must not be negative",
        ),
        (
            r#"{ my_orders(order_by: "x") { id } }"#,
            "order_by: there is no field 'x'",
        ),
        ("{ my_orders { nothing } }", "nothing"),
        ("{ my_orders {", "expected"),
    ] {
        let outcome = ask(&rows, text, Json::Null).await;
        assert!(
            outcome
                .errors
                .iter()
                .any(|fault| fault.message.contains(told)),
            "{text}: {outcome:?}"
        );
    }
    let many = format!(
        "{{ {} }}",
        "a: my_orders { id } ".repeat(2_000).replacen("a:", "", 1)
    );
    assert!(!ask(&rows, &many, Json::Null).await.errors.is_empty());
    let tables = [(
        "cities",
        r#"{"fields": [{"name": "name", "type": "string"}]}"#,
    )];
    let search = |count: usize| {
        let one =
            |n: usize| format!("a{n}: cities(where: {{name: {{contains: \"z\"}}}}) {{ name }} ");
        format!("{{ {} }}", (0..count).map(one).collect::<String>())
    };
    assert_eq!(ask(&tables, &search(20), Json::Null).await.errors, []);
    let told = ask(&tables, &search(21), Json::Null).await.errors;
    let text = "at most 20 fields of a query may search inside texts";
    assert!(told.len() == 1 && told[0].message == text, "{told:?}");
    let introspection =
        "{ __schema { types { name fields { name type { name ofType { name } } } } } }";
    assert_eq!(ask(&rows, introspection, Json::Null).await.errors, []);
}
