//! From XML to JSON, bounded: no document type, and no entity but XML's own.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::{Map, Value};
use tg_schemas::vocabulary::message::{CORE, ENVELOPE, INHERITED};
use tg_schemas::{WorkspaceId, limits};

use super::{BadXml, DEEPEST, ELEMENTS};
use crate::envelope::{Envelope, Meta};
use crate::id::ThreadId;
use crate::name::Name;
use crate::payload::PayloadType;

/// Most namespaces that one element declares.
const DECLARED: usize = 16;
/// Longest namespace, in bytes: every element has its own copy.
const NAMESPACE: usize = 256;
/// Longest message that is read: names stand twice in XML.
const LONGEST_XML: usize = 4 * limits::THREAD_PAYLOAD;

/// A message from XML, with the id and the workspace that the bridge has for it. `schema` is that of a listener's type;
/// without one all values are texts.
///
/// # Errors
/// Why it is no message.
pub fn from_xml(
    xml: &str,
    (id, workspace): (&str, &WorkspaceId),
    schema: impl Fn(&Name, &PayloadType) -> Option<Map<String, Value>>,
) -> Result<Envelope, BadXml> {
    let root = parse(xml)?;
    let [meta, payload] = root.children.as_slice() else {
        return Err(BadXml::Message);
    };
    if !root.is(ENVELOPE, "message") || !meta.is(ENVELOPE, "meta") {
        return Err(BadXml::Message);
    }
    let text = |namespace, name| {
        let mut all = meta
            .children
            .iter()
            .filter(|child| child.is(namespace, name));
        match (all.next(), all.next()) {
            (found, None) => Ok(found.map(|child| child.text.as_str())),
            _ => Err(BadXml::Message),
        }
    };
    let needed = |name| text(ENVELOPE, name)?.ok_or(BadXml::Message);
    let name = |text: &str| Name::any(text).map_err(|_| BadXml::Message);
    let depth = |name| match text(INHERITED, name)? {
        Some(depth) => depth.parse().map_err(|_| BadXml::Message),
        None => Ok(0),
    };
    let to = name(needed("to")?)?;
    let kind = kind_of(payload, &to)?;
    let schema = match kind.as_str() {
        "huh" => None,
        "systemerror" => {
            let truth = serde_json::json!({"properties": {"retry_allowed": {"type": "boolean"}}});
            truth.as_object().cloned()
        }
        _ => schema(&to, &kind),
    };
    let schema = Value::Object(schema.unwrap_or_default());
    Ok(Envelope {
        id: id.to_owned(),
        thread: ThreadId::parse(needed("thread")?).map_err(|_| BadXml::Message)?,
        from: name(needed("from")?)?,
        to,
        kind,
        workspace: workspace.clone(),
        meta: Meta {
            request_id: text(INHERITED, "request-id")?.unwrap_or("").to_owned(),
            parent_request_id: text(INHERITED, "parent-request-id")?.map(str::to_owned),
            caller_depth: depth("caller-depth")?,
            delegate_depth: depth("delegate-depth")?,
            user_id: text(INHERITED, "user-id")?.unwrap_or("").to_owned(),
        },
        payload: members(&payload.children, &schema)?,
    })
}

fn kind_of(payload: &Element, to: &Name) -> Result<PayloadType, BadXml> {
    let own = match () {
        () if payload.is(CORE, "huh") => Some("huh"),
        () if payload.is("", "SystemError") => Some("systemerror"),
        () => None,
    };
    let below = payload.name.strip_prefix(to.as_str());
    let below = below.and_then(|rest| rest.strip_prefix('.'));
    let below = below.filter(|kind| payload.namespace.is_empty() && *kind != "huh");
    let kind = own.or(below).ok_or(BadXml::Message)?;
    PayloadType::any(kind).map_err(|_| BadXml::Message)
}

