//! Whether a sentence says that there is no answer, and nothing else. Told by its form, as English puts it; models are
//! asked to write `[0]` behind such a sentence, which tells it in any language.

/// Words that may stand before such a sentence.
const OPENING: &[&str] = &[
    "unfortunately",
    "sorry",
    "regrettably",
    "no",
    "i'm",
    "afraid",
];
/// Clauses that may: `Based on the passages, …`.
const CLAUSES: &[&str] = &["based", "from", "according", "in", "given", "as"];
/// Words that lead to something that is said after all.
const TURNS: &[&str] = &[
    "but", "however", "though", "although", "instead", "except", "yet", "whereas",
];
/// What answers are written from.
const TEXTS: &[&str] = &[
    "passages",
    "passage",
    "facts",
    "documents",
    "document",
    "texts",
    "text",
    "context",
    "excerpts",
    "excerpt",
    "sources",
    "information",
    "observations",
    "observation",
    "graph",
    "collection",
    "material",
    "materials",
    "library",
    "results",
    "tools",
];
/// What may stand before those.
const BEFORE: &[&str] = &[
    "the",
    "these",
    "those",
    "this",
    "provided",
    "given",
    "available",
    "retrieved",
    "above",
    "listed",
    "knowledge",
    "source",
    "search",
    "none",
    "of",
    "any",
    "all",
    "your",
    "my",
    "tool",
    "supplied",
];
/// What may stand behind those.
const BEHIND: &[&str] = &[
    "provided",
    "given",
    "above",
    "of",
    "this",
    "the",
    "collection",
    "available",
    "here",
    "that",
    "i",
    "have",
    "was",
    "were",
    "in",
    "from",
    "to",
    "me",
    "you",
    "alone",
    "found",
    "supplied",
    "retrieved",
    "library",
    "documents",
];
/// What they may fail to do.
const DOES: &[&str] = &[
    "answer",
    "answers",
    "say",
    "says",
    "state",
    "states",
    "mention",
    "mentions",
    "contain",
    "contains",
    "provide",
    "provides",
    "give",
    "gives",
    "tell",
    "tells",
    "include",
    "includes",
    "specify",
    "specifies",
    "address",
    "addresses",
    "describe",
    "describes",
    "explain",
    "explains",
    "discuss",
    "cover",
    "covers",
    "hold",
    "holds",
    "indicate",
    "indicates",
    "reveal",
    "name",
    "help",
    "offer",
    "have",
    "has",
    "list",
    "show",
    "know",
    "speak",
];
/// What they may be without.
const MISSING: &[&str] = &[
    "information",
    "mention",
    "answer",
    "answers",
    "passage",
    "passages",
    "evidence",
    "data",
    "fact",
    "facts",
    "indication",
    "detail",
    "details",
    "statement",
    "reference",
    "document",
    "documents",
    "exact",
    "relevant",
    "such",
    "clear",
    "direct",
];
/// What is not done with a question or its answer.
const DONE: &[&str] = &[
    "answered",
    "stated",
    "mentioned",
    "given",
    "provided",
    "specified",
    "covered",
    "found",
    "determined",
    "contained",
];

/// Whether a sentence says that there is no answer, and nothing else.
pub fn is_refusal(sentence: &str) -> bool {
    let words = tokens(sentence);
    if words.iter().any(|word| TURNS.contains(&word.as_str())) {
        return false;
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let whole = after_opening(&words);
    let clause = || {
        let (first, rest) = sentence.split_once(',')?;
        let begins = tokens(first);
        let opens = begins.first().map(String::as_str);
        opens
            .is_some_and(|word| CLAUSES.contains(&word) || OPENING.contains(&word))
            .then(|| tokens(rest))
    };
    refuses(whole)
        || clause().is_some_and(|rest| {
            let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
            refuses(after_opening(&rest))
        })
}

fn refuses(words: &[&str]) -> bool {
    texts_are_silent(words) || asker_is_told(words) || nothing_is_there(words)
}

fn after_opening<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let first = |word: &&str| !OPENING.contains(word);
    let at = words.iter().position(first).unwrap_or(words.len());
    // `No information …` begins with the word that matters.
    match at.checked_sub(1) {
        Some(before) if words[before] == "no" => &words[before..],
        _ => &words[at..],
    }
}

