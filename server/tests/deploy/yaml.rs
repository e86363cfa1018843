//! Writes values as YAML, with what stands at the top of each generated file.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

/// Text of each generated file, by its path below `deploy/`.
pub type Files = BTreeMap<String, String>;

const HEAD: &str = "# Made from the table of deployed services (server/src/deployed.rs) by\n\
    # `UPDATE=1 cargo test -p tg-server --test deploy`; do not edit.\n";

/// One file with these documents.
pub fn file(documents: &[Value]) -> String {
    let mut text = HEAD.to_owned();
    for (at, document) in documents.iter().enumerate() {
        if at > 0 {
            text.push_str("---\n");
        }
        write(&mut text, document, 0, false);
    }
    text
}

/// Writes a value whose lines begin at `indent`. `inline`: the cursor stands behind `- ` already.
fn write(text: &mut String, value: &Value, indent: usize, inline: bool) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (at, (key, value)) in fields.iter().enumerate() {
                let lead = if inline && at == 0 { "" } else { &pad };
                let _ = write!(text, "{lead}{}:", scalar(key));
                field(text, value, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                let lead = if inline && at == 0 { "" } else { &pad };
                let _ = write!(text, "{lead}- ");
                match is_block(item) {
                    true => write(text, item, indent + 2, true),
                    false => {
                        let _ = writeln!(text, "{}", flat(item));
                    }
                }
            }
        }
        other => {
            let _ = writeln!(text, "{pad}{}", flat(other));
        }
    }
}

fn field(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(_) if is_block(value) => {
            text.push('\n');
            write(text, value, indent + 2, false);
        }
        Value::Array(_) if is_block(value) => {
            text.push('\n');
            write(text, value, indent, false);
        }
        other => {
            let _ = writeln!(text, " {}", flat(other));
        }
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// Plain where no reader of YAML takes it for anything but a text, else in quotes.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let word = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    match plain && !word.contains(&text.to_lowercase().as_str()) {
        true => text.to_owned(),
        false => Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_blocks_and_texts_stay_texts() {
        let value = json!({"a": {"b": [1, "x y", {"c": "yes", "d": []}]}, "e": "v1", "f": [["g"]]});
        let text = file(&[value]);
        let expected =
            "a:\n  b:\n  - 1\n  - \"x y\"\n  - c: \"yes\"\n    d: []\ne: v1\nf:\n- - g\n";
        assert_eq!(text.strip_prefix(HEAD), Some(expected));
    }
}
