//! Functions of SPARQL that build a text longer than what they are given, each with a limit: doubling a text thirty
//! times takes a query of a thousand bytes. They say what the standard ones say.

use std::sync::Arc;

use oxigraph::model::{BaseDirection, Literal, NamedNode, Term};
use oxigraph::sparql::{AggregateFunctionAccumulator, SparqlEvaluator};
use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

use super::guard::LONGEST;
use crate::engine::steps::Steps;

/// Largest compiled pattern, as in the evaluator.
const PATTERN: usize = 1_000_000;

/// Names of the functions.
pub(super) const STEP: &str = "urn:threadgraph:query:step";
pub(super) const CONCAT: &str = "urn:threadgraph:query:concat";
pub(super) const REPLACE: &str = "urn:threadgraph:query:replace";
pub(super) const ENCODE: &str = "urn:threadgraph:query:encode-for-uri";
/// With its number behind it.
const GROUP_CONCAT: &str = "urn:threadgraph:query:group-concat:";

/// The name of a function or, with the separator's position, of an aggregate.
pub(super) fn name(of: &str) -> NamedNode {
    NamedNode::new_unchecked(of)
}

/// The name of the aggregate with a separator, by its position.
pub(super) fn group_concat(at: usize) -> NamedNode {
    name(&format!("{GROUP_CONCAT}{at}"))
}

/// Adds the functions to an evaluator.
pub(super) fn add(
    evaluator: SparqlEvaluator,
    guard: &Arc<dyn Steps>,
    separators: Vec<String>,
) -> SparqlEvaluator {
    let step = guard.clone();
    let (concat, replace, encode) = (guard.clone(), guard.clone(), guard.clone());
    let patterns = Patterns::default();
    let evaluator = evaluator
        .with_custom_function(name(STEP), move |_| {
            step.step();
            None
        })
        .with_custom_function(name(CONCAT), move |texts| joined(&*concat, texts))
        .with_custom_function(name(REPLACE), move |given| {
            replaced(&*replace, &patterns, given)
        })
        .with_custom_function(name(ENCODE), move |text| encoded(&*encode, text));
    let mut separators = separators.into_iter().enumerate();
    separators
        .try_fold(evaluator, |evaluator, (at, separator)| {
            let (guard, separator): (_, Arc<str>) = (guard.clone(), separator.into());
            Ok::<_, std::convert::Infallible>(evaluator.with_custom_aggregate_function(
                group_concat(at),
                move || {
                    Box::new(Group {
                        guard: guard.clone(),
                        separator: separator.clone(),
                        text: Some(Text::default()),
                    })
                },
            ))
        })
        .unwrap_or_else(|never| match never {})
}

type Language = Option<(String, Option<BaseDirection>)>;

/// A text and its language, if the term is one.
fn text(term: Term) -> Option<(String, Language)> {
    let Term::Literal(literal) = term else {
        return None;
    };
    match literal.destruct() {
        (value, None, None, _) => Some((value, None)),
        (value, None, Some(language), direction) => Some((value, Some((language, direction)))),
        _ => None,
    }
}

fn literal(value: String, language: Language) -> Term {
    match language {
        None => Literal::new_simple_literal(value),
        // The language came from a literal.
        Some((language, None)) => Literal::new_language_tagged_literal_unchecked(value, language),
        Some((language, Some(direction))) => {
            Literal::new_directional_language_tagged_literal_unchecked(value, language, direction)
        }
    }
    .into()
}

/// Texts put together, with the language that all of them have.
#[derive(Default)]
struct Text {
    value: String,
    /// `None` before the first.
    language: Option<Language>,
}

impl Text {
    fn add(&mut self, guard: &dyn Steps, separator: &str, value: &str, language: Language) {
        fits(guard, self.value.len() + separator.len() + value.len());
        match &self.language {
            None => self.language = Some(language),
            Some(known) => {
                if *known != language {
                    self.language = Some(None);
                }
                self.value.push_str(separator);
            }
        }
        self.value.push_str(value);
    }

    fn term(self) -> Term {
        literal(self.value, self.language.flatten())
    }
}

