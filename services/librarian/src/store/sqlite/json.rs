//! Values that are kept as JSON.

use tg_storage::StorageError;

/// A value as JSON text.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|error| StorageError::Failed(error.to_string()))
}

/// JSON text as a value; what cannot be read is empty.
pub(super) fn from_json<T: serde::de::DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}
