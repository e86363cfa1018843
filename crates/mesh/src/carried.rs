//! A message beside the bytes it was written as, for readers in the same process.
//!
//! Reading a body costs more than anything else that an in-process hop does. The first who reads a message that is
//! still at hand takes it; everybody else, and every other process, reads the body.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_schemas::Message;
use tg_schemas::codec::{self, CodecError};

use crate::bus::{Bus, Envelope};

/// Messages with a longer body, in bytes, are not kept at hand: what waits would hold several times its size.
const LONGEST: usize = 16 << 10;

type Slot = Mutex<Option<Box<dyn Any + Send>>>;

/// A message at hand, or none. Copies share it.
#[derive(Clone, Default)]
pub struct Carried(Option<Arc<Slot>>);

impl Carried {
    /// Keeps a message at hand that was written as this body, if the bus is inside the process. Only then is it
    /// asked for: it may have to be copied.
    pub(crate) fn new<M: Message>(bus: &dyn Bus, body: &[u8], message: impl FnOnce() -> M) -> Self {
        if !bus.in_process() || body.len() > LONGEST {
            return Self::default();
        }
        Self::of(message())
    }

    /// The messages of several bodies, for one that holds them all.
    pub(crate) fn joined(each: Vec<Self>) -> Self {
        match each.iter().any(Self::is_some) {
            true => Self::of(each),
            false => Self::default(),
        }
    }

    /// The messages of a body that holds several, in order; none where nothing is at hand.
    pub(crate) fn split(&self) -> Vec<Self> {
        self.take().unwrap_or_default()
    }

    /// Whether there is one, taken or not.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    fn of<T: Send + 'static>(message: T) -> Self {
        Self(Some(Arc::new(Mutex::new(Some(Box::new(message))))))
    }

    fn take<M: 'static>(&self) -> Option<M> {
        let message = self.0.as_ref()?.lock().take()?;
        // Another type than was sent: the reader's own reading of the body decides.
        message.downcast::<M>().ok().map(|message| *message)
    }
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_some() { "at hand" } else { "none" })
    }
}

impl Envelope {
    /// The message: the one at hand if it is still there, else what the body says.
    pub(crate) fn read<M: Message>(&self) -> Result<M, CodecError> {
        match self.carried.take() {
            Some(message) => Ok(message),
            None => codec::decode(&self.body, self.content_type),
        }
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::codec::ContentType;
    use tg_schemas::msg::{AgentRequest, TextDocument};

    use super::*;
    use crate::embedded::EmbeddedBus;

    fn question(text: &str) -> AgentRequest {
        AgentRequest {
            question: text.to_owned(),
            ..AgentRequest::default()
        }
    }

    /// A body that says something else than the message at hand, so that one can tell who read what.
    fn envelope(bus: &EmbeddedBus, at_hand: &str, written: &str) -> Envelope {
        let body = codec::encode(&question(written), ContentType::Json).unwrap();
        Envelope {
            carried: Carried::new(bus, &body, || question(at_hand)),
            body,
            ..Envelope::default()
        }
    }

    #[test]
    fn the_first_reader_takes_it_and_others_read_the_body() {
        let bus = EmbeddedBus::in_memory();
        let one = envelope(&bus, "at hand", "written");
        let copy = one.clone();
        assert_eq!(copy.read::<AgentRequest>().unwrap().question, "at hand");
        assert_eq!(one.read::<AgentRequest>().unwrap().question, "written");
        let other = envelope(&bus, "at hand", "written");
        // Another type reads what the body holds of its own fields.
        assert!(other.read::<TextDocument>().is_ok());
        assert_eq!(other.read::<AgentRequest>().unwrap().question, "written");
    }

    #[test]
    fn what_is_large_is_neither_kept_at_hand_nor_copied() {
        let bus = EmbeddedBus::in_memory();
        let kept = |bytes: usize| {
            let mut copies = 0;
            let copy = || {
                copies += 1;
                question("x")
            };
            let carried = Carried::new(&bus, &vec![b'x'; bytes], copy);
            (carried.is_some(), copies)
        };
        assert_eq!(kept(LONGEST), (true, 1));
        assert_eq!(kept(LONGEST + 1), (false, 0));
    }

    #[test]
    fn bodies_that_travel_together_keep_their_messages() {
        let bus = EmbeddedBus::in_memory();
        let small = envelope(&bus, "first", "x").carried;
        let joined = Carried::joined(vec![small, Carried::default()]);
        let each = joined.split();
        assert_eq!(each[0].take::<AgentRequest>().unwrap().question, "first");
        assert!(each.len() == 2 && !each[1].is_some());
        assert!(joined.split().is_empty(), "taken");
        assert!(!Carried::joined(vec![Carried::default()]).is_some());
    }
}
