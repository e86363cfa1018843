//! A flow's hooks: a service of it that is asked before a tool is used and sent what the tool returned. It allows, denies, or puts
//! something else in the place of the arguments or the text. One that fails, or says what is not known, denies.

use std::time::Duration;

use serde_json::{Map, Value};
use tg_mesh::Deadline;
use tg_schemas::msg::{ToolHookRequest, ToolHookResponse};
use tg_schemas::processors::agent_manager::TOOL_HOOK;

use super::calling::Calling;
use super::late::ending;
use crate::engine::arguments;
use crate::engine::exchange::{Decided, Entry, Hooked};
use crate::engine::toolset::Tool;
use crate::error::Stop;

/// When a hook is asked.
const BEFORE: &str = "before";
const AFTER: &str = "after";

impl Calling {
    /// Asks the flow's hook before a tool is used. Returns the arguments to use, or the refusal for the model.
    pub(super) async fn before_use(
        &mut self,
        tool: &Tool,
        given: Map<String, Value>,
    ) -> Result<Result<Map<String, Value>, String>, Stop> {
        if !self.hooked {
            return Ok(Ok(given));
        }
        let about = self.about(BEFORE, tool, &given, String::new());
        Ok(match self.hook(BEFORE, about).await? {
            Decided::Allow => Ok(given),
            Decided::Deny(why) => Err(format!("'{}' was not used: {why}", tool.name)),
            Decided::Replace(said) => {
                let read: Result<Map<String, Value>, _> =
                    serde_json::from_slice(said.arguments.as_bytes());
                let checked = read.map_err(|error| error.to_string());
                let checked = checked.and_then(|new| arguments::check(&tool.arguments, new));
                checked.map_err(|fault| {
                    tracing::warn!(
                        tool = tool.name,
                        fault,
                        "a hook gives arguments that do not fit"
                    );
                    format!("'{}' was not used: {FAILED}", tool.name)
                })
            }
        })
    }

    /// Tells the flow's hook what a tool returned. What the model is told of it; the inner error: that it is told nothing.
    pub(super) async fn after_use(
        &mut self,
        tool: &Tool,
        given: &Map<String, Value>,
        text: String,
    ) -> Result<Result<String, String>, Stop> {
        if !self.hooked {
            return Ok(Ok(text));
        }
        let about = self.about(AFTER, tool, given, text.clone());
        Ok(match self.hook(AFTER, about).await? {
            Decided::Allow => Ok(text),
            Decided::Replace(said) => Ok(said.text),
            Decided::Deny(why) => Err(format!("what '{}' returned is withheld: {why}", tool.name)),
        })
    }

    fn about(
        &self,
        when: &str,
        tool: &Tool,
        given: &Map<String, Value>,
        text: String,
    ) -> ToolHookRequest {
        ToolHookRequest {
            when: when.to_owned(),
            tool: tool.name.clone(),
            kind: tool.kind.label().to_owned(),
            arguments: Value::Object(given.clone()).to_string(),
            text,
            run: self.run.clone(),
            step: i64::from(self.step),
            collection: self.collection.clone(),
            user: self.cx.headers.user_id.clone().unwrap_or_default(),
        }
    }

    async fn hook(&mut self, when: &'static str, about: ToolHookRequest) -> Result<Decided, Stop> {
        if let Some(playback) = &self.playback {
            return playback.hook(self.which(), when);
        }
        let most = Duration::from_secs(self.hook_seconds());
        let mut ask = self.cx.ask_options();
        ask.deadline = Some(self.cx.deadline.min(Deadline::after(most)));
        // The same for who takes the step up again.
        ask.id = Some(format!("{}/{when}", self.key()));
        // Nor does it say what it took of models: that counts for key and workspace where they are asked.
        ask.counted = None;
        let answer = match self.cx.ask_with(TOOL_HOOK, &about, ask) {
            Ok(answer) => answer.last().await,
            Err(error) => Err(error),
        };
        let (decided, label) = match answer {
            Err(error) if self.cx.cancel.is_cancelled() || self.cx.deadline.passed() => {
                return Err(ending(&self.cx, &error));
            }
            Err(error) => {
                tracing::warn!(tool = about.tool, %error, "a hook failed");
                (Decided::Deny(FAILED.to_owned()), "failed")
            }
            Ok(said) => decided(said),
        };
        metrics::counter!("tg_agent_hooks_total", "when" => when, "outcome" => label).increment(1);
        self.note(|| {
            Entry::Hook(Hooked {
                when: when.to_owned(),
                decided: decided.clone(),
            })
        });
        Ok(decided)
    }
}

/// Why nothing is done where a hook does not do its part.
const FAILED: &str = "the hook of the flow failed";
/// Most characters of a hook's reason.
const REASON: usize = 500;

fn decided(said: ToolHookResponse) -> (Decided, &'static str) {
    if said.error.is_some() {
        return (Decided::Deny(FAILED.to_owned()), "failed");
    }
    match said.decision.as_str() {
        "allow" => (Decided::Allow, "allow"),
        "replace" => (Decided::Replace(said), "replace"),
        "deny" => {
            let why: String = said.reason.chars().take(REASON).collect();
            let why = match why.trim() {
                "" => "the hook of the flow denies it".to_owned(),
                why => why.to_owned(),
            };
            (Decided::Deny(why), "deny")
        }
        _ => (Decided::Deny(FAILED.to_owned()), "failed"),
    }
}
