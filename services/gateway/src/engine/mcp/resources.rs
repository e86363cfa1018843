//! Documents of the library as resources. An address holds the id of a document, escaped.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use tg_schemas::limits::{MCP_ANSWER, human};
use tg_schemas::{Error, ErrorCode};

use crate::engine::translate::Body;

/// What lists them.
pub(crate) const LIST: &str = "resources/list";
/// What tells how their addresses are formed.
pub(crate) const TEMPLATES: &str = "resources/templates/list";
/// What reads one, by its address.
pub(crate) const READ: &str = "resources/read";
/// The service that has them.
pub(crate) const SERVICE: &str = "librarian";
/// Its operation that lists them.
pub(crate) const LISTS: &str = "list-documents";
/// Its operation that reads one.
pub(crate) const READS: &str = "get-document-content";

/// What all addresses begin with.
const BEGINNING: &str = "threadgraph://document/";
/// Entries of a page.
const PAGE: usize = 100;
/// Longest cursor, in bytes.
const CURSOR: usize = 4 << 10;

/// The address of a document.
pub(crate) fn address(id: &str) -> String {
    format!("{BEGINNING}{}", utf8_percent_encode(id, NON_ALPHANUMERIC))
}

/// The document of an address; `None`: it is the address of none.
pub(crate) fn id(address: &str) -> Option<String> {
    let id = address.strip_prefix(BEGINNING)?;
    let id = percent_decode_str(id).decode_utf8().ok()?;
    (!id.is_empty()).then(|| id.into_owned())
}

/// The request for a page, from where the one before ended.
pub(crate) fn page(cursor: Option<&str>) -> Option<Body> {
    let mut body = Body::new();
    body.insert("limit".to_owned(), PAGE.into());
    if let Some(cursor) = cursor {
        if cursor.len() > CURSOR {
            return None;
        }
        body.insert("after".to_owned(), cursor.into());
    }
    Some(body)
}

/// A page, by the answer of the library.
pub(crate) fn listed(body: &Body) -> Value {
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let documents = body.get("document-metadatas").and_then(Value::as_array);
    let documents = documents.map_or(&[][..], Vec::as_slice).iter();
    let resources = documents.map(|one| {
        let (id, title) = (text(one, "id"), text(one, "title"));
        let name = if title.is_empty() { id.clone() } else { title };
        let mut resource = json!({"uri": address(&id), "name": name});
        for (key, name) in [("kind", "mimeType"), ("comments", "description")] {
            let text = text(one, key);
            if !text.is_empty() {
                resource[name] = text.into();
            }
        }
        resource
    });
    let mut page = json!({"resources": resources.collect::<Vec<Value>>()});
    if let Some(next) = body.get("next").filter(|next| next.is_string()) {
        page["nextCursor"] = next.clone();
    }
    page
}

/// How addresses are formed, as RFC 6570 has it.
pub(crate) fn template() -> String {
    format!("{BEGINNING}{{id}}")
}

/// How addresses are formed, as it is listed.
pub(crate) fn templates() -> Value {
    json!({"resourceTemplates": [{
        "uriTemplate": template(),
        "name": "document",
        "title": "A document, page or passage",
        "description": "The content of a document of the library, or of a part of one, by its id.",
    }]})
}

/// The content of a document.
///
/// # Errors
/// `too-large`: it does not fit into one answer.
pub(crate) fn contents(address: &str, body: &Body) -> Result<Value, Error> {
    let encoded = body.get("content").and_then(Value::as_str);
    let encoded = encoded.unwrap_or_default();
    if encoded.len() > MCP_ANSWER {
        let most = human(MCP_ANSWER);
        let why =
            format!("uri: is larger than {most}; the tool get_document reads it piece by piece");
        return Err(Error::new(ErrorCode::TooLarge, why));
    }
    let text = STANDARD.decode(encoded).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    let content = match text {
        Some(text) => json!({"uri": address, "mimeType": "text/plain", "text": text}),
        None => json!({
            "uri": address, "mimeType": "application/octet-stream", "blob": encoded,
        }),
    };
    Ok(json!({"contents": [content]}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn an_address_holds_any_id_and_gives_it_back() {
        for of in ["doc", "urn:a/b?c#d", "ä %20"] {
            let address = address(of);
            assert!(address.is_ascii(), "{address}");
            assert_eq!(id(&address).as_deref(), Some(of));
        }
        for none in ["threadgraph://document/", "https://a.example/", ""] {
            assert_eq!(id(none), None, "{none}");
        }
    }

    #[test]
    fn a_page_names_documents_by_their_titles_and_says_where_to_go_on() {
        let page = listed(&body(json!({"next": "c", "document-metadatas": [
            {"id": "a", "title": "A", "kind": "text/plain"}, {"id": "b"}]})));
        assert_eq!(
            page,
            json!({"nextCursor": "c", "resources": [
                {"uri": "threadgraph://document/a", "name": "A", "mimeType": "text/plain"},
                {"uri": "threadgraph://document/b", "name": "b"}]})
        );
        assert_eq!(listed(&Body::new()), json!({"resources": []}));
        assert_eq!(
            Value::Object(super::page(Some("c")).unwrap()),
            json!({"limit": 100, "after": "c"})
        );
        assert_eq!(super::page(Some(&"c".repeat(CURSOR + 1))), None);
    }

    #[test]
    fn texts_are_texts_and_other_bytes_are_base64() {
        let read = |content: &str| contents("u", &body(json!({"content": content}))).unwrap();
        assert_eq!(read("aGk=")["contents"][0]["text"], "hi");
        assert_eq!(read("/w==")["contents"][0]["blob"], "/w==");
        let long = contents("u", &body(json!({"content": "A".repeat(MCP_ANSWER + 1)})));
        assert_eq!(long.unwrap_err().code(), ErrorCode::TooLarge);
    }
}
