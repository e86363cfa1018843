//! Documents and the librarian. Field names, order and defaults are the wire contract.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::metadata::Metadata;
use super::reindex::{ChunkReaders, Reindexed};
use crate::error::Error;
use crate::rdf::Triple;

/// A document to be decoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Document {
    /// What it is, and the collection its data goes to.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// The content, in base64; empty where the library has it under `document_id`.
    pub data: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the document in the library; empty where `data` has the content.
    pub document_id: String,
}

message!(Document, metadata);

/// A text to be cut into chunks: a plain document, or a page of another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TextDocument {
    /// What it is, and the collection its data goes to.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// The text in UTF-8, in base64; empty where the library has it under `document_id`.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the text in the library; empty where `text` has the content.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Title of the document; may be empty.
    pub title: String,
    #[serde(deserialize_with = "nullable")]
    /// Media type by which the text is cut, such as `text/markdown`; empty: plain text.
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    /// Headings above the beginning of the text, the outermost first.
    pub headings: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Row of the names of columns of the table that goes on at the beginning of the text.
    pub table: String,
    #[serde(deserialize_with = "nullable")]
    /// Number of the page that the text is; 0 where it is none.
    pub page: i64,
}

message!(TextDocument, metadata);

/// A piece of a text that is small enough for a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Chunk {
    /// What it is, and the collection its data goes to.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// A piece of the content, in base64.
    pub chunk: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the chunk in the library; empty where it is not kept there.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// What searches may filter by; it goes with the chunk's vector.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    #[serde(deserialize_with = "nullable")]
    /// Where the chunk stands: title, headings and page, then the names of columns of a table. Read with the chunk, no part of it.
    pub context: String,
    #[serde(deserialize_with = "nullable")]
    /// Processors that are to read it, each with the fingerprint of what it does with chunks; others have what they made
    /// of it already. Empty: all of them.
    pub readers: BTreeMap<String, String>,
}

message!(Chunk, metadata);

impl Chunk {
    /// The fingerprint under which a processor is to read it, empty where nobody says; `None`: it is not for this one.
    pub fn fingerprint(&self, processor: &str) -> Option<&str> {
        match self.readers.is_empty() {
            true => Some(""),
            false => self.readers.get(processor).map(String::as_str),
        }
    }
}

/// A text as a model, an embedding and an index read it: below one line, in brackets, that says where it stands.
pub fn in_context<'a>(context: &str, text: &'a str) -> Cow<'a, str> {
    let (place, table) = context.split_once('\n').unwrap_or((context, ""));
    match (place, table) {
        ("", "") => Cow::Borrowed(text),
        ("", table) => Cow::Owned(format!("(columns: {table})\n{text}")),
        (place, "") => Cow::Owned(format!("({place})\n{text}")),
        (place, table) => Cow::Owned(format!("({place}; columns: {table})\n{text}")),
    }
}

/// What stands before the number of a page in a chunk's context.
const PAGE: &str = "page ";
/// What stands between the headings and the page.
const BEFORE_PAGE: &str = "; ";

/// The place of a chunk with its page, if it has one.
pub fn on_page(place: &str, page: i64) -> String {
    match (place, page) {
        (place, ..=0) => place.to_owned(),
        ("", page) => format!("{PAGE}{page}"),
        (place, page) => format!("{place}{BEFORE_PAGE}{PAGE}{page}"),
    }
}

/// A context in two: without its page, and the page, 0 where it names none. Something put in before a chunk moves its
/// page, and the chunk says the same as before.
pub fn off_page(context: &str) -> (Cow<'_, str>, i64) {
    let (place, table) = context.split_once('\n').unwrap_or((context, ""));
    let (rest, last) = place.rsplit_once(BEFORE_PAGE).unwrap_or(("", place));
    let page = last.strip_prefix(PAGE).and_then(|page| page.parse().ok());
    match (page, table) {
        (None, _) => (Cow::Borrowed(context), 0),
        (Some(page), "") => (Cow::Borrowed(rest), page),
        (Some(page), table) => (Cow::Owned(format!("{rest}\n{table}")), page),
    }
}

#[cfg(test)]
mod tests {
    use super::{in_context, off_page, on_page};

