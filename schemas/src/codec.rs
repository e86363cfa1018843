//! One codec for every body: JSON as foreign processors write it, or Avro single-object encoding.
//!
//! The content type of a message decides. JSON may hold the bare tokens `NaN` and `Infinity`, which
//! Python writes; they are read as `null`. Avro bodies carry the fingerprint of the writer's schema; one
//! of another version is resolved against ours, so fields may be added with defaults on either side.

mod error;
mod plan;
mod read;
mod tree;
mod write;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, RwLock};

use apache_avro::Schema;
use apache_avro::rabin::Rabin;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as Avro;
use bytes::Bytes;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value as Json};

pub use self::error::CodecError;
use self::plan::Plan;
use crate::Message;
use crate::error::{Error, ErrorCode};

/// Most bodies are about as long, in bytes: a buffer that grows is copied each time.
const USUAL: usize = 512;

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ContentType {
    /// UTF-8 JSON.
    #[default]
    Json,
    /// Avro single-object encoding.
    Avro,
}

impl ContentType {
    /// The media type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Avro => "application/avro",
        }
    }

    /// Reads a media type. An absent or unknown one is JSON, as the reference never sets another.
    pub fn parse(text: &str) -> Self {
        if text.eq_ignore_ascii_case("application/avro") {
            Self::Avro
        } else {
            Self::Json
        }
    }
}

/// Writes a body.
///
/// # Errors
/// [`CodecError`] where it holds a value that the format has no form for. It will at each try.
pub fn encode<M: Message>(message: &M, as_type: ContentType) -> Result<Bytes, CodecError> {
    match as_type {
        ContentType::Json => {
            let mut body: Vec<u8> = Vec::with_capacity(USUAL);
            let written = serde_json::to_writer(&mut body, message);
            written.map_err(|error| malformed(M::NAME, &error))?;
            Ok(body.into())
        }
        ContentType::Avro => {
            let mut body = Vec::with_capacity(USUAL);
            append(message, &mut body)?;
            Ok(body.into())
        }
    }
}

/// Writes a body in Avro behind what a buffer has. One that cannot be written leaves a part of itself there.
pub(crate) fn append<M: Message>(message: &M, body: &mut Vec<u8>) -> Result<(), CodecError> {
    let own = own_schema::<M>();
    body.extend_from_slice(&SINGLE);
    body.extend_from_slice(&own.fingerprint);
    if M::RECORD {
        return write::write(message, &own.plan, body).map_err(|e| malformed(M::NAME, &e));
    }
    let text = serde_json::to_vec(message).map_err(|e| malformed(M::NAME, &e))?;
    let tree = serde_json::from_slice(&text).map_err(|e| malformed(M::NAME, &e))?;
    tree::write(&tree, &own.plan, body).map_err(|e| malformed(M::NAME, &e))
}

/// Reads a body.
///
/// # Errors
/// [`CodecError::Malformed`] will be one at each try; [`CodecError::UnknownSchema`] may be read once the writer's schema is
/// [registered](register).
pub fn decode<M: Message>(body: &[u8], as_type: ContentType) -> Result<M, CodecError> {
    let text = match as_type {
        ContentType::Json => {
            object(M::NAME, body)?;
            match serde_json::from_slice(body) {
                Ok(message) => return Ok(message),
                Err(error) => clean(M::NAME, body, &error)?,
            }
        }
        ContentType::Avro => {
            let own = own_schema::<M>();
            if M::RECORD
                && let Some(datum) = own.datum(body)
            {
                return read::read(datum, &own.plan).map_err(|e| malformed(M::NAME, &e));
            }
            text_of(M::NAME, body, &own)?
        }
    };
    // From bytes like the others, and by way of text what is seldom read: each further way to read every message would take 2 MB of code.
    serde_json::from_slice(text.as_bytes()).map_err(|e| malformed(M::NAME, &e))
}

/// How a body in Avro begins, before the fingerprint of its schema.
const SINGLE: [u8; 2] = [0xC3, 0x01];

fn malformed(name: &'static str, why: &dyn fmt::Display) -> CodecError {
    CodecError::Malformed {
        name,
        detail: why.to_string(),
    }
}

/// A struct could also be read from a JSON list; the wire knows objects only.
fn object(name: &'static str, body: &[u8]) -> Result<(), CodecError> {
    match body.trim_ascii_start().first() {
        Some(b'{') => Ok(()),
        _ => Err(malformed(name, &"not a JSON object")),
    }
}

/// A body in JSON without what Python writes and JSON does not know. `first`: why it could not be read as it is.
fn clean(name: &'static str, body: &[u8], first: &serde_json::Error) -> Result<String, CodecError> {
    let text = std::str::from_utf8(body).map_err(|_| malformed(name, &"not UTF-8"))?;
    without_nan(text).ok_or_else(|| malformed(name, first))
}

