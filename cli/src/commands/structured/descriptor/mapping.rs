//! A mapping of a descriptor, made ready to be applied: its patterns compiled, its tables found.

use chrono::format::{Item, StrftimeItems};

use super::Mapping;
use super::globals::Globals;
use super::node::{DescriptorNode, Read};
use crate::commands::structured::transform::{self, Transform, WIDEST, date_format};
use crate::commands::structured::validate::{self, Check};

/// Reads one mapping: where a field comes from, how it is changed, and what it must be.
pub(super) fn read_mapping(mapping: &DescriptorNode<'_>, globals: &Globals) -> Read<Mapping> {
    mapping.only(&[
        "source_field",
        "source",
        "target_field",
        "target",
        "transforms",
        "validation",
        "validations",
        "description",
        "comment",
    ])?;
    let either = |one: &str, other: &str| -> Read<Option<String>> {
        let text = match mapping.text(one)? {
            Some(text) => Some(text),
            None => mapping.text(other)?,
        };
        Ok(text.filter(|text| !text.is_empty()))
    };
    let source = either("source_field", "source")?
        .ok_or_else(|| mapping.wrong("source_field", "is required"))?;
    let target = either("target_field", "target")?.unwrap_or_else(|| source.clone());
    let mut transforms = Vec::new();
    let steps = mapping.list("transforms")?;
    for (at, step) in steps.iter().enumerate() {
        let later = steps[at + 1..].iter().any(|step| step["type"] == "default");
        let place = format!("{}.transforms[{at}]", mapping.path);
        transforms.push(read_transform(
            &DescriptorNode::of(step, &place)?,
            globals,
            later,
        )?);
    }
    let mut checks = Vec::new();
    for key in ["validation", "validations"] {
        for (at, check) in mapping.list(key)?.iter().enumerate() {
            let place = format!("{}.{key}[{at}]", mapping.path);
            checks.push(read_check(&DescriptorNode::of(check, &place)?)?);
        }
    }
    Ok(Mapping {
        source,
        target,
        transforms,
        checks,
    })
}

fn read_transform(
    step: &DescriptorNode<'_>,
    globals: &Globals,
    default_follows: bool,
) -> Read<Transform> {
    let kind = step.required("type")?;
    let known = |extra: &[&str]| step.only(&[&["type"], extra].concat());
    if let Some(plain) = plain(&kind) {
        known(&[])?;
        return Ok(plain);
    }
    Ok(match kind.as_str() {
        "to_date" => {
            known(&["format"])?;
            read_date(step)?
        }
        "default" => {
            known(&["value"])?;
            let value = step
                .value("value")
                .ok_or_else(|| step.wrong("value", "is required"))?;
            Transform::Default(transform::cell(Some(value)).unwrap_or_default())
        }
        "lookup" => {
            known(&["table"])?;
            let table = step.required("table")?;
            let entries = globals.tables.get(&table).cloned().ok_or_else(|| {
                step.wrong(
                    "table",
                    &format!("there is no '{table}' in globals.lookup_tables"),
                )
            })?;
            Transform::Lookup {
                table,
                entries,
                lenient: default_follows,
            }
        }
        "concat" => {
            known(&["values"])?;
            Transform::Concat(step.texts("values")?)
        }
        "replace" => {
            known(&["pattern", "replacement"])?;
            Transform::Replace(
                step.required("pattern")?,
                step.text("replacement")?.unwrap_or_default(),
            )
        }
        "regex_replace" => {
            known(&["pattern", "replacement"])?;
            let with = step.text("replacement")?.unwrap_or_default();
            Transform::RegexReplace(step.regex("pattern")?, groups(&with))
        }
        "substring" => {
            known(&["start", "end"])?;
            let number = |key: &str| -> Read<Option<usize>> {
                let number = step.whole(key)?;
                Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
            };
            Transform::Substring(number("start")?.unwrap_or(0), number("end")?)
        }
        "pad_left" | "pad_right" => {
            known(&["length", "char"])?;
            read_pad(step, kind == "pad_left")?
        }
        _ => {
            let why = format!("'{kind}' is not supported; known are {}", transform::KNOWN);
            return Err(step.wrong("type", &why));
        }
    })
}

/// A change that has nothing to say besides its name.
fn plain(kind: &str) -> Option<Transform> {
    Some(match kind {
        "trim" => Transform::Trim,
        "upper" => Transform::Upper,
        "lower" => Transform::Lower,
        "title_case" => Transform::TitleCase,
        "to_string" => Transform::Text,
        "to_int" => Transform::Int,
        "to_float" => Transform::Float,
        "to_bool" => Transform::Bool,
        "required" => Transform::Required,
        _ => return None,
    })
}

fn read_date(step: &DescriptorNode<'_>) -> Read<Transform> {
    let (format, timed) = date_format(&step.required("format")?);
    let mut items = StrftimeItems::new(&format);
    if items.any(|item| item == Item::Error) {
        return Err(step.wrong("format", "is not a date format"));
    }
    Ok(Transform::Date(format, timed))
}

fn read_pad(step: &DescriptorNode<'_>, left: bool) -> Read<Transform> {
    let length = step
        .whole("length")?
        .ok_or_else(|| step.wrong("length", "is required"))?;
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= WIDEST);
    let length = length.ok_or_else(|| step.wrong("length", &format!("is more than {WIDEST}")))?;
    let with = step.text("char")?.unwrap_or_else(|| " ".to_owned());
    let mut letters = with.chars();
    let (Some(with), None) = (letters.next(), letters.next()) else {
        return Err(step.wrong("char", "must be one character"));
    };
    Ok(Transform::Pad { left, length, with })
}

fn read_check(check: &DescriptorNode<'_>) -> Read<Check> {
    let kind = check.required("type")?;
    let known = |extra: &[&str]| check.only(&[&["type", "message"], extra].concat());
    let length = || -> Read<usize> {
        known(&["value"])?;
        let value = check
            .whole("value")?
            .ok_or_else(|| check.wrong("value", "is required"))?;
        Ok(usize::try_from(value).unwrap_or(usize::MAX))
    };
    Ok(match kind.as_str() {
        "required" | "not_null" => {
            known(&[])?;
            Check::Required
        }
        "min_length" => Check::MinLength(length()?),
        "max_length" => Check::MaxLength(length()?),
        "range" => {
            known(&["min", "max"])?;
            Check::Range(check.number("min")?, check.number("max")?)
        }
        "pattern" => {
            known(&["value"])?;
            Check::Pattern(check.regex("value")?)
        }
        "in_list" => {
            known(&["values"])?;
            Check::InList(check.texts("values")?)
        }
        _ => {
            let why = format!("'{kind}' is not supported; known are {}", validate::KNOWN);
            return Err(check.wrong("type", &why));
        }
    })
}

/// A replacement with groups written `\1`, as this crate's patterns want them.
fn groups(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek().copied()) {
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                letters.next();
                out.push_str(&format!("${{{digit}}}"));
            }
            ('\\', Some('\\')) => {
                letters.next();
                out.push('\\');
            }
            ('$', _) => out.push_str("$$"),
            (letter, _) => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_written_as_patterns_want_them() {
        assert_eq!(groups(r"\1-$\\"), r"${1}-$$\");
    }
}
