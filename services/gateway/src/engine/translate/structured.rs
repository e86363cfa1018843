//! Questions in plain words about rows, and what a sample of data is: `nlp-query`, `structured-query`,
//! `structured-diag`.

use serde_json::Value;
use tg_schemas::Error;
use tg_schemas::msg::{
    QuestionToStructuredQueryRequest, QuestionToStructuredQueryResponse,
    StructuredDataDiagnosisRequest, StructuredDataDiagnosisResponse, StructuredQueryRequest,
    StructuredQueryResponse,
};

use super::fields::{Body, Fields, Reply};
use super::rows::json_text;
use super::{About, Translate, error_value};

/// The `nlp-query` service.
pub struct NlpQuery;

impl Translate for NlpQuery {
    type Question = QuestionToStructuredQueryRequest;
    type Answer = QuestionToStructuredQueryResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(QuestionToStructuredQueryRequest {
            question: body.required_text("question")?,
            max_results: body.integer_or("max_results", 100)?,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        Reply::new()
            .put("graphql_query", part.graphql_query)
            .put("variables", part.variables)
            .put("detected_schemas", part.detected_schemas)
            .put("confidence", part.confidence)
            .done()
    }
}

/// The `structured-query` service.
pub struct StructuredQuery;

impl Translate for StructuredQuery {
    type Question = StructuredQueryRequest;
    type Answer = StructuredQueryResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(StructuredQueryRequest {
            question: body.required_text("question")?,
            collection: body.collection()?,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        Reply::new()
            .put("data", json_text(&part.data))
            .put("errors", part.errors)
            .done()
    }

    fn failure(error: &Error, part: Self::Answer) -> Body {
        Reply::new()
            .put("data", Value::Null)
            .put("errors", part.errors)
            .put("error", error_value(error))
            .done()
    }
}

/// The `structured-diag` service.
pub struct StructuredDiag;

impl Translate for StructuredDiag {
    type Question = StructuredDataDiagnosisRequest;
    type Answer = StructuredDataDiagnosisResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(StructuredDataDiagnosisRequest {
            operation: body.required_text("operation")?,
            sample: body.required_text("sample")?,
            r#type: body.text("type")?,
            schema_name: body.text("schema-name")?,
            options: body.text_map("options")?,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        let selection = part.operation == "schema-selection";
        let reply = Reply::new()
            .put("operation", part.operation)
            .put_truthy("detected-type", part.detected_type)
            .put("confidence", part.confidence)
            .put_truthy("descriptor", descriptor(part.descriptor))
            .put_truthy("metadata", texts(part.metadata));
        if selection {
            reply.put("schema-matches", part.schema_matches).done()
        } else {
            reply
                .put_truthy("schema-matches", part.schema_matches)
                .done()
        }
    }

    fn failure(error: &Error, part: Self::Answer) -> Body {
        Reply::new()
            .put_truthy("operation", part.operation)
            .put("confidence", part.confidence)
            .put("error", error_value(error))
            .done()
    }
}

/// A descriptor is JSON; what is not stays text.
fn descriptor(text: String) -> Value {
    serde_json::from_slice(text.as_bytes()).unwrap_or(Value::String(text))
}

fn texts(map: std::collections::BTreeMap<String, String>) -> Value {
    Value::Object(
        map.into_iter()
            .map(|(key, text)| (key, text.into()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;

    #[test]
    fn questions_are_required() {
        let message = |error: Error| error.message;
        assert_eq!(
            message(question::<NlpQuery>(json!({}), "").unwrap_err()),
            "question: is required"
        );
        assert_eq!(
            message(
                question::<StructuredDiag>(json!({"operation": "detect-type"}), "").unwrap_err()
            ),
            "sample: is required"
        );
        let request = question::<StructuredDiag>(
            json!({"operation": "diagnose", "sample": "a,b", "schema-name": "s", "type": null,
                   "options": {"x": 1, "y": "z"}}),
            "",
        )
        .unwrap();
        assert_eq!(request.schema_name, "s");
        assert_eq!(request.options["x"], "1");
        let request = question::<StructuredQuery>(json!({"question": "q"}), "").unwrap();
        assert_eq!(request.collection, "default");
    }

    #[test]
    fn replies_have_the_keys_of_the_contract() {
        let reply = QuestionToStructuredQueryResponse {
            graphql_query: "{ a }".into(),
            variables: json!({"n": 1}).as_object().cloned().unwrap(),
            confidence: 0.8,
            ..Default::default()
        };
        assert_eq!(
            part::<NlpQuery>(reply, ""),
            json!({"graphql_query": "{ a }", "variables": {"n": 1}, "detected_schemas": [],
                   "confidence": 0.8})
        );
        assert_eq!(
            part::<StructuredQuery>(Default::default(), ""),
            json!({"data": null, "errors": []})
        );
        let reply = StructuredDataDiagnosisResponse {
            operation: "schema-selection".into(),
            ..Default::default()
        };
        assert_eq!(
            part::<StructuredDiag>(reply, ""),
            json!({"operation": "schema-selection", "confidence": 0.0, "schema-matches": []})
        );
        let reply = StructuredDataDiagnosisResponse {
            operation: "diagnose".into(),
            detected_type: "csv".into(),
            descriptor: r#"{"format": {}}"#.into(),
            metadata: [("csv_options".to_owned(), "{}".to_owned())].into(),
            ..Default::default()
        };
        assert_eq!(
            part::<StructuredDiag>(reply, ""),
            json!({"operation": "diagnose", "detected-type": "csv", "confidence": 0.0,
                   "descriptor": {"format": {}}, "metadata": {"csv_options": "{}"}})
        );
    }

    #[test]
    fn failures_are_told() {
        let error = Error::typed("structured-query-error", "no");
        let body = StructuredQuery::failure(&error, Default::default());
        assert_eq!(body["error"]["message"], "no");
        let body = StructuredDiag::failure(&error, Default::default());
        assert_eq!(body["error"]["type"], "structured-query-error");
    }
}
