//! Which model would reply now. It is part of what determines a reply: a reply of another model is another
//! reply.

use std::collections::HashMap;
use std::time::Duration;

use moka::future::Cache;
use serde::Deserialize;
use tg_mesh::{Ask, Cx, Deadline, Mode};
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_schemas::{Error, Topic};

/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(15);
/// How long the question may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Flows whose models are remembered.
const MOST: u64 = 4_096;

/// What the text completions of flows said lately.
pub(super) struct Models(Cache<Topic, String>);

impl Default for Models {
    fn default() -> Self {
        let known = Cache::builder().max_capacity(MOST).time_to_live(FRESH);
        Self(known.build())
    }
}

impl Models {
    /// The model behind a prompt service of this flow; empty when nobody can tell, as with foreign services.
    pub(super) async fn behind(&self, cx: &Cx, prompt: &str) -> Result<String, Error> {
        let Some(topic) = completion(cx, prompt) else {
            return Ok(String::new());
        };
        if cx.mesh.bus().mode() != Mode::Native {
            return Ok(String::new());
        }
        let ask = TextCompletionRequest {
            operation: "which-model".to_owned(),
            ..TextCompletionRequest::default()
        };
        let options = Ask {
            deadline: Some(Deadline::after(PATIENCE)),
            ..cx.ask_options()
        };
        // Who asks at the same time waits for the answer that the first one gets.
        let asking = async {
            let mesh = &cx.mesh;
            let answer = mesh.ask::<_, TextCompletionResponse>(&topic, &ask, options);
            Ok::<_, Error>(answer.last().await?.model.unwrap_or_default())
        };
        let model = self.0.try_get_with_by_ref(&topic, asking).await;
        model.map_err(|error| Error::clone(&error))
    }
}

/// The part of a processor's row that is read here.
#[derive(Deserialize)]
struct Row {
    topics: HashMap<String, String>,
}

/// Topic of the text completion that a prompt processor of this flow asks.
fn completion(cx: &Cx, prompt: &str) -> Option<Topic> {
    let kind = format!("processor:{prompt}");
    let row = cx.config().get(cx.workspace(), &kind, cx.flow())?;
    let row: Row = serde_json::from_str(&row).ok()?;
    Topic::parse(row.topics.get("text-completion-request")?).ok()
}
