//! Envelopes as AMQP messages, and what a broker's refusal means.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, ErrorKind};
use tg_schemas::Headers;
use tg_schemas::codec::ContentType;

use crate::bus::{BusError, Envelope};

/// What a broker says of a queue whose node is away: it is not gone.
const AWAY: [&str; 3] = [
    "is down or inaccessible",
    "process is stopped by supervisor",
    "has no leader",
];

/// Properties of a message, as the reference writes them. `id` tells returned messages apart.
pub(super) fn properties(envelope: &Envelope, record: bool, id: &str) -> BasicProperties {
    let mut headers = FieldTable::default();
    for (name, value) in envelope.headers.pairs() {
        headers.insert(name.into(), AMQPValue::LongString(value.into()));
    }
    BasicProperties::default()
        .with_content_type(envelope.content_type.as_str().into())
        .with_headers(headers)
        .with_delivery_mode(if record { 2 } else { 1 })
        .with_priority(0)
        .with_message_id(id.into())
}

/// The envelope of a received message. Anything may have sent it: what is unreadable is left out.
pub(super) fn envelope(properties: &BasicProperties, body: Vec<u8>) -> Envelope {
    let mut headers = Headers::default();
    let table = properties.headers().as_ref().map(FieldTable::inner);
    for (name, value) in table.into_iter().flatten() {
        if let Some(value) = header_text(value) {
            headers.set(name.as_str(), &value);
        }
    }
    let content_type = properties
        .content_type()
        .as_ref()
        .map_or(ContentType::Json, |text| ContentType::parse(text.as_str()));
    Envelope {
        headers: Arc::new(headers),
        content_type,
        body: Bytes::from(body),
        ..Envelope::default()
    }
}

fn header_text(value: &AMQPValue) -> Option<Cow<'_, str>> {
    let number = match value {
        AMQPValue::LongString(text) => {
            return std::str::from_utf8(text.as_bytes()).ok().map(Cow::from);
        }
        AMQPValue::ShortString(text) => return Some(text.as_str().into()),
        AMQPValue::Boolean(value) => u8::from(*value).to_string(),
        AMQPValue::ShortShortInt(n) => n.to_string(),
        AMQPValue::ShortShortUInt(n) => n.to_string(),
        AMQPValue::ShortInt(n) => n.to_string(),
        AMQPValue::ShortUInt(n) => n.to_string(),
        AMQPValue::LongInt(n) => n.to_string(),
        AMQPValue::LongUInt(n) => n.to_string(),
        AMQPValue::LongLongInt(n) => n.to_string(),
        _ => return None,
    };
    Some(number.into())
}

/// A name as the protocol carries it.
pub(super) fn short(name: String) -> Result<ShortString, BusError> {
    ShortString::try_new(name).map_err(|_| BusError::Refused)
}

/// What a broker's error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum AmqpError {
    /// No such queue or exchange.
    #[error("there is no such queue or exchange")]
    Missing,
    /// Exclusively held by another connection.
    #[error("another connection uses it exclusively")]
    Locked,
    /// Exists with other properties, is in use, or is forbidden.
    #[error("it has other properties, is in use, or is forbidden")]
    Refused,
    /// The connection or channel is gone.
    #[error("the connection is gone")]
    Down,
}

impl From<&lapin::Error> for AmqpError {
    fn from(error: &lapin::Error) -> Self {
        let ErrorKind::ProtocolError(error) = error.kind() else {
            return Self::Down;
        };
        let text = error.get_message().as_str();
        match error.get_id() {
            404 if AWAY.iter().any(|away| text.contains(away)) => Self::Down,
            404 => Self::Missing,
            405 => Self::Locked,
            403 | 406 => Self::Refused,
            _ => Self::Down,
        }
    }
}

impl From<lapin::Error> for AmqpError {
    fn from(error: lapin::Error) -> Self {
        (&error).into()
    }
}

impl From<AmqpError> for BusError {
    fn from(fault: AmqpError) -> Self {
        match fault {
            AmqpError::Missing | AmqpError::Down => Self::Down,
            AmqpError::Locked | AmqpError::Refused => Self::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_survive_the_wire() {
        let sent = Envelope {
            headers: Arc::new(Headers {
                id: Some("q-1".into()),
                seq: Some(4),
                detach: true,
                ..Headers::default()
            }),
            content_type: ContentType::Avro,
            body: Bytes::from_static(b"body"),
            ..Envelope::default()
        };
        let wire = properties(&sent, true, "0123");
        assert_eq!(*wire.delivery_mode(), Some(2));
        assert_eq!(*wire.priority(), Some(0));
        let back = envelope(&wire, sent.body.to_vec());
        assert_eq!(back.headers, sent.headers);
        assert_eq!(back.content_type, sent.content_type);
        assert_eq!(back.body, sent.body);
    }

    #[test]
    fn foreign_headers_are_read_leniently() {
        let mut table = FieldTable::default();
        table.insert("id".into(), AMQPValue::ShortString("x".into()));
        table.insert("seq".into(), AMQPValue::LongLongInt(7));
        table.insert("other".into(), AMQPValue::Void);
        let properties = BasicProperties::default().with_headers(table);
        let headers = envelope(&properties, Vec::new()).headers;
        assert_eq!(headers.id.as_deref(), Some("x"));
        assert_eq!(headers.seq, Some(7));
    }
}
