//! A question: whether it can begin a run, and the run that it begins.

use tg_schemas::limits;
use tg_schemas::msg::{AgentRequest, AgentRun, collection_or_default};

use super::bounds;
use crate::error::AgentError;

/// Patterns of the reference that this release does not have.
const NOT_BUILT: &[&str] = &["plan-then-execute", "supervisor"];

/// Whether a question can begin a run.
///
/// # Errors
/// What is wrong with it.
pub fn check(question: &AgentRequest) -> Result<(), AgentError> {
    if question.question.trim().is_empty() {
        return Err(AgentError::NoQuestion);
    }
    if question.question.len() > limits::AGENT_QUESTION {
        return Err(AgentError::LargeQuestion);
    }
    let pattern = question.pattern.trim();
    if NOT_BUILT.contains(&pattern) {
        return Err(AgentError::NotBuilt(pattern.to_owned()));
    }
    Ok(())
}

/// The run before its first step. What a client says of sessions, parents and siblings is not believed:
/// nobody writes into another's trace. Its history is context for the model and nothing else.
pub fn first_step(question: AgentRequest, run: String, started_at: String) -> AgentRun {
    let history = bounds::prior_steps(&question.history);
    let collection = collection_or_default(question.collection.trim()).to_owned();
    AgentRun {
        run,
        step: 1,
        question: question.question,
        state: question.state,
        group: question.group,
        collection,
        streaming: question.streaming,
        framing: question.framing,
        prior: i64::try_from(history.len()).unwrap_or(0),
        history,
        started_at,
        ..AgentRun::default()
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::Error;
    use tg_schemas::msg::AgentStep;

    use super::*;

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
        let run = first_step(question, "mine".into(), "now".into());
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
        assert_eq!(ask(" ", ""), Err(AgentError::NoQuestion));
        let error = Error::from(ask("q", "supervisor").unwrap_err());
        assert_eq!(error.kind, "agent-error");
        assert!(error.message.contains("'supervisor' is not supported"));
    }
}
