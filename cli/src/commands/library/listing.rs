//! Listings of the library.

use serde_json::{Value, json};

use crate::client::{Http, Result};
use crate::fields::list;

/// All documents of the library; with their parts and with answers if asked for.
///
/// # Errors
/// As [`Http::all`].
pub async fn documents(http: &Http, include_children: bool) -> Result<Vec<Value>> {
    let request = json!({"operation": "list-documents", "include-children": include_children});
    all(http, request, "document-metadatas").await
}

/// All processing records.
///
/// # Errors
/// As [`Http::all`].
pub async fn processings(http: &Http) -> Result<Vec<Value>> {
    let request = json!({"operation": "list-processing"});
    all(http, request, "processing-metadatas").await
}

async fn all(http: &Http, request: Value, entries: &str) -> Result<Vec<Value>> {
    let reply = http.all("librarian", request).await?;
    Ok(list(&reply, entries).to_vec())
}
