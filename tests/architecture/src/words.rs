//! Where words stand that may stand in a few places only, and whether each exception is still one.

use crate::source::Source;
use crate::text::{is_word, line_of};

/// A place where an exception is made, and why. A path that ends with `/` is a folder, one that begins with `*` the
/// end of a path, one between two `*` a part of it.
pub type Exception = (&'static str, &'static str);

/// A rule: which words, and where they may stand all the same.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The rule in a sentence.
    pub says: &'static str,
    /// The words. A word that begins or ends with a letter matches whole identifiers only.
    pub words: &'static [&'static str],
    /// Where the rule holds, written as exceptions are; everywhere if empty.
    pub within: &'static [&'static str],
    /// Whether strings are read as well.
    pub strings: bool,
    /// Where they may stand.
    pub but: &'static [Exception],
}

/// What a rule found: breaches as `path:line: word`, and exceptions that are none (any more).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Places that break the rule.
    pub breaches: Vec<String>,
    /// Exceptions that nothing needs.
    pub idle: Vec<&'static str>,
}

impl Found {
    /// The finding as a text, or `None` if the rule is kept.
    pub fn report(&self, rule: &Rule) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        let mut text = format!("{}\n", rule.says);
        for breach in &self.breaches {
            text.push_str(&format!("  {breach}\n"));
        }
        for idle in &self.idle {
            text.push_str(&format!("  exception that nothing needs: {idle}\n"));
        }
        Some(text)
    }
}

impl Rule {
    /// Holds the rule against files.
    pub fn hold(&self, sources: &[Source]) -> Found {
        let mut found = Found::default();
        let mut used = vec![false; self.but.len()];
        for source in sources {
            let held = |within: &&str| covers(within, &source.path);
            if !self.within.is_empty() && !self.within.iter().any(held) {
                continue;
            }
            let text = if self.strings {
                &source.strings
            } else {
                &source.code
            };
            for (at, word) in places(text, self.words) {
                match self
                    .but
                    .iter()
                    .position(|(path, _)| covers(path, &source.path))
                {
                    Some(which) => used[which] = true,
                    None => found.breaches.push(format!(
                        "{}:{}: {word}",
                        source.path,
                        line_of(text, at)
                    )),
                }
            }
        }
        let idle = self.but.iter().zip(used).filter(|(_, used)| !used);
        found.idle = idle.map(|((path, _), _)| *path).collect();
        found
    }
}

/// Where the words stand in a text.
pub fn places<'a>(text: &str, words: &[&'a str]) -> Vec<(usize, &'a str)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    for word in words {
        for (at, _) in text.match_indices(word) {
            let end = at + word.len();
            let before = at > 0 && is_word(bytes[at - 1]) && is_word(word.as_bytes()[0]);
            let after = bytes.get(end).copied().is_some_and(is_word)
                && is_word(word.as_bytes()[word.len() - 1]);
            if !before && !after {
                found.push((at, *word));
            }
        }
    }
    found
}

fn covers(exception: &str, path: &str) -> bool {
    if let Some(end) = exception.strip_prefix('*') {
        return match end.strip_suffix('*') {
            Some(middle) => path.contains(middle),
            None => path.ends_with(end),
        };
    }
    match exception.ends_with('/') {
        true => path.starts_with(exception),
        false => path == exception,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        says: "nobody says boo",
        words: &["boo("],
        within: &["a/", "*/gone.rs"],
        strings: false,
        but: &[("a/src/door/", "it may"), ("b/src/gone.rs", "it was")],
    };

    #[test]
    fn a_breach_and_an_idle_exception_are_found() {
        let sources = [
            Source::new("a/src/door/x.rs", "fn f() { boo(); }"),
            Source::new("c/src/x.rs", "fn f() { boo(); }"),
            Source::new(
                "a/src/y.rs",
                "// boo()\nfn f() { \"boo()\"; taboo();\n boo() }",
            ),
        ];
        let found = RULE.hold(&sources);
        assert_eq!(found.breaches, ["a/src/y.rs:3: boo("]);
        assert_eq!(found.idle, ["b/src/gone.rs"]);
        let report = found.report(&RULE).unwrap();
        assert!(report.contains("nobody says boo") && report.contains("a/src/y.rs:3"));
    }

    #[test]
    fn strings_are_read_where_asked() {
        let rule = Rule {
            words: &["SELECT "],
            strings: true,
            but: &[("*/store.rs", ""), ("*/store/*", "")],
            ..RULE
        };
        let text = "fn f() { q(\"SELECT 1\") } // SELECT 2";
        let sources = [
            Source::new("a/src/store.rs", text),
            Source::new("a/src/store/x.rs", text),
            Source::new("a/src/b.rs", text),
        ];
        assert_eq!(rule.hold(&sources).breaches, ["a/src/b.rs:1: SELECT "]);
        assert!(rule.hold(&sources).idle.is_empty());
    }
}