    #[test]
    fn a_page_is_told_apart_from_what_it_is_of() {
        for (place, page, both) in [
            ("", 0, ""),
            ("A > B", 0, "A > B"),
            ("", 3, "page 3"),
            ("A > B", 12, "A > B; page 12"),
            ("A; page 1", 2, "A; page 1; page 2"),
        ] {
            assert_eq!(on_page(place, page), both);
        }
        for (context, place, page) in [
            ("page 3", "", 3),
            ("A; page 12", "A", 12),
            ("A; page 12\n| a |", "A\n| a |", 12),
            ("page 2\na;b", "\na;b", 2),
            ("A; page twelve", "A; page twelve", 0),
            ("A\na; page 3", "A\na; page 3", 0),
        ] {
            let (without, told) = off_page(context);
            assert_eq!((&*without, told), (place, page), "{context}");
        }
    }

    #[test]
    fn a_text_is_read_below_where_it_stands() {
        assert_eq!(in_context("", "x"), "x");
        assert_eq!(in_context("A > B", "x\ny"), "(A > B)\nx\ny");
        assert_eq!(in_context("A\n| a |", "x"), "(A; columns: | a |)\nx");
        assert_eq!(in_context("\na;b", "x"), "(columns: a;b)\nx");
    }
}

/// A document of the library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentMetadata {
    #[serde(deserialize_with = "nullable")]
    /// Id, unique in its workspace; an IRI as a rule.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, in seconds since 1970.
    pub time: i64,
    #[serde(deserialize_with = "nullable")]
    /// Media type of the content, such as `text/plain`.
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    /// Title; may be empty.
    pub title: String,
    #[serde(deserialize_with = "nullable")]
    /// Comments; may be empty.
    pub comments: String,
    #[serde(deserialize_with = "nullable")]
    /// What else is said of the document, as triples; processing puts them into the default graph.
    pub metadata: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// Tags, in the order given.
    pub tags: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Id of the document that this one was made of; empty: none.
    pub parent_id: String,
    #[serde(deserialize_with = "nullable")]
    /// `source` (if left out), `page`, `chunk`, `section`, `image`, `extracted` or `answer`.
    pub document_type: String,
    #[serde(deserialize_with = "nullable")]
    /// SHA-256 of the content in hexadecimal digits. The library computes it, and ignores one that a caller gives. Ours.
    pub content_hash: String,
}

impl Default for DocumentMetadata {
    fn default() -> Self {
        Self {
            id: Default::default(),
            time: Default::default(),
            kind: Default::default(),
            title: Default::default(),
            comments: Default::default(),
            metadata: Default::default(),
            tags: Default::default(),
            parent_id: Default::default(),
            document_type: "source".to_owned(),
            content_hash: Default::default(),
        }
    }
}

message!(DocumentMetadata);

/// What went wrong with one part of a document that is processed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ProcessingError {
    /// The page or chunk.
    #[serde(deserialize_with = "nullable")]
    pub subject: String,
    /// Processor that met the fault.
    #[serde(deserialize_with = "nullable")]
    pub processor: String,
    /// The fault, fit for clients.
    #[serde(deserialize_with = "nullable")]
    pub message: String,
    /// Its wire type: `bad-content` is what the document lacks. Empty from processors that do not say it.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
}

message!(ProcessingError);

/// A processing: a document on its way through a flow into a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ProcessingMetadata {
    #[serde(deserialize_with = "nullable")]
    /// Id, unique in its workspace.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the document in the library.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, in seconds since 1970.
    pub time: i64,
    #[serde(deserialize_with = "nullable")]
    /// Id of the flow.
    pub flow: String,
    #[serde(deserialize_with = "nullable")]
    /// Collection that the data goes to; required, and made if it is not there.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Tags, in the order given.
    pub tags: Vec<String>,
    /// `processing`, `complete` (also if less than half of the chunks failed: see `warnings`), `failed` or `stopped`.
    /// Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// Why it failed or waits.
    #[serde(deserialize_with = "nullable")]
    pub error: String,
    /// What is done and known so far by kind: `records`, `pages`, `chunks`, `triples`, `vectors`, …, each with a `-total` beside it where one is known.
    #[serde(deserialize_with = "nullable")]
    pub progress: BTreeMap<String, i64>,
    /// What went wrong, by chunk or page: up to 100 of one processing, up to 5 of each in a listing.
    #[serde(deserialize_with = "nullable")]
    pub errors: Vec<ProcessingError>,
    /// How many there are.
    #[serde(deserialize_with = "nullable")]
    pub errors_total: i64,
    /// What went wrong of one that is `complete`.
    #[serde(deserialize_with = "nullable")]
    pub warnings: i64,
    /// The operation that tries again what failed (`retry-processing`), where that can help.
    #[serde(deserialize_with = "nullable")]
    pub retry: String,
}

