//! Parts of documents: pages, sections, chunks. Their ids follow from their text, so a part that comes
//! again is known, and one whose earlier run is complete costs nothing.

use std::collections::HashSet;

use tg_schemas::Error;
use tg_schemas::msg::DocumentMetadata;
use tg_storage::StorageError;
use tg_storage::rusqlite::Transaction;

use super::{Asker, Library, add, check_id, check_many, check_said, complete};
use crate::engine::flow::Flow;
use crate::fault::{existing_document, invalid, missing_parent};
use crate::store::content::Prepared;
use crate::store::made::{self, Seen};
use crate::store::run::{self, Run};
use crate::store::{self, document};

type Child = (DocumentMetadata, Prepared);

impl Library {
    /// Adds a part of a document. The same part again is fine. Returns its id.
    pub(crate) async fn add_child(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        content: Vec<u8>,
    ) -> Result<String, Error> {
        let mut document = complete(document)?;
        check_id("document-metadata.parent-id", &document.parent_id)?;
        if document.document_type == "source" {
            document.document_type = "extracted".to_owned();
        }
        let id = document.id.clone();
        self.room(&asker.workspace, &[&document], content.len())
            .await?;
        let _shared = self.uses.read().await;
        let prepared = self.prepare(content).await?;
        let asker = asker.clone();
        self.write(move |tx| {
            if !store::note(tx, &asker.question)? {
                return Ok(());
            }
            if let Some(known) = document::get(tx, &asker.workspace, &document.id)?
                && !(add::has(tx, &known, &prepared)?
                    && known.document.parent_id == document.parent_id)
            {
                return Err(StorageError::Refused(existing_document()));
            }
            let run = run_of(tx, &asker)?;
            Cutting::new(tx, &asker, run.as_ref())?
                .take(0, &(document, prepared))
                .map(|_| ())
        })
        .await?;
        Ok(id)
    }

    /// Adds parts. Returns those about which nothing more is to be done: every store has them from a
    /// complete earlier run, or this run was taken back.
    pub(crate) async fn add_children(
        &self,
        asker: &Asker,
        documents: Vec<DocumentMetadata>,
        contents: Vec<Vec<u8>>,
    ) -> Result<Vec<DocumentMetadata>, Error> {
        check_many(&documents, &contents)?;
        let all: Vec<_> = documents.iter().collect();
        let bytes = contents.iter().map(Vec::len).sum();
        self.room(&asker.workspace, &all, bytes).await?;
        let _shared = self.uses.read().await;
        let mut children = Vec::with_capacity(documents.len());
        for (at, (mut document, content)) in documents.into_iter().zip(contents).enumerate() {
            check_id(&format!("document-metadatas[{at}].id"), &document.id)?;
            let parent = format!("document-metadatas[{at}].parent-id");
            check_id(&parent, &document.parent_id)?;
            check_said(&format!("document-metadatas[{at}]"), &document)?;
            if document.kind.is_empty() {
                document.kind = "text/plain".to_owned();
            }
            children.push((document, self.prepare(content).await?));
        }
        let asker = asker.clone();
        self.write(move |tx| {
            let run = run_of(tx, &asker)?;
            if asker.in_run() && !run.as_ref().is_some_and(|run| run.state.makes()) {
                return Ok(children.into_iter().map(|(document, _)| document).collect());
            }
            let mut cutting = Cutting::new(tx, &asker, run.as_ref())?;
            let mut unchanged = Vec::new();
            for (at, child) in children.iter().enumerate() {
                if cutting.take(at, child)? {
                    unchanged.push(child.0.clone());
                }
            }
            Ok(unchanged)
        })
        .await
    }

