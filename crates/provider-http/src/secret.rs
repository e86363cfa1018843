//! A key. Prints as stars; the text comes out only where a request is signed, and is wiped from memory when
//! the last of its copies goes.

use std::fmt;
use std::hash::{Hash, Hasher};

use secrecy::{ExposeSecret, SecretString};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that must never be shown.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub struct Secret(SecretString);

impl Secret {
    /// What is shown in its place.
    pub const SHOWN: &'static str = "***";

    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// A secret of the settings, which may be named instead of written (see [`tg_settings::resolved`]). Never for what
/// users of the system write: whoever may name a variable or a file of the server may read it.
///
/// # Errors
/// What is named cannot be had.
pub fn by_reference<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    let text = tg_settings::resolved(String::deserialize(from)?);
    text.map(|text| Some(Secret::new(text)))
        .map_err(D::Error::custom)
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expose().hash(state);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::SHOWN)
    }
}

/// As stars, too: a text that never is shown is not written either.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::SHOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_stars_wherever_it_is() {
        #[derive(Debug, PartialEq, Deserialize, Serialize)]
        struct Row {
            key: Option<Secret>,
        }
        let row: Row = serde_json::from_str(r#"{"key": "sk-hidden"}"#).unwrap();
        assert_eq!(format!("{row:?}"), "Row { key: Some(***) }");
        assert_eq!(serde_json::to_string(&row).unwrap(), r#"{"key":"***"}"#);
        assert_eq!(row.key, Some(Secret::new("sk-hidden")));
        assert_ne!(row.key, Some(Secret::new("sk-other")));
        assert_eq!(row.key.unwrap().expose(), "sk-hidden");
    }

    #[test]
    fn only_what_says_so_is_read_by_reference() {
        #[derive(Deserialize)]
        struct Row {
            key: Secret,
        }
        #[derive(Deserialize)]
        struct Setting {
            #[serde(deserialize_with = "by_reference")]
            key: Option<Secret>,
        }
        let file = concat!("file:", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for named in ["env:CARGO_PKG_NAME", file] {
            let json = format!(r#"{{"key": "{named}"}}"#);
            let row: Row = serde_json::from_str(&json).unwrap();
            assert_eq!(row.key.expose(), named);
        }
        let json = r#"{"key": "env:CARGO_PKG_NAME"}"#;
        let setting: Setting = serde_json::from_str(json).unwrap();
        assert_eq!(setting.key, Some(Secret::new("tg-provider-http")));
    }
}
