//! Documents of knowledge cores that are larger than a message: cut into parts on the way in, put together
//! on the way out.
//!
//! On the bus a document travels in parts of [`PART`] bytes. A client sees it in one frame, unless the
//! request says `blob-parts`; then, and in uploads, it may name `offset` and `total` itself.

use futures::StreamExt;
use futures::stream;
use serde_json::Value;
use tg_mesh::{Answer, Ask, Mesh};
use tg_schemas::msg::{KnowledgeRequest, KnowledgeResponse, LibraryBlob};
use tg_schemas::{Error, ErrorCode, Topic, limits};

use crate::ask::{self, Part, Parts};
use crate::engine::scrub::scrub;
use crate::engine::translate::knowledge::Knowledge;
use crate::engine::translate::{About, Body, Fields, Translate, error_body};

/// Bytes of one part.
const PART: usize = limits::CONTENT_PART;
/// The same in base64.
const PART_TEXT: usize = limits::base64(PART);

/// Asks the knowledge service.
pub(crate) fn ask(
    mesh: &Mesh,
    topic: &Topic,
    body: &Body,
    about: &About,
    options: Ask,
) -> Result<Parts, Error> {
    if about.operation == "put-kg-core" {
        let mut question = Knowledge::question(&Fields::new(body), about)?;
        let large = |blob: &LibraryBlob| blob.total == 0 && blob.data.len() > PART_TEXT;
        if let Some(blob) = question.library_blob.take_if(|blob| large(blob)) {
            return Ok(upload(mesh.clone(), topic.clone(), question, blob, options));
        }
    }
    let parts = ask::ask::<Knowledge>(mesh, topic, body, about, options)?;
    if body.get("blob-parts") == Some(&Value::Bool(true)) {
        return Ok(parts);
    }
    Ok(joined(parts))
}

/// Puts a large document part by part; the reply of the last is the reply.
fn upload(
    mesh: Mesh,
    topic: Topic,
    question: KnowledgeRequest,
    blob: LibraryBlob,
    options: Ask,
) -> Parts {
    let work = async move {
        let total = decoded_length(&blob.data)?;
        for (at, text) in blob.data.as_bytes().chunks(PART_TEXT).enumerate() {
            let data = std::str::from_utf8(text).map_err(|_| not_base64())?;
            let question = KnowledgeRequest {
                library_blob: Some(LibraryBlob {
                    id: blob.id.clone(),
                    data: data.to_owned(),
                    offset: (at * PART) as i64,
                    total: total as i64,
                }),
                ..question.clone()
            };
            let id = options.id.as_ref().map(|id| format!("{id}.{at}"));
            let options = Ask {
                id,
                ..options.clone()
            };
            let answer: Answer<KnowledgeResponse> = mesh.ask(&topic, &question, options);
            answer.last().await?;
        }
        Ok(())
    };
    let part = async move {
        match work.await {
            Ok(()) => Part::Body {
                body: Body::new().into(),
                last: true,
                failed: false,
            },
            Err(error) => Part::Error(scrub(error)),
        }
    };
    stream::once(part).boxed()
}

/// Bytes behind a base64 text without line ends.
fn decoded_length(text: &str) -> Result<usize, Error> {
    if !text.len().is_multiple_of(4) || text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return Err(not_base64());
    }
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    Ok(text.len() / 4 * 3 - padding.min(2))
}

fn not_base64() -> Error {
    Error::new(
        ErrorCode::BadRequest,
        "library-blob.data: must be base64 in one line",
    )
}

/// A document under way.
#[derive(Default)]
struct Joining {
    id: String,
    text: String,
}

/// Parts of documents become one frame each.
fn joined(parts: Parts) -> Parts {
    let state = (parts, Joining::default(), false);
    stream::unfold(state, |(mut parts, mut joining, over)| async move {
        if over {
            return None;
        }
        loop {
            let part = parts.next().await?;
            let Part::Body { body, last, failed } = part else {
                return Some((part, (parts, joining, true)));
            };
            let body = match join(&mut joining, body.into_tree()) {
                Ok(Some(body)) => body,
                Ok(None) => continue,
                Err(error) => {
                    let part = Part::Body {
                        body: error_body(&error).into(),
                        last: true,
                        failed: true,
                    };
                    return Some((part, (parts, joining, true)));
                }
            };
            let body = body.into();
            let part = Part::Body { body, last, failed };
            return Some((part, (parts, joining, last)));
        }
    })
    .boxed()
}

/// The frame, once a document is whole; other frames as they are.
fn join(joining: &mut Joining, mut body: Body) -> Result<Option<Body>, Error> {
    let Some(Value::Object(blob)) = body.get_mut("library-blob") else {
        return Ok(Some(body));
    };
    let number = |blob: &Body, key: &str| blob.get(key).and_then(Value::as_u64);
    let (Some(offset), Some(total)) = (number(blob, "offset"), number(blob, "total")) else {
        return Ok(Some(body));
    };
    let id = blob.get("id").and_then(Value::as_str).unwrap_or_default();
    let data = blob.get("data").and_then(Value::as_str).unwrap_or_default();
    if joining.id != id || offset == 0 {
        *joining = Joining {
            id: id.to_owned(),
            text: String::new(),
        };
    }
    if joining.text.len() + data.len() > limits::SOCKET_TEXT {
        let text = format!(
            "library-blob: document {id} is larger than a frame may be; ask with blob-parts, or use document-stream"
        );
        return Err(Error::typed("librarian-error", text));
    }
    joining.text.push_str(data);
    let so_far = offset.saturating_add(decoded_length(data).unwrap_or(0) as u64);
    if so_far < total {
        return Ok(None);
    }
    let whole = std::mem::take(joining);
    blob.insert("data".to_owned(), whole.text.into());
    blob.remove("offset");
    blob.remove("total");
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn frame(data: &str, offset: usize, total: usize) -> Body {
        let value =
            json!({"library-blob": {"id": "d", "data": data, "offset": offset, "total": total}});
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn parts_become_one_frame() {
        let mut joining = Joining::default();
        assert_eq!(join(&mut joining, frame("aGVs", 0, 8)), Ok(None));
        assert_eq!(join(&mut joining, frame("bG8h", 3, 8)), Ok(None));
        let whole = join(&mut joining, frame("ISE=", 6, 8)).unwrap().unwrap();
        assert_eq!(
            Value::Object(whole),
            json!({"library-blob": {"id": "d", "data": "aGVsbG8hISE="}})
        );
        let other = json!({"eos": true}).as_object().cloned().unwrap();
        assert_eq!(join(&mut joining, other.clone()), Ok(Some(other)));
    }

    #[test]
    fn what_does_not_fit_a_frame_is_an_error_that_says_what_to_do() {
        let mut joining = Joining::default();
        let part = "A".repeat(limits::SOCKET_TEXT / 2);
        assert_eq!(join(&mut joining, frame(&part, 0, 1 << 30)), Ok(None));
        assert_eq!(join(&mut joining, frame(&part, 3, 1 << 30)), Ok(None));
        let error = join(&mut joining, frame("AAAA", 6, 1 << 30)).unwrap_err();
        assert!(error.message.contains("document-stream"));
    }

    #[test]
    fn lengths_are_known_without_decoding() {
        assert_eq!(decoded_length("aGVsbG8="), Ok(5));
        assert_eq!(decoded_length(""), Ok(0));
        assert!(decoded_length("aGVsbG8").is_err());
        assert!(decoded_length("aGVs\nbG8").is_err());
        assert_eq!(PART_TEXT % 4, 0);
    }
}