/// A body in Avro as JSON: of what is no record, or was written by another release.
fn text_of(name: &'static str, body: &[u8], own: &Own) -> Result<String, CodecError> {
    let fail = |why: &dyn fmt::Display| malformed(name, why);
    if let Some(datum) = own.datum(body) {
        let tree: Json = read::read(datum, &own.plan).map_err(|e| fail(&e))?;
        return Ok(tree.to_string());
    }
    let marked = body.strip_prefix(&SINGLE);
    let marked = marked.and_then(|marked| marked.split_first_chunk::<8>());
    let (fingerprint, mut datum) = marked.ok_or_else(|| fail(&"not an Avro single object"))?;
    let writer = registered(fingerprint).ok_or_else(|| CodecError::UnknownSchema {
        name,
        fingerprint: hex::encode(fingerprint),
    })?;
    // The library's reader goes as deep as the body says; ours looks first, and stops at a bound.
    if let Some(plan) = &writer.plan {
        read::read::<IgnoredAny>(datum, plan).map_err(|e| fail(&e))?;
    }
    let value = GenericDatumReader::builder(&writer.schema)
        .reader_schema(own.schema)
        .build()
        .and_then(|reader| reader.read_value(&mut datum))
        .map_err(|e| fail(&e))?;
    Ok(from_avro(&value, own.schema, &own.names).to_string())
}

/// Reads some fields of a message and none of the others: `T` is a struct that names them. `None` where they are not found so, as in a
/// body of another release.
pub fn fields<M: Message, T: DeserializeOwned>(body: &[u8], as_type: ContentType) -> Option<T> {
    match as_type {
        ContentType::Json => serde_json::from_slice(body).ok(),
        ContentType::Avro => {
            let own = own_schema::<M>();
            read::read(own.datum(body)?, &own.plan).ok()
        }
    }
}

/// Fingerprint of a message's schema as 16 hex digits, for `avro-schema/<fingerprint>` in config.
pub fn fingerprint<M: Message>() -> String {
    hex::encode(own_schema::<M>().fingerprint)
}

/// Makes a writer's schema known, so that bodies written with it can be read.
///
/// # Errors
/// `bad-request`: the text is not a schema, or one that no message can have.
pub fn register(schema: &str) -> Result<String, Error> {
    let parsed = Schema::parse_str(schema)
        .map_err(|e| Error::new(ErrorCode::BadRequest, format!("avro schema: {e}")))?;
    let plan = Plan::new(&parsed);
    if plan.is_none() && refers(&parsed) {
        return Err(Error::new(
            ErrorCode::BadRequest,
            "avro schema: refers to itself and contains a type that no message has",
        ));
    }
    let mark = mark_of(&parsed);
    let writer = Arc::new(Writer {
        schema: parsed,
        plan,
    });
    let mut known = REGISTRY
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if known.len() >= MAX_REGISTERED && !known.contains_key(&mark) {
        return Err(Error::new(
            ErrorCode::TooLarge,
            "too many avro schemas are registered",
        ));
    }
    known.insert(mark, writer);
    Ok(hex::encode(mark))
}

type Mark = [u8; 8];
type Names = HashMap<String, Schema>;

/// Enough for many releases of every message; a bound against a hostile config.
const MAX_REGISTERED: usize = 4096;

static REGISTRY: LazyLock<RwLock<HashMap<Mark, Arc<Writer>>>> = LazyLock::new(RwLock::default);
static OWN: LazyLock<RwLock<HashMap<&'static str, Arc<Own>>>> = LazyLock::new(RwLock::default);

/// A schema of another release or of somebody else.
struct Writer {
    schema: Schema,
    /// None if the schema contains what no message of ours does; its bodies are then as deep as it is, as it does not
    /// refer to itself.
    plan: Option<Plan>,
}

/// A checked-in schema, ready for use. One per message type, kept for the life of the process.
struct Own {
    schema: &'static Schema,
    names: Names,
    fingerprint: Mark,
    plan: Plan,
}

impl Own {
    /// What a body of this schema holds. `None`: it has another one, or is no body in Avro.
    fn datum<'a>(&self, body: &'a [u8]) -> Option<&'a [u8]> {
        body.strip_prefix(&SINGLE)?.strip_prefix(&self.fingerprint)
    }
}

fn registered(mark: &Mark) -> Option<Arc<Writer>> {
    REGISTRY
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .get(mark)
        .cloned()
}

fn own_schema<M: Message>() -> Arc<Own> {
    own_named(M::NAME, M::AVRO)
}

