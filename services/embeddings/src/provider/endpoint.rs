//! Endpoints that embed: the OpenAI dialect (`POST …/embeddings`), which most servers speak, and Ollama's
//! own (`POST …/api/embed`). One call; retries are made by who calls.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::{Value, json};
use tg_provider_http::{Excess, HttpClient, HttpError, Limits, NoClient, Refusal, Secret};
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
    /// The server refuses to hear in which form it is to answer; it has one only.
    plain: AtomicBool,
    /// Most texts that the server takes in one call, as far as it has refused more.
    most: AtomicUsize,
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
            plain: AtomicBool::new(false),
            most: AtomicUsize::new(usize::MAX),
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
            Dialect::OpenAi => names(&self.http.json(request).await?)?,
            Dialect::Ollama => self.http.json::<OllamaModels>(request).await?.names(),
        })
    }

    /// One vector per text, in order, all of one length. A server that refuses so many texts at once is asked for half of
    /// them, down to one.
    ///
    /// # Errors
    /// What the server refused, that it cannot be reached, or [`EmbedError::Malformed`] for an answer that is not one
    /// vector per text.
    pub async fn embed(&self, model: &str, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts;
        let mut most = self.most.load(Ordering::Relaxed);
        loop {
            let (now, after) = rest.split_at(rest.len().min(most));
            match self.once(model, now).await {
                Err(HttpError::Refused(refusal)) if now.len() > 1 && refusal.excess().is_some() => {
                    most = now.len() / 2;
                    if refusal.excess() == Some(Excess::Number) {
                        self.most.fetch_min(most, Ordering::Relaxed);
                    }
                    continue;
                }
                answered => vectors.extend(check(answered??, now.len())?),
            }
            if after.is_empty() {
                return check(vectors, texts.len());
            }
            rest = after;
        }
    }

    /// The vectors of one call.
    async fn once(
        &self,
        model: &str,
        texts: &[&str],
    ) -> Result<Result<Vec<Vec<f32>>, EmbedError>, HttpError> {
        let mut body = json!({"model": model, "input": texts});
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = json!(dimensions);
        }
        Ok(match self.dialect {
            Dialect::OpenAi => self.ask_openai(body).await?.vectors(),
            Dialect::Ollama => {
                body["truncate"] = json!(true);
                let answer: OllamaAnswer = self.post(&body).await?;
                Ok(answer.embeddings)
            }
        })
    }

    /// Asks for vectors as lists of numbers; where the server does not know that wish, without it, and from then on.
    async fn ask_openai(&self, plain: Value) -> Result<OpenAiAnswer, HttpError> {
        if !self.plain.load(Ordering::Relaxed) {
            let mut body = plain.clone();
            body[FORMAT] = json!("float");
            match self.post(&body).await {
                Err(HttpError::Refused(refusal)) if is_about_format(&refusal) => {}
                answered => return answered,
            }
        }
        let answer = self.post(&plain).await?;
        self.plain.store(true, Ordering::Relaxed);
        Ok(answer)
    }

    async fn post<T: serde::de::DeserializeOwned>(&self, body: &Value) -> Result<T, HttpError> {
        let mut request = self.http.post(&self.url);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        self.http.json(request.json(body)).await
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

/// The member that names the form of vectors.
const FORMAT: &str = "encoding_format";

/// Whether a server refused because of that member.
fn is_about_format(refusal: &Refusal) -> bool {
    let words = refusal.body.windows(FORMAT.len());
    matches!(refusal.status, 400 | 422) && words.into_iter().any(|words| words == FORMAT.as_bytes())
}

/// Names of models in a list of the OpenAI dialect: under `data` or `models`, or a plain array.
pub(super) fn names(listed: &Value) -> Result<Vec<String>, EmbedError> {
    let lists = [Some(listed), listed.get("data"), listed.get("models")];
    let list = lists.into_iter().flatten().find_map(Value::as_array);
    let list = list.ok_or_else(|| fault(listed))?;
    let name = |model: &Value| {
        let names = ["id", "model", "name"].iter();
        let mut names = names.filter_map(|name| model.get(*name)?.as_str());
        names.next().or(model.as_str()).map(str::to_owned)
    };
    Ok(list.iter().filter_map(name).collect())
}

/// What a body says that has no answer, although its status is 200.
fn fault(body: &Value) -> EmbedError {
    let error = body.get("error").filter(|error| !error.is_null());
    let error = error.unwrap_or(body);
    let codes = || {
        ["code", "status", "type"]
            .iter()
            .filter_map(|name| error.get(*name))
    };
    let number = |code: &Value| match code {
        Value::String(text) => text.parse().ok(),
        code => code.as_u64().and_then(|code| u16::try_from(code).ok()),
    };
    let status = codes()
        .filter_map(number)
        .find(|code| (400..600).contains(code));
    let mut words = codes().filter_map(Value::as_str).map(str::to_lowercase);
    let is_rate = words.any(|word| word.replace('_', "").starts_with("ratelimit"));
    match (status, is_rate) {
        (Some(status), _) => EmbedError::from(Refusal {
            status,
            retry_after: None,
            body: Vec::new(),
        }),
        (None, true) => EmbedError::RateLimited {
            retry_after: None,
            status: None,
        },
        (None, false) => EmbedError::Malformed,
    }
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
    data: Option<Vec<OpenAiVector>>,
    /// What is there instead.
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl OpenAiAnswer {
    /// The vectors, in the order of the texts.
    fn vectors(self) -> Result<Vec<Vec<f32>>, EmbedError> {
        let is_error = self.rest.get("error").is_some_and(|error| !error.is_null());
        let Some(mut data) = self.data.filter(|data| !(data.is_empty() && is_error)) else {
            return Err(fault(&Value::Object(self.rest)));
        };
        // Servers that give no index answer in order; the sort is stable.
        data.sort_by_key(|one| one.index.unwrap_or(0));
        Ok(data.into_iter().map(|one| one.embedding).collect())
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
            answer.vectors()?
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
