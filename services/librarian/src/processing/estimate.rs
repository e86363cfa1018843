//! What processing a document would cost: asked of those who would do it, who do nothing for it that lasts and ask no model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use tg_clients::library::BASE64;
use tg_clients::measure;
use tg_mesh::Mesh;
use tg_schemas::msg::{DocumentMetadata, LibrarianRequest, MeasureRequest, MeasureResponse};
use tg_schemas::price::{self, Price};
use tg_schemas::processors::{chunker, document_decoder, document_embeddings};
use tg_schemas::{Error, ErrorCode, FlowId, WorkspaceId, WorkspaceKey};
use tokio::time::Instant;

use super::add::check;
use super::answer::show;
use crate::config::{Config, Snapshot};
use crate::engine::asker::Asker;
use crate::engine::estimate::{
    Estimate, Extraction, Measure, Past, Prices, Treatment, estimate, priced,
};
use crate::engine::workspace;
use crate::error::{invalid, wire};
use crate::librarian::Librarian;

/// How long all may take that is asked about a document.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Runs that count: the last of the flow.
const RUNS: u32 = 64;

impl Librarian {
    /// What processing a document would cost.
    pub(crate) async fn estimate(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        ask: &LibrarianRequest,
        content: Vec<u8>,
    ) -> Result<BTreeMap<String, i64>, Error> {
        let given = ask.processing_metadata.clone().unwrap_or_default();
        let flow = match given.flow.as_str() {
            "" => return Err(invalid("processing-metadata.flow: is required")),
            flow => flow,
        };
        let about = match (&ask.document_metadata, given.document_id.as_str()) {
            (_, id) if !id.is_empty() => self.library.metadata(asker, id).await?,
            (Some(document), _) => document.clone(),
            (None, _) => return Err(invalid("processing-metadata.document-id: is required")),
        };
        let snapshot = self.flow(mesh, asker, flow, &about).await?;
        check(mesh, &snapshot, flow, &about)?;
        let here = given.document_id.is_empty();
        let told = match here && content.is_empty() {
            // Only its size is known.
            true => None,
            false => {
                let asked = measured(asker, flow, &snapshot, &about);
                match asked {
                    Some((place, question)) => {
                        let question = MeasureRequest {
                            document_id: given.document_id.clone(),
                            content: if here {
                                BASE64.encode(&content)
                            } else {
                                String::new()
                            },
                            ..question
                        };
                        self.told(mesh, asker, &place, question).await?
                    }
                    None => None,
                }
            }
        };
        match told {
            Some(told) => {
                let size = match here {
                    true => content.len() as u64,
                    false => self.library.size(asker, &given.document_id).await?,
                };
                Ok(told.of(size))
            }
            None => {
                self.roughly(asker, ask, &about, &snapshot, content.as_slice())
                    .await
            }
        }
    }

    /// By its size, where nobody can be asked who would cut it.
    async fn roughly(
        &self,
        asker: &Asker,
        ask: &LibrarianRequest,
        about: &DocumentMetadata,
        snapshot: &Snapshot,
        content: &[u8],
    ) -> Result<BTreeMap<String, i64>, Error> {
        let (chunk, overlap) = snapshot.chunking;
        let how = Treatment::new(chunk, overlap, snapshot.extractors.len() as u64);
        let given = ask.processing_metadata.clone().unwrap_or_default();
        let (size, measure) = if given.document_id.is_empty() {
            let mut measure = Measure::of(&about.kind);
            measure.feed(content);
            let size = u64::try_from(ask.total_size).unwrap_or(0);
            match (content.len() as u64, measure) {
                // Only the size is known: as many characters as bytes at most.
                (0, Measure::Text(_)) if size > 0 => (size, Measure::Text(size)),
                (0, _) if size > 0 => (size, Measure::Other),
                (bytes, measure) => (bytes, measure),
            }
        } else {
            self.library
                .measure(asker, &given.document_id, &about.kind)
                .await?
        };
        Ok(estimate(size, measure, how))
    }

