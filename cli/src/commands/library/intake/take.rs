//! One document on its way: read, looked at, put where the library wants it, and its processing begun.

use std::collections::HashMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tg_schemas::ErrorCode;

use super::super::metadata::{Known, iri};
use super::super::upload::{Sent, Upload};
use super::Add;
use super::document::{Document, hash};
use super::fetch::fetch;
use super::find::{Source, machine};
use super::outcome::{Became, Outcome};
use super::shelf::{Destination, Plan, Shelf, processing_id};
use crate::client::{Error, Http, Result};
use crate::content::Content;
use crate::session::Session;

/// The last number of an id that may be taken by another command.
const MOST_RETRIES: u32 = 100;

/// Whether a name is one of a file with facts, which a reader of texts does not make facts of.
fn is_rdf(name: &str) -> bool {
    const ENDINGS: [&str; 6] = [".ttl", ".nt", ".nq", ".trig", ".rdf", ".owl"];
    let name = name.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Takes documents.
pub(super) struct Taker<'a> {
    add: &'a Add,
    http: Http,
    shelf: Shelf,
    machine: String,
    /// What the flow says of kinds of documents: why it takes none.
    refuses: HashMap<String, Option<String>>,
}

impl<'a> Taker<'a> {
    /// One that knows what the library has now.
    pub(super) async fn new(session: &Session, add: &'a Add) -> Result<Self> {
        let http = session.http()?;
        let shelf = Shelf::read(&http).await?;
        Ok(Self {
            add,
            http,
            shelf,
            machine: machine(),
            refuses: HashMap::new(),
        })
    }

    /// Documents that are there come first: what they were may be what another is now.
    pub(super) fn in_order(&self, mut sources: Vec<Source>) -> Vec<Source> {
        sources.sort_by_key(|source| !self.shelf.has(&self.id(source)));
        sources
    }

    fn id(&self, source: &Source) -> String {
        let made = || iri("doc", source.key(&self.machine).as_bytes());
        self.add.id.clone().unwrap_or_else(made)
    }

    fn asked(&self) -> Destination {
        Destination {
            flow: self.add.into.flow.flow_id.clone(),
            collection: self.add.into.collection.clone(),
        }
    }

    /// Takes one. What concerns all documents is an error.
    pub(super) async fn take(&mut self, session: &mut Session, source: &Source) -> Result<Outcome> {
        let name = source.name();
        let (content, declared) = match fetch(session, source).await? {
            Ok(content) => content,
            Err(why) => return Ok(Outcome::refused(name, why)),
        };
        let declared = self.add.kind.clone().unwrap_or(declared);
        let mut document = match look(session, source, &declared, &content).await? {
            Ok(document) => document,
            Err(why) => return Ok(Outcome::refused(name, why)),
        };
        if let Some(title) = &self.add.title {
            document.title.clone_from(title);
        }
        let id = self.id(source);
        let plan = self.shelf.plan(&id, &document.mime, &document.hash);
        let became = match &plan {
            Plan::Keep(_) => Became::Unchanged,
            Plan::Add => Became::Added,
            Plan::Replace | Plan::Exchange => Became::Changed,
        };
        if became != Became::Unchanged
            && let Some(why) = self.refusal(&document.mime).await?
        {
            return Ok(Outcome::refused(name, why));
        }
        let (id, sent) = match plan {
            Plan::Keep(id) => (id, None),
            plan => {
                let new = (&document, &content);
                let sent = match self.put(session, source, &id, &plan, new).await {
                    Ok(sent) => sent,
                    Err(error) => return Ok(Outcome::refused(name, of_one(error)?)),
                };
                self.shelf.hold(&id, &document.mime, &document.hash);
                (id, sent)
            }
        };
        if became != Became::Unchanged && is_rdf(&name) {
            session.out.talk(format!(
                "{name}: RDF is read as text here; `tg load-turtle FILE` loads its facts"
            ));
        }
        let (processings, why) = self.process(source, &id, &document, became).await?;
        Ok(Outcome {
            name,
            became,
            id,
            document: Some(document),
            sent,
            why,
            processings,
        })
    }

    /// Why the flow takes no documents of a kind.
    async fn refusal(&mut self, mime: &str) -> Result<Option<String>> {
        if let Some(known) = self.refuses.get(mime) {
            return Ok(known.clone());
        }
        let into = self.asked();
        let request = json!({
            "operation": "add-processing",
            "dry-run": true,
            "document-metadata": {"kind": mime},
            "total-size": 1,
            "processing-metadata": {"flow": into.flow, "collection": into.collection},
        });
        let refusal = match self.http.service("librarian", request).await {
            Ok(_) => None,
            Err(error) => Some(of_one(error)?),
        };
        self.refuses.insert(mime.to_owned(), refusal.clone());
        Ok(refusal)
    }