    /// A document was cut to its end. `confirmed` are parts whose retraction was published: they are
    /// forgotten. Returns parts of earlier runs that are gone, where that is certain already; of a document
    /// that is cut in several places it is certain at the end of the run, and the library sees to it then.
    pub(crate) async fn finish_children(
        &self,
        asker: &Asker,
        id: &str,
        confirmed: Vec<String>,
    ) -> Result<Vec<DocumentMetadata>, Error> {
        let (asker, id) = (asker.clone(), id.to_owned());
        self.write(move |tx| {
            let Some(run) = run_of(tx, &asker)?.filter(|run| run.state.makes()) else {
                return Ok(Vec::new());
            };
            let target = &run.target;
            let gone = made::gone(tx, target, run.number)?;
            if !confirmed.is_empty() {
                let gone: HashSet<String> = gone.into_iter().collect();
                let forget: Vec<_> = confirmed
                    .into_iter()
                    .filter(|child| gone.contains(child))
                    .collect();
                made::forget(tx, target, &forget)?;
                return Ok(Vec::new());
            }
            let root = document::get(tx, &target.workspace, &target.document)?;
            let whole = target.document == id
                && root.is_some_and(|root| Flow::enters_as_text(&root.document.kind));
            if !whole {
                return Ok(Vec::new());
            }
            let mut found = Vec::with_capacity(gone.len());
            for child in gone {
                let stored = document::get(tx, &target.workspace, &child)?;
                found.push(stored.map_or_else(
                    || DocumentMetadata {
                        id: child,
                        ..DocumentMetadata::default()
                    },
                    |stored| stored.document,
                ));
            }
            Ok(found)
        })
        .await
    }
}

fn run_of(tx: &Transaction<'_>, asker: &Asker) -> Result<Option<Run>, StorageError> {
    if !asker.in_run() {
        return Ok(None);
    }
    let run = run::by_thread(tx, &asker.thread)?;
    Ok(run.filter(|run| run.target.workspace == asker.workspace))
}

/// Takes children of one request.
struct Cutting<'a, 'b> {
    tx: &'a Transaction<'b>,
    workspace: &'a str,
    run: Option<(&'a Run, i64)>,
    parents: HashSet<String>,
}

impl<'a, 'b> Cutting<'a, 'b> {
    fn new(
        tx: &'a Transaction<'b>,
        asker: &'a Asker,
        run: Option<&'a Run>,
    ) -> Result<Self, StorageError> {
        let run = match run {
            Some(run) => Some((run, made::number(tx, &run.target)?)),
            None => None,
        };
        Ok(Self {
            tx,
            workspace: &asker.workspace,
            run,
            parents: HashSet::new(),
        })
    }

    /// Takes one. `true` if nothing more is to be done about it.
    fn take(&mut self, at: usize, (document, prepared): &Child) -> Result<bool, StorageError> {
        let (tx, workspace) = (self.tx, self.workspace);
        if !self.parents.contains(&document.parent_id) {
            if !document::exists(tx, workspace, &document.parent_id)? {
                return Err(StorageError::Refused(missing_parent()));
            }
            self.parents.insert(document.parent_id.clone());
        }
        let mut same = false;
        match document::get(tx, workspace, &document.id)? {
            None => add::insert(tx, workspace, document, prepared)?,
            Some(known) if known.document.parent_id.is_empty() => {
                let text = format!("document-metadatas[{at}].id: is a document of its own");
                return Err(StorageError::Refused(invalid(text)));
            }
            Some(known) => {
                same = add::has(tx, &known, prepared)?;
                if !same {
                    document::set_content(tx, &known, prepared)?;
                }
                if known.document.title != document.title
                    || known.document.metadata != document.metadata
                {
                    document::update(tx, workspace, document)?;
                }
                if known.document.parent_id != document.parent_id {
                    document::set_parent(tx, known.number, &document.parent_id)?;
                }
            }
        }
        let Some((run, target)) = self.run else {
            return Ok(false);
        };
        made::see(
            tx,
            Seen {
                target,
                child: &document.id,
                run: run.number,
                shape: run.shape,
                same,
            },
        )
    }
}
