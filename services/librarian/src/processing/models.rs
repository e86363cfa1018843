//! Which models a flow asks now: part of what it makes of documents.

use std::time::Duration;

use moka::future::Cache;
use tg_clients::neighbours::Neighbours;
use tg_clients::{embeddings, text_completion};
use tg_mesh::Mesh;
use tg_schemas::Topic;

use crate::config::Snapshot;
use crate::engine::fingerprints::{Fingerprints, ModelOf, Models};

/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(15);
/// Models that are remembered.
const MOST: u64 = 4_096;
/// How long the question may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What services said lately, by the start of the flow that they answer in.
pub(crate) struct KnownModels(Cache<(ModelOf, u64), String>);

impl Default for KnownModels {
    fn default() -> Self {
        let known = Cache::builder().max_capacity(MOST).time_to_live(FRESH);
        Self(known.build())
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
        let mut models = Models::new();
        for one in of.sources.models() {
            let key = (one.clone(), of.flow.epoch);
            let name = match self.0.get(&key).await {
                Some(known) => known,
                None => match ask(mesh, &one).await {
                    Ok(name) => {
                        self.0.insert(key, name.clone()).await;
                        name
                    }
                    Err(error) => {
                        tracing::debug!(%error, "which model a flow asks is not known now");
                        continue;
                    }
                },
            };
            models.insert(one, name);
        }
        of.sources.fingerprints(&models)
    }
}

async fn ask(mesh: &Mesh, of: &ModelOf) -> Result<String, tg_schemas::Error> {
    match of {
        ModelOf::Completion(topic) => {
            text_completion::model_of(mesh, &Topic::parse(topic)?, TIMEOUT).await
        }
        ModelOf::Embeddings(topic) => embeddings::model_now(mesh, &Topic::parse(topic)?, TIMEOUT)
            .await
            .map(Option::unwrap_or_default),
    }
}
