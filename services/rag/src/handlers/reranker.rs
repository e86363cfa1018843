//! `reranker`: which texts fit queries best, by words and meaning, or as a model elsewhere says.

use std::time::Duration;

use async_trait::async_trait;
use tg_clients::embeddings::embed;
use tg_clients::model_calls::{ModelCalls, Took};
use tg_mesh::{Cx, Deadline, RequestHandler, Responder};
use tg_schemas::msg::{RerankerRequest, RerankerResponse, RerankerResult};
use tg_schemas::processors::reranker::EMBEDDINGS;
use tg_schemas::{Error, limits};

use crate::endpoint::Endpoint;
use crate::engine::rank::{Ranked, Vectors, rank};
use crate::error::{Kind, RagError};
use crate::services::Services;

/// Most texts and queries of one question.
const TEXTS: usize = 5_000;
const QUERIES: usize = 50;
/// Results when nothing is said.
const LIMIT: usize = 10;
/// Texts that are also compared by meaning; of more, searching by words only.
const EMBEDDED: usize = 512;
/// Characters of a token, where nobody counts them.
const TOKEN: usize = 4;
/// Longest wait for vectors: without them words decide.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Serves `request` of `reranker`: by the service that the question names, else by a model elsewhere if there is one.
pub(crate) struct Reranker {
    pub(crate) endpoint: Option<Endpoint>,
    /// Those that workspaces name.
    pub(crate) services: Services,
    /// Has what these are asked reserved and counted.
    pub(crate) calls: ModelCalls,
}

#[async_trait]
impl RequestHandler<RerankerRequest, RerankerResponse> for Reranker {
    async fn serve(
        &self,
        cx: Cx,
        ask: RerankerRequest,
        mut out: Responder<RerankerResponse>,
    ) -> Result<(), Error> {
        check(&ask)?;
        let ranked = self.rank(&cx, &ask).await;
        let ranked = ranked.map_err(|error| Kind::Reranker.of(error))?;
        let results = ranked
            .into_iter()
            .map(|ranked| RerankerResult {
                document_id: ask.documents[ranked.text].document_id.clone(),
                query_id: ask.queries[ranked.query].query_id.clone(),
                score: ranked.score,
            })
            .collect();
        out.send(RerankerResponse {
            error: None,
            results,
        })
        .await
    }
}

impl Reranker {
    async fn rank(&self, cx: &Cx, ask: &RerankerRequest) -> Result<Vec<Ranked>, Error> {
        let limit = match usize::try_from(ask.limit) {
            Ok(limit) if limit > 0 => limit,
            _ => LIMIT,
        };
        let queries: Vec<String> = ask.queries.iter().map(|q| q.query_text.clone()).collect();
        let texts: Vec<String> = ask
            .documents
            .iter()
            .map(|document| document.document_text.clone())
            .collect();
        if queries.is_empty() || texts.is_empty() {
            return Ok(Vec::new());
        }
        let own = match &ask.settings {
            Some(settings) => self.services.of(cx.workspace(), settings)?,
            None => None,
        };
        if let Some(endpoint) = own.as_ref().or(self.endpoint.as_ref()) {
            let named = cx.parameter("model");
            let likely = taking(endpoint.model(named), &queries, &texts);
            // One that is left before its end counts as much as it was likely to take.
            let mut call = self.calls.begin(cx, likely.clone()).await?;
            let until = tokio::time::Instant::now() + cx.deadline.left();
            let ranking = endpoint.rank(named, &queries, &texts, limit, until);
            let ranked = tokio::select! {
                ranked = ranking => ranked,
                () = cx.cancel.cancelled() => return Err(RagError::Cancelled.into()),
                () = cx.deadline.reached() => return Err(RagError::Timeout.into()),
            };
            if let Some(call) = &mut call {
                let took = ranked.as_ref().map_or_else(|_| Took::default(), |_| likely);
                call.settle(took).await;
            }
            return Ok(ranked?);
        }
        let vectors = vectors(cx, &queries, &texts).await?;
        let size: usize = texts.iter().map(String::len).sum();
        let work = move || match &vectors {
            Some(all) => {
                let (queries_in, texts_in) = all.split_at(queries.len());
                let vectors = Vectors {
                    queries: queries_in,
                    texts: texts_in,
                };
                rank(&queries, &texts, Some(vectors), limit)
            }
            None => rank(&queries, &texts, None, limit),
        };
        if size < limits::OFFLOAD {
            return Ok(work());
        }
        let done = tokio::task::spawn_blocking(work).await;
        Ok(done.map_err(|_| RagError::Compare)?)
    }
}

/// What a model is likely to take: it reads each query with each text.
fn taking(model: Option<&str>, queries: &[String], texts: &[String]) -> Took {
    let characters =
        |all: &[String]| -> usize { all.iter().map(|text| text.chars().count()).sum() };
    let asked = characters(queries).saturating_mul(texts.len());
    let read = characters(texts).saturating_mul(queries.len());
    Took {
        model: model.unwrap_or_default().to_owned(),
        in_token: i64::try_from(asked.saturating_add(read) / TOKEN).unwrap_or(i64::MAX),
        ..Took::default()
    }
}

/// Vectors of queries and texts, where they can be had soon enough.
async fn vectors(
    cx: &Cx,
    queries: &[String],
    texts: &[String],
) -> Result<Option<Vec<Vec<f32>>>, Error> {
    if !cx.has(EMBEDDINGS) || texts.len() > EMBEDDED {
        return Ok(None);
    }
    let mut soon = cx.clone();
    soon.deadline = cx.deadline.min(Deadline::after(TIMEOUT));
    let all: Vec<String> = queries.iter().chain(texts).cloned().collect();
    match embed(&soon, all, None).await {
        Ok(embedded) => Ok(Some(embedded.vectors)),
        Err(error) if cx.cancel.is_cancelled() || cx.deadline.passed() => Err(error),
        Err(error) => {
            tg_mesh::warn_of!(cx, %error, "no vectors for the reranker; ranking by words only");
            Ok(None)
        }
    }
}

fn check(ask: &RerankerRequest) -> Result<(), RagError> {
    let bounds = [
        ("queries", ask.queries.len(), QUERIES),
        ("documents", ask.documents.len(), TEXTS),
    ];
    match bounds.into_iter().find(|(_, given, most)| given > most) {
        None => Ok(()),
        Some((field, _, most)) => Err(RagError::TooLarge {
            field,
            bound: format!("are more than {most}"),
        }),
    }
}
