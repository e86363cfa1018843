//! `rows`: GraphQL over typed rows.

use serde_json::{Map, Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{GraphQLError, RowsQueryRequest, RowsQueryResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate, error_value};

/// The `rows` service.
pub struct Rows;

impl Translate for Rows {
    type Question = RowsQueryRequest;
    type Answer = RowsQueryResponse;

    /// Clients spell the operation's name in two ways.
    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        let name = match body.opt_text("operation_name")? {
            Some(name) => Some(name),
            None => body.opt_text("operationName")?,
        };
        Ok(RowsQueryRequest {
            collection: body.collection()?,
            query: body.required_text("query")?,
            variables: body.map("variables")?.cloned().unwrap_or_default(),
            operation_name: name.filter(|name| !name.is_empty()),
            ..RowsQueryRequest::default()
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        let errors: Vec<_> = part.errors.iter().map(fault).collect();
        Reply::new()
            .put("data", json_text(&part.data))
            .put_truthy("errors", errors)
            .put_truthy("extensions", json_map(&part.extensions))
            .done()
    }

    fn failure(error: &Error, _part: Self::Answer) -> Body {
        Reply::new()
            .put("data", Value::Null)
            .put("error", error_value(error))
            .done()
    }
}

fn fault(one: &GraphQLError) -> Value {
    let reply = Reply::new()
        .put("message", one.message.as_str())
        .put_truthy("path", one.path.clone())
        .put_truthy("extensions", json_map(&one.extensions));
    Value::Object(reply.done())
}

/// A value that travels as JSON text.
pub(super) fn json_text(text: &str) -> Value {
    serde_json::from_slice(text.as_bytes()).unwrap_or(Value::Null)
}

fn json_map(map: &std::collections::BTreeMap<String, String>) -> Value {
    let read = |(key, text): (&String, &String)| {
        let value = serde_json::from_slice(text.as_bytes()).unwrap_or_else(|_| json!(text));
        (key.clone(), value)
    };
    Value::Object(map.iter().map(read).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;

    #[test]
    fn both_spellings_and_the_types_of_variables_are_kept() {
        let request = question::<Rows>(
            json!({"query": "q", "operationName": "A", "variables": {"n": 5, "b": true, "s": "5"}}),
            "",
        )
        .unwrap();
        assert_eq!(request.operation_name.as_deref(), Some("A"));
        assert_eq!(
            Value::Object(request.variables),
            json!({"n": 5, "b": true, "s": "5"})
        );
        let request = question::<Rows>(
            json!({"query": "q", "operation_name": "B", "operationName": "A", "variables": null}),
            "",
        )
        .unwrap();
        assert_eq!(request.operation_name.as_deref(), Some("B"));
        let error = question::<Rows>(json!({"query": "q", "variables": "{}"}), "").unwrap_err();
        assert_eq!(error.message, "variables: must be an object");
    }

    #[test]
    fn data_is_parsed_and_always_there() {
        let reply = RowsQueryResponse {
            data: r#"{"cities": [{"name": "a"}]}"#.into(),
            errors: vec![GraphQLError {
                message: "m".into(),
                path: vec!["cities".into()],
                ..Default::default()
            }],
            ..Default::default()
        };
        assert_eq!(
            part::<Rows>(reply, ""),
            json!({"data": {"cities": [{"name": "a"}]}, "errors": [{"message": "m", "path": ["cities"]}]})
        );
        assert_eq!(part::<Rows>(Default::default(), ""), json!({"data": null}));
        let error = Error::typed("rows-query-error", "no");
        assert_eq!(
            Value::Object(Rows::failure(&error, Default::default())),
            json!({"data": null, "error": {"type": "rows-query-error", "message": "no"}})
        );
    }
}
