//! Tools that need no server. Pure: the clock comes in.

pub mod calculator;
mod clock;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

/// Reserved name of the calculator; argument `expression`.
pub const CALCULATOR: &str = "builtin:calculator";
/// Reserved name of the clock; no arguments.
pub const CURRENT_DATETIME: &str = "builtin:current_datetime";

/// Runs a built-in tool; `None` if the name is not one of them.
pub fn call(
    name: &str,
    parameters: &Map<String, Value>,
    now: DateTime<Utc>,
) -> Option<Result<String, String>> {
    match name {
        CALCULATOR => Some(calculate(parameters)),
        CURRENT_DATETIME => Some(Ok(clock::tell(now))),
        _ => None,
    }
}

fn calculate(parameters: &Map<String, Value>) -> Result<String, String> {
    let expression = match parameters.get("expression") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return Err("argument 'expression' is required".to_owned()),
    };
    match calculator::evaluate(&expression) {
        Ok(value) => Ok(calculator::show(value)),
        Err(fault) => Err(fault.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reserved_and_faults_are_told() {
        let call = |name: &str, parameters: Value| {
            let Value::Object(parameters) = parameters else {
                panic!()
            };
            call(name, &parameters, DateTime::UNIX_EPOCH)
        };
        let sum = call(CALCULATOR, serde_json::json!({"expression": "2+2"}));
        assert_eq!(sum, Some(Ok("4".to_owned())));
        assert!(call(CALCULATOR, serde_json::json!({})).unwrap().is_err());
        let time = call(CURRENT_DATETIME, serde_json::json!({}));
        assert_eq!(
            time,
            Some(Ok("1970-01-01T00:00:00Z (Thursday, UTC)".to_owned()))
        );
        assert_eq!(call("calculator", serde_json::json!({})), None);
    }
}
