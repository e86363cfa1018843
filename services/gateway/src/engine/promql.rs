//! Just enough of a query language: a metric name with label matchers, over samples at hand. Pure.

use std::collections::BTreeMap;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// Labels, the name among them as `__name__`.
    pub(crate) labels: BTreeMap<String, String>,
    /// Value.
    pub(crate) value: f64,
}

impl Sample {
    /// A sample by name and labels.
    pub(crate) fn new(name: &str, labels: &[(&str, &str)], value: f64) -> Self {
        let named = std::iter::once(("__name__", name)).chain(labels.iter().copied());
        Self {
            labels: named
                .map(|(key, text)| (key.to_owned(), text.to_owned()))
                .collect(),
            value,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Is,
    IsNot,
    Like,
    Unlike,
}

/// `name{label="value", …}`.
#[derive(Debug, PartialEq)]
pub(crate) struct Selector {
    name: String,
    matchers: Vec<(String, Test, String)>,
}

impl Selector {
    /// Reads a selector; `None` for everything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (name, rest) = match text.split_once('{') {
            None => (text, None),
            Some((name, rest)) => (name.trim_end(), Some(rest.strip_suffix('}')?)),
        };
        if !is_name(name) {
            return None;
        }
        let mut matchers = Vec::new();
        let mut rest = rest.unwrap_or("").trim();
        while !rest.is_empty() {
            let end = rest.find(['=', '!'])?;
            let label = rest[..end].trim();
            let (test, after) = test(&rest[end..])?;
            let (value, after) = quoted(after.trim_start())?;
            if !is_name(label) {
                return None;
            }
            matchers.push((label.to_owned(), test, value));
            let after = after.trim_start();
            rest = match after.strip_prefix(',') {
                Some(more) => more.trim_start(),
                None if after.is_empty() => "",
                None => return None,
            };
        }
        Some(Self {
            name: name.to_owned(),
            matchers,
        })
    }

    /// The metric.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a sample is selected. A label that is not there is empty.
    pub(crate) fn matches(&self, sample: &Sample) -> bool {
        self.matchers.iter().all(|(label, test, wanted)| {
            let value = sample.labels.get(label).map_or("", String::as_str);
            match test {
                Test::Is => value == wanted,
                Test::IsNot => value != wanted,
                Test::Like => like(wanted, value),
                Test::Unlike => !like(wanted, value),
            }
        })
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    chars.next().is_some_and(letter) && chars.all(|c| letter(c) || c.is_ascii_digit())
}

fn test(text: &str) -> Option<(Test, &str)> {
    [
        ("=~", Test::Like),
        ("!~", Test::Unlike),
        ("!=", Test::IsNot),
        ("=", Test::Is),
    ]
    .into_iter()
    .find_map(|(sign, test)| text.strip_prefix(sign).map(|rest| (test, rest)))
}

/// A quoted text and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => out.push(chars.next()?.1),
            c if c == quote => return Some((out, &text[at + c.len_utf8()..])),
            c => out.push(c),
        }
    }
    None
}

/// Alternatives (`a|b`), each a text in which `.*` and `.+` stand for anything.
fn like(pattern: &str, value: &str) -> bool {
    pattern.split('|').any(|one| {
        let one = one.replace(".+", ".*");
        let parts: Vec<&str> = one.split(".*").collect();
        let [first, middle @ .., last] = parts.as_slice() else {
            return one == value;
        };
        let Some(mut rest) = value.strip_prefix(first) else {
            return false;
        };
        for part in middle {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    })
}

/// Samples of one metric in the exposition format, whatever prefix this process gives its names.
pub(crate) fn parse_text(text: &str, name: &str) -> Vec<Sample> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let selector = Selector::parse(series)?;
            let own = selector.name == name || selector.name == format!("tg_{name}");
            let labels: Vec<(&str, &str)> = selector
                .matchers
                .iter()
                .map(|(label, _, value)| (label.as_str(), value.as_str()))
                .collect();
            own.then(|| Some(Sample::new(name, &labels, value.parse().ok()?)))?
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queries_of_the_official_commands_are_understood() {
        let selector =
            Selector::parse(r#"consumer_state{consumer_state="running",flow="default"}"#).unwrap();
        let sample = |flow| {
            Sample::new(
                "consumer_state",
                &[("flow", flow), ("consumer_state", "running")],
                1.0,
            )
        };
        assert!(selector.matches(&sample("default")));
        assert!(!selector.matches(&sample("other")));
        assert_eq!(
            Selector::parse("processor_info").unwrap().name(),
            "processor_info"
        );
    }

    #[test]
    fn matchers_know_alternatives_and_wildcards() {
        let matches = |query: &str| {
            Selector::parse(query).unwrap().matches(&Sample::new(
                "m",
                &[("a", "agent-manager")],
                1.0,
            ))
        };
        assert!(matches(r#"m{a=~"x|agent.*"}"#));
        assert!(matches(r#"m{a=~".*manager", a!="x"}"#));
        assert!(!matches(r#"m{a!~"agent-.+"}"#));
        assert!(matches(r#"m{b=""}"#));
    }

    #[test]
    fn everything_else_is_refused() {
        for bad in [
            "",
            "rate(m[5m])",
            "m{a=}",
            "m{a=\"x\"",
            "m{a=\"x\" b=\"y\"}",
            "1",
            "m{\u{fc}=\"\"}",
        ] {
            assert!(Selector::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn text_is_read_with_our_prefix() {
        let text = "# TYPE tg_input_tokens_total counter\n\
                    tg_input_tokens_total{model=\"m\",processor=\"text-completion\"} 42\n\
                    other 1\n";
        let samples = parse_text(text, "input_tokens_total");
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].value, 42.0);
        assert_eq!(samples[0].labels["model"], "m");
    }
}
