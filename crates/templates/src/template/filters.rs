//! Filters and methods of the dialect. An undefined or null input counts as empty; no filter fails on it.

use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

/// Longest text a filter makes out of nothing.
const WIDEST: usize = 4096;

fn absent(value: &Value) -> bool {
    value.is_undefined() || value.is_none()
}

fn text(value: &Value) -> String {
    if absent(value) {
        String::new()
    } else {
        match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        }
    }
}

fn items(value: &Value) -> Vec<Value> {
    if let Some(text) = value.as_str() {
        return text.chars().map(|c| Value::from(c.to_string())).collect();
    }
    value.try_iter().map(Iterator::collect).unwrap_or_default()
}

/// Position counted from the end when negative.
fn position(at: i64, length: usize) -> usize {
    let length = length as i64;
    let at = if at < 0 { at + length } else { at };
    at.clamp(0, length) as usize
}

fn rejoin(input: &Value, parts: Vec<Value>) -> Value {
    if input.as_str().is_some() {
        Value::from(parts.iter().map(text).collect::<String>())
    } else {
        Value::from(parts)
    }
}

fn slice(input: Value, start: i64, stop: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let all = items(&input);
    let step = step.unwrap_or(1);
    if step < 1 {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "slice needs a step above 0",
        ));
    }
    let start = position(start, all.len());
    let stop = stop.map_or(all.len(), |stop| position(stop, all.len()));
    let chosen = all
        .into_iter()
        .take(stop)
        .skip(start)
        .step_by(step as usize)
        .collect();
    Ok(rejoin(&input, chosen))
}

fn truncatechars(input: Value, most: usize, ellipsis: Option<String>) -> String {
    let text = text(&input);
    if text.chars().count() <= most {
        return text;
    }
    let kept: String = text.chars().take(most.saturating_sub(3)).collect();
    let kept = kept.trim_end_matches([' ', '.', ',', ';', ':', '?', '!']);
    format!("{kept}{}", ellipsis.unwrap_or_else(|| "...".to_owned()))
}

fn truncatewords(input: Value, most: usize, ellipsis: Option<String>) -> String {
    let text = text(&input);
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() <= most {
        return words.join(" ");
    }
    words[..most].join(" ") + &ellipsis.unwrap_or_else(|| " [...]".to_owned())
}

fn spaceless(input: Value) -> String {
    let text = text(&input);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim();
    while let Some(at) = rest.find('>') {
        let (head, tail) = rest.split_at(at + 1);
        out.push_str(head);
        let next = tail.trim_start();
        rest = if next.starts_with('<') { next } else { tail };
    }
    out + rest
}

fn titlecase(input: Value) -> String {
    let mut begun = false;
    text(&input)
        .chars()
        .map(|c| {
            let first = !begun && c.is_alphabetic();
            begun = c.is_alphabetic() || (begun && c == '\'');
            if first {
                c.to_uppercase().to_string()
            } else {
                c.to_string()
            }
        })
        .collect()
}

fn join(input: Value, separator: Option<Value>) -> String {
    let parts: Vec<String> = items(&input).iter().map(text).collect();
    parts.join(&separator.as_ref().map(text).unwrap_or_default())
}

fn length(input: Value) -> usize {
    input.len().unwrap_or_else(|| items(&input).len())
}

fn reversed(input: Value) -> Value {
    let mut all = items(&input);
    all.reverse();
    rejoin(&input, all)
}

fn striptags(input: Value) -> String {
    let mut inside = false;
    text(&input)
        .chars()
        .filter(|c| {
            let hidden = inside || *c == '<';
            inside = hidden && *c != '>';
            !hidden
        })
        .collect()
}

fn teaser(input: Value, mark: Option<String>) -> String {
    let mark = mark.unwrap_or_else(|| "<!-- more -->".to_owned());
    let text = text(&input);
    text.split_once(mark.as_str())
        .map(|(head, _)| head.to_owned())
        .unwrap_or_default()
}