/// `The passages do not say …`, `None of the documents mentions …`, `The graph holds nothing …`.
fn texts_are_silent(words: &[&str]) -> bool {
    let Some(noun) = words.iter().position(|word| !BEFORE.contains(word)) else {
        return false;
    };
    if !TEXTS.contains(&words[noun]) {
        return false;
    }
    let rest = &words[noun + 1..];
    let verb = rest
        .iter()
        .position(|word| !BEHIND.contains(word) || *word == "have");
    let rest = verb.map_or(&[][..], |at| &rest[at..]);
    let none = words[..noun].contains(&"none");
    match rest {
        [verb, ..] if none => DOES.contains(verb),
        ["do" | "does" | "did" | "can" | "could", "not", rest @ ..] => does(rest),
        [verb, "nothing" | "no" | "neither", ..] => DOES.contains(verb),
        _ => false,
    }
}

/// A verb, maybe behind an adverb.
fn does(words: &[&str]) -> bool {
    let mut words = words.iter().filter(|word| !word.ends_with("ly"));
    words.next().is_some_and(|word| DOES.contains(word))
}

/// `I do not know`, `I found nothing …`, `I could not find …`.
fn asker_is_told(words: &[&str]) -> bool {
    let ["i" | "we", rest @ ..] = words else {
        return false;
    };
    match rest {
        ["do" | "did" | "can" | "could", "not", verb, ..] => matches!(
            *verb,
            "know" | "find" | "answer" | "determine" | "tell" | "say" | "have"
        ),
        ["am" | "was" | "are" | "were", "not", "able", ..] => true,
        ["am" | "was" | "are" | "were", "unable", ..] => true,
        ["found" | "have", "nothing", ..] => true,
        ["found" | "have", "no", what, ..] => MISSING.contains(what),
        _ => false,
    }
}

/// `There is no information …`, `Nothing in the passages …`, `The question cannot be answered …`.
fn nothing_is_there(words: &[&str]) -> bool {
    match words {
        ["there", "is" | "are" | "was", "no", what, ..] | ["no", what, ..] => {
            MISSING.contains(what)
        }
        ["there", "is", "not", "enough", ..] | ["not", "enough", "information", ..] => true,
        ["there", "is", "nothing", ..] | ["nothing", "in", ..] => true,
        [
            "the" | "this",
            "question" | "answer" | "information",
            rest @ ..,
        ]
        | ["this" | "that" | "it", rest @ ..] => is_not_done(rest),
        _ => false,
    }
}

fn is_not_done(words: &[&str]) -> bool {
    match words {
        ["is" | "was", "not", done, ..] => DONE.contains(done),
        ["can" | "could", "not", "be", done, ..] => DONE.contains(done),
        _ => false,
    }
}

/// Words in lower case, negations in two.
fn tokens(sentence: &str) -> Vec<String> {
    let plain = sentence.to_lowercase().replace('’', "'");
    let mut found = Vec::new();
    for word in plain.split(|c: char| !c.is_alphanumeric() && c != '\'') {
        match word.trim_matches('\'') {
            "" => {}
            "cannot" | "can't" => found.extend(["can".to_owned(), "not".to_owned()]),
            word => match word.strip_suffix("n't") {
                Some(verb) => found.extend([verb.to_owned(), "not".to_owned()]),
                None => found.push(word.to_owned()),
            },
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::is_refusal;

    #[test]
    fn what_says_that_there_is_no_answer_is_known() {
        for sentence in [
            "The passages do not answer this question.",
            "The facts do not answer this question.",
            "The knowledge graph holds nothing that answers this question.",
            "The documents of this collection hold nothing that answers this question.",
            "The passages do not say who painted the Mona Lisa",
            "Unfortunately, the provided documents don't mention Lake Umber.",
            "Based on the passages, I cannot answer this.",
            "None of the passages mentions the volume.",
            "The provided context does not explicitly state the year.",
            "The information given does not contain a date.",
            "I found nothing that answers this.",
            "I could not find an answer in the documents.",
            "I don’t know.",
            "I am unable to answer this question.",
            "I found no exact answer.",
            "There is no information about that.",
            "No information about this was found.",
            "Nothing in the passages speaks of apples.",
            "The question cannot be answered from these passages.",
            "This is not stated.",
            "There isn't enough",
        ] {
            let sentence = sentence.replace("There isn't enough", "There is not enough to go on");
            assert!(is_refusal(&sentence), "{sentence}");
        }
    }

    #[test]
    fn what_says_something_is_none() {
        for sentence in [
            "The Old Bridge was built in 1429.",
            "The passages do not give the year, but the bridge is older than the mill.",
            "Source packages do not contain binaries.",
            "It is not known who built the bridge.",
            "Visitors do not know the way.",
            "No vehicle may cross the bridge.",
            "The library of Ham has 3000 books.",
            "The passages answer this question.",
            "I found the key.",
            "In 1429 there was no bridge.",
            "",
        ] {
            assert!(!is_refusal(sentence), "{sentence}");
        }
    }
}
