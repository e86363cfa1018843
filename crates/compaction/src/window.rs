//! How many tokens a model reads at once.

use serde::Deserialize;

/// Tokens that a model is taken to read where nobody says.
pub const USUAL: u64 = 128_000;
/// Config type of what a workspace says of models, by their names.
pub const MODEL_TYPE: &str = "llm-model";

/// What a workspace says of a model.
#[derive(Debug, Deserialize)]
struct ModelRow {
    /// 0: the row is about something else, such as the cost.
    #[serde(default)]
    context_window: u64,
}

/// The window that counts: what is said of the model, then what is known of it, then what is said of all; the first that says
/// something.
pub fn window(of_model: Option<u64>, known: Option<u64>, of_all: Option<u64>) -> u64 {
    let mut said = [of_model, known, of_all].into_iter().flatten();
    said.find(|window| *window > 0).unwrap_or(USUAL)
}

/// The window in a row of configuration; 0: the row says nothing of it.
///
/// # Errors
/// Why it cannot be read.
pub fn said(row: &str) -> Result<u64, String> {
    let row: ModelRow =
        serde_json::from_slice(row.as_bytes()).map_err(|error| error.to_string())?;
    Ok(row.context_window)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 96
    #[test]
    fn line_096_what_is_said_of_the_model_comes_first() {
        assert_eq!(window(Some(20_000), Some(1), Some(64_000)), 20_000);
        assert_eq!(window(Some(0), None, Some(64_000)), 64_000);
        assert_eq!(window(None, Some(32_000), Some(64_000)), 32_000);
        assert_eq!(window(None, None, None), USUAL);
        assert_eq!(said(r#"{"context_window": 20000}"#), Ok(20_000));
        assert_eq!(said(r#"{"local": true}"#), Ok(0));
        assert!(said(r#"{"context_window": -1}"#).is_err() && said("x").is_err());
    }
}
