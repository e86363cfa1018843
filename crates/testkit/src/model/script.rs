//! Ready-made scripts: a ReAct dialog of two steps, one tool call and then an answer that carries the
//! nonce of its question.

use serde_json::{Value, json};

use super::{CALL, Reply, Rule};

/// The text of a step that calls a tool.
pub fn tool_call(thought: &str, tool: &str, args: &Value) -> String {
    format!("Thought: {thought}\nAction: {tool}\nArgs: {args}\n")
}

/// The text of a step that calls a tool by the means of the API.
pub fn native_call(_: &str, tool: &str, args: &Value) -> String {
    format!("{CALL}{}", json!({"name": tool, "arguments": args}))
}

/// The text of a step that answers.
pub fn final_answer(thought: &str, answer: &str) -> String {
    format!("Thought: {thought}\nFinal Answer: {answer}\n")
}

/// Cuts a text into at most `count` pieces of about equal length, at character boundaries.
pub fn cut(text: &str, count: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let count = count.clamp(1, chars.len().max(1));
    (0..count)
        .map(|at| {
            let from = at * chars.len() / count;
            let to = (at + 1) * chars.len() / count;
            chars[from..to].iter().collect()
        })
        .collect()
}

/// The first word of a prompt that starts with `nonce`, e.g. `nonce-17f`.
pub fn nonce_of(prompt: &str) -> Option<&str> {
    let at = prompt.find("nonce")?;
    let rest = &prompt[at..];
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
        .unwrap_or(rest.len());
    Some(&rest[..end])
}

/// Rules of a two-step ReAct dialog: without an observation in the prompt the model calls `tool`, with
/// one it answers, repeating the question's nonce. Every reply comes in `pieces` pieces.
pub fn two_step_react(tool: &str, args: Value, pieces: usize) -> Vec<Rule> {
    let call = cut(&tool_call("I should look this up.", tool, &args), pieces);
    let observed = |prompt: &str| prompt.lines().any(|line| line.starts_with("Observation:"));
    vec![
        Rule::computed(observed, move |prompt| {
            let nonce = nonce_of(prompt).unwrap_or("no-nonce");
            let text = final_answer(
                "I know it now.",
                &format!("The answer for {nonce} is here."),
            );
            Reply::pieces(cut(&text, pieces))
        }),
        Rule::always(Reply::pieces(call)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_keeps_every_character() {
        for count in [0, 1, 3, 8, 100] {
            assert_eq!(
                cut("Thought: größer ✓", count).concat(),
                "Thought: größer ✓"
            );
        }
        assert_eq!(cut("abcdefgh", 4).len(), 4);
    }

    #[test]
    fn the_nonce_is_a_whole_word() {
        assert_eq!(nonce_of("what is nonce-a1_b? say"), Some("nonce-a1_b"));
        assert_eq!(nonce_of("nothing"), None);
    }
}
