//! Parts of a kept stream as one gateway writes them to another: as many in a message as fit, and a part that is longer in pieces.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use tg_mesh::Responder;
use tg_schemas::limits::KEPT_PIECE;
use tg_schemas::msg::KeptStreamResponse;
use tg_schemas::{Error, ErrorCode};

use crate::ask::Part;
use crate::engine::translate::Body;

/// A part on its way.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Written<B, E> {
    Body {
        body: B,
        last: bool,
        failed: bool,
        /// The bits of its floats in their order: one that is read from its digits may differ in the last of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        bits: Vec<u64>,
    },
    Error(E),
}

/// Adds the bits of all floats of a value.
fn floats(value: &Value, bits: &mut Vec<u64>) {
    match value {
        Value::Number(number) if number.is_f64() => {
            bits.extend(number.as_f64().map(f64::to_bits));
        }
        Value::Array(all) => all.iter().for_each(|one| floats(one, bits)),
        Value::Object(all) => all.values().for_each(|one| floats(one, bits)),
        _ => {}
    }
}

/// Makes the floats of a value what their bits say.
fn restore(value: &mut Value, bits: &mut impl Iterator<Item = u64>) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = bits.next().map(f64::from_bits);
            if let Some(exact) = exact.and_then(Number::from_f64) {
                *number = exact;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|one| restore(one, bits)),
        Value::Object(all) => all.values_mut().for_each(|one| restore(one, bits)),
        _ => {}
    }
}

/// The reply of another gateway says nothing that this one knows.
pub(crate) fn unreadable() -> Error {
    let text = "another gateway sent a reply that cannot be read";
    Error::new(ErrorCode::Internal, text)
}

fn write(part: &Part) -> Result<String, Error> {
    let written = match part {
        Part::Body { body, last, failed } => {
            let mut bits = Vec::new();
            let tree = body.tree();
            tree.values().for_each(|value| floats(value, &mut bits));
            Written::Body {
                body,
                last: *last,
                failed: *failed,
                bits,
            }
        }
        Part::Error(error) => Written::Error(error),
    };
    serde_json::to_string(&written).map_err(|_| unreadable())
}

fn read(text: &str) -> Part {
    match serde_json::from_slice::<Written<Body, Error>>(text.as_bytes()) {
        Ok(Written::Body {
            mut body,
            last,
            failed,
            bits,
        }) => {
            let mut bits = bits.into_iter();
            body.values_mut()
                .for_each(|value| restore(value, &mut bits));
            Part::Body {
                body: body.into(),
                last,
                failed,
            }
        }
        Ok(Written::Error(error)) => Part::Error(error),
        Err(_) => Part::Error(unreadable()),
    }
}

/// A message with no part yet, whose first one has this number.
fn message(first: u64) -> KeptStreamResponse {
    KeptStreamResponse {
        first: i64::try_from(first).unwrap_or(i64::MAX),
        more: true,
        ..KeptStreamResponse::default()
    }
}

/// The first bytes of a text, as many as one message takes, and the rest.
fn cut(text: &str) -> (&str, &str) {
    let mut at = text.len().min(KEPT_PIECE);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.split_at(at)
}

/// Sends parts that follow each other, the first of which has this number.
///
/// # Errors
/// Where nobody waits for them any more.
pub(crate) async fn send(
    out: &mut Responder<KeptStreamResponse>,
    first: u64,
    parts: &[Arc<Part>],
) -> Result<(), Error> {
    let (mut open, mut size) = (message(first), 0);
    for (number, part) in (first..).zip(parts) {
        let text = write(part)?;
        if size > 0 && size + text.len() > KEPT_PIECE {
            out.send(std::mem::replace(&mut open, message(number)))
                .await?;
            size = 0;
        }
        let mut rest = text.as_str();
        while rest.len() > KEPT_PIECE {
            let (piece, behind) = cut(rest);
            let piece = KeptStreamResponse {
                parts: vec![piece.to_owned()],
                cut: true,
                ..message(number)
            };
            out.send(piece).await?;
            rest = behind;
        }
        size += rest.len();
        open.parts.push(rest.to_owned());
    }
    out.send(open).await
}

/// Puts parts together again as their messages come.
#[derive(Default)]
pub(crate) struct Joining {
    /// The pieces of a part that is not whole yet.
    begun: String,
}

impl Joining {
    /// The parts that a message completes, with the number of the first. `None`: it has only a piece of one.
    pub(crate) fn take(&mut self, said: KeptStreamResponse) -> Option<(u64, Vec<Part>)> {
        if said.cut {
            self.begun.extend(said.parts);
            return None;
        }
        let mut texts = said.parts.into_iter();
        let mut begun = std::mem::take(&mut self.begun);
        let whole = (!begun.is_empty()).then(|| {
            begun.extend(texts.next());
            begun
        });
        let parts = whole.into_iter().chain(texts);
        let parts = parts.map(|text| read(&text)).collect();
        Some((u64::try_from(said.first).unwrap_or(0), parts))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(text: &str) -> Part {
        let scores = [0.5, 0.1 + 0.2, 1.0 / 3.0, -7.0, 1e-300, 1e300 / 7.0];
        let said = json!({"text": text, "scores": scores, "of": {"count": 1, "cost": 2.0 / 3.0}});
        let body = said.as_object().cloned().unwrap();
        Part::Body {
            body: body.into(),
            last: false,
            failed: true,
        }
    }

    #[test]
    fn a_part_is_read_as_it_was_written() {
        let error = Part::Error(Error::typed("graph-rag-error", "no such thing"));
        for part in [part("a \"quoted\" ü\n"), error] {
            assert_eq!(read(&write(&part).unwrap()), part);
        }
        assert_eq!(read("{}"), Part::Error(unreadable()));
    }

    #[test]
    fn pieces_of_a_part_become_one_again_and_keep_their_letters_whole() {
        let long = part(&"ü".repeat(KEPT_PIECE));
        let text = write(&long).unwrap();
        let (mut joining, mut rest) = (Joining::default(), text.as_str());
        let mut pieces = 0;
        while rest.len() > KEPT_PIECE {
            let (piece, behind) = cut(rest);
            let said = KeptStreamResponse {
                parts: vec![piece.to_owned()],
                cut: true,
                ..message(7)
            };
            assert_eq!(joining.take(said), None);
            (pieces, rest) = (pieces + 1, behind);
        }
        assert!(pieces > 1 && !rest.is_empty());
        let said = KeptStreamResponse {
            parts: vec![rest.to_owned(), write(&part("b")).unwrap()],
            ..message(7)
        };
        assert_eq!(joining.take(said), Some((7, vec![long, part("b")])));
        assert_eq!(joining.take(message(12)), Some((12, Vec::new())));
    }
}
