//! Texts that people read: no error speaks of the machine room, and all are English that somebody would write.

use tg_architecture_tests::source::shipped;
use tg_architecture_tests::text::line_of;
use tg_architecture_tests::words::places;

/// Words of the machine room, which no text of an error shows to a client.
const INSIDE: &[&str] = &[
    "exchange",
    "queue",
    "queues",
    "broker",
    "rabbitmq",
    "amqp",
    "sqlite",
    "routing key",
    "mutex",
    "panicked",
    "channel",
];

/// What is put into a text of an error by such a name is a place of the system, or somebody else's.
const PUT_IN: &[&str] = &[
    "{host", "{path", "{file", "{dir", "{queue", "{topic", "{url", "{address", "{broker",
];

/// Whose texts no client is shown: they are for logs, and what is answered is made elsewhere.
const FOR_LOGS: &[(&str, &str)] = &[
    (
        "crates/bus/src/rabbitmq/wire.rs",
        "becomes a `BusError`, which has its own texts",
    ),
    (
        "crates/storage/src/error.rs",
        "its conversion to the contract's error has its own texts",
    ),
];

/// The strings in the arguments of `Error::new(…)`, and in `#[error("…")]` of what becomes one, with their places.
fn error_texts(strings: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (open, close) in [("Error::new(", ";"), ("#[error(", ")]")] {
        for (at, _) in strings.match_indices(open) {
            let rest = &strings[at + open.len()..];
            // At the end of a function nothing closes it.
            let ends = [rest.find(close), rest.find("\n}")];
            let end = ends.into_iter().flatten().min().unwrap_or(rest.len());
            let quoted: Vec<&str> = rest[..end].split('"').skip(1).step_by(2).collect();
            found.push((at, quoted.join(" ")));
        }
    }
    found
}

#[test]
fn no_error_speaks_of_the_machine_room() {
    let (mut told, mut idle) = (Vec::new(), FOR_LOGS.to_vec());
    for source in shipped() {
        if !source.path.starts_with("services/") && !source.path.starts_with("crates/") {
            continue;
        }
        for (at, text) in error_texts(&source.strings) {
            // The path of a field, which every error about one begins with.
            let lower = text.to_lowercase();
            let lower = lower.strip_prefix("{path}: ").unwrap_or(&lower);
            let words = [places(lower, INSIDE), places(lower, PUT_IN)].concat();
            let Some((_, word)) = words.first() else {
                continue;
            };
            if FOR_LOGS.iter().any(|(path, _)| *path == source.path) {
                idle.retain(|(path, _)| *path != source.path);
                continue;
            }
            let line = line_of(&source.strings, at);
            told.push(format!("{}:{line}: {word}: {text}", source.path));
        }
    }
    assert!(idle.is_empty(), "exceptions that nothing needs: {idle:?}");
    assert!(
        told.is_empty(),
        "errors that name what no client knows:\n  {}",
        told.join("\n  ")
    );
}

/// "is no number" and "is none of them", where English says "is not a number" and "is not one of them"; and what is
/// left out "is required", in these words and no others.
fn worded_oddly(text: &str) -> bool {
    let odd = [
        "is no ",
        "are no ",
        "is none of",
        "that is no ",
        "but is none",
        "but none",
        "is missing",
        "are missing",
        "must not be empty",
        "must be given",
        "is needed",
        // A dead letter is one, or a record becomes one; the name of the operation is the wire's.
        "put aside",
    ];
    let plain = text
        .to_lowercase()
        .replace("there is no ", "")
        .replace("there are no ", "");
    odd.iter().any(|words| plain.contains(words))
}

/// A literal as it is read: what goes on in the next line is one text.
fn joined(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

#[test]
fn texts_are_plain_english() {
    let mut odd = Vec::new();
    for source in shipped() {
        if source.path.starts_with("crates/reader/src/") {
            // Reads and writes the English of others.
            continue;
        }
        for (at, text) in source.literals() {
            let text = joined(text);
            if worded_oddly(&text) {
                let line = line_of(&source.code, at);
                odd.push(format!("{}:{line}: {text}", source.path));
            }
        }
    }
    assert!(
        odd.is_empty(),
        "texts that nobody would write:\n  {}",
        odd.join("\n  ")
    );
}

#[test]
fn odd_words_are_found() {
    for odd in [
        "built: is no whole number",
        "is none of its values",
        "name: is missing",
        "question: must not be empty",
        &joined("the record is put \\\n        aside"),
    ] {
        assert!(worded_oddly(odd), "{odd}");
    }
    for plain in [
        "there is no flow 'x'",
        "is not a number",
        "name: is required",
    ] {
        assert!(!worded_oddly(plain), "{plain}");
    }
}

#[test]
fn texts_of_errors_are_found() {
    let code = "let a = Error::new(Code::A, format!(\"the exchange {x} is gone\"));";
    assert_eq!(error_texts(code)[0].1, "the exchange {x} is gone");
    assert_eq!(places(&error_texts(code)[0].1, INSIDE).len(), 1);
    let code =
        "#[error(\"the queue {path} is gone\")]\nGone,\n#[error(transparent)]\nB(#[from] C),";
    let texts = error_texts(code);
    assert_eq!(texts[0].1, "the queue {path} is gone");
    assert_eq!(places(&texts[0].1, INSIDE).len(), 1);
    assert_eq!(places(&texts[0].1, PUT_IN).len(), 1);
    assert!(texts[1].1.is_empty(), "{texts:?}");
}
