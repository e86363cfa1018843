//! Processing again what was processed before, where something has changed since: the document, or what its flow does with it.

use std::collections::HashMap;

use tg_mesh::Mesh;
use tg_schemas::msg::{LibrarianRequest, ProcessingMetadata, Reindexed};
use tg_schemas::{Error, WorkspaceKey};

use crate::config;
use crate::engine::asker::Asker;
use crate::engine::fingerprints::{Changes, Fingerprints};
use crate::engine::ids;
use crate::engine::state::State;
use crate::error::{invalid, wire};
use crate::librarian::Librarian;
use crate::store::runs::{Processed, Selector, Wanted};

/// Documents of one answer, at most; it says where the next begins.
const MOST: u32 = 100;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct Asked {
    dry_run: bool,
    force: bool,
}

/// What the flows of one answer do now; `None` of one that does not run.
type Flows = HashMap<String, Option<Fingerprints>>;

impl Librarian {
    /// Processes again what was processed before and is not any more what it would be now; with `dry-run` only says what.
    /// Returns a page of it, and where the next begins. Asked again it goes on: what has begun is under way.
    pub(crate) async fn reindex(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        ask: &LibrarianRequest,
    ) -> Result<(Vec<Reindexed>, String), Error> {
        let given = ask.processing_metadata.clone().unwrap_or_default();
        let of = Selector {
            document: given.document_id,
            flow: given.flow,
            collection: given.collection,
        };
        if of == Selector::default() {
            let text =
                "processing-metadata: a document-id, a flow or a collection is required of it";
            return Err(invalid(text));
        }
        if !of.document.is_empty() {
            // One that is not there is told.
            self.library.metadata(asker, &of.document).await?;
        }
        let after = match ask.after.as_str() {
            "" => 0,
            after => after.parse().map_err(|_| tg_schemas::paging::no_cursor())?,
        };
        let most = match u32::try_from(ask.limit) {
            Ok(0) | Err(_) => MOST,
            Ok(limit) => limit.min(MOST),
        };
        let found = self.rows().processed(&asker.workspace, &of, after, most);
        let found = found.await.map_err(wire)?;
        let next = match found.last() {
            Some(last) if found.len() == most as usize => last.number.to_string(),
            _ => String::new(),
        };
        let how = Asked {
            dry_run: ask.dry_run,
            force: ask.force,
        };
        let mut flows = Flows::new();
        let mut told = Vec::with_capacity(found.len());
        for one in found {
            told.push(self.reindexed(mesh, asker, &mut flows, how, one).await?);
        }
        Ok((told, next))
    }

    async fn reindexed(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        flows: &mut Flows,
        how: Asked,
        one: Processed,
    ) -> Result<Reindexed, Error> {
        let flow = one.target.flow.clone();
        if !flows.contains_key(&flow) {
            let now = self.does_now(mesh, &asker.workspace, &flow).await;
            flows.insert(flow.clone(), now);
        }
        let now = flows.get(&flow).and_then(Option::as_ref);
        let mut told = Reindexed {
            document_id: one.target.document.clone(),
            collection: one.target.collection.clone(),
            chunks: one.chunks.iter().map(|some| some.number).sum(),
            processing_id: one
                .latest
                .as_ref()
                .map_or_else(String::new, |run| run.processing.clone()),
            flow,
            ..Reindexed::default()
        };
        let why = match (&one.document, now) {
            (None, _) => Some("the document is not in the library any more".to_owned()),
            (_, None) => Some(format!("flow '{}' does not run: start it first", told.flow)),
            _ => None,
        };
        if let Some(why) = why {
            told.outcome = "not-possible".to_owned();
            told.why = why;
            return Ok(told);
        }
        if let Some(now) = now {
            told.changes = changes(&one, now);
            told.chunks_due = due(&one, now, how.force);
        }
        let under_way = one.latest.as_ref().is_some_and(|run| run.state.is_open());
        told.outcome = match (under_way, told.changes.is_empty() && !how.force) {
            (true, _) => "under-way",
            (_, true) => "unchanged",
            _ if how.dry_run => "due",
            _ => {
                told.processing_id = self.process_again(mesh, asker, how, one).await?;
                "begun"
            }
        }
        .to_owned();
        Ok(told)
    }

    /// What a flow does with documents now; `None` if it does not run.
    async fn does_now(&self, mesh: &Mesh, workspace: &str, flow: &str) -> Option<Fingerprints> {
        let snapshot = config::snapshot(mesh, workspace, flow)?;
        match snapshot.flow.runs() {
            true => Some(self.models.fingerprints(mesh, &snapshot).await),
            false => None,
        }
    }

    /// Begins it, in the place of the latest processing if there is one. Returns the id.
    async fn process_again(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        how: Asked,
        one: Processed,
    ) -> Result<String, Error> {
        let space = WorkspaceKey::parse(&asker.workspace);
        let into = &one.target.collection;
        let generation = self.ensure_collection(mesh, &space, into).await?;
        if how.force {
            let undone = self.rows().do_again(&one.target);
            undone.await.map_err(wire)?;
        }
        let question = ids::of_question(&format!("{:?}", one.target), &asker.question);
        let (id, tags) = match &one.latest {
            Some(run) => (run.processing.clone(), run.tags.clone()),
            None => (question.clone(), Vec::new()),
        };
        let wanted = Wanted {
            workspace: asker.workspace.clone(),
            processing: ProcessingMetadata {
                id: id.clone(),
                document_id: one.target.document,
                time: asker.now / 1000,
                flow: one.target.flow,
                collection: one.target.collection,
                tags,
                ..ProcessingMetadata::default()
            },
            generation,
        };
        let begun = match one.latest {
            Some(run) => self.rows().replace_run(run.number, wanted, asker.now).await,
            None => {
                let asker = Asker {
                    question,
                    ..asker.clone()
                };
                self.rows().note_run(&asker, wanted).await
            }
        };
        let run = begun.map_err(wire)?;
        self.start_or_later(mesh, run.number).await;
        Ok(id)
    }
}

/// What changed since a document was processed to its end.
fn changes(one: &Processed, now: &Fingerprints) -> Changes {
    let mut changes = match &one.fingerprints {
        Some(before) => now.changed(before),
        None => now.unknown(),
    };
    if !one.same_content {
        changes.insert("document".to_owned(), vec!["content".to_owned()]);
    }
    let left = one.latest.as_ref().map(|run| run.state);
    if let Some(state) = left.filter(|state| !matches!(state, State::Complete | State::Submitted)) {
        let state = vec![state.status().to_owned()];
        changes.insert("processing".to_owned(), state);
    }
    changes
}

/// Chunks of which something is made anew, if the document is cut as it was.
fn due(one: &Processed, now: &Fingerprints, force: bool) -> i64 {
    let due = one.chunks.iter().filter(|some| {
        let changed = match &some.under {
            Some(before) => !now.changed_readers(before).is_empty(),
            None => true,
        };
        force || !some.done || changed
    });
    due.map(|some| some.number).sum()
}
