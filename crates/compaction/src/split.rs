//! Which rows stay as they are, and how those before are shortened without a model.

use crate::rows::{Role, Row};

/// Turns of the model that stay as they are.
pub const KEPT: usize = 2;
/// Characters from which on what a tool returned is shortened, and those of it that stay at its begin and end.
const LONG: usize = 200;
const BEGIN: usize = 100;
const END: usize = 80;

/// Where the rows begin that stay as they are: the last `keep` turns of the model, with what they rest on directly.
/// `None`: nothing is before them.
pub fn split_point(rows: &[Row], keep: usize) -> Option<usize> {
    let keep = if keep == 0 { KEPT } else { keep };
    let is = |at: usize, role: Role| rows[at].role == role;
    let turns = (0..rows.len()).rev().filter(|at| is(*at, Role::Assistant));
    let turns: Vec<usize> = turns.take(keep + 1).collect();
    let mut at = match turns.get(keep) {
        Some(_) => turns[keep - 1],
        None => return None,
    };
    if at > 0 && is(at - 1, Role::User) {
        at -= 1;
    }
    let before = at;
    while at > 0 && is(at - 1, Role::Tool) {
        at -= 1;
    }
    // Results stay with the turn that called for them.
    if at < before && at > 0 && is(at - 1, Role::Assistant) {
        at -= 1;
    }
    (at > 0).then_some(at)
}

/// What a tool returned, shortened. `None`: it is short.
pub fn pruned(text: &str) -> Option<String> {
    let characters = text.chars().count();
    if characters <= LONG {
        return None;
    }
    let begin: String = text.chars().take(BEGIN).collect();
    let end: String = text.chars().skip(characters - END).collect();
    Some(format!("{begin}\n[…]\n{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows by their first letters: user, assistant, tool.
    fn rows(roles: &str) -> Vec<Row> {
        let role = |letter| match letter {
            'u' => Role::User,
            'a' => Role::Assistant,
            _ => Role::Tool,
        };
        roles
            .chars()
            .map(|letter| Row::text(role(letter), ""))
            .collect()
    }

    /// 99
    #[test]
    fn line_099_of_two_turns_of_the_model_both_stay() {
        for few in ["", "u", "ua", "uatat", "uaua"] {
            assert_eq!(split_point(&rows(few), 2), None, "{few}");
        }
        assert_eq!(
            split_point(&rows("uauaua"), 0),
            split_point(&rows("uauaua"), 2)
        );
    }

    #[test]
    fn a_turn_stays_with_what_it_rests_on() {
        // The second turn from the end is the one at 3; its question is before it.
        assert_eq!(split_point(&rows("uauaua"), 2), Some(2));
        // What it rests on was returned to the turn before.
        assert_eq!(split_point(&rows("uatatatat"), 2), Some(3));
        assert_eq!(split_point(&rows("uattattaa"), 2), Some(4));
        assert_eq!(split_point(&rows("atata"), 2), None);
    }

    #[test]
    fn what_a_tool_returned_keeps_its_begin_and_its_end() {
        assert_eq!(pruned(&"é".repeat(200)), None);
        let long = format!("{}{}", "b".repeat(150), "e".repeat(150));
        let short = format!("{}\n[…]\n{}", "b".repeat(100), "e".repeat(80));
        assert_eq!(pruned(&long), Some(short));
    }
}
