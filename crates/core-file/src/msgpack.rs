//! MessagePack as files of knowledge cores use it: JSON values, read from a stream of bytes that is cut
//! anywhere.
//!
//! Binary strings become base64 text, which is how JSON carries them. Extension types are refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

/// Deepest nesting that is read.
const DEEPEST: usize = 64;

/// Why bytes are no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// An extension type, or the code that is never used.
    #[error("holds a MessagePack type that JSON does not have")]
    Type,
    /// Nested too deeply.
    #[error("is nested too deeply")]
    Deep,
    /// A map key that is no text.
    #[error("has a map key that is not a string")]
    Key,
    /// Text that is not UTF-8.
    #[error("has text that is not UTF-8")]
    Text,
    /// Fewer bytes than the value has.
    #[error("is cut off")]
    Short,
}

/// Finds where the first value of a growing buffer ends, without looking at a byte twice.
#[derive(Debug)]
pub struct Scanner {
    /// Values that are still to come, the containers' items included.
    open: u64,
    at: usize,
}

impl Default for Scanner {
    fn default() -> Self {
        Self { open: 1, at: 0 }
    }
}

impl Scanner {
    /// The length of the first value, once it is whole. The buffer may only have grown since the last call.
    ///
    /// # Errors
    /// The bytes are not MessagePack of the types that are read; more of them do not mend that.
    pub fn end(&mut self, buffer: &[u8]) -> Result<Option<usize>, Malformed> {
        while self.open > 0 {
            let Some(rest) = buffer.get(self.at..).filter(|rest| !rest.is_empty()) else {
                return Ok(None);
            };
            let Some(head) = head(rest)? else {
                return Ok(None);
            };
            let next = self.at + head.length + head.payload;
            if next > buffer.len() {
                // Nothing of this value was looked at but its head.
                return Ok(None);
            }
            self.at = next;
            self.open = self.open - 1 + head.items;
        }
        Ok(Some(self.at))
    }
}

/// What the first bytes of a value say.
struct Head {
    kind: Kind,
    /// Bytes of the head itself.
    length: usize,
    /// Bytes that follow and belong to no item.
    payload: usize,
    /// Items that follow.
    items: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    Nil,
    Bool(bool),
    Unsigned,
    Signed,
    Fixed(i64),
    Float,
    Text,
    Binary,
    List,
    Map,
}

fn head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let Some(code) = bytes.first().copied() else {
        return Ok(None);
    };
    // The length that follows the code in so many bytes.
    let sized = |size: usize| -> Option<usize> {
        let digits = bytes.get(1..=size)?;
        Some(
            digits
                .iter()
                .fold(0, |sum, digit| (sum << 8) | usize::from(*digit)),
        )
    };
    let plain = |kind, payload| {
        Some(Head {
            kind,
            length: 1,
            payload,
            items: 0,
        })
    };
    let string = |kind, size| {
        sized(size).map(|payload| Head {
            kind,
            length: 1 + size,
            payload,
            items: 0,
        })
    };
    let container = |kind, size, each: u64| {
        sized(size).map(|count| Head {
            kind,
            length: 1 + size,
            payload: 0,
            items: count as u64 * each,
        })
    };
    let fixed = |kind, count: u8, each: u64| {
        Some(Head {
            kind,
            length: 1,
            payload: 0,
            items: u64::from(count) * each,
        })
    };
    Ok(match code {
        0x00..=0x7f => plain(Kind::Fixed(i64::from(code)), 0),
        0x80..=0x8f => fixed(Kind::Map, code & 0x0f, 2),
        0x90..=0x9f => fixed(Kind::List, code & 0x0f, 1),
        0xa0..=0xbf => plain(Kind::Text, usize::from(code & 0x1f)),
        0xc0 => plain(Kind::Nil, 0),
        0xc2 => plain(Kind::Bool(false), 0),
        0xc3 => plain(Kind::Bool(true), 0),
        0xc4..=0xc6 => string(Kind::Binary, 1 << (code - 0xc4)),
        0xca => plain(Kind::Float, 4),
        0xcb => plain(Kind::Float, 8),
        0xcc..=0xcf => plain(Kind::Unsigned, 1 << (code - 0xcc)),
        0xd0..=0xd3 => plain(Kind::Signed, 1 << (code - 0xd0)),
        0xd9..=0xdb => string(Kind::Text, 1 << (code - 0xd9)),
        0xdc..=0xdd => container(Kind::List, 2 << (code - 0xdc), 1),
        0xde..=0xdf => container(Kind::Map, 2 << (code - 0xde), 2),
        0xe0..=0xff => plain(Kind::Fixed(i64::from(code as i8)), 0),
        0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => return Err(Malformed::Type),
    })
}

