//! Choosing one of some named things by what is said of them: the one that has most words in common with a question.

use super::words;

/// The name chosen from lines `* name: description`; `None` where the question has nothing in common with any.
pub(super) fn choose(lines: &[&str], question: &str) -> Option<String> {
    let asked = words::content(question);
    let mut best: Option<(usize, &str)> = None;
    for line in lines {
        let Some((name, _)) = line
            .strip_prefix("* ")
            .and_then(|rest| rest.split_once(": "))
        else {
            continue;
        };
        let said = words::content(line);
        let shared = asked
            .iter()
            .filter(|word| said.iter().any(|other| words::alike(word, other)))
            .count();
        if shared > best.map_or(0, |(most, _)| most) {
            best = Some((shared, name));
        }
    }
    best.map(|(_, name)| name.to_owned())
}
