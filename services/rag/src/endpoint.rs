//! A reranking model elsewhere, over HTTP. Errors say what kind of failure it was, never what the endpoint
//! wrote; addresses, keys and texts are never logged.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tg_provider_http::{Backoff, HttpClient, HttpError, Limits, NoClient, Reach, Secret};
use tg_schemas::limits;
use tokio::time::Instant;

use crate::engine::rank::{Ranked, sorted};
use crate::error::{EndpointError, RagError};

/// Longest silence of the endpoint.
const SILENCE: Duration = Duration::from_secs(60);
/// When the endpoint is asked again. Few times: without it, words decide.
const BACKOFF: Backoff = Backoff {
    attempts: 3,
    base: Duration::from_millis(250),
    cap: Duration::from_secs(30),
};
/// Calls at a time: an endpoint takes one query a call, and a part of the texts.
const AT_ONCE: usize = 4;
/// Calls that are prepared at a time; the others wait without a request.
const PREPARED: usize = 64;
/// Where the second version of Cohere's API is. It refuses members that it does not know.
const STRICT: &str = "/v2/rerank";

/// How the endpoint is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `{model, query, documents, top_n}` → `{results: [{index, relevance_score}]}`; Cohere, Jina, vLLM, Infinity and others. SGLang answers
    /// `[{index, score}]`.
    #[serde(alias = "jina")]
    Cohere,
    /// `{query, texts}` → `[{index, score}]`; Text Embeddings Inference.
    Tei,
}

impl Dialect {
    /// The dialect of a provider, as reranking services name theirs.
    pub(crate) fn of(provider: &str) -> Option<Self> {
        match provider {
            "cohere" | "jina" => Some(Self::Cohere),
            "tei" => Some(Self::Tei),
            _ => None,
        }
    }

    /// Most texts of a call: as many as a server takes unless its operator says otherwise.
    fn most(self) -> usize {
        match self {
            Self::Cohere => 1_000,
            Self::Tei => 32,
        }
    }

    fn body(self, url: &str, model: Option<&str>, query: &str, texts: &[&str]) -> Value {
        match self {
            Self::Cohere => {
                let mut body = json!({"query": query, "documents": texts, "top_n": texts.len()});
                // Not every server takes a null.
                if let Some(model) = model {
                    body["model"] = model.into();
                }
                // Jina repeats the texts unless it is asked not to.
                if !url.trim_end_matches('/').ends_with(STRICT) {
                    body["return_documents"] = false.into();
                }
                body
            }
            Self::Tei => json!({"query": query, "texts": texts, "truncate": true}),
        }
    }

    /// Places and scores.
    pub(crate) fn read(self, answer: &Value) -> Option<Vec<(usize, f64)>> {
        let (list, score) = match self {
            Self::Cohere if answer.is_array() => (answer, "score"),
            Self::Cohere => (answer.get("results")?, "relevance_score"),
            Self::Tei => (answer, "score"),
        };
        let one = |item: &Value| {
            let index = usize::try_from(item.get("index")?.as_u64()?).ok()?;
            Some((index, item.get(score)?.as_f64()?))
        };
        list.as_array()?.iter().map(one).collect()
    }
}

