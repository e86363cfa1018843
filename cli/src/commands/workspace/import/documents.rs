//! The documents of a bundle, into the library: added where they are not there, replaced in their place where
//! they are and that is asked for, and handed to a flow. What cannot be done with one document is noted and
//! does not hold up the others.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_schemas::ErrorCode;

use super::asked::ImportWorkspace;
use super::done::{Done, Failed, concerns_one};
use super::processed::{Destination, Processed};
use super::reading::{Item, Items};
use super::said::{Said, level};
use crate::client::{Error, Http, Result};
use crate::commands::library::listing;
use crate::commands::workspace::bundle::{self, Member};
use crate::fields::{list, text, texts};
use crate::session::Session;

/// From this size on a document goes in parts.
const WHOLE: u64 = 2 << 20;
/// Bytes of a part.
const PART: usize = tg_schemas::limits::CONTENT_PART;
/// Ids of a processing that are tried: another command may have taken some since the listing.
const MOST_RETRIES: usize = 100;

/// The documents of a bundle on their way.
pub(super) struct Documents<'a> {
    pub(super) what: &'a ImportWorkspace,
    pub(super) http: &'a Http,
    pub(super) said: &'a Said,
}

/// Documents that are there, with the hash of their content.
type Existing = BTreeMap<String, String>;

/// What a request said of one document.
enum Outcome {
    Done(Value),
    /// It is there already.
    Known,
    /// It is this document's fault; the others may go on.
    Refused(String),
}