fn own_named(name: &'static str, avro: &str) -> Arc<Own> {
    let known = OWN
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .get(name)
        .cloned();
    known.unwrap_or_else(|| {
        let valid = "checked-in schemas are valid: tested for each";
        let schema: &'static Schema = Box::leak(Box::new(Schema::parse_str(avro).expect(valid)));
        let mut names = Names::new();
        collect_names(schema, &mut names);
        let own = Arc::new(Own {
            fingerprint: mark_of(schema),
            plan: Plan::new(schema).expect(valid),
            schema,
            names,
        });
        OWN.write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .insert(name, own.clone());
        own
    })
}

fn mark_of(schema: &Schema) -> Mark {
    let mut mark = Mark::default();
    let bytes = schema.fingerprint::<Rabin>().bytes;
    mark.copy_from_slice(&bytes[..8]);
    mark
}

fn collect_names(schema: &Schema, names: &mut Names) {
    match schema {
        Schema::Record(record) => {
            names.insert(record.name.fullname(None), schema.clone());
            for field in &record.fields {
                collect_names(&field.schema, names);
            }
        }
        Schema::Array(array) => collect_names(&array.items, names),
        Schema::Map(map) => collect_names(&map.types, names),
        Schema::Union(union) => union
            .variants()
            .iter()
            .for_each(|v| collect_names(v, names)),
        _ => {}
    }
}

/// Whether a schema names a type instead of spelling it out, so that its bodies may be of any depth.
fn refers(schema: &Schema) -> bool {
    match schema {
        Schema::Ref { .. } => true,
        Schema::Record(record) => record.fields.iter().any(|field| refers(&field.schema)),
        Schema::Array(array) => refers(&array.items),
        Schema::Map(map) => refers(&map.types),
        Schema::Union(union) => union.variants().iter().any(refers),
        _ => false,
    }
}

fn resolve<'a>(schema: &'a Schema, names: &'a Names) -> &'a Schema {
    match schema {
        Schema::Ref { name } => names.get(&name.fullname(None)).unwrap_or(schema),
        other => other,
    }
}

/// A body of another version, once resolved, as JSON.
fn from_avro(value: &Avro, schema: &Schema, names: &Names) -> Json {
    let schema = resolve(schema, names);
    match (value, schema) {
        (Avro::Union(_, inner), Schema::Union(union)) => {
            if matches!(**inner, Avro::Null) {
                return Json::Null;
            }
            union
                .variants()
                .get(1)
                .map_or(Json::Null, |variant| from_avro(inner, variant, names))
        }
        (Avro::Record(fields), Schema::Record(record)) => {
            let mut object = Map::with_capacity(fields.len());
            for ((name, value), field) in fields.iter().zip(&record.fields) {
                let json = from_avro(value, &field.schema, names);
                let free = field.custom_attributes.get("free") == Some(&Json::Bool(true));
                let json = match (&json, free) {
                    (Json::String(text), true) => {
                        serde_json::from_slice(text.as_bytes()).unwrap_or(Json::Null)
                    }
                    _ => json,
                };
                object.insert(name.clone(), json);
            }
            Json::Object(object)
        }
        (Avro::Array(items), Schema::Array(array)) => items
            .iter()
            .map(|item| from_avro(item, &array.items, names))
            .collect(),
        (Avro::Map(items), Schema::Map(map)) => Json::Object(
            items
                .iter()
                .map(|(k, v)| (k.clone(), from_avro(v, &map.types, names)))
                .collect(),
        ),
        (Avro::String(text), _) => Json::String(text.clone()),
        (Avro::Long(n), _) => Json::from(*n),
        (Avro::Double(n), _) => Json::from(*n),
        (Avro::Boolean(b), _) => Json::Bool(*b),
        _ => Json::Null,
    }
}

/// Replaces bare `NaN`, `Infinity` and `-Infinity` outside strings by `null`. `None` if there are none.
fn without_nan(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    let mut in_string = false;
    while let Some(first) = rest.chars().next() {
        if in_string {
            let step = if first == '\\' {
                rest.chars().take(2).map(char::len_utf8).sum()
            } else {
                first.len_utf8()
            };
            in_string = first != '"';
            out.push_str(&rest[..step]);
            rest = &rest[step..];
            continue;
        }
        if let Some(token) = ["-Infinity", "Infinity", "NaN"]
            .iter()
            .find(|t| rest.starts_with(**t))
        {
            out.push_str("null");
            rest = &rest[token.len()..];
            found = true;
            continue;
        }
        in_string = first == '"';
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    found.then_some(out)
}

#[cfg(test)]
mod tests;
