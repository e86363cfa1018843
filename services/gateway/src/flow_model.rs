//! The model of a question with a vector. Clients of others name none; the stores could compare the dimension only then,
//! and models of one dimension are many. Such a question is held to the model that the flow's own embeddings have now.

use std::time::Duration;

use serde_json::Value;
use tg_clients::embeddings;
use tg_mesh::{Ask, Deadline, Mesh};
use tg_schemas::Error;

use crate::engine::scrub::scrub;
use crate::engine::translate::Body;
use crate::error::RequestError;
use crate::flows::Flow;

/// Services that are asked with a vector of the client's.
const BY_VECTOR: [&str; 3] = ["graph-embeddings", "document-embeddings", "row-embeddings"];
/// Longest wait for what the flow's embeddings say.
const LONGEST: Duration = Duration::from_secs(30);

/// Whether a request leaves out which model made its vector.
pub(crate) fn is_left_out(service: &str, body: &Body) -> bool {
    let named = body.get("model").is_some_and(|model| match model {
        Value::Null => false,
        Value::String(model) => !model.is_empty(),
        _ => true,
    });
    BY_VECTOR.contains(&service) && !named
}

/// Adds the flow's model, if the flow makes vectors and its service names one.
///
/// # Errors
/// The flow's embeddings cannot be asked: what the vector is of stays unknown.
pub(crate) async fn add(
    mesh: &Mesh,
    flow: &Flow,
    body: &mut Body,
    options: Ask,
) -> Result<(), RequestError> {
    let Ok(topic) = flow.request("embeddings") else {
        return Ok(());
    };
    let left = options.deadline.map_or(LONGEST, |until| until.left());
    let options = Ask {
        deadline: Some(Deadline::after(left.min(LONGEST))),
        detach: false,
        streaming: false,
        ..options
    };
    let told = embeddings::model_of(mesh, &topic, options).await;
    if let Some(model) = told.map_err(|error| unknown(scrub(error)))? {
        body.insert("model".to_owned(), model.into());
    }
    Ok(())
}

fn unknown(error: Error) -> RequestError {
    let text = format!(
        "model: is not named, and the flow's own cannot be asked for: {}",
        error.message
    );
    RequestError::Service(Error::new(error.code(), text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_questions_by_vector_that_name_no_model_are_completed() {
        let left_out = |service, body: Value| is_left_out(service, body.as_object().unwrap());
        for none in [json!({}), json!({"model": ""}), json!({"model": null})] {
            assert!(left_out("row-embeddings", none.clone()));
            assert!(!left_out("keyword-index", none));
        }
        // What is no text is refused where it is read.
        assert!(!left_out("graph-embeddings", json!({"model": 3})));
        assert!(!left_out("document-embeddings", json!({"model": "m"})));
    }
}