impl Documents<'_> {
    pub(super) async fn import(&self, session: &Session, done: &mut Done) -> Result<()> {
        let existing: Existing = listing::documents(self.http, true)
            .await?
            .iter()
            .map(|document| (text(document, "id"), text(document, "content-hash")))
            .collect();
        let processed = Processed::of(&listing::processings(self.http).await?);
        let mut left: BTreeSet<String> = self.said.documents.keys().cloned().collect();
        if !self.what.overwrite {
            let before = left.len();
            left.retain(|id| !existing.contains_key(id));
            done.documents_left = before - left.len();
        }
        while !left.is_empty() {
            let now = level(&self.said.documents, &left);
            left.retain(|id| !now.contains(id));
            if self.what.dry_run {
                done.documents += now.len();
                continue;
            }
            self.add(session, &existing, now, done).await?;
        }
        let exchanged = self.exchanged(&existing, done);
        match self.what.process {
            true if !self.what.dry_run => self.start(done, &existing, &processed, &exchanged).await,
            true => Ok(()),
            false => {
                let stale = exchanged.into_iter().filter(|id| processed.has(id));
                done.stale = stale.collect();
                Ok(())
            }
        }
    }

    /// The documents that had other content before.
    fn exchanged(&self, existing: &Existing, done: &Done) -> BTreeSet<String> {
        if !self.what.overwrite {
            return BTreeSet::new();
        }
        let failed = done.not_imported_ids();
        let other = self.said.documents.keys().filter(|id| {
            let before = existing.get(*id);
            // Of a library that tells no hashes nothing is known.
            let other =
                |hash: &String| !hash.is_empty() && !hash.starts_with(&self.said.contents[*id]);
            before.is_some_and(other) && !failed.contains(id.as_str())
        });
        other.cloned().collect()
    }

    async fn add(
        &self,
        session: &Session,
        existing: &Existing,
        wanted: BTreeSet<String>,
        done: &mut Done,
    ) -> Result<()> {
        let progress = session.out.progress("documents", Some(wanted.len() as u64));
        let mut items = Items::open(
            self.what.input.path(),
            move |member| matches!(member, Member::Content(id) if wanted.contains(id)),
        );
        let mut taking: Option<Taking> = None;
        while let Some(item) = items.next().await? {
            match item {
                Item::Begin(Member::Content(id), length) => {
                    taking = Some(self.begin(&id, length, existing.contains_key(&id)).await?);
                }
                Item::Bytes(bytes) => {
                    if let Some(taking) = &mut taking {
                        taking.bytes.extend(bytes);
                        self.flush(taking, false).await?;
                    }
                }
                Item::End => {
                    if let Some(mut taking) = taking.take() {
                        self.flush(&mut taking, true).await?;
                        progress.inc(1);
                        taking.count(done);
                    }
                }
                Item::Begin(..) | Item::Triples(_) | Item::Bad(_) => {}
            }
        }
        progress.finish_and_clear();
        Ok(())
    }

    async fn begin(&self, id: &str, length: u64, replaces: bool) -> Result<Taking> {
        let mut taking = Taking {
            document: bundle::to_library(&self.said.documents[id]),
            replaces,
            upload: String::new(),
            there: BTreeSet::new(),
            index: 0,
            bytes: Vec::new(),
            ended: None,
        };
        if length >= WHOLE {
            let request = json!({
                "operation": "begin-upload",
                "document-metadata": taking.document,
                "total-size": length,
                "chunk-size": PART,
                "replace": replaces,
                "content-hash": self.said.hashes[id],
            });
            match self.ask(request).await? {
                Outcome::Done(reply) => {
                    taking.upload = text(&reply, "upload-id");
                    let there = list(&reply, "received-chunks").iter();
                    taking.there = there.filter_map(Value::as_u64).collect();
                }
                ended => taking.ended = Some(ended),
            }
            if taking.upload.is_empty() && taking.ended.is_none() {
                return Err(Error::Protocol("no upload-id".to_owned()));
            }
        }
        Ok(taking)
    }

    /// Hands over what is there of a document; all of it at its end.
    async fn flush(&self, taking: &mut Taking, end: bool) -> Result<()> {
        if taking.ended.is_some() {
            taking.bytes.clear();
            return Ok(());
        }
        if taking.upload.is_empty() {
            if end {
                taking.ended = Some(self.ask(taking.whole()).await?);
            }
            return Ok(());
        }
        while taking.bytes.len() >= PART || (end && !taking.bytes.is_empty()) {
            let size = taking.bytes.len().min(PART);
            let part: Vec<u8> = taking.bytes.drain(..size).collect();
            // It came before this command was cut off.
            if taking.there.contains(&taking.index) {
                taking.index += 1;
                continue;
            }
            let request = json!({
                "operation": "upload-chunk",
                "upload-id": taking.upload,
                "chunk-index": taking.index,
                "content": STANDARD.encode(part),
            });
            let outcome = self.ask(request).await?;
            if !matches!(outcome, Outcome::Done(_)) {
                taking.ended = Some(outcome);
                taking.bytes.clear();
                return Ok(());
            }
            taking.index += 1;
        }
        if end {
            let request = json!({"operation": "complete-upload", "upload-id": taking.upload});
            taking.ended = Some(self.ask(request).await?);
        }
        Ok(())
    }

    /// Processes the documents that are nobody's part; pages and chunks come of them, and answers are not
    /// processed. What this command started before goes on, unless something else was processed from the document
    /// since; what was exchanged is processed wherever it was before.
    async fn start(
        &self,
        done: &mut Done,
        existing: &Existing,
        processed: &Processed,
        exchanged: &BTreeSet<String>,
    ) -> Result<()> {
        let failed = done.not_imported_ids();
        let wanted: Vec<&String> = self
            .said
            .documents
            .iter()
            .filter(|(id, document)| {
                text(document, "parent_id").is_empty()
                    && text(document, "document_type") != "answer"
                    && !failed.contains(id.as_str())
            })
            .map(|(id, _)| id)
            .collect();
        let asked = (
            self.what.flow_id.clone(),
            self.what.process_collection.clone(),
        );
        for id in wanted {
            let content = self.content(id, existing);
            for place in processed.places(id, content, exchanged.contains(id), &asked) {
                if processed.is_current(id, content, &place) {
                    done.started_before += 1;
                    continue;
                }
                let ids = processed.free_ids(id, content, &place, &asked);
                match self.start_one(id, &place, ids).await? {
                    Outcome::Done(_) => done.started += 1,
                    Outcome::Known => done.started_before += 1,
                    Outcome::Refused(why) => done.not_started.push(Failed::new(id, why)),
                }
            }
        }
        Ok(())
    }

    /// The hash of what the library has of a document: the bundle's, unless a document that was there was left as it is.
    fn content<'a>(&'a self, id: &str, existing: &'a Existing) -> &'a str {
        let bundled = &self.said.contents[id];
        let left = existing.get(id).filter(|_| !self.what.overwrite);
        let left = left.and_then(|hash| hash.get(..bundled.len()));
        left.unwrap_or(bundled)
    }

    /// Begins to process a document into a place, under the first of the ids that is free.
    async fn start_one(
        &self,
        id: &str,
        place: &Destination,
        ids: impl Iterator<Item = String>,
    ) -> Result<Outcome> {
        for processing in ids.take(MOST_RETRIES) {
            let request = json!({
                "operation": "add-processing",
                "processing-metadata": {
                    "id": processing,
                    "document-id": id,
                    "time": chrono::Utc::now().timestamp(),
                    "flow": place.0,
                    "collection": place.1,
                    "tags": texts(&self.said.documents[id], "tags"),
                },
            });
            match self.ask(request).await? {
                Outcome::Known => {}
                outcome => return Ok(outcome),
            }
        }
        Ok(Outcome::Known)
    }

    /// Asks the library about one document. What concerns every document is an error.
    async fn ask(&self, request: Value) -> Result<Outcome> {
        let error = match self.http.service("librarian", request).await {
            Ok(reply) => return Ok(Outcome::Done(reply)),
            Err(error) => error,
        };
        match error.code() {
            Some(ErrorCode::Conflict) => Ok(Outcome::Known),
            _ if concerns_one(&error) => Ok(Outcome::Refused(error.to_string())),
            _ => Err(error),
        }
    }
}

