//! Which model would reply now. It is part of what determines a reply: a reply of another model is another
//! reply.

use std::time::Duration;

use moka::future::Cache;
use tg_clients::text_completion::{behind, which_model};
use tg_mesh::Cx;
use tg_schemas::{Error, Topic};

/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(15);
/// Flows whose models are remembered.
const MOST: u64 = 4_096;

/// What the text completions of flows said lately.
///
/// By the start of the flow, too: a flow that was started with another model asks another one at once.
pub(crate) struct Models(Cache<(Topic, u64), String>);

impl Default for Models {
    fn default() -> Self {
        let known = Cache::builder().max_capacity(MOST).time_to_live(FRESH);
        Self(known.build())
    }
}

impl Models {
    /// The model behind a prompt service of this flow; empty when nobody can tell, as with foreign services.
    pub(crate) async fn behind(&self, cx: &Cx, prompt: &str) -> Result<String, Error> {
        let Some(topic) = behind(cx, prompt) else {
            return Ok(String::new());
        };
        // Who asks at the same time waits for the answer that the first one gets.
        let asking = which_model(cx, &topic);
        let key = (topic.clone(), cx.scope.epoch);
        let model = self.0.try_get_with(key, asking).await;
        model.map_err(|error| Error::clone(&error))
    }
}
