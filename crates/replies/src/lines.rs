//! Replies of one JSON value a line, as models keep to that: lists, values over several lines or several in one, fences, remarks.

use serde_json::Value;

use crate::json::{NotJson, strict};
use crate::thinking::answer;
use crate::values::{Budget, fences, has_object};

/// What could be read of such a reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lines {
    /// Values, in order.
    pub values: Vec<Value>,
    /// Lines that have none.
    pub bad: usize,
    /// What is wrong with the first of those.
    pub fault: Option<NotJson>,
}

/// Reads a reply of one JSON value a line. What the model thinks is no part of it, and where there are fences with values
/// neither is what stands outside them.
pub fn lines(reply: &str) -> Lines {
    let reply = answer(reply);
    if let Ok(value) = strict(&reply) {
        return Lines {
            values: vec![value],
            ..Lines::default()
        };
    }
    let mut budget = Budget::of(&reply);
    let mut fenced = Lines::default();
    for body in fences(&reply) {
        match strict(body) {
            Ok(value) => fenced.values.push(value),
            Err(_) => fenced.read(body, &mut budget),
        }
    }
    if !fenced.values.is_empty() {
        return fenced;
    }
    let mut all = Lines::default();
    all.read(&reply, &mut budget);
    all
}

impl Lines {
    fn read(&mut self, text: &str, budget: &mut Budget) {
        let mut at = 0;
        while at < text.len() {
            let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
            at = self.line(text, (at, end), budget).max(end) + 1;
        }
    }

    /// Reads a line; says where what was read of it ended.
    fn line(&mut self, text: &str, (begin, end): (usize, usize), budget: &mut Budget) -> usize {
        let line = &text[begin..end];
        let bare = line.trim().trim_end_matches([',', ';']);
        if matches!(bare, "" | "]") || bare.starts_with("```") {
            return end;
        }
        let fault = match strict(bare) {
            Ok(value) => {
                self.values.push(value);
                return end;
            }
            Err(fault) => fault,
        };
        let (mut at, mut found, mut end) = (begin, false, end);
        while let Some(next) = text.get(at..end).and_then(|rest| rest.find(['{', '['])) {
            at += next;
            match budget.container(&text[at..]) {
                // Prose has brackets of its own.
                Some((value, length))
                    if has_object(&value) || text[begin..at].trim().is_empty() =>
                {
                    self.values.push(value);
                    found = true;
                    at += length;
                    // It may have gone on over further lines.
                    if at > end {
                        end = text[at..].find('\n').map_or(text.len(), |more| at + more);
                    }
                }
                _ => at += 1,
            }
        }
        // A list that is cut off is read by its lines.
        if !found && bare != "[" {
            self.bad += 1;
            self.fault.get_or_insert(fault);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_however_they_are_laid_out() {
        let two = [json!({"n": 1}), json!({"n": 2})];
        for reply in [
            "{\"n\": 1}\n{\"n\": 2}",
            "{\"n\": 1},\r\n{\"n\": 2},\r\n",
            "{\"n\": 1} {\"n\": 2}",
            "1. {\"n\": 1}\n2. {\"n\": 2,}",
            "{\n  \"n\": 1\n}\n{\n  \"n\": 2\n}\n",
            "```jsonl\n{\"n\": 1}\n```\nand\n```jsonl\n{\"n\": 2}\n```",
            "<think>{\"n\": 9}\n</think>\n{\"n\": 1}\n{\"n\": 2}",
            "[\n{\"n\": 1},\n{\"n\": 2}",
            "<json>{\"n\": 1}</json>\n<json>{'n': 2}</json>",
        ] {
            let read = lines(reply);
            assert_eq!(read.values, two, "{reply}");
            assert_eq!(read.bad, 0, "{reply}");
        }
        let listed = lines("[\n{\"n\": 1},\n{\"n\": 2},\n]");
        assert_eq!(listed.values, [json!([{"n": 1}, {"n": 2}])]);
    }

    #[test]
    fn lines_without_a_value_are_counted() {
        let read = lines("As [1] says:\n{\"n\": 1}\nsure!\n3\n{\"n\": ");
        assert_eq!(read.values, [json!({"n": 1}), json!(3)]);
        assert_eq!((read.bad, read.fault.map(|fault| fault.line)), (3, Some(1)));
        assert_eq!(lines(""), Lines::default());
        assert_eq!(lines("<think>{\"n\": 1}").values, Vec::<Value>::new());
    }
}