fn indent(input: Value, width: Option<usize>, first: Option<bool>) -> String {
    let pad = " ".repeat(width.unwrap_or(4).min(WIDEST));
    let text = text(&input);
    let lines: Vec<String> = text
        .split('\n')
        .enumerate()
        .map(|(at, line)| {
            if (at == 0 && !first.unwrap_or(false)) || line.is_empty() {
                line.to_owned()
            } else {
                format!("{pad}{line}")
            }
        })
        .collect();
    lines.join("\n")
}

/// Whether a filter of minijinja is to make something longer than [`WIDEST`] out of a number. It would try, whatever memory that
/// takes, and the process ends where there is none.
fn is_too_wide(name: &str, input: &Value, arguments: &[Value]) -> bool {
    let wide = |value: &Value| {
        f64::try_from(value.clone()).is_ok_and(|number| number.abs() > WIDEST as f64)
    };
    let indent = |value: &Value| value.get_attr("indent").is_ok_and(|value| wide(&value));
    match name {
        "batch" => arguments.first().is_some_and(wide),
        "format" => input.as_str().is_some_and(has_wide_place),
        "tojson" => arguments.iter().any(|one| wide(one) || indent(one)),
        _ => false,
    }
}

/// Whether a text in which values are put (`%5.1f`) says a larger width or precision.
fn has_wide_place(text: &str) -> bool {
    text.split('%').skip(1).any(|place| {
        let named = place
            .strip_prefix('(')
            .and_then(|name| name.split_once(')'));
        let place = named.map_or(place, |(_, rest)| rest);
        let end = place.find(|c: char| c.is_alphabetic());
        let numbers = place.split_at(end.unwrap_or(place.len())).0;
        numbers
            .split(|c: char| !c.is_ascii_digit())
            .filter(|number| !number.is_empty())
            .any(|number| !number.parse::<usize>().is_ok_and(|number| number <= WIDEST))
    })
}

/// Makes a filter of minijinja pass an absent input through, but for the one that has a text for it, and bounds what it makes.
fn lenient(environment: &mut Environment<'static>, name: &'static str) {
    let inner = Environment::new();
    environment.add_filter(name, move |input: Value, arguments: Rest<Value>| {
        if absent(&input) && name != "tojson" {
            return Ok(Value::UNDEFINED);
        }
        if is_too_wide(name, &input, &arguments) {
            let why = format!("{name} makes at most {WIDEST} characters out of a number");
            return Err(Error::new(ErrorKind::OutOfFuel, why));
        }
        let mut all = vec![input];
        all.extend(arguments.iter().cloned());
        inner.empty_state().apply_filter(name, &all)
    });
}

