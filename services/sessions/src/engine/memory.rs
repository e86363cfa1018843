//! What users say of themselves: what the model is asked that finds it, and how its answer is read.

use super::transcript::Said;

/// Facts that one message may add.
const MOST: usize = 10;
/// Longest part of a fact, in characters.
const PART: usize = 200;
/// Facts of a user that are kept; the oldest go.
pub const KEPT: usize = 1_000;
/// Facts that an agent is sent.
pub const TOLD: usize = 100;

/// The instruction to the model for a message.
pub const FIND: &str = "You are given one message of a user. Write down what the user states about himself or herself and his or her \
    own lasting circumstances and wishes: one fact a line, as subject | predicate | object. Write nothing that is asked, \
    supposed or said of others only, and nothing secret such as passwords and keys. If there is no such fact, write NONE.";

/// A fact: subject, predicate, object.
pub type Fact = (String, String, String);

/// The facts that a model wrote down. Lines of another form are passed over.
pub fn facts(text: &str) -> Vec<Fact> {
    let fact = |line: &str| {
        let parts: Vec<&str> = line
            .trim_start_matches(['-', '*', ' '])
            .split('|')
            .collect();
        let fits = |part: &&str| (1..=PART).contains(&part.trim().chars().count());
        match parts.as_slice() {
            [subject, predicate, object] if parts.iter().all(fits) => Some((
                subject.trim().to_owned(),
                predicate.trim().to_owned(),
                object.trim().to_owned(),
            )),
            _ => None,
        }
    };
    text.lines().filter_map(fact).take(MOST).collect()
}

/// Facts as the agent is sent them.
pub fn told<'a>(facts: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Option<Said> {
    let lines: Vec<String> = facts
        .map(|(subject, predicate, object)| format!("{subject} {predicate} {object}"))
        .collect();
    (!lines.is_empty()).then(|| Said {
        who: "Known of the user".to_owned(),
        text: lines.join("; "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_three_parts_are_facts_and_nothing_else_is() {
        let text = "- Ann | lives in | Kassel\nNONE\na | b\n | x | y\nAnn | likes | tea";
        let found = facts(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].2, "Kassel");
        assert!(facts("NONE").is_empty());
        let many = "a | b | c\n".repeat(50);
        assert_eq!(facts(&many).len(), MOST);
    }
}
