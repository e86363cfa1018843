//! The reranker of the flow, or our own scores where there is none.

use tg_mesh::Cx;
use tg_schemas::Error;
use tg_schemas::msg::{RerankerDocument, RerankerQuery, RerankerRequest};
use tg_schemas::processors::shared::RERANKER;

use crate::engine::rank::{Ranked, rank};

/// Who said which texts fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judge {
    /// The flow's reranker.
    Reranker,
    /// Words: the flow has no reranker, or nothing was to be ranked.
    Words,
    /// Words, as the flow's reranker did not answer.
    WordsInstead,
}

/// Texts that fit the queries best, and who said so.
pub async fn rerank(
    cx: &Cx,
    queries: &[String],
    texts: &[&str],
    limit: usize,
) -> Result<(Vec<Ranked>, Judge), Error> {
    if texts.is_empty() || queries.is_empty() {
        return Ok((Vec::new(), Judge::Words));
    }
    let mut judge = Judge::Words;
    if cx.has(RERANKER) {
        match ask(cx, queries, texts, limit).await {
            Ok(ranked) => return Ok((ranked, Judge::Reranker)),
            Err(error) if error.code().is_over() => return Err(error),
            Err(error) => {
                metrics::counter!("tg_rag_reranker_failed_total").increment(1);
                tg_mesh::warn_of!(cx, %error, "the reranker did not answer; ranking by words only");
                judge = Judge::WordsInstead;
            }
        }
    }
    Ok((rank(queries, texts, None, limit), judge))
}

async fn ask(
    cx: &Cx,
    queries: &[String],
    texts: &[&str],
    limit: usize,
) -> Result<Vec<Ranked>, Error> {
    let request = RerankerRequest {
        queries: queries
            .iter()
            .enumerate()
            .map(|(at, text)| RerankerQuery {
                query_id: at.to_string(),
                query_text: text.clone(),
            })
            .collect(),
        documents: texts
            .iter()
            .enumerate()
            .map(|(at, text)| RerankerDocument {
                document_id: at.to_string(),
                document_text: (*text).to_owned(),
            })
            .collect(),
        limit: limit as i64,
        ..RerankerRequest::default()
    };
    let answer = cx.ask(RERANKER, &request)?;
    let results = answer.last().await?.results;
    let mut taken = vec![false; texts.len()];
    let mut ranked = Vec::with_capacity(results.len());
    for result in results {
        let text = result.document_id.parse::<usize>().ok();
        let Some(text) = text.filter(|at| taken.get(*at) == Some(&false)) else {
            continue;
        };
        taken[text] = true;
        let query = result.query_id.parse::<usize>().ok();
        ranked.push(Ranked {
            text,
            query: query.filter(|at| *at < queries.len()).unwrap_or(0),
            score: result.score,
        });
    }
    Ok(ranked)
}
