//! Work that a run gives to other agents: who there is, who fits, what one is given and how its result reads.

pub mod capability;
pub mod graph;
mod roster;
pub mod session;

use tg_schemas::msg::{AgentRun, ModelSettings};

use super::decision::Finding;
pub use roster::{Definition, Roster};

/// Longest result that a caller is shown, in characters.
pub const MAX_RESULT: usize = 16_384;
/// So many subagents has a step at most: their numbers begin at this times the step.
pub const PER_STEP: u32 = 256;

/// Cuts a text at so many characters, and says so.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => {
            let all = text.chars().count();
            format!("{}\n[cut: {most} of {all} characters shown]", &text[..at])
        }
    }
}

/// Refuses a call that would be too deep.
///
/// # Errors
/// The caller is as deep as it may be.
pub fn check_depth(run: &AgentRun, hops: i64, most: u32) -> Result<(), String> {
    match run.delegate_depth + hops > i64::from(most) {
        true => Err(format!("delegation depth limit ({most}) reached")),
        false => Ok(()),
    }
}

/// The run of an agent that was given work: its own tools and words, its caller's collection, budget and user.
pub fn as_defined(
    mut run: AgentRun,
    id: &str,
    one: &Definition,
    hops: i64,
    caller: String,
) -> AgentRun {
    id.clone_into(&mut run.agent);
    run.caller = caller;
    run.delegate_depth += hops;
    run.loop_detection.clear();
    // What is said of the caller's model is not said of this agent's.
    let own = ModelSettings {
        model: one.model.clone(),
        ..ModelSettings::default()
    };
    run.settings = own.said();
    if let Some(group) = &one.group {
        run.group = Some(group.clone());
        run.state = String::new();
    }
    if !one.framing.trim().is_empty() {
        run.framing = match run.framing.trim() {
            "" => one.framing.clone(),
            known => format!("{known}\n\n{}", one.framing),
        };
    }
    run
}

/// What the caller reads of a result; or of what went wrong.
///
/// # Errors
/// The agent failed.
pub fn told(id: &str, finding: &Finding) -> Result<String, String> {
    if let Some(error) = &finding.error {
        return Err(format!("delegate {id} failed: {error}"));
    }
    let text = cut(&finding.text, MAX_RESULT);
    Ok(match finding.stopped {
        true => format!("[subagent stopped] {text}"),
        false => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_is_cut_with_a_note() {
        let text = "ä".repeat(20_000);
        let cut = cut(&text, MAX_RESULT);
        let (kept, note) = cut.split_once('\n').unwrap();
        assert_eq!(kept.chars().count(), 16_384);
        assert_eq!(note, "[cut: 16384 of 20000 characters shown]");
        assert_eq!(super::cut("short", 5), "short");
    }

    /// Line 113.
    #[test]
    fn the_sixth_of_a_chain_is_refused() {
        let mut run = AgentRun::default();
        for _ in 0..5 {
            assert_eq!(check_depth(&run, 1, 5), Ok(()));
            run = as_defined(run, "a", &Definition::default(), 1, String::new());
        }
        let told = check_depth(&run, 1, 5).unwrap_err();
        assert_eq!(told, "delegation depth limit (5) reached");
    }

    #[test]
    fn how_a_result_reads() {
        let finding = Finding {
            text: "best".into(),
            stopped: true,
            ..Finding::default()
        };
        assert_eq!(told("a", &finding).unwrap(), "[subagent stopped] best");
        let failed = Finding {
            error: Some("away".into()),
            ..finding
        };
        assert_eq!(told("a", &failed).unwrap_err(), "delegate a failed: away");
    }
}