/// Reads one value.
///
/// # Errors
/// The bytes are not one whole value of the types that are read, or nest deeper than is read.
pub fn decode(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut rest = bytes;
    value(&mut rest, DEEPEST)
}

/// What a value takes where it stands: in a list that grew to twice its need, or in a map with a key of its own on the heap.
const PLACE: usize = 150;
/// What a list and a map take, however little is in them.
const LIST: usize = 320;
const MAP: usize = 640;

/// How many bytes of memory the value takes at most that [`decode`] makes of these bytes: a list of empty lists takes hundreds of
/// times as many as it has.
pub fn weight(bytes: &[u8]) -> usize {
    let (mut sum, mut rest) = (bytes.len(), bytes);
    while let Ok(Some(head)) = head(rest) {
        let beside = match head.kind {
            Kind::List => LIST,
            Kind::Map => MAP,
            // It becomes base64.
            Kind::Binary => head.payload.div_ceil(3) + 4,
            _ => 0,
        };
        sum += PLACE + beside;
        rest = rest.get(head.length + head.payload..).unwrap_or_default();
    }
    sum
}

fn value(rest: &mut &[u8], depth: usize) -> Result<Value, Malformed> {
    if depth == 0 {
        return Err(Malformed::Deep);
    }
    let head = head(rest)?.ok_or(Malformed::Short)?;
    let body = rest.get(head.length..).ok_or(Malformed::Short)?;
    let payload = body.get(..head.payload).ok_or(Malformed::Short)?;
    *rest = &body[head.payload..];
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| Malformed::Text);
    Ok(match head.kind {
        Kind::Nil => Value::Null,
        Kind::Bool(flag) => flag.into(),
        Kind::Fixed(number) => number.into(),
        Kind::Unsigned => unsigned(payload).into(),
        Kind::Signed => {
            let shift = 64 - payload.len() * 8;
            (((unsigned(payload) << shift) as i64) >> shift).into()
        }
        Kind::Float => float(payload),
        Kind::Text => text(payload)?.into(),
        Kind::Binary => STANDARD.encode(payload).into(),
        Kind::List => {
            // What is announced may never come: room grows with what does.
            let mut list = Vec::new();
            for _ in 0..head.items {
                list.push(value(rest, depth - 1)?);
            }
            list.into()
        }
        Kind::Map => {
            let mut map = Map::new();
            for _ in 0..head.items / 2 {
                let Value::String(key) = value(rest, depth - 1)? else {
                    return Err(Malformed::Key);
                };
                map.insert(key, value(rest, depth - 1)?);
            }
            map.into()
        }
    })
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

fn float(bytes: &[u8]) -> Value {
    let number = match <[u8; 4]>::try_from(bytes) {
        Ok(four) => f64::from(f32::from_be_bytes(four)),
        Err(_) => f64::from_bits(unsigned(bytes)),
    };
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

/// Writes one value.
pub fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0xc0),
        Value::Bool(flag) => out.push(0xc2 + u8::from(*flag)),
        Value::Number(number) => encode_number(number, out),
        Value::String(text) => {
            encode_text_head(text.len(), out);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Array(items) => {
            encode_list_head(items.len(), out);
            items.iter().for_each(|item| encode(item, out));
        }
        Value::Object(map) => {
            sized((0x80, 15), [(0xde, 2), (0xdf, 4)], map.len(), out);
            for (key, value) in map {
                encode_text_head(key.len(), out);
                out.extend_from_slice(key.as_bytes());
                encode(value, out);
            }
        }
    }
}

/// Announces a list of so many items.
pub fn encode_list_head(length: usize, out: &mut Vec<u8>) {
    sized((0x90, 15), [(0xdc, 2), (0xdd, 4)], length, out);
}

/// Announces a map of so many entries.
pub fn encode_map_head(length: u8, out: &mut Vec<u8>) {
    out.push(0x80 | (length & 0x0f));
}

/// Announces a text of so many bytes.
pub fn encode_text_head(length: usize, out: &mut Vec<u8>) {
    match length {
        32..=255 => out.extend_from_slice(&[0xd9, length as u8]),
        _ => sized((0xa0, 31), [(0xda, 2), (0xdb, 4)], length, out),
    }
}

/// Writes a length in the shortest of three ways. Nothing here is longer than 4 GiB.
fn sized(short: (u8, usize), long: [(u8, usize); 2], length: usize, out: &mut Vec<u8>) {
    if length <= short.1 {
        out.push(short.0 | length as u8);
    } else if length <= usize::from(u16::MAX) {
        out.push(long[0].0);
        out.extend_from_slice(&(length as u16).to_be_bytes());
    } else {
        out.push(long[1].0);
        out.extend_from_slice(&(length as u32).to_be_bytes());
    }
}

