//! Words that tell how a system is put together or what it keeps to itself: names of queues, addresses, paths, stores, secrets.
//! No answer to anybody has one, unless whoever asked wrote it.

/// What no client may ever read.
pub const WORDS: &[&str] = &[
    "nt.request",
    "tg.request",
    "nt.response",
    "tg.response",
    "nt.notify",
    "tg.notify",
    "nt.flow",
    "tg.flow",
    ".inbox.",
    ".claim.",
    "guest:",
    "amqp",
    "sqlite",
    "127.0.0.1",
    "/tmp",
    "sk-test",
    "hunter2",
];

/// A word in a text.
pub fn word_in(text: &str) -> Option<&'static str> {
    WORDS.iter().copied().find(|word| text.contains(word))
}

/// A word in a text that the input which led to it has not.
pub fn told(text: &str, input: &[u8]) -> Option<&'static str> {
    // Almost no text has one: the input is looked through only then.
    word_in(text)?;
    let input = String::from_utf8_lossy(input);
    let mut found = WORDS.iter().copied().filter(|word| text.contains(word));
    found.find(|word| !input.contains(word))
}

/// Holds an answer against the words.
///
/// # Panics
///
/// If it has one.
pub fn check(what: &str, text: &str) {
    if let Some(word) = word_in(text) {
        panic!("{what} leaks {word:?}: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_a_broker_has_of_us_is_told() {
        use tg_schemas::Topic;
        use tg_schemas::topic::Class;
        for class in [Class::Flow, Class::Request, Class::Response, Class::Notify] {
            for prefix in [None, Some("nt")] {
                let name = Topic::system(class, "x").exchange(prefix);
                assert!(word_in(&name).is_some(), "{name}");
            }
        }
        assert_eq!(word_in("cannot open nt.claim.graph"), Some(".claim."));
        assert_eq!(word_in("guest:guest@broker"), Some("guest:"));
    }

    #[test]
    fn what_the_input_says_itself_is_not_told_by_us() {
        assert_eq!(told("query: is required", b""), None);
        assert_eq!(told("cannot open /tmp/x", b"{}"), Some("/tmp"));
        assert_eq!(told("unknown /tmp/x", b"\xff/tmp/x"), None);
        assert_eq!(told("amqp at /tmp/x", b"/tmp/x"), Some("amqp"));
    }
}
