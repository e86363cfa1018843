//! A question begins a run. Its first step is a durable record with the asker's address in it, for whoever reads the
//! flow's steps; this process begins it while the record is on its way.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{SecondsFormat, Utc};
use tg_mesh::Responder;
use tg_mesh::{Cx, RequestHandler};
use tg_schemas::msg::{AgentRequest, AgentResponse, AgentRun};
use tg_schemas::processors::STEP_BASE;
use tg_schemas::{Error, ErrorCode};

use super::step::begin_at_once;
use super::{Agent, now_ms};
use crate::engine::bounds;
use crate::engine::chunks;
use crate::engine::decision::agent_error;
use crate::store::Began;

/// Patterns of the reference that this release does not have.
const NOT_BUILT: &[&str] = &["plan-then-execute", "supervisor"];
/// Largest question in bytes: it travels with every step.
const MAX_QUESTION: usize = 1 << 20;

/// Serves `request` of `agent-manager`.
pub struct Questions(pub Arc<Agent>);

#[async_trait]
impl RequestHandler<AgentRequest, AgentResponse> for Questions {
    async fn serve(
        &self,
        cx: Cx,
        question: AgentRequest,
        out: Responder<AgentResponse>,
    ) -> Result<(), Error> {
        check(&question)?;
        let now = Utc::now();
        let new = Began {
            run: uuid::Uuid::new_v4().to_string(),
            started_at: now.to_rfc3339_opts(SecondsFormat::Micros, true),
        };
        let text = question.question.clone();
        let known = new.run.clone();
        let began = self
            .0
            .ledger()
            .await?
            .begin(question_key(&cx), text, new, now_ms())
            .await?;
        if began.run == known {
            self.0.leases.publishing(&began.run, 1);
        } else {
            self.0.leases.asked_again(&cx.id, 0);
        }
        let mut run = first_step(question, began);
        let address = out.release();
        run.reply = serde_json::to_string(&address)
            .map_err(|error| Error::new(ErrorCode::Internal, error.to_string()))?;
        begin_at_once(&self.0, &cx, &run, address.clone());
        let published = cx.record_on(&cx.own_topic(STEP_BASE)?, &run).await;
        // A step that was begun at once goes on without its record: if it ends badly, the asker asks again.
        if let Err(error) = published
            && let Some(mut out) = cx.mesh.resume::<AgentResponse>(address)
        {
            out.send(chunks::failure(error)).await?;
        }
        Ok(())
    }

    async fn resumes(&self, cx: &Cx) -> bool {
        self.0
            .leases
            .asked_again(&cx.id, cx.headers.seq.unwrap_or(0));
        match self.0.ledger().await {
            Ok(ledger) => ledger.is_open(question_key(cx)).await.unwrap_or(false),
            Err(_) => false,
        }
    }
}

fn check(question: &AgentRequest) -> Result<(), Error> {
    if question.question.trim().is_empty() {
        return Err(Error::new(ErrorCode::BadRequest, "question: is required"));
    }
    if question.question.len() > MAX_QUESTION {
        return Err(Error::new(
            ErrorCode::TooLarge,
            "question: is larger than 1 MiB",
        ));
    }
    let pattern = question.pattern.trim();
    if NOT_BUILT.contains(&pattern) {
        return Err(agent_error(format!(
            "pattern '{pattern}' is not built yet; use 'react'"
        )));
    }
    Ok(())
}

/// What makes a repeated question the same: where it came in, who waits for the answer, and its id.
fn question_key(cx: &Cx) -> String {
    let reply_to = cx.headers.reply_to.as_deref().unwrap_or_default();
    format!("{}/{}/{}/{}", cx.workspace(), cx.flow(), reply_to, cx.id)
}

/// The run before its first step. What a client says of sessions, parents and siblings is not believed:
/// nobody writes into another's trace. Its history is context for the model and nothing else.
fn first_step(question: AgentRequest, began: Began) -> AgentRun {
    let history = bounds::prior_steps(&question.history);
    let collection = if question.collection.trim().is_empty() {
        "default".to_owned()
    } else {
        question.collection
    };
    AgentRun {
        run: began.run,
        step: 1,
        question: question.question,
        state: question.state,
        group: question.group,
        collection,
        streaming: question.streaming,
        framing: question.framing,
        prior: i64::try_from(history.len()).unwrap_or(0),
        history,
        started_at: began.started_at,
        ..AgentRun::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::msg::AgentStep;

    #[test]
    fn a_client_cannot_choose_the_session_or_eat_the_step_count() {
        let question = AgentRequest {
            question: "q".into(),
            session_id: "stolen".into(),
            parent_session_id: "stolen".into(),
            correlation_id: "stolen".into(),
            history: vec![AgentStep {
                step_type: "subagent-completion".into(),
                observation: "forged".into(),
                ..AgentStep::default()
            }],
            collection: String::new(),
            ..AgentRequest::default()
        };
        let run = first_step(
            question,
            Began {
                run: "mine".into(),
                started_at: "now".into(),
            },
        );
        assert_eq!((run.run.as_str(), run.step, run.prior), ("mine", 1, 1));
        assert!(bounds::own_steps(&run).is_empty());
        assert_eq!(run.collection, "default");
        assert!(!serde_json::to_string(&run).unwrap().contains("stolen"));
    }

    #[test]
    fn bad_questions_name_the_fault() {
        let ask = |question: &str, pattern: &str| {
            check(&AgentRequest {
                question: question.into(),
                pattern: pattern.into(),
                ..AgentRequest::default()
            })
        };
        assert!(ask("q", "").is_ok() && ask("q", "react").is_ok() && ask("q", "odd").is_ok());
        assert!(ask(" ", "").unwrap_err().message.starts_with("question: "));
        let error = ask("q", "supervisor").unwrap_err();
        assert_eq!(error.kind, "agent-error");
        assert!(error.message.contains("'supervisor' is not built yet"));
    }
}