message!(ProcessingMetadata);

/// What documents of a listing have in common. Ours follow them, other releases do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Criteria {
    #[serde(deserialize_with = "nullable")]
    /// `id`, `title`, `comments`, `kind`, `document-type`, `parent-id`, `time` or `tags`.
    pub key: String,
    #[serde(deserialize_with = "nullable")]
    /// What it is compared with; `time` in seconds since 1970.
    pub value: String,
    #[serde(deserialize_with = "nullable")]
    /// `eq` (also if empty), `ne`, `contains` (whatever the case), `starts-with`, `lt` or `gt`.
    pub operator: String,
}

message!(Criteria);

/// How far an upload has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UploadProgress {
    #[serde(deserialize_with = "nullable")]
    /// Id of the upload.
    pub upload_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Number of pieces that are safe.
    pub chunks_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of pieces.
    pub total_chunks: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes that are safe.
    pub bytes_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of the whole content.
    pub total_bytes: i64,
}

message!(UploadProgress);

/// An upload that is not complete. It ends by itself after 24 hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UploadSession {
    #[serde(deserialize_with = "nullable")]
    /// Id of the upload.
    pub upload_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Id that the document will have.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// What the document will be, as a JSON object in text.
    pub document_metadata_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of the whole content.
    pub total_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of each piece but the last.
    pub chunk_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of pieces.
    pub total_chunks: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of pieces that are safe.
    pub chunks_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, as text in RFC 3339.
    pub created_at: String,
}

message!(UploadSession);

/// A question to the librarian. Which fields count follows from the operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LibrarianRequest {
    #[serde(deserialize_with = "nullable")]
    /// What to do: `add-document`, `get-document-content`, `list-documents`, `add-processing`, `begin-upload` and so
    /// on.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Document that the operation is about.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Processing that the operation is about.
    pub processing_id: String,
    /// `add-document`, `add-child-document`, `update-document`, `begin-upload`: what the document is to be.
    pub document_metadata: Option<DocumentMetadata>,
    /// `add-processing`: which document, through which flow, into which collection.
    pub processing_metadata: Option<ProcessingMetadata>,
    #[serde(deserialize_with = "nullable")]
    /// The content, in base64.
    pub content: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-documents`: only those that were processed into this collection; empty: all.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-documents`: only documents that fit all of these.
    pub criteria: Vec<Criteria>,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of the whole content.
    pub total_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of each piece but the last.
    pub chunk_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Upload that the operation is about.
    pub upload_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Number of the piece, from 0.
    pub chunk_index: i64,
    #[serde(deserialize_with = "nullable")]
    /// `list-documents`: also documents that were made of others, and answers.
    pub include_children: bool,
    /// `add-processing`: only say what it would cost. Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub dry_run: bool,
    /// `get-contents`: which documents.
    #[serde(deserialize_with = "nullable")]
    pub document_ids: Vec<String>,
    /// `add-children`, `add-documents`: what is added.
    #[serde(deserialize_with = "nullable")]
    pub document_metadatas: Vec<DocumentMetadata>,
    /// `add-children`, `add-documents`: content of each, base64.
    #[serde(deserialize_with = "nullable")]
    pub contents: Vec<String>,
    /// `stream-document`: exactly the chunk of `chunk_index`, as the one part of the answer.
    #[serde(deserialize_with = "nullable")]
    pub only_chunk: bool,
    /// `list-documents`, `list-children`, `list-processing`, `list-uploads`: most entries of a page, at
    /// most 10,000. 0: all, or an error where one message does not hold them; with `after` 1,000.
    #[serde(deserialize_with = "nullable")]
    pub limit: i64,
    /// The same: only what follows the page whose `next` said this.
    #[serde(deserialize_with = "nullable")]
    pub after: String,
    /// `begin-upload`: the document may be there already; its content is replaced when the upload completes.
    #[serde(deserialize_with = "nullable")]
    pub replace: bool,
    /// `begin-upload`: SHA-256 of the whole content in hexadecimal digits. An open upload of the same is gone on with, and
    /// what arrived is checked against it at the end.
    #[serde(deserialize_with = "nullable")]
    pub content_hash: String,
    /// `add-children`: the asker hands on which processors are to read a chunk, and under which fingerprint.
    #[serde(deserialize_with = "nullable")]
    pub hands_on_readers: bool,
    /// `reindex`: also what nothing changed for.
    #[serde(deserialize_with = "nullable")]
    pub force: bool,
}

