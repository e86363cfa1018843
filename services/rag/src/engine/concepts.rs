//! What a question is about, as a model wrote it: one concept a line.

use serde_json::Value;

/// Concepts of one question. Each is one look-up, so that a question takes a bounded number of them.
pub const MOST: usize = 10;
/// Longest concept, in characters.
const LONGEST: usize = 200;

/// The concepts of a model's reply, without numbers and bullets, each once; the question itself if there
/// are none.
pub fn read(reply: &str, question: &str) -> Vec<String> {
    let reply = tg_replies::answer(reply);
    let concepts = listed(&reply).unwrap_or_else(|| lines(&reply));
    if concepts.is_empty() {
        return vec![question.trim().to_owned()];
    }
    concepts
}

/// The concepts of a reply that is a JSON list of texts, or an object around one.
fn listed(reply: &str) -> Option<Vec<String>> {
    let value = tg_replies::candidates(reply).ok()?.swap_remove(0);
    let items = match value {
        Value::Array(items) => items,
        Value::Object(map) if map.len() == 1 => match map.into_iter().next()?.1 {
            Value::Array(items) => items,
            _ => return None,
        },
        _ => return None,
    };
    let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
    Some(distinct(texts?.into_iter()))
}

/// The concepts of a reply of one a line.
fn lines(reply: &str) -> Vec<String> {
    // Fences, and what announces the list.
    let is_around = |line: &&str| line.trim().starts_with("```") || line.trim().ends_with(':');
    let lines = reply.lines().filter(|line| !is_around(line)).map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', '•', '#']).trim();
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        match digits.strip_prefix(['.', ')']) {
            Some(rest) if digits.len() < line.len() => rest.trim(),
            _ => line,
        }
    });
    distinct(lines.map(|line| line.trim_matches(['"', '`'])))
}

/// Given concepts, each once, as many as are looked up.
pub fn given(concepts: &[String]) -> Vec<String> {
    distinct(concepts.iter().map(String::as_str))
}

/// What is looked up for a question: the question as it is, then its concepts.
pub fn searches(question: &str, concepts: &[String]) -> Vec<String> {
    let all = [question.trim()].into_iter();
    distinct_of(
        all.chain(concepts.iter().map(String::as_str)),
        MOST + 1,
        usize::MAX,
    )
}

fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    distinct_of(texts, MOST, LONGEST)
}

fn distinct_of<'a>(
    texts: impl Iterator<Item = &'a str>,
    most: usize,
    longest: usize,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        let text: String = text.trim().chars().take(longest).collect();
        let known = |other: &String| other.to_lowercase() == text.to_lowercase();
        if !text.is_empty() && found.len() < most && !found.iter().any(known) {
            found.push(text);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_concepts() {
        let reply = "1. Old Bridge\n- lighthouse\n\n* \"old bridge\"\n1429\n3D printing";
        let found = read(reply, "q");
        assert_eq!(found, ["Old Bridge", "lighthouse", "1429", "3D printing"]);
        assert_eq!(read(" \n", " q "), ["q"]);
        for reply in [
            "Here are the concepts:\n- Old Bridge\n- lighthouse",
            "```\nOld Bridge\nlighthouse\n```",
            "```json\n[\"Old Bridge\", \"lighthouse\",]\n```",
            "{\"concepts\": [\"Old Bridge\", \"lighthouse\"]}",
            "<think>\nmill\n</think>\nOld Bridge\nlighthouse",
        ] {
            assert_eq!(read(reply, "q"), ["Old Bridge", "lighthouse"], "{reply}");
        }
        let many: String = (0..50).map(|n| format!("c{n}\n")).collect();
        assert_eq!(read(&many, "q").len(), MOST);
        assert_eq!(searches("q", &["Q".into(), "a".into()]), ["q", "a"]);
    }
}
