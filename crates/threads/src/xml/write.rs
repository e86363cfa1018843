//! From JSON to XML.

use quick_xml::escape::escape;
use serde_json::{Map, Value};
use tg_schemas::vocabulary::message::{CORE, ENVELOPE, INHERITED};

use super::{BadXml, DEEPEST};
use crate::envelope::Envelope;

/// A message as XML.
///
/// # Errors
/// What of it has no XML form.
pub fn to_xml(envelope: &Envelope) -> Result<String, BadXml> {
    let mut out = format!("<message xmlns=\"{ENVELOPE}\"><meta>");
    for (name, value) in [
        ("from", envelope.from.as_str()),
        ("to", envelope.to.as_str()),
        ("thread", &envelope.thread.to_string()),
    ] {
        leaf(&mut out, name, None, value)?;
    }
    let meta = &envelope.meta;
    let depths = [meta.caller_depth, meta.delegate_depth].map(|depth| depth.to_string());
    for (name, value) in [
        ("request-id", meta.request_id.as_str()),
        (
            "parent-request-id",
            meta.parent_request_id.as_deref().unwrap_or(""),
        ),
        ("caller-depth", &depths[0]),
        ("delegate-depth", &depths[1]),
        ("user-id", &meta.user_id),
    ] {
        if !value.is_empty() {
            leaf(&mut out, name, Some(INHERITED), value)?;
        }
    }
    out.push_str("</meta>");
    let (name, namespace) = match envelope.kind.as_str() {
        "huh" => ("huh".to_owned(), CORE),
        "systemerror" => ("SystemError".to_owned(), ""),
        kind => (format!("{}.{kind}", envelope.to), ""),
    };
    // A name may begin with a digit, an element may not.
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(BadXml::Key);
    }
    out.push_str(&format!("<{name} xmlns=\"{namespace}\">"));
    members(&mut out, &envelope.payload, DEEPEST)?;
    out.push_str(&format!("</{name}></message>"));
    Ok(out)
}

fn members(out: &mut String, body: &Map<String, Value>, depth: usize) -> Result<(), BadXml> {
    let depth = depth.checked_sub(1).ok_or(BadXml::Large)?;
    for (key, value) in body {
        let name = kebab(key)?;
        match value {
            Value::Array(items) => {
                for item in items {
                    match item {
                        Value::Array(_) | Value::Null => return Err(BadXml::List),
                        item => element(out, &name, item, depth)?,
                    }
                }
            }
            Value::Null => {}
            value => element(out, &name, value, depth)?,
        }
    }
    Ok(())
}

fn element(out: &mut String, name: &str, value: &Value, depth: usize) -> Result<(), BadXml> {
    match value {
        Value::Object(body) => {
            out.push_str(&format!("<{name}>"));
            members(out, body, depth)?;
            out.push_str(&format!("</{name}>"));
            Ok(())
        }
        Value::String(text) => leaf(out, name, None, text),
        plain => leaf(out, name, None, &plain.to_string()),
    }
}

fn leaf(out: &mut String, name: &str, namespace: Option<&str>, text: &str) -> Result<(), BadXml> {
    let allowed =
        |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\u{7f}'..='\u{9f}');
    if !text
        .chars()
        .all(|c| allowed(c) && !matches!(c, '\u{fffe}' | '\u{ffff}'))
    {
        return Err(BadXml::Character);
    }
    let about = namespace
        .map(|uri| format!(" xmlns=\"{uri}\""))
        .unwrap_or_default();
    // Whoever reads XML makes a line's end of a carriage return, unless it is written as a reference.
    let text = escape(text).replace('\r', "&#13;");
    out.push_str(&format!("<{name}{about}>{text}</{name}>"));
    Ok(())
}

fn kebab(key: &str) -> Result<String, BadXml> {
    let first = key
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase());
    let rest = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    match first && key.bytes().all(rest) {
        true => Ok(key.replace('_', "-")),
        false => Err(BadXml::Key),
    }
}
