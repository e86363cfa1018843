//! Tools over rows: `structured-query` asks a question, `row-embeddings-query` searches by meaning.

use serde_json::Value;
use tg_schemas::msg::{
    RowEmbeddingsRequest, RowIndexMatch, StructuredQueryRequest, StructuredQueryResponse,
};
use tg_schemas::processors::agent_manager::{ROW_EMBEDDINGS, STRUCTURED_QUERY};
use tg_schemas::{Error, ErrorCode};

use super::tool_call::{Arguments, Call, Output, text};
use crate::error::AgentError;

/// Times that a question is embedded again because the vectors of its collection are of another model: they may be switched
/// over in between.
const RETRIES: usize = 2;

/// Asks a question over rows.
pub(super) async fn question(call: &Call<'_>, arguments: &Arguments) -> Result<Output, Error> {
    let question = StructuredQueryRequest {
        question: text(arguments, "question").to_owned(),
        collection: call.collection.to_owned(),
    };
    let mut ask = call.cx.ask_options();
    ask.id = Some(call.key.clone());
    // The answer does not say what it took of models: that counts for key and workspace where they are asked.
    ask.counted = None;
    let answer = call.cx.ask_with(STRUCTURED_QUERY, &question, ask)?;
    shown(&answer.last().await?).map(Into::into)
}

fn shown(answer: &StructuredQueryResponse) -> Result<String, Error> {
    let data: Value = serde_json::from_slice(answer.data.as_bytes()).unwrap_or(Value::Null);
    let errors = answer.errors.join("; ");
    if data.is_null() {
        return if errors.is_empty() {
            Ok("No data returned".to_owned())
        } else {
            Err(AgentError::Rows(errors).into())
        };
    }
    let mut text = serde_json::to_string_pretty(&data).map_err(AgentError::from)?;
    if !errors.is_empty() {
        text.push_str(&format!("\nErrors: {errors}"));
    }
    Ok(text)
}

/// Searches rows by meaning.
pub(super) async fn search(
    call: &Call<'_>,
    schema: &str,
    index: Option<&str>,
    limit: i64,
    arguments: &Arguments,
) -> Result<Output, Error> {
    let texts = vec![text(arguments, "query").to_owned()];
    let mut embedded = tg_clients::embeddings::embed(call.cx, texts, None).await?;
    for left in (0..=RETRIES).rev() {
        let request = RowEmbeddingsRequest {
            vector: embedded.vectors.first().cloned().unwrap_or_default(),
            limit,
            collection: call.collection.to_owned(),
            schema_name: schema.to_owned(),
            index_name: index.map(str::to_owned),
            model: embedded.model.clone(),
            tell_model: left > 0,
            ..RowEmbeddingsRequest::default()
        };
        let found = call.cx.ask(ROW_EMBEDDINGS, &request)?.last().await?;
        if found.model.is_empty() {
            return Ok(matches(&found.matches).into());
        }
        embedded.again_as(call.cx, &found.model).await?;
    }
    let text = "the collection is being changed to another embeddings model: ask again";
    Err(Error::new(ErrorCode::Unavailable, text))
}

fn matches(found: &[RowIndexMatch]) -> String {
    if found.is_empty() {
        return "No matching records found".to_owned();
    }
    let mut lines = vec!["Matching records:".to_owned()];
    lines.extend(found.iter().map(|row| {
        let values = row.index_value.join(", ");
        format!("- {}: {values} (score: {:.3})", row.index_name, row.score)
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_errors_and_nothing_read_differently() {
        let answer = |data: &str, errors: &[&str]| StructuredQueryResponse {
            data: data.into(),
            errors: errors.iter().map(|text| (*text).to_owned()).collect(),
            ..StructuredQueryResponse::default()
        };
        assert_eq!(shown(&answer("", &[])).unwrap(), "No data returned");
        assert_eq!(shown(&answer("null", &["bad"])).unwrap_err().message, "bad");
        let text = shown(&answer(r#"{"a":[1]}"#, &["odd"])).unwrap();
        assert!(text.starts_with("{\n  \"a\": [\n    1\n") && text.ends_with("Errors: odd"));
    }

    #[test]
    fn matches_are_lines() {
        assert_eq!(matches(&[]), "No matching records found");
        let row = RowIndexMatch {
            index_name: "name".into(),
            index_value: vec!["Ann".into(), "Lee".into()],
            score: 0.12345,
            ..RowIndexMatch::default()
        };
        assert_eq!(
            matches(&[row]),
            "Matching records:\n- name: Ann, Lee (score: 0.123)"
        );
    }
}
