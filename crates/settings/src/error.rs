//! The one error of settings.

use std::fmt::{self, Display};

use serde::de;

/// A mistake in one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    /// The setting, as it is written in a file, or the variable; e.g. `log.format`.
    pub key: String,
    /// What is wrong with it and what would be right; never its value, which may be a secret.
    pub message: String,
}

impl SettingError {
    /// A mistake in a setting.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }
}

impl Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl std::error::Error for SettingError {}

/// What serde says of a value, without the value; the key is added by who knows it.
impl de::Error for SettingError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new("", message.to_string())
    }

    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new("", format!("must be {expected}"))
    }

    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new("", format!("must be {expected}"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new("", format!("must be one of {}", expected.join(", ")))
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        let text = "is not a setting; `threadgraph settings` prints those there are";
        Self::new(field, text)
    }
}
