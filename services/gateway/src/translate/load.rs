//! `text-load` and `document-load`: a document put on a flow's input. A record, so there is no reply.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_schemas::Error;
use tg_schemas::msg::{Document, Metadata, TextDocument};

use super::About;
use super::fields::Fields;

/// `text-load`: text, plain or base64.
pub fn text(body: &Fields<'_>, about: &About) -> Result<TextDocument, Error> {
    let metadata = metadata(body, about)?;
    let given = body.required_text("text")?;
    let charset = body.name_or("charset", "utf-8")?;
    let text = match STANDARD.decode(given.as_bytes()) {
        Ok(bytes) => decode(bytes, &charset, body)?.unwrap_or(given),
        Err(_) => given,
    };
    Ok(TextDocument {
        metadata: Some(metadata),
        text,
        document_id: String::new(),
    })
}

/// `document-load`: bytes in base64.
pub fn document(body: &Fields<'_>, about: &About) -> Result<Document, Error> {
    let metadata = metadata(body, about)?;
    let data = body.required_text("data")?;
    let bytes = STANDARD
        .decode(data.as_bytes())
        .map_err(|_| body.fault("data", "must be base64"))?;
    Ok(Document {
        metadata: Some(metadata),
        data: STANDARD.encode(bytes),
        document_id: String::new(),
    })
}

fn metadata(body: &Fields<'_>, about: &About) -> Result<Metadata, Error> {
    Ok(Metadata {
        id: body.name_or("id", &about.fresh_id)?,
        root: body.text("root")?,
        collection: body.name_or("collection", "default")?,
    })
}

/// Bytes as text; `None` when they are no text in that character set, so that what was given was no
/// base64 but text that looks like it.
fn decode(bytes: Vec<u8>, charset: &str, body: &Fields<'_>) -> Result<Option<String>, Error> {
    match charset.to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" | "ascii" | "us-ascii" => Ok(String::from_utf8(bytes).ok()),
        "latin-1" | "latin1" | "iso-8859-1" => {
            Ok(Some(bytes.into_iter().map(char::from).collect()))
        }
        _ => Err(body.fault("charset", "must be utf-8, ascii or latin-1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn load(body: Value) -> Result<TextDocument, Error> {
        let about = About {
            fresh_id: "urn:uuid:1".into(),
            ..About::default()
        };
        text(&Fields::new(body.as_object().unwrap()), &about)
    }

    #[test]
    fn text_comes_plain_or_in_base64() {
        assert_eq!(load(json!({"text": "aGVsbG8="})).unwrap().text, "hello");
        assert_eq!(
            load(json!({"text": "hello there"})).unwrap().text,
            "hello there"
        );
        assert_eq!(load(json!({"text": "größe"})).unwrap().text, "größe");
        // Valid base64 of bytes that are no text: taken literally.
        assert_eq!(load(json!({"text": "/////w=="})).unwrap().text, "/////w==");
        let latin = load(json!({"text": "/A==", "charset": "latin-1", "id": "d"})).unwrap();
        assert_eq!(latin.text, "ü");
        assert_eq!(latin.metadata.unwrap().id, "d");
        let named = load(json!({"text": "x", "id": null})).unwrap();
        let metadata = named.metadata.unwrap();
        assert_eq!(
            (metadata.id.as_str(), metadata.collection.as_str()),
            ("urn:uuid:1", "default")
        );
    }

    #[test]
    fn faults_name_the_field() {
        assert_eq!(load(json!({})).unwrap_err().message, "text: is required");
        let body = json!({"data": "%%"});
        let fields = Fields::new(body.as_object().unwrap());
        let error = document(&fields, &About::default()).unwrap_err();
        assert_eq!(error.message, "data: must be base64");
    }
}
