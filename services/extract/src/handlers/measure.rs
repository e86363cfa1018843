//! `measure-…` of each extractor: what extraction would ask a model about chunks. No model is asked, of texts or of vectors.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tg_clients::measure;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::determinants::{DEFINITIONS, Determinants, ONTOLOGY, RELATIONSHIPS, ROWS};
use tg_schemas::msg::{MeasureRequest, MeasureResponse};
use tg_schemas::table::{TABLE, Table};
use tg_schemas::{Error, ErrorCode};

use super::agent::render;
use crate::engine::ontology::{close, named_in, terms};
use crate::engine::rows::term;
use crate::ontologies::ReadyOntologies;

/// Who would ask.
pub(crate) enum Measure {
    Definitions,
    Relationships,
    Rows,
    Ontology(Arc<ReadyOntologies>),
    Agent,
}

impl Measure {
    /// The values of each prompt about a text, beside the text.
    async fn questions(&self, cx: &Cx, text: &str) -> Result<Vec<Map<String, Value>>, Error> {
        Ok(match self {
            Self::Definitions | Self::Relationships | Self::Agent => vec![Map::new()],
            Self::Rows => {
                let rows = cx.config().values(cx.workspace(), TABLE);
                let tables = rows
                    .iter()
                    .filter_map(|(key, row)| Table::read(key, row).ok());
                tables
                    .map(|table| Map::from_iter([("schema".to_owned(), term(&table))]))
                    .collect()
            }
            Self::Ontology(ready) => {
                let ontologies = ready.get(cx).await.map_err(told)?;
                let chosen = match ready.takes_all(&ontologies) {
                    true => (0..ontologies.elements().len()).collect(),
                    // Also what is only alike is shown to the model; that would take a model of vectors to know.
                    false => close(&ontologies, &named_in(&ontologies, text)),
                };
                match chosen.is_empty() {
                    true => Vec::new(),
                    false => vec![terms(&ontologies, &chosen)],
                }
            }
        })
    }

    fn by(&self) -> Option<Determinants> {
        match self {
            Self::Definitions => Some(DEFINITIONS),
            Self::Relationships => Some(RELATIONSHIPS),
            Self::Rows => Some(ROWS),
            Self::Ontology(_) => Some(ONTOLOGY),
            Self::Agent => None,
        }
    }

    async fn of_text(&self, cx: &Cx, text: String) -> Result<MeasureResponse, Error> {
        let tokens = count(text.clone()).await?;
        let Some(by) = self.by() else {
            let asked = MeasureRequest {
                texts: vec![render(cx, &text).map_err(told)?],
                ..MeasureRequest::default()
            };
            let measured = measure::agent(cx, &asked).await?;
            return Ok(MeasureResponse {
                asked_tokens: tokens * measured.calls,
                ..measured
            });
        };
        let mut measured = MeasureResponse::default();
        for values in self.questions(cx, &text).await? {
            let values = values
                .into_iter()
                .map(|(name, value)| (name, value.to_string()));
            let mut terms: BTreeMap<String, String> = values.collect();
            terms.insert("text".to_owned(), Value::from(text.as_str()).to_string());
            measured.prompt_tokens += measure::prompt(cx, by.prompts[0], terms).await?;
            measured.calls += 1;
            measured.asked_tokens += tokens;
        }
        Ok(measured)
    }
}

#[async_trait]
impl RequestHandler<MeasureRequest, MeasureResponse> for Measure {
    async fn serve(
        &self,
        cx: Cx,
        ask: MeasureRequest,
        mut out: Responder<MeasureResponse>,
    ) -> Result<(), Error> {
        let mut all = MeasureResponse::default();
        let mut first: Option<MeasureResponse> = None;
        for text in ask.texts {
            let one = match (&self, &first) {
                // Tables are asked about each text alike, and there may be many: what is around the text is known.
                (Self::Rows, Some(first)) => {
                    let texts = count(text).await? * first.calls;
                    MeasureResponse {
                        prompt_tokens: first.prompt_tokens - first.asked_tokens + texts,
                        asked_tokens: texts,
                        ..first.clone()
                    }
                }
                _ => self.of_text(&cx, text).await?,
            };
            first.get_or_insert_with(|| one.clone());
            all.calls += one.calls;
            all.prompt_tokens += one.prompt_tokens;
            all.asked_tokens += one.asked_tokens;
        }
        out.send(all).await
    }
}

/// Tokens, counted beside the runtime's threads.
async fn count(text: String) -> Result<i64, Error> {
    let counted = tokio::task::spawn_blocking(move || tg_tokens::count(&text)).await;
    let tokens = counted.map_err(|_| Error::new(ErrorCode::Unavailable, "stopping"))?;
    Ok(i64::try_from(tokens).unwrap_or(i64::MAX))
}

fn told(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::BadRequest, error.to_string())
}
