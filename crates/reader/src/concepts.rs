//! Words and names: what a question would be looked up by, and what the fields of data are called.

use super::question::Question;
use super::words;

/// Most concepts of a question.
const MOST: usize = 10;
/// Most names of fields.
const NAMES: usize = 200;

/// What a question would be looked up by, one a line: the names in it, then the runs of words that carry
/// meaning.
pub(super) fn lines(question: &str) -> String {
    let read = Question::read(question);
    let mut concepts: Vec<String> = Vec::new();
    let mut add = |concept: String| {
        let known = concepts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&concept));
        if !known && concepts.len() < MOST {
            concepts.push(concept);
        }
    };
    let capital = |name: &&String| name.chars().any(char::is_uppercase);
    let named: Vec<&String> = read.names.iter().filter(capital).collect();
    let of_names: Vec<String> = named.iter().flat_map(|name| words::content(name)).collect();
    for name in named {
        add(name.clone());
    }
    let mut run: Vec<String> = Vec::new();
    for word in words::split(question).into_iter().chain([String::new()]) {
        let carries = !word.is_empty() && !words::is_stop(&word) && !of_names.contains(&word);
        if carries {
            run.push(word);
        } else if !run.is_empty() {
            add(std::mem::take(&mut run).join(" "));
        }
    }
    if concepts.is_empty() {
        return question.trim().to_owned();
    }
    concepts.join("\n")
}

/// Keys of the objects in JSON text, which may be cut off.
pub(super) fn keys(text: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('"') {
        let Some((name, tail)) = after.split_once('"') else {
            break;
        };
        if tail.trim_start().starts_with(':') {
            push(&mut keys, name);
        }
        rest = tail;
    }
    keys
}

/// Names of the elements in XML text.
pub(super) fn tags(text: &str) -> Vec<String> {
    let mut tags = Vec::new();
    for part in text.split('<').skip(1) {
        let name: String = part
            .chars()
            .take_while(|c| c.is_alphanumeric() || "-_:.".contains(*c))
            .collect();
        push(&mut tags, &name);
    }
    tags
}

/// The element of XML text that is a record: the first that comes again and has elements of its own, else what
/// the first element without any is in.
pub(super) fn record(text: &str) -> Option<String> {
    // Name, how often, whether others are in it.
    let mut seen: Vec<(&str, usize, bool)> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    let mut above_leaf = None;
    let mut leaf = false;
    for part in text.split('<').skip(1) {
        if part.starts_with('/') {
            open.pop();
            if leaf && above_leaf.is_none() {
                above_leaf = open.last().copied();
            }
            leaf = false;
            continue;
        }
        let ends = |c: char| !(c.is_alphanumeric() || "-_:.".contains(c));
        let name = part.split(ends).next().filter(|name| !name.is_empty());
        let Some(name) = name.filter(|_| open.len() < NAMES) else {
            continue;
        };
        if let Some(above) = open.last() {
            let parent = seen.iter_mut().find(|(name, ..)| name == above);
            parent.into_iter().for_each(|parent| parent.2 = true);
        }
        match seen.iter().position(|(known, ..)| *known == name) {
            Some(at) => seen[at].1 += 1,
            None if seen.len() < NAMES => seen.push((name, 1, false)),
            None => {}
        }
        let whole = part.split('>').next().unwrap_or(part).ends_with('/');
        if !whole {
            open.push(name);
        }
        leaf = !whole;
    }
    let again = seen.iter().find(|(_, count, parent)| *count > 1 && *parent);
    again
        .map(|(name, ..)| *name)
        .or(above_leaf)
        .map(str::to_owned)
}

fn push(names: &mut Vec<String>, name: &str) {
    if !name.is_empty() && names.len() < NAMES && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}
