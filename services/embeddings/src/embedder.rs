//! Texts to vectors: looks up, makes what is missing in batches, within bounds. The same text is made
//! once, also when several ask for it at the same time. Knows no bus.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tg_provider_http::Backoff;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::cache::{Cache, Found, Key, Vector};
use crate::error::EmbedError;
use crate::provider::{Model, Provider, lexical};

/// Most texts of a request.
pub const MOST_TEXTS: usize = 8_192;
/// Most bytes of a request's texts: no message carries more.
pub const MOST_BYTES: usize = tg_schemas::limits::MESSAGE;
/// Most bytes of a text.
pub const MOST_TEXT: usize = tg_schemas::limits::EMBEDDED_TEXT;

/// When an endpoint is asked again for one batch of texts.
const BACKOFF: Backoff = Backoff {
    attempts: 4,
    base: Duration::from_millis(250),
    cap: Duration::from_secs(30),
};

/// Bounds of an embedder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Texts that a provider is given at once.
    pub batch: usize,
    /// Calls of an endpoint at the same time.
    pub calls: usize,
    /// Bytes of vectors that are kept.
    pub cache: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            batch: 64,
            calls: 4,
            cache: 64 << 20,
        }
    }
}

/// Vectors of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// Who made them, with their dimension: `lexical/1024`, `static/potion-base-8M/256`, ….
    pub model: String,
    /// One per text, in order.
    pub vectors: Vec<Vector>,
    /// Characters of the texts that the provider was asked for; the other vectors were known.
    pub asked: usize,
}

