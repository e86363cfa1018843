//! A reranking model elsewhere, over HTTP. Errors say what kind of failure it was, never what the endpoint
//! wrote; addresses, keys and texts are never logged.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use reqwest::Client;
use serde_json::{Value, json};
use tg_schemas::{Error, ErrorCode};

use crate::engine::rank::{Ranked, sorted};

const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(60);
/// Longest answer, in bytes.
const ANSWER: usize = 8 << 20;
/// Queries asked at a time: an endpoint takes one query a call.
const AT_ONCE: usize = 4;

/// How the endpoint is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// `{model, query, documents, top_n}` → `{results: [{index, relevance_score}]}`; Cohere, Jina and others.
    #[default]
    Cohere,
    /// `{query, texts}` → `[{index, score}]`; Text Embeddings Inference.
    Tei,
}

impl Dialect {
    /// Reads the name that settings use.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "cohere" | "jina" => Self::Cohere,
            "tei" => Self::Tei,
            _ => return None,
        })
    }

    fn body(self, model: Option<&str>, query: &str, texts: &[String]) -> Value {
        match self {
            Self::Cohere => json!({
                "model": model, "query": query, "documents": texts, "top_n": texts.len(),
                "return_documents": false,
            }),
            Self::Tei => json!({"query": query, "texts": texts, "truncate": true}),
        }
    }

    /// Places and scores.
    fn read(self, answer: &Value) -> Option<Vec<(usize, f64)>> {
        let (list, score) = match self {
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

/// The endpoint. Prints without its key and address.
#[derive(Clone)]
pub struct Endpoint(Arc<Inner>);

struct Inner {
    client: Client,
    url: String,
    key: Option<String>,
    model: Option<String>,
    dialect: Dialect,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({:?}, ***)", self.0.dialect)
    }
}

impl Endpoint {
    /// An endpoint by its whole address. Fails with what is wrong with it.
    pub fn new(
        url: &str,
        key: Option<String>,
        model: Option<String>,
        dialect: Dialect,
    ) -> Result<Self, String> {
        reqwest::Url::parse(url).map_err(|_| "is not an address".to_owned())?;
        // Another part of the process may have chosen the provider already; both choose the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .connect_timeout(CONNECT)
                .read_timeout(SILENCE)
                .redirect(reqwest::redirect::Policy::none())
        };
        let with_roots = || {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let known = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
            let config = rustls::ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .ok()?
                .with_root_certificates(rustls::RootCertStore::from_iter(known))
                .with_no_client_auth();
            builder().tls_backend_preconfigured(config).build().ok()
        };
        // A plain-text address needs no certificates; a machine without any has those compiled in.
        let system = if url.starts_with("https://") {
            builder().build().ok()
        } else {
            None
        };
        let client = system.or_else(with_roots);
        Ok(Self(Arc::new(Inner {
            client: client.ok_or_else(|| "no client can be made for it".to_owned())?,
            url: url.to_owned(),
            key,
            model,
            dialect,
        })))
    }

    /// Each text's best score over the queries. `model` is the flow's, if it names one.
    pub async fn rank(
        &self,
        model: Option<&str>,
        queries: &[String],
        texts: &[String],
        limit: usize,
    ) -> Result<Vec<Ranked>, Error> {
        // The name of the built-in one is no model of an endpoint.
        let model = model.filter(|name| !name.starts_with("builtin"));
        let model = self.0.model.as_deref().or(model);
        let asks: Vec<_> = queries
            .iter()
            .map(|query| self.ask(model, query, texts))
            .collect();
        let answers: Vec<Vec<(usize, f64)>> =
            stream::iter(asks).buffered(AT_ONCE).try_collect().await?;
        let mut best: Vec<Option<Ranked>> = vec![None; texts.len()];
        for (query, scores) in answers.into_iter().enumerate() {
            for (text, score) in scores {
                let Some(known) = best.get_mut(text) else {
                    return Err(malformed());
                };
                if known.is_none_or(|known| score > known.score) {
                    *known = Some(Ranked { text, query, score });
                }
            }
        }
        Ok(sorted(best.into_iter().flatten().collect(), limit))
    }

    async fn ask(
        &self,
        model: Option<&str>,
        query: &str,
        texts: &[String],
    ) -> Result<Vec<(usize, f64)>, Error> {
        let body = self.0.dialect.body(model, query, texts);
        let mut request = self.0.client.post(&self.0.url).json(&body);
        if let Some(key) = &self.0.key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.map_err(|error| {
            if error.is_timeout() && !error.is_connect() {
                failure("the reranking endpoint did not answer in time")
            } else {
                failure("the reranking endpoint cannot be reached")
            }
        })?;
        let status = response.status().as_u16();
        if status == 429 {
            let text = "the reranking endpoint says: too many requests";
            return Err(Error::new(ErrorCode::RateLimited, text));
        }
        if !(200..300).contains(&status) {
            return Err(failure(&format!(
                "the reranking endpoint refused the request (HTTP {status})"
            )));
        }
        let mut bytes = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| failure("the reranking endpoint broke off"))?;
            if bytes.len() + chunk.len() > ANSWER {
                return Err(malformed());
            }
            bytes.extend_from_slice(&chunk);
        }
        let answer: Value = serde_json::from_slice(&bytes).map_err(|_| malformed())?;
        let scores = self.0.dialect.read(&answer).ok_or_else(malformed)?;
        Ok(scores)
    }
}

fn failure(text: &str) -> Error {
    Error::typed(crate::fault::RERANKER, text)
}

fn malformed() -> Error {
    failure("the reranking endpoint sent an answer that cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_dialects_are_read_and_written() {
        let texts = vec!["a".to_owned(), "b".to_owned()];
        let body = Dialect::Cohere.body(Some("m"), "q", &texts);
        assert_eq!(body["documents"], json!(["a", "b"]));
        assert_eq!(
            Dialect::Tei.body(None, "q", &texts)["texts"],
            json!(["a", "b"])
        );
        let cohere = json!({"results": [{"index": 1, "relevance_score": 0.5}]});
        assert_eq!(Dialect::Cohere.read(&cohere), Some(vec![(1, 0.5)]));
        let tei = json!([{"index": 0, "score": 0.25}]);
        assert_eq!(Dialect::Tei.read(&tei), Some(vec![(0, 0.25)]));
        assert_eq!(Dialect::Tei.read(&cohere), None);
        assert_eq!(Dialect::parse("jina"), Some(Dialect::Cohere));
    }
}
