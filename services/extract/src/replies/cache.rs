//! Asking, once: a reply that was paid for is kept before anything follows from it, and whoever asks the same
//! again, now or later, gets the kept one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tg_clients::prompt::Prompts;
use tg_mesh::{Cx, LeasedStore, clock};
use tg_runs::RunContext;
use tg_schemas::Error;
use tg_schemas::determinants::Determinants;

use super::keys::{self, Determined};
use super::models::Models;
use crate::engine::found::How;
use crate::engine::items::{self, Items};
use crate::error::ExtractError;
use crate::store::{CachedReply, Ledger, ReplyLedger};

/// How long one reply may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(600);

/// What is asked about a chunk.
pub(crate) struct Question<'a> {
    /// Who asks, and what decides about the reply.
    pub(crate) by: Determinants,
    /// The chunk's text.
    pub(crate) text: &'a str,
    /// Other values of the prompt.
    pub(crate) terms: Map<String, Value>,
}

/// A reply, paid for now or before.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) items: Items,
    pub(crate) model: String,
    pub(crate) asked_at: String,
    pub(crate) prompt_version: String,
}

impl Reply {
    /// How a reply came to be.
    pub(crate) fn how<'a>(&'a self, by: &Determinants, ontology: Option<&'a str>) -> How<'a> {
        How {
            extractor: by.processor,
            version: env!("CARGO_PKG_VERSION"),
            asked_at: &self.asked_at,
            model: &self.model,
            prompt_version: &self.prompt_version,
            ontology,
        }
    }
}

/// A reply that has just been paid for.
pub(crate) struct Paid {
    /// Items, a JSON array.
    pub(crate) items: Items,
    pub(crate) model: String,
    /// How a reply begins that has no items.
    pub(crate) unusable: String,
    /// What it took.
    pub(crate) spent: Tokens,
}

/// What the model said that it read and wrote; 0 where it did not say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tokens {
    pub(crate) read: i64,
    pub(crate) written: i64,
}

impl Tokens {
    /// As an answer tells them.
    pub(crate) fn told(read: Option<i64>, written: Option<i64>) -> Self {
        Self {
            read: read.unwrap_or(0),
            written: written.unwrap_or(0),
        }
    }
}

impl Paid {
    fn unreadable(self, extractor: &'static str, lines: usize) -> ExtractError {
        let begins = match self.items.values.is_empty() {
            true => self.unusable,
            false => Value::Array(self.items.values).to_string(),
        };
        ExtractError::Unreadable {
            extractor,
            model: match self.model.is_empty() {
                true => "the model".to_owned(),
                false => self.model,
            },
            lines,
            begins: begins.chars().take(BEGINS).collect(),
        }
    }
}

/// Characters told of a reply that could not be read.
pub(crate) const BEGINS: usize = 200;

/// Whether an item of a reply can be used at all.
pub(crate) type Usable = fn(&Value) -> bool;

pub(crate) struct ReplyCache {
    store: Arc<LeasedStore<Ledger>>,
    models: Models,
    /// Replies that are being asked for, so that nobody asks twice. Those that nobody holds any more go when
    /// the next is added.
    asking: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl ReplyCache {
    pub(crate) fn new(store: Arc<LeasedStore<Ledger>>) -> Self {
        Self {
            store,
            models: Models::default(),
            asking: Mutex::default(),
        }
    }

    /// What is kept. Fails while another process keeps it.
    pub(crate) async fn ledger(&self) -> Result<Arc<dyn ReplyLedger>, Error> {
        Ok(self.store.get().await?)
    }

    /// The reply to a question by the prompt service.
    pub(crate) async fn prompt(
        &self,
        cx: &Cx,
        question: Question<'_>,
        usable: Usable,
    ) -> Result<Reply, ExtractError> {
        let prompt = question.by.prompts[0];
        let mut terms = BTreeMap::new();
        for (name, value) in &question.terms {
            terms.insert(name.clone(), value.to_string());
        }
        terms.insert("text".to_owned(), Value::from(question.text).to_string());
        let pay = async {
            let prompts = Prompts::of_flow(cx).patient(TIMEOUT);
            let answer = prompts.whole(prompt, terms).await?;
            let mut items = match answer.json {
                true => items::of_json(&answer.text),
                // A prompt of somebody's own that promises text.
                false => items::of_text(&answer.text),
            };
            items.bad += answer.dropped;
            Ok(Paid {
                items,
                unusable: answer.unusable,
                spent: Tokens::told(answer.spent.in_token, answer.spent.out_token),
                model: answer.spent.model.unwrap_or_default(),
            })
        };
        self.reply(cx, question, usable, pay).await
    }

    /// The kept reply to a question, or the one that `pay` gets; it is not polled unless it has to be.
    pub(crate) async fn reply(
        &self,
        cx: &Cx,
        question: Question<'_>,
        usable: Usable,
        pay: impl Future<Output = Result<Paid, Error>> + Send,
    ) -> Result<Reply, ExtractError> {
        let ledger = self.ledger().await?;
        let rows = cx.config().values(cx.workspace(), keys::PROMPTS);
        let prompt_version = keys::prompt_version(&rows, question.by.prompts);
        let model = self.models.behind(cx, question.by.renderer).await;
        let model = model.map_err(|error| ExtractError::asked(cx, error))?;
        let workspace = cx.workspace_key();
        let determined = Determined {
            workspace: workspace.as_str(),
            extractor: question.by.processor,
            text: question.text,
            terms: &question.terms,
            prompt_version: &prompt_version,
            model: &model,
        };
        let key = determined.key();
        let known = |kept: CachedReply| {
            let mut items = items::of_json(&kept.reply);
            items.bad += usize::try_from(kept.dropped).unwrap_or_default();
            Reply {
                items,
                model: kept.model,
                asked_at: kept.asked_at,
                prompt_version: prompt_version.clone(),
            }
        };
        // Looked up in turn, so that nobody pays for what somebody else is just paying for.
        let turn = self.turn(&key);
        let held = turn.lock().await;
        if let Some(kept) = ledger.find(key.clone()).await.map_err(Error::from)? {
            metrics::counter!("tg_extract_replies_total", "from" => "ledger").increment(1);
            return Ok(known(kept));
        }
        let asked_at = clock::rfc3339();
        let paid = pay.await.map_err(|error| ExtractError::asked(cx, error))?;
        metrics::counter!("tg_extract_replies_total", "from" => "model").increment(1);
        cx.effect("model-calls", 1);
        for (kind, tokens) in [
            ("tokens-in", paid.spent.read),
            ("tokens-out", paid.spent.written),
        ] {
            if tokens > 0 {
                cx.effect(kind, tokens);
            }
        }
        let good = paid.items.values.iter().filter(|item| usable(item)).count();
        let lines = paid.items.values.len() + paid.items.bad;
        if good == 0 && lines > 0 {
            // Not kept: whoever tries again wants another reply.
            return Err(paid.unreadable(question.by.processor, lines));
        }
        let kept = CachedReply {
            reply: serde_json::to_string(&paid.items.values).unwrap_or_default(),
            dropped: paid.items.bad as i64,
            model: paid.model,
            asked_at,
        };
        let workspace = cx.workspace_key().to_string();
        let stored = ledger.keep(key, workspace, kept.clone()).await;
        stored.map_err(Error::from)?;
        drop(held);
        Ok(known(kept))
    }

    /// Whose turn it is to ask for a reply.
    pub(crate) fn turn(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut asking = self.asking.lock();
        if let Some(turn) = asking.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        asking.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        asking.insert(key.to_owned(), Arc::downgrade(&turn));
        turn
    }
}