    /// What those say who would do it. `None` where they are not ours.
    async fn told(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        place: &Place<'_>,
        question: MeasureRequest,
    ) -> Result<Option<Estimate>, Error> {
        let Some(topic) = place.topic(mesh, chunker::PROCESSOR.id) else {
            return Ok(None);
        };
        let Some(_turn) = self
            .estimates
            .try_take(&Arc::from(asker.workspace.as_str()), 1)
        else {
            return Ok(None);
        };
        let end = Instant::now() + TIMEOUT;
        let left = || end.saturating_duration_since(Instant::now());
        let cut = match measure::asked(mesh, topic, place.of(), &question, left()).await {
            // A chunker that says nothing beforehand, or not now.
            Err(error) if is_silent(&error) => return Ok(None),
            cut => cut?,
        };
        let texts = MeasureRequest {
            texts: cut.samples.clone(),
            ..MeasureRequest::default()
        };
        let mut extractions = Vec::new();
        for id in &place.snapshot.extractors {
            let topic = place.topic(mesh, id).filter(|_| !texts.texts.is_empty());
            let told = match topic {
                Some(topic) => {
                    match measure::asked(mesh, topic, place.of(), &texts, left()).await {
                        // One of an earlier release, or whose prompts or agent are somebody else's.
                        Err(error) if is_silent(&error) => unknown(&cut),
                        told => told?,
                    }
                }
                None => unknown(&cut),
            };
            extractions.push(Extraction {
                samples: cut.samples.len() as u64,
                calls: told.calls,
                prompts: told.prompt_tokens,
                texts: told.asked_tokens,
            });
        }
        Ok(Some(Estimate {
            embedded: place
                .snapshot
                .reads_chunks(document_embeddings::PROCESSOR.id),
            past: self.past(asker, place.flow.as_str()).await?,
            prices: self.prices(mesh, asker, place.snapshot).await?,
            cut,
            extractions,
        }))
    }

    /// What model calls took in the last runs of a flow.
    async fn past(&self, asker: &Asker, flow: &str) -> Result<Past, Error> {
        let found = self.rows().shown_last(&asker.workspace, flow, RUNS);
        let mut past = Past::default();
        for one in found.await.map_err(wire)? {
            let progress = show(one).progress;
            let count = |key: &str| progress.get(key).copied().unwrap_or(0);
            let (calls, written) = (count("model-calls"), count("tokens-out"));
            if calls > 0 && written > 0 {
                past.calls = past.calls.saturating_add(calls);
                past.written = past.written.saturating_add(written);
            }
        }
        Ok(past)
    }

    async fn prices(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        snapshot: &Snapshot,
    ) -> Result<Option<Prices>, Error> {
        let Some(model) = self.models.completion(mesh, snapshot).await else {
            return Ok(None);
        };
        let key = WorkspaceKey::parse(&asker.workspace);
        let row = Config::new(mesh, &key)?
            .get(price::ROWS, priced(&model))
            .await;
        let row = row.unwrap_or_else(|error| {
            tracing::warn!(%error, "what models cost is not known");
            None
        });
        let price = row.and_then(|row| Price::read(&row));
        Ok(price.map(|price| Prices {
            read: price.input_price,
            written: price.output_price,
        }))
    }
}

/// A flow whose processors are asked.
struct Place<'a> {
    workspace: WorkspaceId,
    generation: i64,
    flow: FlowId,
    snapshot: &'a Snapshot,
}

impl Place<'_> {
    fn of(&self) -> (&WorkspaceId, i64) {
        (&self.workspace, self.generation)
    }

    /// Where a processor says what it would do; `None` where it is none of ours.
    fn topic(&self, mesh: &Mesh, id: &str) -> Option<tg_schemas::Topic> {
        let topic = measure::topic(&self.workspace, &self.flow, id)?;
        let presence = mesh.presence();
        let epoch = self.snapshot.flow.epoch;
        let here = presence.attached(id, self.workspace.as_str(), self.flow.as_str(), epoch);
        here.then_some(topic)
    }
}

/// Whom to ask about a document, and what; `None` where the flow has nobody who cuts.
fn measured<'a>(
    asker: &Asker,
    flow: &str,
    snapshot: &'a Snapshot,
    about: &DocumentMetadata,
) -> Option<(Place<'a>, MeasureRequest)> {
    let topic = snapshot.flow.load(&about.kind)?;
    let mut readers = snapshot
        .wiring
        .readers
        .iter()
        .filter(|one| one.topic == topic);
    let reader = readers.find(|one| one.cuts())?;
    let take_apart = reader.processor() == document_decoder::PROCESSOR.id;
    if !take_apart && reader.processor() != chunker::PROCESSOR.id {
        return None;
    }
    let place = Place {
        workspace: workspace::id(&asker.workspace).ok()?,
        generation: WorkspaceKey::parse(&asker.workspace).generation(),
        flow: FlowId::new(flow).ok()?,
        snapshot,
    };
    let question = MeasureRequest {
        kind: about.kind.clone(),
        title: about.title.clone(),
        take_apart,
        ..MeasureRequest::default()
    };
    Some((place, question))
}

/// Whether a failure says that somebody does not tell beforehand, or not now: then it is guessed.
fn is_silent(error: &Error) -> bool {
    let codes = [ErrorCode::NobodyServes, ErrorCode::Timeout, ErrorCode::Busy];
    codes.contains(&error.code())
}

/// Of somebody else's extractor: a call about each chunk, and nothing known of its prompt.
fn unknown(cut: &MeasureResponse) -> MeasureResponse {
    let samples = cut.samples.len() as i64;
    let texts = cut.asked_tokens.saturating_mul(samples) / cut.asked.max(1);
    MeasureResponse {
        calls: samples,
        prompt_tokens: texts,
        asked_tokens: texts,
        ..MeasureResponse::default()
    }
}
