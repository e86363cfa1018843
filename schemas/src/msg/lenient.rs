//! Decoding rules that foreign senders rely on: `null` stands for the default, map values of any
//! JSON kind are read as text.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads `null` as the type's default.
pub(crate) fn nullable<'de, D, T>(de: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(de)?.unwrap_or_default())
}

/// Reads a map whose values should be text: other JSON values become their JSON text, `null` is dropped.
pub(super) fn string_map<'de, D>(de: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = Option::<BTreeMap<String, Value>>::deserialize(de)?.unwrap_or_default();
    Ok(raw
        .into_iter()
        .filter_map(|(key, value)| match value {
            Value::Null => None,
            Value::String(text) => Some((key, text)),
            other => Some((key, other.to_string())),
        })
        .collect())
}

/// Whether a number says nothing: fields of ours that foreign senders and readers do not know are left out then.
pub(super) fn is_zero(number: &i64) -> bool {
    *number == 0
}