/// Adds the dialect's filters and methods.
pub(super) fn install(environment: &mut Environment<'static>) {
    for name in [
        "abs", "attr", "batch", "bool", "dictsort", "float", "format", "groupby", "int", "items",
        "lines", "list", "max", "min", "replace", "round", "sort", "split", "sum", "unique",
        "pprint", "tojson",
    ] {
        lenient(environment, name);
    }
    environment.add_filter("upper", |input: Value| text(&input).to_uppercase());
    environment.add_filter("lower", |input: Value| text(&input).to_lowercase());
    environment.add_filter("title", titlecase);
    environment.add_filter("titlecase", titlecase);
    environment.add_filter("str", |input: Value| text(&input));
    environment.add_filter("string", |input: Value| text(&input));
    environment.add_filter("repr", |input: Value| format!("{input:?}"));
    environment.add_filter("trim", |input: Value| text(&input).trim().to_owned());
    environment.add_filter("join", join);
    environment.add_filter("len", length);
    environment.add_filter("length", length);
    environment.add_filter("count", length);
    environment.add_filter("first", |input: Value| items(&input).first().cloned());
    environment.add_filter("last", |input: Value| items(&input).last().cloned());
    environment.add_filter("index", |input: Value, at: i64| {
        let all = items(&input);
        let inside = at < all.len() as i64 && at >= -(all.len() as i64);
        inside.then(|| all[position(at, all.len())].clone())
    });
    environment.add_filter("slice", slice);
    environment.add_filter("reversed", reversed);
    environment.add_filter("reverse", reversed);
    environment.add_filter("default", |input: Value, other: Option<Value>| {
        if input.is_true() {
            input
        } else {
            other.unwrap_or_else(|| Value::from(""))
        }
    });
    environment.add_filter("if_undefined", |input: Value, other: Value| {
        if input.is_undefined() { other } else { input }
    });
    environment.add_filter("is_defined", |input: Value| !input.is_undefined());
    environment.add_filter("truncatechars", truncatechars);
    environment.add_filter("truncatewords", truncatewords);
    environment.add_filter("spaceless", spaceless);
    environment.add_filter("striptags", striptags);
    environment.add_filter("teaser", teaser);
    environment.add_filter("indent", indent);
    environment.add_filter("wrap", |input: Value, tag: String| {
        format!("<{tag}>{}</{tag}>", text(&input))
    });
    environment.add_filter("startswith", |input: Value, start: String| {
        text(&input).starts_with(&start)
    });
    environment.add_filter("endswith", |input: Value, end: String| {
        text(&input).ends_with(&end)
    });
    environment.add_filter("even", |input: Value| {
        input.as_i64().is_some_and(|n| n % 2 == 0)
    });
    environment.add_filter("odd", |input: Value| {
        input.as_i64().is_some_and(|n| n % 2 != 0)
    });
    environment.add_filter("divisible_by", |input: Value, by: i64| {
        // Wrapping: the smallest number has no quotient by -1.
        by != 0 && input.as_i64().is_some_and(|n| n.wrapping_rem(by) == 0)
    });
    let escape = |input: Value| {
        text(&input)
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('\'', "&#x27;")
    };
    environment.add_filter("escape", move |input: Value, _quotes: Option<bool>| {
        escape(input)
    });
    environment.add_filter("e", move |input: Value, _quotes: Option<bool>| {
        escape(input)
    });
    environment.add_filter("esc", move |input: Value, _quotes: Option<bool>| {
        escape(input)
    });
    environment.set_unknown_method_callback(method);
}

/// Methods that templates call on texts and mappings.
fn method(_: &mut State, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let argument = |at: usize| arguments.get(at).map(text);
    if value.kind() == ValueKind::Map {
        let keys = items(value);
        let of = |key: &Value| value.get_item(key).unwrap_or_default();
        return match name {
            "items" => Ok(keys
                .iter()
                .map(|key| Value::from(vec![key.clone(), of(key)]))
                .collect()),
            "keys" => Ok(Value::from(keys)),
            "values" => Ok(keys.iter().map(of).collect()),
            "get" => {
                let found = arguments.first().map(of).unwrap_or_default();
                Ok(if found.is_undefined() {
                    arguments.get(1).cloned().unwrap_or_default()
                } else {
                    found
                })
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        };
    }
    if absent(value) {
        return Ok(Value::UNDEFINED);
    }
    let Some(own) = value.as_str() else {
        return Err(Error::from(ErrorKind::UnknownMethod));
    };
    Ok(match (name, argument(0)) {
        ("upper", _) => Value::from(own.to_uppercase()),
        ("lower", _) => Value::from(own.to_lowercase()),
        ("title", _) => Value::from(titlecase(value.clone())),
        ("strip", _) => Value::from(own.trim()),
        ("lstrip", _) => Value::from(own.trim_start()),
        ("rstrip", _) => Value::from(own.trim_end()),
        ("splitlines", _) => own.lines().map(Value::from).collect(),
        ("split", None) => own.split_whitespace().map(Value::from).collect(),
        ("split", Some(separator)) if !separator.is_empty() => {
            own.split(separator.as_str()).map(Value::from).collect()
        }
        ("startswith", Some(start)) => Value::from(own.starts_with(&start)),
        ("endswith", Some(end)) => Value::from(own.ends_with(&end)),
        ("replace", Some(old)) if !old.is_empty() => {
            Value::from(own.replace(&old, &argument(1).unwrap_or_default()))
        }
        ("join", Some(_)) => Value::from(join(arguments[0].clone(), Some(value.clone()))),
        _ => return Err(Error::from(ErrorKind::UnknownMethod)),
    })
}