/// A document on its way into the library.
struct Taking {
    document: Value,
    /// It takes the place of one that is there.
    replaces: bool,
    /// Empty where the document goes whole.
    upload: String,
    /// Parts that the library has already.
    there: BTreeSet<u64>,
    index: u64,
    bytes: Vec<u8>,
    /// How it came out, once that is known.
    ended: Option<Outcome>,
}

impl Taking {
    /// The request that hands it over whole.
    fn whole(&self) -> Value {
        let parent = text(&self.document, "parent-id");
        let operation = match (self.replaces, parent.as_str()) {
            (true, _) => "update-document",
            (false, "") => "add-document",
            (false, _) => "add-child-document",
        };
        json!({
            "operation": operation,
            "document-metadata": self.document,
            "content": STANDARD.encode(&self.bytes),
        })
    }

    fn count(self, done: &mut Done) {
        match self.ended {
            Some(Outcome::Done(_)) => done.documents += 1,
            Some(Outcome::Known) => done.documents_left += 1,
            Some(Outcome::Refused(why)) => {
                let failed = Failed::new(text(&self.document, "id"), why);
                done.not_imported.push(failed);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_replaced_and_never_removed() {
        let operation = |replaces, parent: &str| {
            let taking = Taking {
                document: json!({"id": "urn:d", "parent-id": parent}),
                replaces,
                upload: String::new(),
                there: BTreeSet::new(),
                index: 0,
                bytes: b"x".to_vec(),
                ended: None,
            };
            text(&taking.whole(), "operation")
        };
        assert_eq!(operation(false, ""), "add-document");
        assert_eq!(operation(false, "urn:p"), "add-child-document");
        assert_eq!(operation(true, ""), "update-document");
        assert_eq!(operation(true, "urn:p"), "update-document");
    }
}
