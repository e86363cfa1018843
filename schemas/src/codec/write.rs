//! Writes a value straight into Avro binary, led by its schema's plan. What the schema keeps as text and
//! the value has as JSON of another kind becomes JSON text.

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Impossible, SerializeMap, SerializeSeq, SerializeStruct, Serializer};
use serde_json::Value as Json;
use serde_json::value::Serializer as ToJson;

use super::plan::{At, Field, Node, Plan, ROOT};

/// Appends the value's datum.
pub(super) fn write<T: Serialize>(value: &T, plan: &Plan, out: &mut Vec<u8>) -> Result<(), Misfit> {
    place(value, plan, ROOT, out)
}

/// Appends the datum of a value that stands at one place of a body.
pub(super) fn place<T: Serialize>(
    value: &T,
    plan: &Plan,
    at: At,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    value.serialize(Datum { plan, at, out })
}

/// The value does not fit the schema.
#[derive(Debug)]
pub(super) struct Misfit(pub(super) String);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

impl ser::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<serde_json::Error> for Misfit {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

pub(super) fn misfit<T>(what: &str, node: &Node) -> Result<T, Misfit> {
    let node = format!("{node:?}");
    let kind = node.split('(').next().unwrap_or_default();
    Err(Misfit(format!("{what} does not fit {kind}")))
}

fn long(number: i64, out: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

pub(super) fn length(length: usize, out: &mut Vec<u8>) {
    long(i64::try_from(length).unwrap_or(i64::MAX), out);
}

pub(super) fn text(text: &str, out: &mut Vec<u8>) {
    length(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn null(plan: &Plan, at: At, out: &mut Vec<u8>) -> Result<(), Misfit> {
    match plan.node(at) {
        Node::Null => Ok(()),
        Node::Nullable(_) | Node::Boolean | Node::Long | Node::String | Node::Array(_) => {
            out.push(0);
            Ok(())
        }
        Node::Float => {
            out.extend_from_slice(&f32::NAN.to_le_bytes());
            Ok(())
        }
        Node::Double => {
            out.extend_from_slice(&f64::NAN.to_le_bytes());
            Ok(())
        }
        node => misfit("null", node),
    }
}

/// One place of the body.
struct Datum<'p, 'o> {
    plan: &'p Plan,
    at: At,
    out: &'o mut Vec<u8>,
}

impl<'p> Datum<'p, '_> {
    /// The node of a value that is not null.
    fn node(&mut self) -> &'p Node {
        if let Node::Nullable(inner) = self.plan.node(self.at) {
            self.out.push(2);
            self.at = *inner;
        }
        self.plan.node(self.at)
    }

    fn integer(mut self, number: i64) -> Result<(), Misfit> {
        match self.node() {
            Node::Long => long(number, self.out),
            Node::Float => self.out.extend_from_slice(&(number as f32).to_le_bytes()),
            Node::Double => self.out.extend_from_slice(&(number as f64).to_le_bytes()),
            Node::String => text(&number.to_string(), self.out),
            node => return misfit("a number", node),
        }
        Ok(())
    }
}

impl<'p, 'o> Serializer for Datum<'p, 'o> {
    type Ok = ();
    type Error = Misfit;
    type SerializeSeq = Items<'p, 'o>;
    type SerializeTuple = Impossible<(), Misfit>;
    type SerializeTupleStruct = Impossible<(), Misfit>;
    type SerializeTupleVariant = Impossible<(), Misfit>;
    type SerializeMap = Entries<'p, 'o>;
    type SerializeStruct = Fields<'p, 'o>;
    type SerializeStructVariant = Impossible<(), Misfit>;

    fn serialize_bool(mut self, value: bool) -> Result<(), Misfit> {
        match self.node() {
            Node::Boolean => self.out.push(u8::from(value)),
            Node::String => text(&value.to_string(), self.out),
            node => return misfit("a boolean", node),
        }
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Misfit> {
        self.integer(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Misfit> {
        self.integer(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Misfit> {
        self.integer(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Misfit> {
        self.integer(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), Misfit> {
        self.integer(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Misfit> {
        self.integer(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Misfit> {
        self.integer(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Misfit> {
        match i64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => misfit("a number beyond 63 bits", &Node::Long),
        }
    }

    fn serialize_f32(self, value: f32) -> Result<(), Misfit> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(mut self, value: f64) -> Result<(), Misfit> {
        if !value.is_finite() {
            // As in JSON, what is no number is nothing.
            return null(self.plan, self.at, self.out);
        }
        match self.node() {
            Node::Float => self.out.extend_from_slice(&(value as f32).to_le_bytes()),
            Node::Double => self.out.extend_from_slice(&value.to_le_bytes()),
            Node::String => text(&Json::from(value).to_string(), self.out),
            node => return misfit("a fraction", node),
        }
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Misfit> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(mut self, value: &str) -> Result<(), Misfit> {
        match self.node() {
            Node::String => {
                text(value, self.out);
                Ok(())
            }
            node => misfit("a text", node),
        }
    }

    fn serialize_bytes(mut self, _: &[u8]) -> Result<(), Misfit> {
        let node = self.node();
        misfit("bytes", node)
    }

    fn serialize_none(self) -> Result<(), Misfit> {
        null(self.plan, self.at, self.out)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Misfit> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Misfit> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Misfit> {
        self.serialize_none()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Misfit> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Misfit> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Misfit> {
        let node = self.node();
        misfit("a variant with data", node)
    }

    fn serialize_seq(mut self, len: Option<usize>) -> Result<Items<'p, 'o>, Misfit> {
        match (self.node(), len) {
            (Node::Array(item), Some(len)) => {
                if len > 0 {
                    length(len, self.out);
                }
                Ok(Items::Array {
                    plan: self.plan,
                    item: *item,
                    out: self.out,
                })
            }
            (Node::String, len) => Ok(Items::Text(ToJson.serialize_seq(len)?, self.out)),
            (node, _) => misfit("a list", node),
        }
    }

    fn serialize_tuple(mut self, _: usize) -> Result<Self::SerializeTuple, Misfit> {
        let node = self.node();
        misfit("a tuple", node)
    }

    fn serialize_tuple_struct(
        mut self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Misfit> {
        let node = self.node();
        misfit("a tuple", node)
    }

    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Misfit> {
        let node = self.node();
        misfit("a variant with data", node)
    }

    fn serialize_map(mut self, len: Option<usize>) -> Result<Entries<'p, 'o>, Misfit> {
        match (self.node(), len) {
            (Node::Map(value), Some(len)) => {
                if len > 0 {
                    length(len, self.out);
                }
                Ok(Entries::Map {
                    plan: self.plan,
                    value: *value,
                    out: self.out,
                })
            }
            (Node::String, len) => Ok(Entries::Text(ToJson.serialize_map(len)?, self.out)),
            (node, _) => misfit("an object", node),
        }
    }

    fn serialize_struct(
        mut self,
        name: &'static str,
        len: usize,
    ) -> Result<Fields<'p, 'o>, Misfit> {
        match self.node() {
            Node::Record(fields) => Ok(Fields::Record {
                plan: self.plan,
                rest: fields,
                out: self.out,
            }),
            Node::String => Ok(Fields::Text(ToJson.serialize_struct(name, len)?, self.out)),
            node => misfit("an object", node),
        }
    }

    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Misfit> {
        let node = self.node();
        misfit("a variant with data", node)
    }
}

/// A list.
enum Items<'p, 'o> {
    Array {
        plan: &'p Plan,
        item: At,
        out: &'o mut Vec<u8>,
    },
    Text(<ToJson as Serializer>::SerializeSeq, &'o mut Vec<u8>),
}

impl SerializeSeq for Items<'_, '_> {
    type Ok = ();
    type Error = Misfit;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Misfit> {
        match self {
            Self::Array { plan, item, out } => value.serialize(Datum {
                plan,
                at: *item,
                out,
            }),
            Self::Text(json, _) => Ok(json.serialize_element(value)?),
        }
    }

    fn end(self) -> Result<(), Misfit> {
        match self {
            Self::Array { out, .. } => out.push(0),
            Self::Text(json, out) => text(&json.end()?.to_string(), out),
        }
        Ok(())
    }
}

/// An object with names of its own.
enum Entries<'p, 'o> {
    Map {
        plan: &'p Plan,
        value: At,
        out: &'o mut Vec<u8>,
    },
    Text(<ToJson as Serializer>::SerializeMap, &'o mut Vec<u8>),
}

impl SerializeMap for Entries<'_, '_> {
    type Ok = ();
    type Error = Misfit;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Misfit> {
        match self {
            Self::Map { out, .. } => match serde_json::to_value(key)? {
                Json::String(key) => text(&key, out),
                other => text(&other.to_string(), out),
            },
            Self::Text(json, _) => json.serialize_key(key)?,
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Misfit> {
        match self {
            Self::Map {
                plan,
                value: at,
                out,
            } => value.serialize(Datum { plan, at: *at, out }),
            Self::Text(json, _) => Ok(json.serialize_value(value)?),
        }
    }

    fn end(self) -> Result<(), Misfit> {
        match self {
            Self::Map { out, .. } => out.push(0),
            Self::Text(json, out) => text(&SerializeMap::end(json)?.to_string(), out),
        }
        Ok(())
    }
}

/// An object with the fields of a record.
enum Fields<'p, 'o> {
    Record {
        plan: &'p Plan,
        rest: &'p [Field],
        out: &'o mut Vec<u8>,
    },
    Text(<ToJson as Serializer>::SerializeStruct, &'o mut Vec<u8>),
}

impl SerializeStruct for Fields<'_, '_> {
    type Ok = ();
    type Error = Misfit;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Misfit> {
        let (plan, rest, out) = match self {
            Self::Record { plan, rest, out } => (plan, rest, out),
            Self::Text(json, _) => return Ok(json.serialize_field(key, value)?),
        };
        // Fields come in the schema's order; those left out are null.
        while let Some((field, others)) = rest.split_first() {
            *rest = others;
            let at = field.node;
            if field.name == key {
                return value.serialize(Datum { plan, at, out });
            }
            null(plan, at, out)?;
        }
        Err(Misfit(format!("there is no field {key} here")))
    }

    fn end(self) -> Result<(), Misfit> {
        match self {
            Self::Record { plan, rest, out } => {
                for field in rest {
                    null(plan, field.node, out)?;
                }
            }
            Self::Text(json, out) => text(&SerializeStruct::end(json)?.to_string(), out),
        }
        Ok(())
    }
}
