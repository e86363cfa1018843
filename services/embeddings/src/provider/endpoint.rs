//! Endpoints that embed: the OpenAI dialect (`POST …/embeddings`), which most servers speak, and Ollama's
//! own (`POST …/api/embed`). One call; retries are made by who calls.

use serde::Deserialize;
use serde_json::json;
use tg_provider_http::{HttpClient, Limits, NoClient, Secret};
use tg_schemas::limits;

use crate::error::EmbedError;

/// How an endpoint is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// As OpenAI does.
    OpenAi,
    /// As Ollama does.
    Ollama,
}

/// An endpoint.
pub struct Endpoint {
    http: HttpClient,
    dialect: Dialect,
    url: String,
    /// Where its models are listed.
    list: String,
    key: Option<Secret>,
    dimensions: Option<usize>,
}

impl Endpoint {
    /// An endpoint below a base address. Opens no connection.
    ///
    /// # Errors
    /// [`NoClient`] if TLS cannot be set up.
    pub fn new(
        dialect: Dialect,
        base_url: &str,
        key: Option<Secret>,
        dimensions: Option<usize>,
    ) -> Result<Self, NoClient> {
        let limits = Limits {
            answer: limits::VECTORS_ANSWER,
            ..Limits::default()
        };
        let base = base_url.trim_end_matches('/');
        let (url, list) = match dialect {
            Dialect::OpenAi => (format!("{base}/embeddings"), format!("{base}/models")),
            Dialect::Ollama => (format!("{base}/api/embed"), format!("{base}/api/tags")),
        };
        Ok(Self {
            http: HttpClient::new(base_url, limits)?,
            dialect,
            url,
            list,
            key,
            dimensions,
        })
    }

    /// How it is spoken to.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Names of the models that the server has.
    ///
    /// # Errors
    /// What the server refused ([`EmbedError::UnknownModel`] where it has no such list), or that it cannot be reached.
    pub async fn models(&self) -> Result<Vec<String>, EmbedError> {
        let mut request = self.http.get(&self.list);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        Ok(match self.dialect {
            Dialect::OpenAi => self.http.json::<OpenAiModels>(request).await?.names(),
            Dialect::Ollama => self.http.json::<OllamaModels>(request).await?.names(),
        })
    }

    /// One vector per text, in order, all of one length.
    ///
    /// # Errors
    /// What the server refused, that it cannot be reached, or [`EmbedError::Malformed`] for an answer that is not one
    /// vector per text.
    pub async fn embed(&self, model: &str, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut body = json!({"model": model, "input": texts});
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = json!(dimensions);
        }
        let mut request = self.http.post(&self.url);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        let vectors = match self.dialect {
            Dialect::OpenAi => {
                body["encoding_format"] = json!("float");
                let answer: OpenAiAnswer = self.http.json(request.json(&body)).await?;
                answer.in_order()
            }
            Dialect::Ollama => {
                body["truncate"] = json!(true);
                let answer: OllamaAnswer = self.http.json(request.json(&body)).await?;
                answer.embeddings
            }
        };
        check(vectors, texts.len())
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
pub(super) struct OpenAiModels {
    data: Vec<OpenAiModel>,
}

impl OpenAiModels {
    pub(super) fn names(self) -> Vec<String> {
        self.data.into_iter().map(|model| model.id).collect()
    }
}

#[derive(Deserialize)]
struct OpenAiModel {
    id: String,
}

#[derive(Deserialize)]
pub(super) struct OllamaModels {
    models: Vec<OllamaModel>,
}

impl OllamaModels {
    pub(super) fn names(self) -> Vec<String> {
        self.models.into_iter().map(|model| model.name).collect()
    }
}

#[derive(Deserialize)]
struct OllamaModel {
    name: String,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl OpenAiAnswer {
    fn in_order(mut self) -> Vec<Vec<f32>> {
        // Servers that give no index answer in order; the sort is stable.
        self.data.sort_by_key(|one| one.index.unwrap_or(0));
        self.data.into_iter().map(|one| one.embedding).collect()
    }
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Vec<Vec<f32>>,
}

/// A whole answer, as [`Endpoint::embed`] reads it.
#[cfg(test)]
pub(super) fn read(
    dialect: Dialect,
    answer: &[u8],
    wanted: usize,
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let malformed = |_| EmbedError::Malformed;
    let vectors = match dialect {
        Dialect::OpenAi => {
            let answer: OpenAiAnswer = serde_json::from_slice(answer).map_err(malformed)?;
            answer.in_order()
        }
        Dialect::Ollama => {
            let answer: OllamaAnswer = serde_json::from_slice(answer).map_err(malformed)?;
            answer.embeddings
        }
    };
    check(vectors, wanted)
}

/// An answer counts only whole: a vector for every text, all of one length, all of numbers.
fn check(vectors: Vec<Vec<f32>>, wanted: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let dimension = vectors.first().map_or(0, Vec::len);
    let whole = vectors.len() == wanted
        && (wanted == 0 || dimension > 0)
        && vectors
            .iter()
            .all(|vector| vector.len() == dimension && vector.iter().all(|part| part.is_finite()));
    if whole {
        Ok(vectors)
    } else {
        Err(EmbedError::Malformed)
    }
}
