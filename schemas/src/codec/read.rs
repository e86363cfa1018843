//! Reads a value straight from Avro binary, led by its schema's plan. Bounded in depth, and no count is
//! believed that the remaining bytes cannot hold.

use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::plan::{At, Field, Node, Plan, ROOT};

/// Deepest nesting.
const MAX_DEPTH: u32 = 128;

/// Reads a datum.
pub(super) fn read<T: DeserializeOwned>(body: &[u8], plan: &Plan) -> Result<T, Malformed> {
    let mut input = body;
    T::deserialize(Datum {
        plan,
        at: ROOT,
        input: &mut input,
        depth: 0,
    })
}

/// The bytes are not what the schema says.
#[derive(Debug)]
pub(super) struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

impl de::Error for Malformed {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<serde_json::Error> for Malformed {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

fn short<T>() -> Result<T, Malformed> {
    Err(Malformed("the body ends too early".to_owned()))
}

fn take<'b>(input: &mut &'b [u8], count: usize) -> Result<&'b [u8], Malformed> {
    match input.split_at_checked(count) {
        Some((taken, rest)) => {
            *input = rest;
            Ok(taken)
        }
        None => short(),
    }
}

fn long(input: &mut &[u8]) -> Result<i64, Malformed> {
    let mut number: u64 = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(input, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    Err(Malformed("a number is too long".to_owned()))
}

fn text<'b>(input: &mut &'b [u8]) -> Result<&'b str, Malformed> {
    let Ok(length) = usize::try_from(long(input)?) else {
        return Err(Malformed("a text has a negative length".to_owned()));
    };
    std::str::from_utf8(take(input, length)?)
        .map_err(|_| Malformed("a text is not UTF-8".to_owned()))
}

fn float(input: &mut &[u8]) -> Result<f32, Malformed> {
    let bytes = take(input, 4)?;
    Ok(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn double(input: &mut &[u8]) -> Result<f64, Malformed> {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(take(input, 8)?);
    Ok(f64::from_le_bytes(bytes))
}

/// Items of the next block; 0 at the end.
fn block(input: &mut &[u8]) -> Result<usize, Malformed> {
    let mut count = long(input)?;
    if count < 0 {
        long(input)?;
        count = count.checked_neg().unwrap_or(i64::MAX);
    }
    match usize::try_from(count) {
        Ok(count) if count <= input.len() => Ok(count),
        _ => short(),
    }
}

/// One place of the body.
struct Datum<'p, 'i, 'b> {
    plan: &'p Plan,
    at: At,
    input: &'i mut &'b [u8],
    depth: u32,
}

impl<'p, 'b> Datum<'p, '_, 'b> {
    /// Whether something stands here; then the place is the thing itself.
    fn is_some(&mut self) -> Result<bool, Malformed> {
        let Node::Nullable(inner) = self.plan.node(self.at) else {
            return Ok(!matches!(self.plan.node(self.at), Node::Null));
        };
        match long(self.input)? {
            0 => Ok(false),
            1 => {
                self.at = *inner;
                Ok(true)
            }
            _ => Err(Malformed("a choice that is not there".to_owned())),
        }
    }

    /// What stands here, if anything does.
    fn here(&mut self) -> Result<Option<&'p Node>, Malformed> {
        if self.depth > MAX_DEPTH {
            return Err(Malformed("nested too deeply".to_owned()));
        }
        Ok(self.is_some()?.then(|| self.plan.node(self.at)))
    }

    fn inner<'i>(&'i mut self, at: At) -> Datum<'p, 'i, 'b> {
        Datum {
            plan: self.plan,
            at,
            input: self.input,
            depth: self.depth + 1,
        }
    }
}

