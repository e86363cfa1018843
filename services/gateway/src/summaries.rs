//! What runs of the agent summed up: the steps that a summary stands for, and another summary of the same steps.

use futures::{StreamExt, stream};
use serde_json::Value;
use tg_clients::agent_runs::AgentRuns;
use tg_mesh::{Ask, Mesh};
use tg_schemas::Error;
use tg_schemas::msg::{AgentRunsResponse, RunSummary, SummedStep};

use crate::ask::{Part, Parts};
use crate::engine::scrub::scrub_for;
use crate::engine::translate::fields::{Reply, fault};
use crate::engine::translate::{Body, Fields};
use crate::registry::REMAKE;

/// What is asked about a summary.
pub(crate) struct Asked {
    /// The run.
    pub(crate) run: String,
    /// The step before which it was made; 0: the last such.
    step: i64,
    /// The model that is to sum up; `None`: none is.
    pub(crate) model: Option<String>,
}

impl Asked {
    /// As a body says it.
    pub(crate) fn read(operation: &str, fields: &Fields<'_>) -> Result<Self, Error> {
        let step = fields.integer_or("step", 0)?;
        if step < 0 {
            return Err(fault("step", "must be a step, or 0"));
        }
        Ok(Self {
            run: fields.required_text("run")?,
            step,
            model: match operation {
                REMAKE => Some(fields.required_text("model")?),
                _ => None,
            },
        })
    }

    /// Asks the agent, as soon as the answer is awaited. `operator`: who asks runs the system.
    pub(crate) fn parts(
        self,
        mesh: Mesh,
        (user, workspace): (String, String),
        ask: Ask,
        operator: bool,
    ) -> Parts {
        let part = async move {
            let runs = AgentRuns::for_somebody(&mesh, &user, ask).of_workspace(&workspace);
            let said = match &self.model {
                None => runs.expand(&self.run, self.step).await,
                Some(model) => runs.remake(&self.run, self.step, model).await,
            };
            match said {
                Ok(said) => Part::Body {
                    body: shown(said).into(),
                    last: true,
                    failed: false,
                },
                Err(error) => Part::Error(scrub_for(error, operator)),
            }
        };
        stream::once(part).boxed()
    }
}

fn shown(said: AgentRunsResponse) -> Body {
    let summaries = said.summaries.into_iter().map(summary_shown);
    let steps = said.summed.into_iter().map(step_shown);
    Reply::new()
        .put("summaries", summaries.collect::<Vec<_>>())
        .put_truthy("summed", steps.collect::<Vec<_>>())
        .done()
}

fn summary_shown(one: RunSummary) -> Value {
    let row = Reply::new()
        .put("step", one.step)
        .put("trace", one.trace)
        .put("tier", one.tier)
        .put("text", one.text)
        .put_truthy("model", one.model)
        .put_truthy("prompt", one.prompt)
        .put("tokens-before", one.tokens_before)
        .put("tokens-after", one.tokens_after)
        .put_truthy("created-ms", one.created_ms);
    Value::Object(row.done())
}

fn step_shown(one: SummedStep) -> Value {
    let row = Reply::new()
        .put_truthy("step", one.step)
        .put("thought", one.thought)
        .put("action", one.action)
        .put("arguments", one.arguments)
        .put("observation", one.observation);
    Value::Object(row.done())
}
