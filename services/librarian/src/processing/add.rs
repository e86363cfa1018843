//! Taking a processing on.

use tg_clients::neighbours::Neighbours;
use tg_mesh::Mesh;
use tg_schemas::msg::{DocumentMetadata, ProcessingMetadata};
use tg_schemas::{Error, WorkspaceKey};

use crate::config::{self, Snapshot};
use crate::engine::asker::Asker;
use crate::engine::{collection, ids};
use crate::error::{invalid, wire};
use crate::librarian::Librarian;
use crate::library::{check_id, hashed};
use crate::store::runs::Wanted;

impl Librarian {
    /// Begins to process a document. When this returns it will be done, through any crash.
    pub(crate) async fn add_processing(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        given: Option<ProcessingMetadata>,
    ) -> Result<ProcessingMetadata, Error> {
        let processing = checked(given)?;
        check_id("processing-metadata.id", &processing.id)?;
        let document = self
            .library
            .metadata(asker, &processing.document_id)
            .await?;
        let snapshot = self.flow(mesh, asker, &processing.flow, &document).await?;
        check(mesh, &snapshot, &processing.flow, &document)?;
        let space = WorkspaceKey::parse(&asker.workspace);
        let into = &processing.collection;
        let generation = self.ensure_collection(mesh, &space, into).await?;
        let wanted = Wanted {
            workspace: asker.workspace.clone(),
            processing,
            generation,
        };
        let run = self.rows().note_run(asker, wanted).await.map_err(wire)?;
        // From here on it is accepted: what hinders its start now is no answer to who asked.
        self.start_or_later(mesh, run.number).await;
        self.processing_status(asker, &run.processing).await
    }

    /// Puts a document that came along with its content into the library, and begins to process it.
    pub(crate) async fn load_document(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        content: Vec<u8>,
        given: Option<ProcessingMetadata>,
    ) -> Result<(String, ProcessingMetadata), Error> {
        let mut document = document.unwrap_or_default();
        let mut processing = given.unwrap_or_default();
        if document.id.is_empty() {
            document.id.clone_from(&processing.document_id);
        }
        let (hash, content) = hashed(content).await?;
        if document.id.is_empty() {
            document.id = ids::document(&hash);
        }
        processing.document_id.clone_from(&document.id);
        if processing.id.is_empty() {
            processing.id = ids::of_question("processing", &asker.question);
        }
        if processing.time == 0 {
            processing.time = asker.now / 1000;
        }
        let processing = checked(Some(processing))?;
        // Refused before anything is stored, if it will be.
        let kind = match document.kind.as_str() {
            "" => "text/plain".to_owned(),
            kind => kind.to_owned(),
        };
        let about = DocumentMetadata {
            kind,
            ..document.clone()
        };
        let snapshot = self.flow(mesh, asker, &processing.flow, &about).await?;
        check(mesh, &snapshot, &processing.flow, &about)?;
        let first = Asker {
            question: ids::of_question("ensure", &asker.question),
            ..asker.clone()
        };
        let id = self.library.ensure(&first, Some(document), content).await?;
        let added = self.add_processing(mesh, asker, Some(processing)).await?;
        Ok((id, added))
    }

    /// A flow that runs, as the view shows it; the view may lag a moment behind who asks.
    pub(super) async fn flow(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        id: &str,
        document: &DocumentMetadata,
    ) -> Result<Snapshot, Error> {
        let workspace = asker.workspace.as_str();
        let native = Neighbours::of(mesh).report_runs();
        config::shown(mesh, || {
            config::snapshot(mesh, workspace, id).is_some_and(|snapshot| {
                snapshot.flow.runs()
                    && snapshot
                        .flow
                        .load(&document.kind)
                        .is_none_or(|topic| !native || snapshot.wiring.reads(topic))
            })
        })
        .await;
        let snapshot = config::snapshot(mesh, workspace, id)
            .ok_or_else(|| invalid(format!("Invalid flow ID: there is no flow '{id}'")))?;
        if !snapshot.flow.runs() {
            return Err(invalid(format!(
                "processing-metadata.flow: flow '{id}' does not run now"
            )));
        }
        Ok(snapshot)
    }
}

fn checked(given: Option<ProcessingMetadata>) -> Result<ProcessingMetadata, Error> {
    let given = given.ok_or_else(|| invalid("processing-metadata: is required"))?;
    for (field, value) in [("document-id", &given.document_id), ("flow", &given.flow)] {
        if value.is_empty() {
            return Err(invalid(format!("processing-metadata.{field}: is required")));
        }
    }
    if given.collection.is_empty() {
        return Err(invalid("Collection parameter is required"));
    }
    collection::check(&given.collection)?;
    Ok(given)
}

/// Whether facts can name the document, the flow takes it, and somebody reads it there.
pub(super) fn check(
    mesh: &Mesh,
    snapshot: &Snapshot,
    flow: &str,
    document: &DocumentMetadata,
) -> Result<(), Error> {
    // What it would cost is also told of a document that has no name yet.
    if !document.id.is_empty()
        && let Err(error) = oxiri::Iri::parse(document.id.as_str())
    {
        return Err(invalid(format!(
            "processing-metadata.document-id: a document that is processed is named by an IRI, such as \
             urn:doc:1: {error}"
        )));
    }
    let kind = &document.kind;
    let Some(topic) = snapshot.flow.load(kind) else {
        return Err(invalid(format!(
            "processing-metadata.flow: flow '{flow}' takes no documents of kind {kind}"
        )));
    };
    if Neighbours::of(mesh).report_runs() && !snapshot.wiring.reads(topic) {
        return Err(invalid(format!(
            "processing-metadata.flow: nothing in flow '{flow}' reads documents of kind {kind}"
        )));
    }
    Ok(())
}
