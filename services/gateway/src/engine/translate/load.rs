//! `text-load` and `document-load`: content put into the library and, from there, into a flow.
//!
//! The librarian names a nameless document by its content, so that the same content is the same document.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tg_schemas::Error;
use tg_schemas::msg::{DocumentMetadata, LibrarianRequest, LibrarianResponse, ProcessingMetadata};

use super::base64::{bytes, bytes_of_text};
use super::fields::{Body, Fields};
use super::librarian::inline;
use super::{About, Translate};

/// The `text-load` input: text, plain or base64.
pub struct TextLoad;

impl Translate for TextLoad {
    type Question = LibrarianRequest;
    type Answer = LibrarianResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<LibrarianRequest, Error> {
        let given = body.required_text("text")?;
        let charset = body.name_or("charset", "utf-8")?;
        let text = match bytes_of_text(&given) {
            Some(bytes) => decode(bytes, &charset, body)?.unwrap_or(given),
            None => given,
        };
        let content = inline("text", STANDARD.encode(text))?;
        request(body, about, "text/plain", content)
    }

    /// Nothing to tell: the input of a flow gives no reply.
    fn part(_part: LibrarianResponse, _about: &About) -> Body {
        Body::new()
    }
}

/// The `document-load` input: bytes in base64.
pub struct DocumentLoad;

impl Translate for DocumentLoad {
    type Question = LibrarianRequest;
    type Answer = LibrarianResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<LibrarianRequest, Error> {
        let data = body.required_text("data")?;
        let bytes = bytes(&data).ok_or_else(|| body.fault("data", "must be base64"))?;
        let content = inline("data", STANDARD.encode(&bytes))?;
        request(body, about, kind(&bytes), content)
    }

    fn part(_part: LibrarianResponse, _about: &About) -> Body {
        Body::new()
    }
}

/// `root` and `metadata` are not read: a document of its own is its own root.
fn request(
    body: &Fields<'_>,
    about: &About,
    kind: &str,
    content: String,
) -> Result<LibrarianRequest, Error> {
    body.pass_over(&["root", "metadata"]);
    // Older clients send a list of triples under this name.
    let kind = match body.value("kind") {
        Some(Value::String(kind)) if !kind.is_empty() => kind.as_str(),
        _ => kind,
    };
    let id = body.text("id")?;
    Ok(LibrarianRequest {
        operation: "load-document".to_owned(),
        document_metadata: Some(DocumentMetadata {
            id: id.clone(),
            kind: kind.to_owned(),
            title: body.text("title")?,
            ..DocumentMetadata::default()
        }),
        processing_metadata: Some(ProcessingMetadata {
            document_id: id,
            flow: about.flow.clone(),
            collection: body.collection()?,
            ..ProcessingMetadata::default()
        }),
        content,
        ..LibrarianRequest::default()
    })
}

/// What a nameless document looks like. The decoder looks more closely.
fn kind(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"%PDF") {
        "application/pdf"
    } else if bytes.starts_with(b"PK\x03\x04") {
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    } else if std::str::from_utf8(bytes).is_ok() {
        "text/plain"
    } else {
        "application/octet-stream"
    }
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
    use serde_json::json;

    fn load<T: Translate<Question = LibrarianRequest>>(
        body: Value,
    ) -> Result<LibrarianRequest, Error> {
        let about = About {
            flow: "f".into(),
            ..About::default()
        };
        T::question(&Fields::new(body.as_object().unwrap()), &about)
    }

    fn text(body: Value) -> String {
        let content = load::<TextLoad>(body).unwrap().content;
        String::from_utf8(STANDARD.decode(content).unwrap()).unwrap()
    }

    #[test]
    fn text_comes_plain_or_in_base64() {
        assert_eq!(text(json!({"text": "aGVsbG8="})), "hello");
        assert_eq!(text(json!({"text": "hello there"})), "hello there");
        assert_eq!(text(json!({"text": "größe"})), "größe");
        // Valid base64 of bytes that are no text: taken literally.
        assert_eq!(text(json!({"text": "/////w=="})), "/////w==");
        assert_eq!(text(json!({"text": "/A==", "charset": "latin-1"})), "ü");
        // As `base64 FILE` writes it.
        let long = "The clocks are wound on Mondays. ".repeat(4);
        let encoded = STANDARD.encode(&long);
        let wrapped = format!(
            "{}\n{}\n{}\n",
            &encoded[..76],
            &encoded[76..152],
            &encoded[152..]
        );
        assert_eq!(text(json!({"text": wrapped})), long);
        assert_eq!(text(json!({"text": "aGVsbG8=\n"})), "hello");
        assert_eq!(text(json!({"text": "word\nword\n"})), "word\nword\n");
        let loaded = load::<DocumentLoad>(json!({"data": wrapped}))
            .unwrap()
            .content;
        assert_eq!(loaded, encoded, "in one line");
    }

    #[test]
    fn a_load_is_a_document_with_its_processing() {
        let request = load::<TextLoad>(json!({
            "text": "x", "id": null, "metadata": [], "root": "urn:r", "user": "u"
        }))
        .unwrap();
        assert_eq!(request.operation, "load-document");
        let (document, processing) = (
            request.document_metadata.unwrap(),
            request.processing_metadata.unwrap(),
        );
        assert_eq!(
            (document.id.as_str(), document.kind.as_str()),
            ("", "text/plain")
        );
        assert_eq!(
            (processing.flow.as_str(), processing.collection.as_str()),
            ("f", "default")
        );
        let kind = |data: &[u8]| {
            let body = json!({"data": STANDARD.encode(data), "id": "urn:d", "collection": "c"});
            let request = load::<DocumentLoad>(body).unwrap();
            assert_eq!(request.processing_metadata.unwrap().document_id, "urn:d");
            request.document_metadata.unwrap().kind
        };
        assert_eq!(kind(b"%PDF-1.7"), "application/pdf");
        assert_eq!(kind(b"words"), "text/plain");
        assert_eq!(kind(b"\xff\xfe"), "application/octet-stream");
    }

    #[test]
    fn faults_name_the_field() {
        let message = |error: Error| error.message;
        assert_eq!(
            message(load::<TextLoad>(json!({})).unwrap_err()),
            "text: is required"
        );
        assert_eq!(
            message(load::<DocumentLoad>(json!({"data": "%%"})).unwrap_err()),
            "data: must be base64"
        );
        let large = json!({"text": "x y".repeat(6 << 20)});
        assert!(message(load::<TextLoad>(large).unwrap_err()).starts_with("text: is larger than"));
    }
}
