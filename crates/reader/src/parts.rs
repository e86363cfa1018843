//! Questions that are gone about in parts: plans, the tool of each step, and the answer from what was found.

use serde_json::{Value, json};

use super::plan;
use super::react::{Prompt, Step, Tool};

/// Most parts of a question.
const MOST: usize = 7;

/// The questions that a text asks one after the other; a text without question marks is one.
fn parts(question: &str) -> Vec<String> {
    let asked = question.split_inclusive('?');
    let asked = asked.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let asked: Vec<String> = asked.filter(|part| part.ends_with('?')).collect();
    match asked.len() {
        0 | 1 => vec![question.split_whitespace().collect::<Vec<_>>().join(" ")],
        _ => asked.into_iter().take(MOST).collect(),
    }
}

/// A plan: a step for each part.
pub(super) fn plan(question: &str) -> String {
    let steps = parts(question).into_iter();
    let steps = steps.map(|goal| json!({"goal": goal, "tool_hint": "", "depends_on": []}));
    steps.collect::<Value>().to_string()
}

/// Goals: the parts.
pub(super) fn goals(question: &str) -> String {
    json!(parts(question)).to_string()
}

/// The tool that fits a goal, as the next step of a dialog about it would be.
pub(super) fn tool(tools: Vec<Tool>, goal: &str) -> String {
    let asked = Prompt {
        tools,
        question: goal.to_owned(),
        steps: Vec::new(),
    };
    match plan::next(&asked) {
        Step::Call { tool, args, .. } => json!({"tool": tool, "arguments": args}).to_string(),
        Step::Answer { .. } => json!({"tool": "", "arguments": {}}).to_string(),
    }
}

/// What was found, one after the other.
pub(super) fn answer(results: &[&str]) -> String {
    // What stands for no result is none.
    let nothing = |line: &str| line.starts_with("* ") || line == "(no tool was needed)";
    let found = results.iter().filter(|line| !nothing(line.trim()));
    let found: Vec<&str> = found.map(|line| line.trim()).collect();
    let text = found.join("\n").trim().replace("\n\n", "\n");
    match text.is_empty() {
        true => "I found nothing that answers this.".to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_split_at_its_question_marks() {
        assert_eq!(parts("What is 2 + 2?"), ["What is 2 + 2?"]);
        assert_eq!(parts("Tell me"), ["Tell me"]);
        assert_eq!(
            parts("What is 2?\nAnd 3? Thanks."),
            ["What is 2?", "And 3?"]
        );
    }

    #[test]
    fn an_answer_is_what_was_found() {
        assert_eq!(
            answer(&["* What is 2?", "2", "", "* And 3?", "3", ""]),
            "2\n3"
        );
        assert!(answer(&[]).contains("nothing"));
    }
}