fn members(children: &[Element], schema: &Value) -> Result<Map<String, Value>, BadXml> {
    let mut body = Map::new();
    for child in children {
        let key = child.name.replace('-', "_");
        let own = &schema["properties"][&key];
        let listed = kind(own) == Some("array");
        let value = value(child, if listed { &own["items"] } else { own })?;
        match body.get_mut(&key) {
            None if listed => {
                body.insert(key, Value::Array(vec![value]));
            }
            None => {
                body.insert(key, value);
            }
            Some(Value::Array(items)) => items.push(value),
            // Two of a name are a list, whatever is known of it.
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Ok(body)
}

fn value(element: &Element, schema: &Value) -> Result<Value, BadXml> {
    let text = element.text.as_str();
    match kind(schema) {
        Some("object") => Ok(Value::Object(members(&element.children, schema)?)),
        _ if !element.children.is_empty() => Ok(Value::Object(members(&element.children, schema)?)),
        Some("integer" | "number") => {
            let number: Result<serde_json::Number, _> = serde_json::from_slice(text.as_bytes());
            number.map(Value::Number).map_err(|_| BadXml::Type)
        }
        Some("boolean") => match text {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(BadXml::Type),
        },
        _ => Ok(Value::String(text.to_owned())),
    }
}

/// The type that a schema says; of several the first that is not null.
fn kind(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null"),
        kind => kind.as_str(),
    }
}

#[derive(Debug, Default)]
struct Element {
    namespace: String,
    name: String,
    children: Vec<Element>,
    text: String,
    /// Namespaces that it declares, by their prefixes.
    declared: Vec<(String, String)>,
}

impl Element {
    fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }
}

fn parse(xml: &str) -> Result<Element, BadXml> {
    if xml.len() > LONGEST_XML {
        return Err(BadXml::Large);
    }
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut open = vec![Element::default()];
    let mut count = 0;
    loop {
        let event = reader.read_event().map_err(|_| BadXml::Form)?;
        match event {
            Event::Start(start) => {
                count += 1;
                if count > ELEMENTS || open.len() > DEEPEST + 2 {
                    return Err(BadXml::Large);
                }
                open.push(opened(&start, &open)?);
            }
            Event::End(_) => {
                let mut done = open.pop().ok_or(BadXml::Form)?;
                if !done.children.is_empty() && !done.text.trim().is_empty() {
                    return Err(BadXml::Message);
                }
                done.text = if done.children.is_empty() {
                    done.text
                } else {
                    String::new()
                };
                open.last_mut().ok_or(BadXml::Form)?.children.push(done);
            }
            Event::Text(piece) => {
                let piece = piece.unescape().map_err(|_| BadXml::Form)?;
                open.last_mut().ok_or(BadXml::Form)?.text.push_str(&piece);
            }
            Event::CData(piece) => {
                open.last_mut()
                    .ok_or(BadXml::Form)?
                    .text
                    .push_str(&text(&piece)?);
            }
            Event::Eof => break,
            Event::DocType(_) | Event::Empty(_) => return Err(BadXml::Form),
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
        }
    }
    let [mut top] = <[Element; 1]>::try_from(open).map_err(|_| BadXml::Form)?;
    match top.children.pop() {
        Some(root) if top.children.is_empty() && top.text.trim().is_empty() => Ok(root),
        _ => Err(BadXml::Form),
    }
}

/// An element with its namespace: the library's own way takes the square of how many a tag declares.
fn opened(start: &BytesStart<'_>, open: &[Element]) -> Result<Element, BadXml> {
    let mut declared = Vec::new();
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|_| BadXml::Form)?;
        let name = text(attribute.key.as_ref())?;
        let prefix = match name.strip_prefix("xmlns") {
            Some("") => "",
            Some(rest) if rest.starts_with(':') => &rest[1..],
            _ => continue,
        };
        let uri = attribute.unescape_value().map_err(|_| BadXml::Form)?;
        declared.push((prefix.to_owned(), uri.into_owned()));
        if declared.len() > DECLARED || declared.iter().any(|(_, uri)| uri.len() > NAMESPACE) {
            return Err(BadXml::Large);
        }
    }
    let name = text(start.name().into_inner())?;
    let (prefix, local) = name.split_once(':').unwrap_or(("", &name));
    let outer = open
        .iter()
        .map(|element| &element.declared)
        .chain([&declared]);
    let known = outer.rev().flatten().find(|(known, _)| known == prefix);
    let namespace = match known {
        Some((_, uri)) => uri.clone(),
        None if prefix.is_empty() => String::new(),
        None => return Err(BadXml::Form),
    };
    Ok(Element {
        namespace,
        name: local.to_owned(),
        declared,
        ..Element::default()
    })
}

fn text(bytes: &[u8]) -> Result<String, BadXml> {
    String::from_utf8(bytes.to_vec()).map_err(|_| BadXml::Form)
}
