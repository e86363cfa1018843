//! Which models a flow asks now: part of what it makes of documents.

use std::time::Duration;

use moka::future::Cache;
use tg_clients::neighbours::Neighbours;
use tg_clients::{embeddings, text_completion};
use tg_mesh::Mesh;
use tg_schemas::{Error, Topic};
use tokio::time::Instant;

use crate::config::Snapshot;
use crate::engine::fingerprints::{Fingerprints, ModelOf, Models};

/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(15);
/// Models that are remembered.
const MOST: u64 = 4_096;
/// How long a failure is: the models of one start are asked for many documents in a row.
const UNKNOWN: Duration = Duration::from_secs(3);
/// How long the question may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a run waits for a service that does not say: one that died is back by then.
const SILENCE: Duration = Duration::from_secs(30);

/// A model, by the start of the flow that asks it.
type Key = (ModelOf, u64);

/// What services said lately, by the start of the flow that they answer in; and who did not say.
pub(crate) struct KnownModels {
    told: Cache<Key, String>,
    /// Of the same type, though only the keys count: a cache of another type is 50 KB of code more.
    unknown: Cache<Key, String>,
    /// Since when they have not said, though they may yet.
    silent: Cache<Key, Instant>,
}

impl Default for KnownModels {
    fn default() -> Self {
        let told = Cache::builder().max_capacity(MOST).time_to_live(FRESH);
        let unknown = Cache::builder().max_capacity(MOST).time_to_live(UNKNOWN);
        Self {
            told: told.build(),
            unknown: unknown.build(),
            silent: Cache::new(MOST),
        }
    }
}

impl KnownModels {
    /// What a flow does with documents now. Among foreign processors nobody can tell.
    ///
    /// A model that cannot be told counts as another one: what is made then is made anew once it is known, which costs no
    /// model call where the replies are still kept.
    pub(crate) async fn fingerprints(&self, mesh: &Mesh, of: &Snapshot) -> Fingerprints {
        if !Neighbours::of(mesh).take_retractions() {
            return Fingerprints::default();
        }
        of.sources.fingerprints(&self.models(mesh, of).await)
    }

    /// As [`Self::fingerprints`], for a run that begins: what it makes is named after them. `None` while a model may be told in a
    /// moment: what a run makes under a model that nobody could tell has other names than the same made an hour later.
    pub(crate) async fn settled(&self, mesh: &Mesh, of: &Snapshot) -> Option<Fingerprints> {
        let fingerprints = self.fingerprints(mesh, of).await;
        let models = of.sources.models().into_iter();
        let keys: Vec<Key> = models.map(|one| (one, of.flow.epoch)).collect();
        for key in &keys {
            if self.may_be_told(key).await {
                return None;
            }
        }
        Some(fingerprints)
    }

    /// Whether it does not say which model it is only for now.
    async fn may_be_told(&self, key: &Key) -> bool {
        let silent = self.silent.get(key).await;
        silent.is_some_and(|since| since.elapsed() < SILENCE)
    }

    /// The model that is asked about chunks; `None` where nobody can tell, or where there are several.
    pub(crate) async fn completion(&self, mesh: &Mesh, of: &Snapshot) -> Option<String> {
        if !Neighbours::of(mesh).say_how_they_are() {
            return None;
        }
        let models = self.models(mesh, of).await.into_iter();
        let mut names = models.filter_map(|(of, name)| match of {
            ModelOf::Completion(_) => Some(name),
            ModelOf::Embeddings(_) => None,
        });
        names.next().filter(|_| names.next().is_none())
    }

    async fn models(&self, mesh: &Mesh, of: &Snapshot) -> Models {
        let mut models = Models::new();
        for one in of.sources.models() {
            let key = (one.clone(), of.flow.epoch);
            if let Some(name) = self.name(key, || ask(mesh, &one)).await {
                models.insert(one, name);
            }
        }
        models
    }

    /// The name of a model, asked for where it is not remembered; `None` where it cannot be told, or could not a moment ago.
    async fn name<F>(&self, key: Key, ask: impl FnOnce() -> F) -> Option<String>
    where
        F: Future<Output = Result<String, Error>>,
    {
        if let Some(known) = self.told.get(&key).await {
            return Some(known);
        }
        if self.unknown.contains_key(&key) {
            return None;
        }
        match ask().await {
            Ok(name) => {
                self.silent.invalidate(&key).await;
                self.told.insert(key, name.clone()).await;
                Some(name)
            }
            Err(error) => {
                tracing::debug!(%error, "which model a flow asks is not known now");
                if error.code().is_transient() {
                    let since = async { Instant::now() };
                    self.silent.get_with(key.clone(), since).await;
                }
                self.unknown.insert(key, String::new()).await;
                None
            }
        }
    }
}

async fn ask(mesh: &Mesh, of: &ModelOf) -> Result<String, Error> {
    match of {
        ModelOf::Completion(topic) => {
            text_completion::model_of(mesh, &Topic::parse(topic)?, TIMEOUT).await
        }
        ModelOf::Embeddings(topic) => embeddings::model_now(mesh, &Topic::parse(topic)?, TIMEOUT)
            .await
            .map(Option::unwrap_or_default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tg_schemas::ErrorCode;

    #[tokio::test]
    async fn who_does_not_say_is_not_asked_again_at_once() {
        let known = KnownModels::default();
        let key = |epoch| (ModelOf::Embeddings("t".to_owned()), epoch);
        let fails = || async { Err(Error::new(ErrorCode::Timeout, "no answer")) };
        assert_eq!(known.name(key(1), fails).await, None);
        let asked = || async { panic!("asked again") };
        assert_eq!(known.name(key(1), asked).await, None);
        // Another start is asked, and what is told is remembered.
        let says = || async { Ok("m".to_owned()) };
        assert_eq!(known.name(key(2), says).await.as_deref(), Some("m"));
        assert_eq!(known.name(key(2), asked).await.as_deref(), Some("m"));
    }

    /// A service that died is waited for, one that never says is not, and neither is one that says no.
    #[tokio::test(start_paused = true)]
    async fn who_may_say_in_a_moment_is_waited_for() {
        let known = KnownModels::default();
        let key = (ModelOf::Embeddings("t".to_owned()), 1);
        let fails = |code| move || async move { Err(Error::new(code, "no answer")) };
        let died = fails(ErrorCode::Unavailable);
        assert_eq!(known.name(key.clone(), died).await, None);
        assert!(known.may_be_told(&key).await);
        known.unknown.invalidate(&key).await;
        let says = || async { Ok("m".to_owned()) };
        assert_eq!(known.name(key.clone(), says).await.as_deref(), Some("m"));
        assert!(!known.may_be_told(&key).await);
        known.told.invalidate(&key).await;
        for _ in 0..2 {
            known.name(key.clone(), died).await;
            known.unknown.invalidate(&key).await;
            tokio::time::advance(SILENCE - Duration::from_secs(1)).await;
        }
        assert!(!known.may_be_told(&key).await, "since it was silent first");
        let other = (ModelOf::Embeddings("other".to_owned()), 1);
        let no = fails(ErrorCode::NotImplemented);
        assert_eq!(known.name(other.clone(), no).await, None);
        assert!(!known.may_be_told(&other).await);
    }
}
