//! Rows of configuration without what is secret in them, for who may read them and not write them.

use std::ops::BitOr;

use serde_json::Value;
use tg_schemas::masks::{MASK, is_masked};
use tg_schemas::{Error, ErrorCode};

use crate::engine::secret_names::{Kind, is_type, secret};
use crate::engine::secret_texts::without_secrets;

/// What a list of headers or of variables calls the name of a value.
const NAMED_BY: [&str; 3] = ["name", "key", "header"];
/// What it calls the value.
const VALUE: &str = "value";
/// What a schema calls the value that counts where none is given.
const DEFAULT: &str = "default";

/// A row without its secrets. What is text of no known shape may be one from its first letter to its last.
pub(super) fn masked_row(key: &str, value: String) -> String {
    if value.is_empty() {
        return value;
    }
    let Ok(mut row) = serde_json::from_slice::<Value>(value.as_bytes()) else {
        return MASK.to_owned();
    };
    let found = match (&mut row, secret(key)) {
        (Value::String(text), _) if text.is_empty() => false,
        (Value::String(_), _) => hide(&mut row, Kind::Hidden),
        // The key of a row that is an object is often what a tool or a parameter is called.
        (Value::Number(_) | Value::Array(_), Some(kind)) => hide(&mut row, kind),
        _ => mask(&mut row),
    };
    match found {
        true => row.to_string(),
        false => value,
    }
}

/// A text that holds JSON or is for people, without its secrets.
pub(super) fn masked(value: String) -> String {
    let Ok(mut row) = serde_json::from_slice::<Value>(value.as_bytes()) else {
        return without_secrets(&value).unwrap_or(value);
    };
    match mask(&mut row) {
        true => row.to_string(),
        false => value,
    }
}

/// A value under its name, without secrets.
pub(super) fn masked_at(name: &str, value: String) -> String {
    match secret(name) {
        Some(kind) if !value.is_empty() && kind.hides_text(&value) => MASK.to_owned(),
        Some(_) => value,
        None => masked(value),
    }
}

/// Refuses a value that came from where secrets are not shown: written back it would be the secret's end.
pub(super) fn shown(field: &str, value: &str) -> Result<(), Error> {
    if !is_masked(value) {
        return Ok(());
    }
    let why = "which stands for a secret that was not shown";
    Err(Error::new(
        ErrorCode::BadRequest,
        format!("{field}: must not hold {MASK}, {why}"),
    ))
}

/// Masks at every depth; whether there was something to mask. No deeper than JSON is read.
pub(super) fn mask(value: &mut Value) -> bool {
    match value {
        Value::Object(map) => {
            let names = NAMED_BY.into_iter().filter_map(|of| map.get(of));
            let mut names = names.filter_map(Value::as_str);
            let of_pair = names.find_map(secret);
            map.iter_mut().fold(false, |any, (key, inner)| {
                let of_pair = of_pair.filter(|_| key == VALUE || key == DEFAULT);
                let found = match secret(key).or(of_pair) {
                    Some(kind) => hide(inner, kind),
                    None => mask(inner),
                };
                found || any
            })
        }
        Value::Array(list) => match pair(list) {
            // Names in a list are followed by names.
            Some(kind) if !list[1].as_str().is_some_and(is_name) => hide(&mut list[1], kind),
            _ => mask_list(list),
        },
        Value::String(text) => match text_without_secrets(text) {
            Some(shown) => {
                *text = shown;
                true
            }
            None => false,
        },
        _ => false,
    }
}

/// A text without its secrets, if it has any. One that is JSON is masked as that; each such text in a text is smaller than what
/// it stands in by its quotes, so that there are few.
fn text_without_secrets(text: &str) -> Option<String> {
    if text.trim_start().starts_with(['{', '[', '"'])
        && let Ok(mut inner) = serde_json::from_slice::<Value>(text.as_bytes())
    {
        return mask(&mut inner).then(|| inner.to_string());
    }
    without_secrets(text)
}