impl<'de> Deserializer<'de> for Datum<'_, '_, 'de> {
    type Error = Malformed;

    // Whatever is read here is compiled for every type that is asked for: the kinds of which there are many, objects
    // and lists, have a way of their own that knows no other.
    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        match self.here()? {
            Some(Node::Record(fields)) => visitor.visit_map(Fields {
                rest: fields,
                datum: self,
            }),
            _ => Err(Malformed(format!("{name} is not an object"))),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Malformed> {
        match self.here()? {
            Some(Node::Array(item)) => visitor.visit_seq(Blocks::new(*item, self)),
            _ => Err(Malformed("not a list".to_owned())),
        }
    }

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Malformed> {
        if self.here()?.is_none() {
            return visitor.visit_unit();
        }
        match self.plan.node(self.at) {
            Node::Null | Node::Nullable(_) => visitor.visit_unit(),
            Node::Boolean => visitor.visit_bool(take(self.input, 1)?[0] != 0),
            Node::Long => visitor.visit_i64(long(self.input)?),
            Node::Double => match double(self.input)? {
                number if number.is_finite() => visitor.visit_f64(number),
                _ => visitor.visit_unit(),
            },
            Node::Float => match float(self.input)? {
                number if number.is_finite() => visitor.visit_f32(number),
                _ => visitor.visit_unit(),
            },
            Node::String => visitor.visit_borrowed_str(text(self.input)?),
            Node::Array(item) => visitor.visit_seq(Blocks::new(*item, self)),
            Node::Map(value) => visitor.visit_map(Blocks::new(*value, self)),
            Node::Record(fields) => visitor.visit_map(Fields {
                rest: fields,
                datum: self,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Malformed> {
        if !self.is_some()? {
            return visitor.visit_none();
        }
        if let Node::Double = self.plan.node(self.at) {
            // What is no number is nothing, as in JSON.
            let mut ahead = *self.input;
            if !double(&mut ahead)?.is_finite() {
                *self.input = ahead;
                return visitor.visit_none();
            }
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        if self.is_some()? && matches!(self.plan.node(self.at), Node::String) {
            let variant = BorrowedStrDeserializer::<Malformed>::new(text(self.input)?);
            return variant.deserialize_enum(name, variants, visitor);
        }
        Err(Malformed(format!("{name} is not a text")))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple tuple_struct map identifier ignored_any
    }
}

/// The items of a list, or the entries of an object with names of its own.
struct Blocks<'p, 'i, 'b> {
    item: At,
    left: usize,
    ended: bool,
    datum: Datum<'p, 'i, 'b>,
}

impl<'p, 'i, 'b> Blocks<'p, 'i, 'b> {
    fn new(item: At, datum: Datum<'p, 'i, 'b>) -> Self {
        Self {
            item,
            left: 0,
            ended: false,
            datum,
        }
    }

    fn has_next(&mut self) -> Result<bool, Malformed> {
        if self.left == 0 && !self.ended {
            self.left = block(self.datum.input)?;
            self.ended = self.left == 0;
        }
        self.left = self.left.saturating_sub(1);
        Ok(!self.ended)
    }
}

impl<'de> SeqAccess<'de> for Blocks<'_, '_, 'de> {
    type Error = Malformed;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Malformed> {
        if !self.has_next()? {
            return Ok(None);
        }
        seed.deserialize(self.datum.inner(self.item)).map(Some)
    }
}

impl<'de> MapAccess<'de> for Blocks<'_, '_, 'de> {
    type Error = Malformed;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Malformed> {
        if !self.has_next()? {
            return Ok(None);
        }
        let key = text(self.datum.input)?;
        seed.deserialize(BorrowedStrDeserializer::new(key))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Malformed> {
        seed.deserialize(self.datum.inner(self.item))
    }
}

/// The fields of a record.
struct Fields<'p, 'i, 'b> {
    rest: &'p [Field],
    datum: Datum<'p, 'i, 'b>,
}

impl<'de> MapAccess<'de> for Fields<'_, '_, 'de> {
    type Error = Malformed;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Malformed> {
        let Some(field) = self.rest.first() else {
            return Ok(None);
        };
        seed.deserialize(StrDeserializer::new(&field.name))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Malformed> {
        let Some((field, rest)) = self.rest.split_first() else {
            return short();
        };
        self.rest = rest;
        let mut place = self.datum.inner(field.node);
        if !field.free {
            return seed.deserialize(place);
        }
        let free = if place.is_some()? {
            text(place.input)?
        } else {
            ""
        };
        // In the one form of JSON that every message is read from anyhow.
        let known = serde_json::from_slice::<IgnoredAny>(free.as_bytes()).is_ok();
        let json = if known { free.as_bytes() } else { b"null" };
        Ok(seed.deserialize(&mut serde_json::Deserializer::from_slice(json))?)
    }
}