message!(LibrarianRequest);

/// What the librarian answers. What an operation does not answer is empty or 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LibrarianResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    /// The document asked for.
    pub document_metadata: Option<DocumentMetadata>,
    #[serde(deserialize_with = "nullable")]
    /// The content, in base64.
    pub content: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-documents`, `list-children`, `add-documents`, `add-children`: the documents.
    pub document_metadatas: Vec<DocumentMetadata>,
    #[serde(deserialize_with = "nullable")]
    /// `list-processing`: the processings.
    pub processing_metadatas: Vec<ProcessingMetadata>,
    #[serde(deserialize_with = "nullable")]
    /// Id of the upload.
    pub upload_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of each piece but the last.
    pub chunk_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of pieces.
    pub total_chunks: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of the piece, from 0.
    pub chunk_index: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of pieces that are safe, or were sent so far in a stream.
    pub chunks_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes that are safe.
    pub bytes_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of the whole content.
    pub total_bytes: i64,
    #[serde(deserialize_with = "nullable")]
    /// Id of the document that was added.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// `complete-upload`: hash of the content that it is kept under.
    pub object_id: String,
    #[serde(deserialize_with = "nullable")]
    /// `get-upload-status`: `in-progress`, `completed`, or `expired` of one that is not known.
    pub upload_state: String,
    #[serde(deserialize_with = "nullable")]
    /// Numbers of the pieces that are safe.
    pub received_chunks: Vec<i64>,
    #[serde(deserialize_with = "nullable")]
    /// Numbers of the pieces that are still to come.
    pub missing_chunks: Vec<i64>,
    #[serde(deserialize_with = "nullable")]
    /// `list-uploads`: the uploads that are not complete.
    pub upload_sessions: Vec<UploadSession>,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub is_final: bool,
    /// `get-contents`: content of each document asked for, base64; empty where there is none. Ours.
    #[serde(deserialize_with = "nullable")]
    pub contents: Vec<String>,
    /// `add-processing` with `dry_run`: `bytes`, `pages`, `chunks`, `model-calls`, `tokens` (`tokens-in` of the
    /// prompts and `tokens-out` of the replies), `tokens-embedded`, `calls-learnt-from`, `microdollars`. Ours.
    #[serde(deserialize_with = "nullable")]
    pub estimate: BTreeMap<String, i64>,
    /// A listing: where the next page begins, for `after`; empty if there is none. Ours.
    #[serde(deserialize_with = "nullable")]
    pub next: String,
    /// `add-children`: who is to read a chunk, for each that is not wholly unchanged. Ours.
    #[serde(deserialize_with = "nullable")]
    pub readers: Vec<ChunkReaders>,
    /// `reindex`: what was processed before, and why it is processed again. Ours.
    #[serde(deserialize_with = "nullable")]
    pub reindexed: Vec<Reindexed>,
}

impl Default for LibrarianResponse {
    fn default() -> Self {
        Self {
            error: None,
            document_metadata: None,
            content: Default::default(),
            document_metadatas: Default::default(),
            processing_metadatas: Default::default(),
            upload_id: Default::default(),
            chunk_size: Default::default(),
            total_chunks: Default::default(),
            chunk_index: Default::default(),
            chunks_received: Default::default(),
            bytes_received: Default::default(),
            total_bytes: Default::default(),
            document_id: Default::default(),
            object_id: Default::default(),
            upload_state: Default::default(),
            received_chunks: Default::default(),
            missing_chunks: Default::default(),
            upload_sessions: Default::default(),
            is_final: true,
            contents: Default::default(),
            estimate: Default::default(),
            next: Default::default(),
            readers: Default::default(),
            reindexed: Default::default(),
        }
    }
}

message!(LibrarianResponse);