    async fn put(
        &self,
        session: &mut Session,
        source: &Source,
        id: &str,
        plan: &Plan,
        (document, content): (&Document, &Content),
    ) -> Result<Option<Sent>> {
        if *plan == Plan::Exchange {
            let request = json!({"operation": "remove-document", "document-id": id});
            self.http.service("librarian", request).await?;
        }
        let upload = Upload {
            metadata: self.metadata(source, id, document),
            content,
            hash: &document.hash,
            replaces: *plan == Plan::Replace,
            name: &document.title,
        };
        upload.put(session, &self.http).await
    }

    fn metadata(&self, source: &Source, id: &str, document: &Document) -> Value {
        let mut known = Known::of(&document.title, "", &[]);
        if let Source::Web(url) = source {
            known.document_url = Some(without_secrets(url));
        }
        json!({
            "id": id,
            "time": chrono::Utc::now().timestamp(),
            "kind": document.mime,
            "title": document.title,
            "comments": source.last(),
            "metadata": known.triples(id),
            "tags": self.add.tags,
        })
    }

    /// Begins what is to be processed. Returns what is under way, and why something is not.
    async fn process(
        &mut self,
        source: &Source,
        id: &str,
        document: &Document,
        became: Became,
    ) -> Result<(Vec<String>, String)> {
        let changed = matches!(became, Became::Added | Became::Changed);
        let asked = self.asked();
        let (mut begun, mut why) = (Vec::new(), String::new());
        for into in self.shelf.open(id, &document.hash, changed, &asked) {
            match self.begin(source, id, document, &into).await {
                Ok(processing) => begun.push(processing),
                Err(error) => why = of_one(error)?,
            }
        }
        if begun.is_empty()
            && let Some((processing, status)) = self.shelf.standing(id, &asked)
            && status == "processing"
        {
            begun.push(processing.clone());
        }
        Ok((begun, why))
    }

    async fn begin(
        &mut self,
        source: &Source,
        id: &str,
        document: &Document,
        into: &Destination,
    ) -> Result<String> {
        let key = format!("{id}\n{}\n{}", into.flow, into.collection);
        let key = hex::encode(Sha256::digest(key));
        let mut again = 0;
        loop {
            let processing = processing_id(&source.last(), &key, &document.hash, again);
            // It had this content before, and another one in between.
            if self.shelf.is_taken(&processing) {
                again += 1;
                continue;
            }
            let request = json!({
                "operation": "add-processing",
                "processing-metadata": {
                    "id": processing,
                    "document-id": id,
                    "time": chrono::Utc::now().timestamp(),
                    "flow": into.flow,
                    "collection": into.collection,
                    "tags": self.add.tags,
                },
            });
            match self.http.service("librarian", request).await {
                Ok(_) => {
                    self.shelf.begun(id, into, &processing);
                    return Ok(processing);
                }
                // Another command took the id since.
                Err(error) if error.code() == Some(ErrorCode::Conflict) && again < MOST_RETRIES => {
                    again += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// What a document is; the inner error says why nothing can read it.
async fn look(
    session: &Session,
    source: &Source,
    declared: &str,
    content: &Content,
) -> Result<Result<Document, String>> {
    let (name, last) = (source.name(), source.last());
    let looking = async {
        let hash = hash(session, &name, content).await?;
        let looked = Document::look(&last, declared, content, &hash).await;
        looked.map_err(|error| Error::file(&name, error))
    };
    match session.until_interrupted(looking).await? {
        // It is gone, or became shorter: the others may go on.
        Err(Error::File { reason, .. }) => Ok(Err(reason)),
        looked => looked,
    }
}

/// Why one document is refused; what concerns all of them is still an error.
fn of_one(error: Error) -> Result<String> {
    match error.code() {
        Some(
            ErrorCode::BadRequest
            | ErrorCode::NotFound
            | ErrorCode::TooLarge
            | ErrorCode::Conflict
            | ErrorCode::FlowStopped,
        ) if !error.is_missing_workspace() => Ok(match error {
            Error::Service { message, .. } if !message.is_empty() => message,
            other => other.to_string(),
        }),
        _ => Err(error),
    }
}

/// An address as others may see it: without who asks, and without what is asked.
fn without_secrets(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or(url);
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit('@').next().unwrap_or(host);
            format!("{scheme}://{host}/{path}")
        }
        None => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_without_what_may_be_secret() {
        let shown = without_secrets("https://user:pass@h.example:8/a/b.pdf?token=x#y");
        assert_eq!(shown, "https://h.example:8/a/b.pdf");
    }

    #[test]
    fn what_concerns_one_document_ends_only_that_one() {
        let service = |code: ErrorCode, message: &str| Error::Service {
            kind: code.as_str().to_owned(),
            message: message.to_owned(),
        };
        let quota = of_one(service(ErrorCode::TooLarge, "its quota of bytes is 1 MiB"));
        assert_eq!(quota.expect("of one"), "its quota of bytes is 1 MiB");
        assert!(of_one(service(ErrorCode::Forbidden, "no")).is_err());
        assert!(of_one(Error::Interrupted).is_err());
    }
}