/// Whose vectors are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Those of the flow's model, if it names one, else of the usual one.
    Flows(Option<&'a str>),
    /// Those of this model and no other, named as in [`Embedded::model`].
    Exactly(&'a str),
}

/// The handle.
pub struct Embedder {
    provider: Provider,
    bounds: Bounds,
    cache: Cache,
    /// Processors of this machine that may work at the same time.
    processors: Arc<Semaphore>,
    calls: Semaphore,
}

impl Embedder {
    /// Names of the models that the provider's server has; `None` where no server makes vectors.
    ///
    /// # Errors
    /// As [`crate::provider::endpoint::Endpoint::models`].
    pub async fn models(&self) -> Result<Option<Vec<String>>, EmbedError> {
        match &self.provider {
            Provider::Endpoint { server, .. } => server.models().await.map(Some),
            Provider::Lexical | Provider::Static { .. } => Ok(None),
        }
    }

    /// An embedder over a provider.
    pub fn new(provider: Provider, bounds: Bounds) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            provider,
            bounds: Bounds {
                batch: bounds.batch.max(1),
                ..bounds
            },
            cache: Cache::new(bounds.cache),
            processors: Arc::new(Semaphore::new(processors)),
            calls: Semaphore::new(bounds.calls.max(1)),
        }
    }

    /// The vectors of texts. With no text only the model is reported.
    ///
    /// # Errors
    /// [`EmbedError::TooLarge`] for more than a request may bring, [`EmbedError::UnknownModel`], [`EmbedError::Timeout`]
    /// when `left` has passed, or what the provider answered, after it was asked again where that may help.
    pub async fn embed(
        &self,
        asked: Asked<'_>,
        texts: &[String],
        left: Duration,
    ) -> Result<Embedded, EmbedError> {
        let until = Instant::now() + left;
        check(texts)?;
        let (model, name) = match asked {
            Asked::Flows(named) => self.provider.choose(named)?,
            Asked::Exactly(named) => self.provider.exactly(named)?,
        };
        let keys: Vec<Key> = texts.iter().map(|text| Key::new(&name, text)).collect();
        let mut known: HashMap<Key, Vector> = HashMap::with_capacity(keys.len());
        let mut characters = 0;
        loop {
            let mut making = self.cache.begin();
            let (mut mine, mut mine_keys, mut coming) = (Vec::new(), Vec::new(), Vec::new());
            let mut seen = HashSet::new();
            for (key, text) in keys.iter().zip(texts) {
                if known.contains_key(key) || !seen.insert(*key) {
                    continue;
                }
                match making.find(*key) {
                    Found::Here(vector) => {
                        known.insert(*key, vector);
                    }
                    Found::Coming(other) => coming.push(other),
                    Found::Mine => {
                        characters += text.chars().count();
                        mine.push(text.as_str());
                        mine_keys.push(*key);
                    }
                }
            }
            // Side by side: the bounds on processors and calls hold all the same.
            let batches = mine.chunks(self.bounds.batch);
            let made = join_all(batches.map(|batch| self.make(&model, batch, until))).await;
            for (keys, vectors) in mine_keys.chunks(self.bounds.batch).zip(made) {
                metrics::counter!("tg_embeddings_texts_total").increment(keys.len() as u64);
                for (key, vector) in keys.iter().zip(vectors?) {
                    let vector: Vector = vector.into();
                    making.made(*key, vector.clone());
                    known.insert(*key, vector);
                }
            }
            drop(making);
            if coming.is_empty() {
                break;
            }
            for mut other in coming {
                // It ends when the other one is done, or failed: then this one tries.
                let ended = async { while other.changed().await.is_ok() {} };
                tokio::time::timeout_at(until, ended)
                    .await
                    .map_err(|_| EmbedError::Timeout)?;
            }
        }
        let vectors: Option<Vec<Vector>> = keys.iter().map(|key| known.get(key).cloned()).collect();
        let vectors = vectors.ok_or(EmbedError::Internal)?;
        let dimension = vectors.first().map(|vector| vector.len());
        let model = match dimension.or(model.dimension()) {
            Some(dimension) => format!("{name}/{dimension}"),
            None => name,
        };
        if let Asked::Exactly(named) = asked
            && named != model
        {
            return Err(EmbedError::UnknownModel(None));
        }
        Ok(Embedded {
            model,
            vectors,
            asked: characters,
        })
    }

    async fn make(
        &self,
        model: &Model,
        texts: &[&str],
        until: Instant,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (server, name) = match model {
            Model::Endpoint(server, name) => (server, name),
            local => return self.compute(local.clone(), texts).await,
        };
        let call = || async move {
            let asked = async {
                let _one = self.calls.acquire().await;
                server.embed(name, texts).await
            };
            let answer = tokio::time::timeout_at(until, asked).await;
            answer.unwrap_or(Err(EmbedError::Timeout))
        };
        BACKOFF
            .run(until, rand::random::<f64>, EmbedError::again, call)
            .await
    }

    /// On the blocking threads, no more at once than the machine has processors.
    async fn compute(&self, model: Model, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let permit = self.processors.clone().acquire_owned().await;
        let permit = permit.map_err(|_| EmbedError::Internal)?;
        let work = tokio::task::spawn_blocking(move || {
            let _until_done = permit;
            let one = |text: &String| match &model {
                Model::Lexical => Some(lexical::embed(text)),
                Model::Static(table) => table.embed(text),
                Model::Endpoint(..) => None,
            };
            texts.iter().map(one).collect::<Option<Vec<_>>>()
        });
        let made = work.await.map_err(|_| EmbedError::Internal)?;
        made.ok_or(EmbedError::Internal)
    }
}

fn check(texts: &[String]) -> Result<(), EmbedError> {
    if texts.len() > MOST_TEXTS {
        let text = format!("texts: more than {MOST_TEXTS} in one request");
        return Err(EmbedError::TooLarge(text));
    }
    if let Some(at) = texts.iter().position(|text| text.len() > MOST_TEXT) {
        let text = format!("texts[{at}]: is longer than {MOST_TEXT} bytes");
        return Err(EmbedError::TooLarge(text));
    }
    if texts.iter().map(String::len).sum::<usize>() > MOST_BYTES {
        let text = format!("texts: more than {MOST_BYTES} bytes in one request");
        return Err(EmbedError::TooLarge(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