/// What a list holds that is a name and its value.
fn pair(list: &[Value]) -> Option<Kind> {
    match list {
        [Value::String(name), Value::String(_)] => secret(name),
        _ => None,
    }
}

/// Whether a text may be the name of something.
fn is_name(text: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
    text.bytes().all(of_name)
}

/// Masks in a list, which may be one of arguments: `--api-key` is followed by one.
fn mask_list(list: &mut [Value]) -> bool {
    let mut any = false;
    let mut flag = None;
    for one in list {
        let next = one.as_str().and_then(|text| text.strip_prefix('-'));
        let next = next.and_then(secret);
        any |= match flag.filter(|_| next.is_none() && one.is_string()) {
            Some(kind) => hide(one, kind),
            None => match one {
                Value::Array(inner) => match pair(inner) {
                    Some(kind) => hide(&mut inner[1], kind),
                    None => mask(one),
                },
                _ => mask(one),
            },
        };
        flag = next;
    }
    any
}

/// Hides whatever stands under a key that holds a secret.
fn hide(value: &mut Value, kind: Kind) -> bool {
    match value {
        Value::Number(_) if kind != Kind::Hidden => false,
        Value::String(text) if text.is_empty() || !kind.hides_text(text) => false,
        Value::String(_) | Value::Number(_) => {
            *value = Value::from(MASK);
            true
        }
        Value::Array(list) => list
            .iter_mut()
            .map(|one| hide(one, kind))
            .fold(false, BitOr::bitor),
        // The schema of a value is none.
        Value::Object(map) if map.get("type").and_then(Value::as_str).is_some_and(is_type) => {
            let usual = map.get_mut(DEFAULT).is_some_and(|usual| hide(usual, kind));
            let found = map.iter_mut().filter(|(key, _)| *key != DEFAULT);
            found
                .map(|(_, inner)| mask(inner))
                .fold(usual, BitOr::bitor)
        }
        Value::Object(map) => map
            .iter_mut()
            .filter(|(key, _)| *key != "type")
            .map(|(_, inner)| hide(inner, kind))
            .fold(false, BitOr::bitor),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_secret_is_masked_at_every_depth() {
        let row = r#"{"dsn":"S3CRET","authToken":"S3CRET","APIKey":"S3CRET","more":[{"name":"Authorization","value":"Bearer S3CRET"},{"key":"API_KEY","value":"S3CRET"}],"at":"https://h/mcp?x=1&api_key=S3CRET&key=S3CRET#e","tokens":{"token":["S3CRET"],"password":{"value":"S3CRET"}},"secret":{"type":"string","default":"S3CRET"},"url":"https://me:S3CRET@h:1/x@y","headers":{"Authorization":"S3CRET"},"list":[{"api_key":"S3CRET"},{"client-secret":7}],"auth-token":"S3CRET","apikey":"S3CRET"}"#;
        for typed in [
            r#"{"auth":{"type":"basic","username":"u","password":"S3CRET"}}"#,
            r#"{"auth":{"type":"bearer","token":"S3CRET"}}"#,
            r#"{"credentials":{"type":"service_account","client_secret":"S3CRET"}}"#,
        ] {
            let seen = masked_row("k", typed.to_owned());
            assert!(!seen.contains("S3CRET") && seen.contains("type"), "{seen}");
        }
        let seen = masked_row("k", row.to_owned());
        assert!(!seen.contains("S3CRET") && !seen.contains(":7"), "{seen}");
        assert!(seen.contains("https://********@h:1/x@y"), "{seen}");
        assert!(
            seen.contains("https://h/mcp?x=1&api_key=********"),
            "{seen}"
        );
        assert!(seen.contains(r#""type":"string""#), "{seen}");
        assert!(is_masked(&seen) && !is_masked(row));
    }

    #[test]
    fn what_is_none_stays_to_the_letter() {
        for row in [
            r#"{"key": "k", "primary_key": true, "tokens": 5, "max-tokens": "7", "url": "http://h/a@b"}"#,
            r#"{"auth-token": null, "name": "password"}"#,
            r#"{"max-token": 512, "sort_key": 3, "cache-key": "c", "token": {"type": "string", "description": "who asks"}}"#,
            r#"{"url": "https://h/?keys=a&monkey=b", "monkey": "c", "ketoken": 1}"#,
            r#"{"keys": ["a@b"], "text": "see http://h/ or a@b"}"#,
            r#"{"max-token": "512", "maxToken": "5", "tokens": "7", "api-key": ""}"#,
            r#"{"topic": "request:tg:agent:default", "args": ["--token", 7, "--verbose", "yes"]}"#,
            "7",
            "",
            r#""""#,
        ] {
            assert_eq!(masked_row("k", row.to_owned()), row);
        }
        assert_eq!(masked_at("max-token", "512".to_owned()), "512");
        assert_eq!(masked_at("note", "see token".to_owned()), "see token");
    }

    #[test]
    fn what_has_no_shape_is_masked_whole() {
        for (key, row) in [
            ("k", "S3CRET"),
            ("k", r#"{"api-key": "S3CRET""#),
            ("k", r#""S3CRET""#),
            ("api-key", r#"["S3CRET"]"#),
            ("password", "1234"),
        ] {
            let seen = masked_row(key, row.to_owned());
            assert!(is_masked(&seen) && !seen.contains("S3CRET"), "{seen}");
            assert!(!seen.contains("1234"), "{seen}");
        }
    }

    #[test]
    fn secrets_within_texts_and_lists_are_masked() {
        let row = r#"{"headers": ["Authorization: Bearer S3CRET", "X-Api-Key: S3CRET"], "api-keys": ["S3CRET"],
            "args": ["--verbose", "--api-key", "S3CRET", "--token=S3CRET"], "env": ["PASSWORD=S3CRET"], "any": "sk-S3CRET-S3CRET-S3CRET",
            "max-token": "S3CRET", "parameters": [{"name": "api-key", "default": "S3CRET", "label": "seen"}], "of": [{"header": "Authorization", "value": "S3CRET"}]}"#;
        let seen = masked_row("k", row.to_owned());
        assert!(!seen.contains("S3CRET"), "{seen}");
        assert!(
            seen.contains("seen") && seen.contains("--verbose"),
            "{seen}"
        );
        assert!(is_masked(&masked_at("max-token", "S3CRET".to_owned())));
        assert!(is_masked(&masked_at(
            "url",
            "https://a:S3CRET@h/".to_owned()
        )));
    }

    #[test]
    fn texts_that_are_json_and_pairs_are_masked() {
        let inner = r#"{"api_key": "S3CRET", "of": "{\"token\": \"S3CRET\"}", "tokens": 512}"#;
        let row = json!({
            "body": inner,
            "env": [["API_KEY", "S3CRET"], ["DBPassword", "secretive"], ["mode", "open"]],
            "header": ["Authorization", "Bearer S3CRET"],
            "required": ["token", "name"],
            "note": "a_key=S3CRET b_token=S3CRET, key: default",
            "PGPASSWORD": "S3CRET",
        });
        let seen = masked_row("k", row.to_string());
        assert!(
            !seen.contains("S3CRET") && !seen.contains("secretive"),
            "{seen}"
        );
        let shown: Value = serde_json::from_slice(seen.as_bytes()).unwrap();
        assert_eq!(shown["required"], json!(["token", "name"]));
        assert_eq!(shown["env"][2], json!(["mode", "open"]));
        assert!(
            seen.contains("512") && seen.contains("key: default"),
            "{seen}"
        );
        assert_eq!(masked_row("k", seen.clone()), seen, "masked twice");
    }
}
