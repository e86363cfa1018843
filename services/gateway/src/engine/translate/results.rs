//! The results of a SPARQL query in the API form.

use serde_json::{Value, json};
use tg_schemas::Term;
use tg_schemas::msg::SparqlQueryResponse;

use super::fields::{Body, Reply, triples_to_api};

/// A part of an answer without an error.
pub fn results(part: &SparqlQueryResponse) -> Body {
    let reply = Reply::new().put("query-type", part.query_type.as_str());
    match part.query_type.as_str() {
        "ask" => reply.put("ask-result", part.ask_result).done(),
        "construct" | "describe" => reply.put("triples", triples_to_api(&part.triples)).done(),
        _ => {
            let rows = part.bindings.iter().map(|row| row_value(&row.values));
            let rows: Vec<Value> = rows.collect();
            reply
                .put("variables", part.variables.clone())
                .put("bindings", rows)
                .done()
        }
    }
}

/// One row, aligned with the variables; unbound is `null`.
fn row_value(values: &[Option<Term>]) -> Value {
    let values: Vec<Value> = values
        .iter()
        .map(|term| term.as_ref().map_or(Value::Null, Term::to_api))
        .collect();
    json!({"values": values})
}
