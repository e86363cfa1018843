//! A question: whether it can begin a run, and the run that it begins.

use tg_schemas::limits;
use tg_schemas::msg::{AgentRequest, AgentRun, collection_or_default};

use super::bounds;
use super::guards::Window;
use super::guards::thresholds::MAX_WINDOW;
use super::patterns;
use crate::error::AgentError;

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
    if !pattern.is_empty() && !patterns::is_known(pattern) {
        return Err(AgentError::UnknownPattern(patterns::names().join(", ")));
    }
    let mut models = std::iter::once(&question.model).chain(&question.models);
    let are_long = models.any(|model| model.len() > limits::MODEL_NAME);
    match are_long || question.models.len() > limits::CHAT_MODELS {
        true => Err(AgentError::Models),
        false => Ok(()),
    }
}

/// Most tools that a question lets its run use without being asked.
const MAX_GRANTS: usize = 64;

/// Most bytes of the id of a conversation, or of the name of an agent, by which usage is counted.
const MAX_CONVERSATION: usize = 256;

/// Most collections that tools over collections look into.
const MAX_COLLECTIONS: usize = 100;
/// Longest text that says when there is too much of a loop.
const MAX_LOOPS: usize = 1_024;

/// Most rounds of model and tools that a question may ask for.
const MAX_ITERATIONS: i64 = 50;

/// As much of such a name as is kept.
fn named(id: &str) -> String {
    let mut at = id.len().min(MAX_CONVERSATION);
    while !id.is_char_boundary(at) {
        at -= 1;
    }
    id[..at].to_owned()
}

/// The run before its first step. What a client says of sessions, parents and siblings is not believed:
/// nobody writes into another's trace. Its history is context for the model and nothing else. `roles` are what the edge found of
/// the asker.
pub fn first_step(
    question: AgentRequest,
    run: String,
    started_at: String,
    roles: Option<&str>,
) -> AgentRun {
    let history = bounds::prior_steps(&question.history);
    let collection = collection_or_default(question.collection.trim()).to_owned();
    let roles = roles.unwrap_or_default().split_whitespace();
    let settings = question.settings();
    let grant = question.grant.into_iter().take(MAX_GRANTS);
    let collections = question.collections.into_iter().take(MAX_COLLECTIONS);
    let loops = Some(question.loop_detection).filter(|text| text.len() <= MAX_LOOPS);
    AgentRun {
        run,
        step: 1,
        roles: roles.map(str::to_owned).collect(),
        grant: grant.map(|tool| named(tool.trim())).collect(),
        question: question.question,
        state: question.state,
        group: question.group,
        collection,
        streaming: question.streaming,
        framing: question.framing,
        conversation: named(question.conversation_id.trim()),
        account: named(question.agent.trim()),
        record: question.record,
        settings,
        max_iterations: question.max_iterations.clamp(0, MAX_ITERATIONS),
        top_k: question.top_k.max(0),
        caller_depth: question.caller_depth.max(0),
        collections: collections.collect(),
        loop_detection: loops.unwrap_or_default(),
        thread: named(question.thread.trim()),
        parent_thread: named(question.parent_thread.trim()),
        prior: i64::try_from(history.len()).unwrap_or(0),
        loop_window: Window::new(question.loop_window, MAX_WINDOW).into_records(),
        history,
        started_at,
        ..AgentRun::default()
    }
}

#[cfg(test)]
mod tests {
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
        let run = first_step(question, "mine".into(), "now".into(), None);
        assert_eq!((run.run.as_str(), run.step, run.prior), ("mine", 1, 1));
        assert!(bounds::own_steps(&run).is_empty());
        assert_eq!(run.collection, "default");
        assert!(!serde_json::to_string(&run).unwrap().contains("stolen"));
    }

    #[test]
    fn a_question_names_few_models_with_short_names() {
        let ask = |model: String, models: usize| {
            check(&AgentRequest {
                question: "q".into(),
                model,
                models: vec!["m".into(); models],
                ..AgentRequest::default()
            })
        };
        assert!(ask("m".repeat(256), 16).is_ok());
        assert_eq!(ask("m".repeat(257), 0), Err(AgentError::Models));
        assert_eq!(ask(String::new(), 17), Err(AgentError::Models));
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
        assert!(ask("q", "").is_ok() && ask("q", " react ").is_ok());
        assert!(ask("q", "plan-then-execute").is_ok() && ask("q", "supervisor").is_ok());
        assert_eq!(ask(" ", ""), Err(AgentError::NoQuestion));
        let unknown = ask("q", "odd").unwrap_err().to_string();
        assert_eq!(
            unknown,
            "pattern: must be one of react, plan-then-execute, supervisor, or empty"
        );
    }
}