/// Leaves the query if a text would be too long.
fn fits(guard: &dyn Steps, length: usize) {
    guard.step();
    if length > LONGEST {
        guard.too_long();
    }
}

fn joined(guard: &dyn Steps, texts: &[Term]) -> Option<Term> {
    let mut all = Text::default();
    for term in texts {
        let (value, language) = text(term.clone())?;
        all.add(guard, "", &value, language);
    }
    Some(all.term())
}

fn encoded(guard: &dyn Steps, given: &[Term]) -> Option<Term> {
    let (value, _) = text(given.first()?.clone())?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let more = value.bytes().filter(|byte| !plain(*byte)).count();
    fits(guard, value.len() + 2 * more);
    let mut result = String::with_capacity(value.len() + 2 * more);
    for byte in value.bytes() {
        if plain(byte) {
            result.push(char::from(byte));
        } else {
            result.push('%');
            for half in [byte >> 4, byte & 15] {
                let digit = char::from_digit(u32::from(half), 16)?;
                result.push(digit.to_ascii_uppercase());
            }
        }
    }
    Some(literal(result, None))
}

/// The pattern compiled last: most often there is one.
#[derive(Default)]
struct Patterns(Mutex<Option<Compiled>>);

struct Compiled {
    pattern: String,
    flags: String,
    /// `None` if it is none.
    regex: Option<Regex>,
}

impl Patterns {
    fn get(&self, pattern: String, flags: String) -> Option<Regex> {
        let mut last = self.0.lock();
        if let Some(known) = &*last
            && known.pattern == pattern
            && known.flags == flags
        {
            return known.regex.clone();
        }
        let regex = compile(&pattern, &flags);
        *last = Some(Compiled {
            pattern,
            flags,
            regex: regex.clone(),
        });
        regex
    }
}

fn compile(pattern: &str, flags: &str) -> Option<Regex> {
    let escaped;
    let pattern = if flags.contains('q') {
        escaped = regex::escape(pattern);
        &escaped
    } else {
        pattern
    };
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(PATTERN);
    for flag in flags.chars() {
        match flag {
            's' => builder.dot_matches_new_line(true),
            'm' => builder.multi_line(true),
            'i' => builder.case_insensitive(true),
            'x' => builder.ignore_whitespace(true),
            'q' => &mut builder,
            _ => return None,
        };
    }
    builder.build().ok()
}

fn replaced(guard: &dyn Steps, patterns: &Patterns, given: &[Term]) -> Option<Term> {
    let plain = |term: &Term| match text(term.clone())? {
        (value, None) => Some(value),
        _ => None,
    };
    let [of, pattern, by, flags @ ..] = given else {
        return None;
    };
    let flags = match flags {
        [] => String::new(),
        [flags, ..] => plain(flags)?,
    };
    let regex = patterns.get(plain(pattern)?, flags)?;
    let (value, language) = text(of.clone())?;
    let by = plain(by)?;
    // Each names a part of what was found, at most all of it.
    let named = by.bytes().filter(|byte| *byte == b'$').count();
    let (mut result, mut from) = (String::new(), 0);
    for found in regex.captures_iter(&value) {
        let Some(whole) = found.get(0) else { break };
        result.push_str(value.get(from..whole.start())?);
        let most = by.len().saturating_add(named.saturating_mul(whole.len()));
        fits(guard, result.len().saturating_add(most));
        found.expand(&by, &mut result);
        from = whole.end();
    }
    let rest = value.get(from..)?;
    fits(guard, result.len() + rest.len());
    result.push_str(rest);
    Some(literal(result, language))
}

/// Puts the texts of a group together.
struct Group {
    guard: Arc<dyn Steps>,
    separator: Arc<str>,
    /// `None` once something was no text.
    text: Option<Text>,
}

impl AggregateFunctionAccumulator for Group {
    fn accumulate(&mut self, element: Term) {
        let Some(all) = &mut self.text else { return };
        match text(element) {
            Some((value, language)) => all.add(&*self.guard, &self.separator, &value, language),
            None => self.text = None,
        }
    }

    fn finish(&mut self) -> Option<Term> {
        Some(self.text.take()?.term())
    }
}