fn encode_number(number: &Number, out: &mut Vec<u8>) {
    if let Some(whole) = number.as_u64() {
        if whole < 128 {
            out.push(whole as u8);
        } else {
            out.push(0xcf);
            out.extend_from_slice(&whole.to_be_bytes());
        }
    } else if let Some(whole) = number.as_i64() {
        out.push(0xd3);
        out.extend_from_slice(&whole.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&number.as_f64().unwrap_or_default().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        encode(value, &mut out);
        out
    }

    #[test]
    fn values_survive_and_are_found_however_the_stream_is_cut() {
        let long: Vec<Value> = (0..70_000).map(Value::from).collect();
        let values = [
            json!(null),
            json!([
                true, false, 0, 127, 128, 255, 65_536, -1, -32, -33, -70_000, 0.5, -1e300
            ]),
            json!({"a": "x".repeat(31), "b": "y".repeat(32), "c": "z".repeat(256), "ü": {"": []}}),
            json!(["t", {"m": {"i": "core", "c": "default"}, "t": [{"s": {"t": "i", "i": "urn:a"}}]}]),
            json!("w".repeat(70_000)),
            json!(long),
        ];
        for value in &values {
            assert_eq!(&decode(&written(value)).unwrap(), value);
        }
        let stream: Vec<u8> = values.iter().flat_map(written).collect();
        for step in [1, 7, 4096, stream.len()] {
            let (mut buffer, mut found) = (Vec::new(), Vec::new());
            let mut scanner = Scanner::default();
            for chunk in stream.chunks(step) {
                buffer.extend_from_slice(chunk);
                while let Some(end) = scanner.end(&buffer).unwrap() {
                    found.push(decode(&buffer[..end]).unwrap());
                    buffer.drain(..end);
                    scanner = Scanner::default();
                }
            }
            assert!(buffer.is_empty());
            assert_eq!(found.len(), values.len());
            assert_eq!(found, values);
        }
    }

    #[test]
    fn a_value_weighs_what_is_made_of_it() {
        let lists = [&[0xdc, 0x03, 0xe8][..], &[0x90; 1_000]].concat();
        assert!(decode(&lists).is_ok_and(|value| value[999] == json!([])));
        assert_eq!(
            weight(&lists),
            lists.len() + 1_001 * (PLACE + LIST),
            "the list, and those in it"
        );
        let map = written(&json!({"a": "x".repeat(70_000)}));
        assert_eq!(weight(&map), map.len() + MAP + 3 * PLACE);
        let binary = [&[0xc5, 0x0b, 0xb8][..], &[7; 3_000]].concat();
        let text = decode(&binary).unwrap();
        let text = text.as_str().unwrap();
        assert!((text.len()..text.len() + 200).contains(&weight(&binary)));
        // What is no value, or is cut off, is counted as far as it goes.
        assert_eq!(weight(&[0xc1]), 1);
        assert_eq!(weight(&[0xdb, 0xff, 0xff, 0xff, 0xff]), 5 + PLACE);
        assert_eq!(weight(&[]), 0);
    }

    #[test]
    fn python_writes_what_we_read() {
        // f32, bin 8, int 16, uint 8, str 8
        let bytes = [
            0x95, 0xca, 0x3f, 0, 0, 0, 0xc4, 2, b'h', b'i', 0xd1, 0xff, 0x38, 0xcc, 200, 0xd9, 1,
            b'x',
        ];
        assert_eq!(
            decode(&bytes),
            Ok(json!([0.5, STANDARD.encode("hi"), -200, 200, "x"]))
        );
    }

    #[test]
    fn noise_is_refused_and_costs_nothing() {
        assert_eq!(decode(&[0xd4, 1, 2]), Err(Malformed::Type));
        assert_eq!(decode(&[0x81, 0x01, 0x01]), Err(Malformed::Key));
        assert_eq!(decode(&[0xa1, 0xff]), Err(Malformed::Text));
        assert_eq!(decode(&[0x91; 100]), Err(Malformed::Deep));
        assert_eq!(
            decode(&[0xdd, 0xff, 0xff, 0xff, 0xff]),
            Err(Malformed::Short)
        );
        assert_eq!(decode(&[]), Err(Malformed::Short));
        let mut scanner = Scanner::default();
        assert_eq!(scanner.end(&[0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0]), Ok(None));
        assert_eq!(Scanner::default().end(&[0xc1]), Err(Malformed::Type));
    }
}
