//! Listings of the library, page by page. Gateways that know no pages answer with everything at once.

use serde_json::{Value, json};

use crate::client::{Http, Result};
use crate::fields::{list, text};

/// Most entries of a page.
const PAGE: u64 = 1000;

/// All documents of the library; with their parts and with answers if asked for.
pub async fn documents(http: &Http, include_children: bool) -> Result<Vec<Value>> {
    let request = json!({"operation": "list-documents", "include-children": include_children});
    all(http, request, "document-metadatas").await
}

/// All processing records.
pub async fn processings(http: &Http) -> Result<Vec<Value>> {
    let request = json!({"operation": "list-processing"});
    all(http, request, "processing-metadatas").await
}

async fn all(http: &Http, mut request: Value, entries: &str) -> Result<Vec<Value>> {
    request["limit"] = json!(PAGE);
    let mut found = Vec::new();
    loop {
        let reply = http.service("librarian", request.clone()).await?;
        found.extend_from_slice(list(&reply, entries));
        let next = text(&reply, "next");
        if next.is_empty() || request["after"] == next {
            return Ok(found);
        }
        request["after"] = json!(next);
    }
}
