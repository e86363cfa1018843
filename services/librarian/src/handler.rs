//! The librarian's door.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tg_mesh::{Cx, Out, Serve};
use tg_schemas::msg::{LibrarianRequest, LibrarianResponse};
use tg_schemas::{Error, ErrorCode};

use crate::fault::invalid;
use crate::library::{Asker, Library};
use crate::processor::Owned;

/// Bytes of a streamed piece when the asker names none.
const PIECE: u64 = 1 << 20;
/// Most bytes of a streamed piece.
const LARGEST: u64 = 8 << 20;

/// Encoders disagree about padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) struct Handler(pub(crate) Arc<Owned>);

#[async_trait]
impl Serve<LibrarianRequest, LibrarianResponse> for Handler {
    async fn serve(
        &self,
        cx: Cx,
        ask: LibrarianRequest,
        mut out: Out<LibrarianResponse>,
    ) -> Result<(), Error> {
        let library = self.0.library().await?;
        let asker = Asker {
            workspace: cx.workspace().to_owned(),
            question: cx.id.to_string(),
        };
        if ask.operation == "stream-document" {
            return stream(&library, &asker, &ask, &mut out).await;
        }
        out.send(answer(&library, &asker, ask).await?).await
    }
}

async fn answer(
    library: &Library,
    asker: &Asker,
    ask: LibrarianRequest,
) -> Result<LibrarianResponse, Error> {
    let mut reply = LibrarianResponse::default();
    match ask.operation.as_str() {
        "add-document" => {
            let content = decode(&ask.content)?;
            library.add(asker, ask.document_metadata, content).await?;
        }
        "add-child-document" => {
            let content = decode(&ask.content)?;
            let added = library.add_child(asker, ask.document_metadata, content);
            reply.document_id = added.await?;
        }
        "update-document" => library.update(asker, ask.document_metadata).await?,
        "remove-document" => library.remove(asker, document_id(&ask)?).await?,
        "get-document-metadata" | "get-document" => {
            let found = library.metadata(asker, document_id(&ask)?).await?;
            reply.document_metadata = Some(found);
        }
        "get-document-content" => {
            let content = library.content(asker, document_id(&ask)?).await?;
            reply.content = BASE64.encode(content);
        }
        "list-documents" => {
            reply.document_metadatas = library.list(asker, ask.include_children).await?;
        }
        "list-children" => {
            let found = library.children(asker, document_id(&ask)?).await?;
            reply.document_metadatas = found;
        }
        other => return Err(unknown(other)),
    }
    Ok(reply)
}

async fn stream(
    library: &Library,
    asker: &Asker,
    ask: &LibrarianRequest,
    out: &mut Out<LibrarianResponse>,
) -> Result<(), Error> {
    let size = u64::try_from(ask.chunk_size).unwrap_or(0);
    let size = if size == 0 { PIECE } else { size.min(LARGEST) };
    let mut pieces = library.pieces(asker, document_id(ask)?, size).await?;
    while let Some(piece) = pieces.next().await? {
        let part = LibrarianResponse {
            content: BASE64.encode(&piece.bytes),
            chunk_index: number(piece.index),
            total_chunks: number(piece.pieces),
            chunks_received: number(piece.index + 1),
            bytes_received: number(piece.received),
            total_bytes: number(piece.total),
            is_final: pieces.ended(),
            ..LibrarianResponse::default()
        };
        out.send(part).await?;
    }
    Ok(())
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn document_id(ask: &LibrarianRequest) -> Result<&str, Error> {
    match ask.document_id.as_str() {
        "" => Err(invalid("document-id: is required")),
        id => Ok(id),
    }
}

fn decode(content: &str) -> Result<Vec<u8>, Error> {
    let decoded = if content.contains(char::is_whitespace) {
        BASE64.decode(content.split_whitespace().collect::<String>())
    } else {
        BASE64.decode(content)
    };
    decoded.map_err(|_| invalid("content: is not base64"))
}

/// Operations of the contract that come later.
const LATER: &[&str] = &[
    "add-processing",
    "remove-processing",
    "list-processing",
    "begin-upload",
    "upload-chunk",
    "complete-upload",
    "abort-upload",
    "get-upload-status",
    "list-uploads",
];

fn unknown(operation: &str) -> Error {
    if LATER.contains(&operation) {
        let text = format!("operation: '{operation}' is not built yet");
        return Error::new(ErrorCode::NotImplemented, text);
    }
    match operation {
        "" => invalid("operation: is required"),
        _ => invalid("operation: is not known to the librarian"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_read_with_or_without_padding_and_line_ends() {
        for text in ["aGVsbG8=", "aGVsbG8", "aGVs\nbG8=\r\n"] {
            assert_eq!(decode(text).unwrap(), b"hello");
        }
        assert_eq!(decode("").unwrap(), b"");
        assert_eq!(decode("no!").unwrap_err().message, "content: is not base64");
    }

    #[test]
    fn later_and_unknown_operations_are_told_apart() {
        assert_eq!(unknown("begin-upload").code(), ErrorCode::NotImplemented);
        assert_eq!(unknown("nonsense").code(), ErrorCode::BadRequest);
    }
}
