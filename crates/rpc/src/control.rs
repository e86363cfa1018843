//! The topic on which processes announce what they do, and the broadcast that cancels a question.

use std::sync::Arc;

use tg_bus::{Envelope, Target};
use tg_schemas::{Class, Frame, Headers, Topic};

use crate::port::Port;

/// Where processes announce what they do.
pub fn topic() -> Topic {
    Topic::system(Class::Notify, "control")
}

/// Broadcasts a cancel: whoever works on the id stops, on a detached answer only if this is about one.
pub(crate) fn broadcast_cancel(port: &Port, id: Arc<str>, detached: bool) {
    let headers = Headers {
        id: Some(id.to_string()),
        from: Some(port.inbox().to_owned()),
        frame: Some(Frame::Cancel),
        detach: detached,
        ..Headers::default()
    };
    let envelope = Envelope {
        headers: Arc::new(headers),
        ..Envelope::default()
    };
    port.post(Target::Topic(topic()), envelope);
}
