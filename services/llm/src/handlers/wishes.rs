//! What a question says of its model: whether it can be asked so.

use tg_schemas::limits::{CHAT_MODELS, MODEL_NAME};

use crate::error::LlmError;

/// Whether the models that a question names are few and their names short: they are compared with each other, and each
/// may be asked.
pub(super) fn are_named(model: Option<&str>, models: &[String]) -> Result<(), LlmError> {
    if models.len() > CHAT_MODELS {
        return Err(LlmError::Models);
    }
    if model.is_some_and(|name| name.len() > MODEL_NAME) {
        return Err(LlmError::ModelName("model"));
    }
    match models.iter().any(|name| name.len() > MODEL_NAME) {
        true => Err(LlmError::ModelName("models")),
        false => Ok(()),
    }
}

/// The temperature that a question names, else that of its flow.
pub(super) fn temperature_of(
    own: Option<f64>,
    flow: Option<&str>,
) -> Result<Option<f64>, LlmError> {
    let number = match (own, flow) {
        (Some(own), _) => Some(own),
        (None, Some(text)) => text.trim().parse().ok(),
        (None, None) => return Ok(None),
    };
    match number.filter(|number| (0.0..=10.0).contains(number)) {
        None => Err(LlmError::Temperature),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::{Error, ErrorCode};

    use super::*;

    #[test]
    fn a_question_names_few_models_with_short_names() {
        let named = |model: &str, models: &[&str]| {
            let models: Vec<String> = models.iter().map(|&name| name.to_owned()).collect();
            are_named(Some(model), &models)
        };
        let (fits, long) = ("m".repeat(MODEL_NAME), "m".repeat(MODEL_NAME + 1));
        let (most, many) = (vec![fits.as_str(); 16], vec!["m"; 17]);
        assert_eq!(named(&fits, &most), Ok(()));
        for (fault, field) in [
            (named("m", &many), "models:"),
            (named("m", &[&long]), "models:"),
            (named(&long, &[]), "model:"),
        ] {
            let told = Error::from(fault.unwrap_err());
            assert_eq!(told.code(), ErrorCode::BadRequest);
            assert!(told.message.starts_with(field), "{}", told.message);
        }
    }

    #[test]
    fn the_temperature_of_a_question_comes_before_that_of_its_flow() {
        assert_eq!(temperature_of(Some(0.5), Some("0.3")), Ok(Some(0.5)));
        assert_eq!(temperature_of(None, Some(" 0.3 ")), Ok(Some(0.3)));
        assert_eq!(temperature_of(None, None), Ok(None));
        for (own, flow) in [
            (Some(11.0), None),
            (Some(f64::NAN), None),
            (None, Some("warm")),
        ] {
            assert_eq!(temperature_of(own, flow), Err(LlmError::Temperature));
        }
    }
}
