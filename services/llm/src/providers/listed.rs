//! Lists of models in the dialect of OpenAI, as its servers write them: under `data` or `models`, or as a plain array.

use serde_json::Value;
use tg_schemas::msg::ModelInfo;

use super::failure;
use crate::error::LlmError;

/// The models of a list.
///
/// # Errors
/// What the body says instead; [`LlmError::Malformed`] if it is no list.
pub(super) fn models(listed: &Value) -> Result<Vec<ModelInfo>, LlmError> {
    if let Some(error) = failure::told(listed) {
        return Err(error);
    }
    let lists = [Some(listed), listed.get("data"), listed.get("models")];
    let mut lists = lists.into_iter().flatten();
    let list = match lists.find_map(Value::as_array) {
        Some(list) => list,
        // A server without models may say so by nothing.
        None if listed.get("data").is_some_and(Value::is_null) => return Ok(Vec::new()),
        None => return Err(LlmError::Malformed),
    };
    Ok(list.iter().filter_map(model).collect())
}

fn model(model: &Value) -> Option<ModelInfo> {
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| model.get(*name)?.as_str());
        found.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    if let Value::String(id) = model {
        return Some(ModelInfo {
            id: id.clone(),
            ..ModelInfo::default()
        });
    }
    let number = |value: &Value| {
        value
            .as_i64()
            .or(value.as_f64().map(|number| number as i64))
    };
    let window = [
        "context_length",
        "max_model_len",
        "max_context_length",
        "context_window",
    ];
    let window = window.iter().find_map(|name| number(model.get(*name)?));
    Some(ModelInfo {
        id: text(&["id", "model", "name"])?,
        name: text(&["name"]),
        owned_by: text(&["owned_by"]),
        created: model.get("created").and_then(number),
        description: text(&["description"]),
        context_length: window,
        ..ModelInfo::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_read_as_servers_write_it() {
        let one = json!({"id": "a", "object": "model", "created": 1.7e9, "owned_by": null, "max_model_len": 8192});
        for listed in [
            json!([one]),
            json!({"object": "list", "data": [one]}),
            json!({"models": [one]}),
            json!({"object": "list", "data": [one, {"object": "model"}, 3], "models": [{"name": "a"}]}),
        ] {
            let models = models(&listed).unwrap();
            assert_eq!(models.len(), 1, "{listed}");
            assert_eq!(
                (models[0].id.as_str(), models[0].context_length),
                ("a", Some(8192))
            );
            assert_eq!(models[0].created, Some(1_700_000_000));
        }
        let names = models(&json!({"data": ["a", "b"]})).unwrap();
        assert_eq!(names[1].id, "b");
        assert_eq!(
            models(&json!({"object": "list", "data": null})),
            Ok(Vec::new())
        );
        assert_eq!(models(&json!({"status": "ok"})), Err(LlmError::Malformed));
        let refused =
            json!({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}});
        assert_eq!(models(&refused), Err(LlmError::Auth(None)));
    }
}