/// Texts of one call, each with its place among all.
type Batch<'a> = &'a [(usize, &'a str)];

/// The best score of each text, and the query that it fits so. `None`: an answer names a text that was not sent.
fn best<'a>(
    texts: usize,
    answers: impl Iterator<Item = ((usize, Batch<'a>), Vec<(usize, f64)>)>,
) -> Option<Vec<Ranked>> {
    let mut best: Vec<Option<Ranked>> = vec![None; texts];
    for ((query, batch), scores) in answers {
        for (place, score) in scores {
            let (text, _) = *batch.get(place)?;
            let known = best.get_mut(text)?;
            if known.is_none_or(|known| score > known.score) {
                *known = Some(Ranked { text, query, score });
            }
        }
    }
    Some(best.into_iter().flatten().collect())
}

/// How far a score may lie beyond 0 and 1 and still be one of these.
const NOISE: f64 = 0.01;

/// Scores from 0 to 1, in their order. llama.cpp and others answer with what the model says before it is made one.
fn shares(mut ranked: Vec<Ranked>) -> Vec<Ranked> {
    let is_share = |one: &Ranked| (-NOISE..=1.0 + NOISE).contains(&one.score);
    let are_shares = ranked.iter().all(is_share);
    for one in &mut ranked {
        one.score = match are_shares {
            true => one.score.clamp(0.0, 1.0),
            false => 1.0 / (1.0 + (-one.score).exp()),
        };
    }
    ranked
}

/// The best of them, the best first. Scores that are far from 0 may become equal shares, so what the endpoint answered makes the order.
fn ranking(ranked: Vec<Ranked>, limit: usize) -> Vec<Ranked> {
    let all = ranked.len();
    let mut ranked = shares(sorted(ranked, all));
    ranked.truncate(limit);
    ranked
}

/// The endpoint. Prints without its key and address.
#[derive(Clone)]
pub struct Endpoint(Arc<Inner>);

struct Inner {
    client: HttpClient,
    url: String,
    key: Option<Secret>,
    model: Option<String>,
    dialect: Dialect,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({:?}, ***)", self.0.dialect)
    }
}

impl Endpoint {
    /// An endpoint by its whole address. Opens no connection.
    ///
    /// # Errors
    /// [`NoClient`] if TLS cannot be set up.
    pub fn new(
        url: &str,
        key: Option<Secret>,
        model: Option<String>,
        dialect: Dialect,
    ) -> Result<Self, NoClient> {
        Self::within(url, key, model, dialect, Reach::Anywhere)
    }

    /// The same, which asks some addresses only.
    ///
    /// # Errors
    /// [`NoClient`] if TLS cannot be set up.
    pub fn within(
        url: &str,
        key: Option<Secret>,
        model: Option<String>,
        dialect: Dialect,
        reach: Reach,
    ) -> Result<Self, NoClient> {
        let limits = Limits {
            reach,
            silence: Some(SILENCE),
            answer: limits::RANKS_ANSWER,
            ..Limits::default()
        };
        Ok(Self(Arc::new(Inner {
            client: HttpClient::new(url, limits)?,
            url: url.to_owned(),
            key,
            model,
            dialect,
        })))
    }

    /// Whether both have the same connections.
    #[cfg(test)]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The model that is asked where the flow names this one. The name of the built-in one is no model of an endpoint.
    pub fn model<'a>(&'a self, named: Option<&'a str>) -> Option<&'a str> {
        let named = named.filter(|name| !name.starts_with("builtin"));
        self.0.model.as_deref().or(named)
    }

    /// Each text's best score over the queries. `model` is the flow's, if it names one. Texts of blanks are not ranked: endpoints refuse
    /// them. Tries again as long as there is time `until` the deadline.
    pub async fn rank(
        &self,
        model: Option<&str>,
        queries: &[String],
        texts: &[String],
        limit: usize,
        until: Instant,
    ) -> Result<Vec<Ranked>, RagError> {
        let model = self.model(model);
        let said = texts.iter().map(String::as_str).enumerate();
        let said: Vec<(usize, &str)> = said.filter(|(_, text)| !text.trim().is_empty()).collect();
        let mut batches = Vec::new();
        for (at, query) in queries.iter().enumerate() {
            let most = self.0.dialect.most();
            batches.extend(said.chunks(most).map(|batch| (at, query, batch)));
        }
        let mut answers = Vec::with_capacity(batches.len());
        for some in batches.chunks(PREPARED) {
            let asks = some.iter();
            let asks: Vec<_> = asks
                .map(|(_, query, batch)| self.ask(model, query, batch, until))
                .collect();
            let found: Vec<Vec<(usize, f64)>> =
                stream::iter(asks).buffered(AT_ONCE).try_collect().await?;
            answers.extend(found);
        }
        let batches = batches.into_iter().map(|(at, _, batch)| (at, batch));
        let ranked = best(texts.len(), batches.zip(answers));
        Ok(ranking(ranked.ok_or_else(malformed)?, limit))
    }

    /// Scores of a batch. A server that refuses so many texts at once is asked for half of them, down to one.
    async fn ask(
        &self,
        model: Option<&str>,
        query: &str,
        batch: Batch<'_>,
        until: Instant,
    ) -> Result<Vec<(usize, f64)>, RagError> {
        let mut found = Vec::with_capacity(batch.len());
        let (mut rest, mut most) = (batch, batch.len());
        while !rest.is_empty() {
            let (now, after) = rest.split_at(rest.len().min(most));
            match self.once(model, query, now, until).await {
                Err(HttpError::Refused(refusal)) if now.len() > 1 && refusal.excess().is_some() => {
                    most = now.len() / 2;
                }
                answered => {
                    let scores = self.0.dialect.read(&answered.map_err(told)?);
                    let scores = scores.ok_or_else(malformed)?;
                    let before = batch.len() - rest.len();
                    if scores.iter().any(|(place, _)| *place >= now.len()) {
                        return Err(malformed());
                    }
                    found.extend(scores.iter().map(|(place, score)| (before + place, *score)));
                    rest = after;
                }
            }
        }
        Ok(found)
    }

    /// The answer of one call.
    async fn once(
        &self,
        model: Option<&str>,
        query: &str,
        batch: Batch<'_>,
        until: Instant,
    ) -> Result<Value, HttpError> {
        let endpoint = &*self.0;
        let texts: Vec<&str> = batch.iter().map(|(_, text)| *text).collect();
        let body = endpoint.dialect.body(&endpoint.url, model, query, &texts);
        let call = || {
            let mut request = endpoint.client.post(&endpoint.url).json(&body);
            if let Some(key) = &endpoint.key {
                request = request.bearer_auth(key.expose());
            }
            endpoint.client.json::<Value>(request)
        };
        BACKOFF
            .run(until, rand::random::<f64>, HttpError::again, call)
            .await
    }
}

fn told(error: HttpError) -> RagError {
    RagError::Endpoint(match error {
        HttpError::Refused(refusal) if refusal.is_rate_limit() => {
            EndpointError::Busy(refusal.retry_after)
        }
        HttpError::Refused(refusal) => EndpointError::Refused(refusal.to_string()),
        HttpError::Timeout => EndpointError::Timeout,
        HttpError::Invalid | HttpError::Unreachable(_) => EndpointError::Unreachable,
        HttpError::BrokenOff => EndpointError::BrokenOff,
        HttpError::Unreadable => EndpointError::Unreadable,
    })
}

fn malformed() -> RagError {
    RagError::Endpoint(EndpointError::Unreadable)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use tg_schemas::{Error, ErrorCode};

    use super::*;

    #[test]
    fn both_dialects_are_read_and_written() {
        for (provider, dialect) in [
            ("cohere", Some(Dialect::Cohere)),
            ("jina", Some(Dialect::Cohere)),
            ("tei", Some(Dialect::Tei)),
            ("odd", None),
        ] {
            assert_eq!(Dialect::of(provider), dialect);
        }
        let near = "http://127.0.0.1:9/rerank";
        let texts = ["a", "b"];
        let body = Dialect::Cohere.body(near, Some("m"), "q", &texts);
        assert_eq!(body["documents"], json!(["a", "b"]));
        assert_eq!(
            Dialect::Tei.body(near, None, "q", &texts)["texts"],
            json!(["a", "b"])
        );
        // What a server does not know or take is left out.
        let second = "https://api.cohere.com/v2/rerank";
        assert_eq!(
            Dialect::Cohere.body(second, Some("m"), "q", &texts),
            json!({"model": "m", "query": "q", "documents": ["a", "b"], "top_n": 2})
        );
        assert_eq!(
            Dialect::Cohere.body(near, None, "q", &texts),
            json!({"query": "q", "documents": ["a", "b"], "top_n": 2, "return_documents": false})
        );
        let cohere = json!({"results": [{"index": 1, "relevance_score": 0.5}]});
        assert_eq!(Dialect::Cohere.read(&cohere), Some(vec![(1, 0.5)]));
        let tei = json!([{"index": 0, "score": 0.25}]);
        assert_eq!(Dialect::Tei.read(&tei), Some(vec![(0, 0.25)]));
        assert_eq!(Dialect::Tei.read(&cohere), None);
        let sglang = json!([{"score": 0.5, "document": "b", "index": 1, "meta_info": {}}]);
        assert_eq!(Dialect::Cohere.read(&sglang), Some(vec![(1, 0.5)]));
        let failed = json!({"error": "batch size 33 > maximum allowed batch size 32"});
        for dialect in [Dialect::Cohere, Dialect::Tei] {
            assert_eq!(dialect.read(&failed), None);
        }
        let unknown = json!({"results": [{"index": 0, "relevance_score": null}]});
        assert_eq!(Dialect::Cohere.read(&unknown), None);
    }

    #[test]
    fn answers_name_texts_by_their_places_in_a_batch() {
        let said = [(0, "a"), (2, "c"), (3, "d")];
        let (first, second) = said.split_at(2);
        let answers = vec![
            ((0, first), vec![(1, 0.5), (0, 0.25)]),
            ((0, second), vec![(0, -3.0)]),
            ((1, first), vec![(0, 0.75)]),
        ];
        let ranked = |text, query, score| Ranked { text, query, score };
        assert_eq!(
            best(4, answers.into_iter()),
            Some(vec![
                ranked(0, 1, 0.75),
                ranked(2, 0, 0.5),
                ranked(3, 0, -3.0)
            ])
        );
        let odd = vec![((0, second), vec![(1, 0.5)])];
        assert_eq!(best(4, odd.into_iter()), None);
    }

    #[test]
    fn scores_are_shares_in_their_order() {
        let of = |scores: &[f64]| {
            let ranked = scores.iter().enumerate().map(|(text, score)| Ranked {
                text,
                query: 0,
                score: *score,
            });
            let shown = shares(ranked.collect());
            shown.iter().map(|one| one.score).collect::<Vec<_>>()
        };
        assert_eq!(of(&[1.000_001, 0.5, -0.000_001]), [1.0, 0.5, 0.0]);
        let logits = of(&[7.74, 0.0, -11.0]);
        assert!(logits.is_sorted_by(|a, b| a > b), "{logits:?}");
        assert!(logits[0] < 1.0 && logits[1] == 0.5 && logits[2] > 0.0);
        let extreme = of(&[1e308, -1e308]);
        assert_eq!(extreme, [1.0, 0.0]);
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn texts_whose_shares_are_equal_keep_their_order() {
        let texts = |scores: &[f64], limit| {
            let ranked = scores.iter().enumerate().map(|(text, score)| Ranked {
                text,
                query: 0,
                score: *score,
            });
            let best = ranking(ranked.collect(), limit).into_iter();
            best.map(|one| one.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&[40.0, 50.0, -3.0, 60.0], 3), [3, 1, 0]);
        assert_eq!(texts(&[1.001, 0.5, 1.002], 3), [2, 0, 1]);
    }

    /// Servers of this dialect take 32 texts a call.
    #[tokio::test]
    async fn many_texts_are_ranked_in_several_calls_and_blank_ones_in_none() {
        const RANKED: &str = "200 OK\r\ncontent-length: 27\r\n\r\n[{\"index\":0,\"score\":0.25}]\n";
        let (endpoint, _) = refusing(RANKED).await;
        let mut texts = vec!["t".to_owned(); 35];
        texts[0] = " \n".to_owned();
        let until = Instant::now() + Duration::from_secs(60);
        let query = ["q".to_owned()];
        let ranked = endpoint.rank(None, &query, &texts, 35, until).await;
        let ranked: Vec<usize> = ranked.unwrap().iter().map(|one| one.text).collect();
        assert_eq!(ranked, [1, 33]);
    }

    #[tokio::test]
    async fn a_server_that_refuses_so_many_texts_is_asked_for_fewer() {
        const REFUSED: &str = "422 X\r\ncontent-length: 24\r\n\r\nbatch size 4 > maximum 2";
        let (endpoint, asked) = refusing(REFUSED).await;
        let texts = vec!["t".to_owned(); 4];
        let until = Instant::now() + Duration::from_secs(60);
        let query = ["q".to_owned()];
        let ranked = endpoint.rank(None, &query, &texts, 4, until).await;
        let ranked: Vec<usize> = ranked.unwrap().iter().map(|one| one.text).collect();
        assert_eq!(ranked, [0, 2]);
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    }

    /// An endpoint that refuses its first request as told and answers the next ones.
    async fn refusing(refusal: &'static str) -> (Endpoint, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                // A request this small comes in one read.
                let _ = socket.read(&mut [0; 4096]).await;
                let answer = match seen.fetch_add(1, Ordering::SeqCst) {
                    0 => refusal,
                    _ => "200 OK\r\ncontent-length: 27\r\n\r\n[{\"index\":0,\"score\":0.25}]\n",
                };
                let _ = socket
                    .write_all(format!("HTTP/1.1 {answer}").as_bytes())
                    .await;
            }
        });
        let key = Some(Secret::new("s3cret"));
        (Endpoint::new(&url, key, None, Dialect::Tei).unwrap(), asked)
    }

    async fn ranked(endpoint: &Endpoint, left: Duration) -> Result<Vec<Ranked>, Error> {
        let (query, text) = (["q".to_owned()], ["t".to_owned()]);
        let until = Instant::now() + left;
        let ranked = endpoint.rank(None, &query, &text, 1, until).await;
        ranked.map_err(Error::from)
    }

    #[tokio::test]
    async fn too_many_requests_are_followed_by_a_pause_if_there_is_time() {
        const LIMITED: &str = "429 X\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
        const LONG: &str = "429 X\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n";
        let (endpoint, asked) = refusing(LIMITED).await;
        let begun = Instant::now();
        let found = ranked(&endpoint, Duration::from_secs(20)).await.unwrap();
        assert_eq!((found.len(), found[0].score), (1, 0.25));
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        assert!(begun.elapsed() >= Duration::from_secs(1));

        let (endpoint, asked) = refusing(LONG).await;
        let error = ranked(&endpoint, Duration::from_secs(20))
            .await
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::RateLimited);
        assert!(error.message.ends_with("; try again in 30 s"), "{error}");
        assert_eq!(asked.load(Ordering::SeqCst), 1);

        let (endpoint, asked) = refusing("401 X\r\ncontent-length: 0\r\n\r\n").await;
        let error = ranked(&endpoint, Duration::from_secs(20))
            .await
            .unwrap_err();
        assert!(
            error.message.ends_with("refused the request (HTTP 401)"),
            "{error}"
        );
        assert_eq!(asked.load(Ordering::SeqCst), 1, "a refusal is final");
        assert!(!format!("{endpoint:?}").contains("s3cret"));
    }
}
