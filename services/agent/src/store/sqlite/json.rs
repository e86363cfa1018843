//! What is kept as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tg_storage::StorageError;

/// As it is kept.
pub(super) fn write_json(value: &impl Serialize) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|error| StorageError::Failed(error.to_string()))
}

/// As it was kept.
pub(super) fn read_json<T: DeserializeOwned>(
    text: Option<String>,
) -> Result<Option<T>, StorageError> {
    text.map(|text| serde_json::from_slice(text.as_bytes()))
        .transpose()
        .map_err(|error| StorageError::Corrupt(error.to_string()))
}
