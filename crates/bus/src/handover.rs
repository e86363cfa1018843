//! In-process handover: a message beside the bytes it was written as, for readers in the same process (zero-copy).
//!
//! Decoding a body costs more than anything else that an in-process hop does. The first reader takes the message
//! itself; every other reader, and every other process, decodes the body. What has one reader, who is in this process, need not
//! have a body: it is written where that reader takes it for a message of another type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tg_schemas::Message;
use tg_schemas::codec::{self, CodecError, ContentType};
use tg_schemas::sections::Shared;

/// Messages with a longer body, in bytes, are not handed over: a queue of them would hold several times its size.
const LONGEST: usize = 16 << 10;
/// The same for a body of several messages, which their writer shares and does not copy for it: the run in one grows with each of its
/// steps.
const LONGEST_TOGETHER: usize = 64 << 10;

struct Slot {
    message: Mutex<Option<Box<dyn Any + Send>>>,
    /// `None`: there is a body.
    unwritten: Option<Unwritten>,
}

/// A message without a body.
#[derive(Clone, Copy)]
struct Unwritten {
    /// Bytes of the body, at most.
    size: usize,
    write: fn(&(dyn Any + Send)) -> Option<Bytes>,
}

fn written<M: Message>(message: &(dyn Any + Send)) -> Option<Bytes> {
    let message = message.downcast_ref::<M>()?;
    codec::encode(message, ContentType::Json).ok()
}

/// What a reader gets.
enum Taken {
    /// The message as it was handed over.
    Alone(Box<dyn Any + Send>),
    /// One of [`Handover::sections`].
    Shared(Shared),
    /// The body of a message of another type.
    Written(Bytes),
}

/// A message to hand over, or none. Clones share it: whoever reads first takes it.
#[derive(Clone, Default)]
pub struct Handover(Option<Arc<Slot>>);

impl Handover {
    /// Hands over a message that was encoded as this body, where the bus is inside the process
    /// ([`crate::Bus::in_process`]). Only then is the message asked for: it may have to be copied.
    pub fn new<M: Message>(in_process: bool, body: &[u8], message: impl FnOnce() -> M) -> Self {
        if !in_process || body.len() > LONGEST {
            return Self::default();
        }
        Self::of(message())
    }

    /// As [`Self::new`], of a message that its writer goes on with. It is copied where a reader takes it meanwhile.
    pub fn shared<M: Message>(in_process: bool, body: &[u8], message: &Arc<M>) -> Self {
        let message: Shared = message.clone();
        Self::sections(in_process && body.len() <= LONGEST, body, vec![message])
    }

    /// The messages of several bodies, for one that holds them all.
    pub fn joined(each: Vec<Self>) -> Self {
        match each.iter().any(Self::is_some) {
            true => Self::of(each),
            false => Self::default(),
        }
    }

    /// The messages of a body that holds several, in order; none where there is nothing to hand over.
    pub fn split(&self) -> Vec<Self> {
        self.take().unwrap_or_default()
    }

    /// Hands over the messages of a body that has a section for each, as [`Self::new`] does.
    pub fn sections(in_process: bool, body: &[u8], messages: Vec<Shared>) -> Self {
        if !in_process || body.len() > LONGEST_TOGETHER || messages.is_empty() {
            return Self::default();
        }
        Self::of(messages)
    }

    /// Most bytes that a message may take as JSON which is handed over without a body.
    pub const LONGEST_UNWRITTEN: usize = LONGEST_TOGETHER;

    /// Hands over a message in place of its body, which as JSON would have so many bytes at most: to a bus inside the process, for an
    /// inbox, whose reader is one alone.
    pub fn unwritten<M: Message>(size: usize, message: M) -> Self {
        let write = written::<M>;
        Self::slot(message, Some(Unwritten { size, write }))
    }

    /// Whether it stands for a body that was not written.
    pub fn is_unwritten(&self) -> bool {
        self.0.as_ref().is_some_and(|slot| slot.unwritten.is_some())
    }

    /// The bytes of the body for which it stands, at most.
    pub fn size(&self) -> usize {
        let unwritten = self.0.as_ref().and_then(|slot| slot.unwritten);
        unwritten.map_or(0, |unwritten| unwritten.size)
    }

    /// Whether there is one, taken or not.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    fn of<T: Send + 'static>(message: T) -> Self {
        Self::slot(message, None)
    }

    fn slot<T: Send + 'static>(message: T, unwritten: Option<Unwritten>) -> Self {
        let message: Box<dyn Any + Send> = Box::new(message);
        Self(Some(Arc::new(Slot {
            message: Mutex::new(Some(message)),
            unwritten,
        })))
    }

    /// The message, alone or shared with its writer, if nobody took it yet. One that has no body and is of another type is read from
    /// what the body would be.
    pub(crate) fn take_message<M: Message>(&self) -> Option<Result<M, CodecError>> {
        match self.taken(TypeId::of::<M>())? {
            Taken::Alone(message) => message.downcast::<M>().ok().map(|message| Ok(*message)),
            Taken::Shared(message) => whole(message).map(Ok),
            Taken::Written(body) => Some(codec::decode(&body, ContentType::Json)),
        }
    }

    /// What is there for a reader of a type. What is of another type and has a body is gone then: the reader's own reading of the body
    /// decides.
    fn taken(&self, kind: TypeId) -> Option<Taken> {
        let slot = self.0.as_ref()?;
        if slot.unwritten.is_none()
            && let Some(message) = self.section(kind)
        {
            return Some(Taken::Shared(message));
        }
        let message = slot.message.lock().take()?;
        match slot.unwritten {
            Some(unwritten) if (*message).type_id() != kind => {
                (unwritten.write)(&*message).map(Taken::Written)
            }
            _ => Some(Taken::Alone(message)),
        }
    }

    fn take<M: 'static>(&self) -> Option<M> {
        let message = self.0.as_ref()?.message.lock().take()?;
        // Another type than was sent: the reader's own reading of the body decides.
        message.downcast::<M>().ok().map(|message| *message)
    }

    /// What is found in a message of a type, alone or among those of [`Self::sections`]: nobody takes it by that.
    pub(crate) fn look<M: Message, T>(&self, find: impl FnOnce(&M) -> T) -> Option<T> {
        let slot = self.0.as_ref()?.message.lock();
        let at_hand = slot.as_ref()?;
        if let Some(message) = at_hand.downcast_ref::<M>() {
            return Some(find(message));
        }
        let messages = at_hand.downcast_ref::<Vec<Shared>>()?;
        let message = messages.iter().find_map(|one| one.downcast_ref::<M>())?;
        Some(find(message))
    }

    /// The message of a type among those of [`Self::sections`], if nobody took it yet. It is not copied where its writer is done
    /// with it.
    pub(crate) fn take_section<M: Message>(&self) -> Option<M> {
        whole(self.section(TypeId::of::<M>())?)
    }

    fn section(&self, kind: TypeId) -> Option<Shared> {
        let mut slot = self.0.as_ref()?.message.lock();
        let messages = slot.as_mut()?.downcast_mut::<Vec<Shared>>()?;
        let at = messages.iter().position(|one| (**one).type_id() == kind)?;
        Some(messages.swap_remove(at))
    }
}

/// A message without its writer, if it is of this type.
fn whole<M: Message>(message: Shared) -> Option<M> {
    message.downcast::<M>().ok().map(Arc::unwrap_or_clone)
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_some() {
            "handed over"
        } else {
            "none"
        })
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::Headers;
    use tg_schemas::msg::{AgentRequest, QuestionToStructuredQueryRequest, TextDocument};
    use tg_schemas::sections::Sections;

    use super::*;
    use crate::bus::Envelope;

    fn question(text: &str) -> AgentRequest {
        AgentRequest {
            question: text.to_owned(),
            ..AgentRequest::default()
        }
    }

    /// A body that says something else than the message at hand, so that one can tell who read what.
    fn envelope(at_hand: &str, written: &str) -> Envelope {
        let body = codec::encode(&question(written), ContentType::Json).unwrap();
        Envelope {
            handover: Handover::new(true, &body, || question(at_hand)),
            body,
            ..Envelope::default()
        }
    }

    #[test]
    fn the_first_reader_takes_it_and_others_read_the_body() {
        let one = envelope("at hand", "written");
        let copy = one.clone();
        assert_eq!(copy.read::<AgentRequest>().unwrap().question, "at hand");
        assert_eq!(one.read::<AgentRequest>().unwrap().question, "written");
        let other = envelope("at hand", "written");
        // Another type reads what the body holds of its own fields.
        assert!(other.read::<TextDocument>().is_ok());
        assert_eq!(other.read::<AgentRequest>().unwrap().question, "written");
    }

    #[test]
    fn a_look_takes_nothing() {
        let text = |one: &Envelope| one.at_hand(|asked: &AgentRequest| asked.question.clone());
        let one = envelope("at hand", "written");
        assert_eq!(text(&one).as_deref(), Some("at hand"));
        assert!(one.at_hand(|_: &TextDocument| ()).is_none());
        assert_eq!(one.read::<AgentRequest>().unwrap().question, "at hand");
        assert!(text(&one).is_none(), "taken");
        let shared: Shared = Arc::new(question("shared"));
        let several = Envelope {
            handover: Handover::sections(true, b"x", vec![shared]),
            ..Envelope::default()
        };
        assert_eq!(text(&several).as_deref(), Some("shared"));
        assert!(several.at_hand(|_: &TextDocument| ()).is_none());
    }

    #[test]
    fn a_message_that_its_writer_goes_on_with_is_read_as_well() {
        let own = Arc::new(question("at hand"));
        let body = codec::encode(&question("written"), ContentType::Json).unwrap();
        let envelope = Envelope {
            handover: Handover::shared(true, &body, &own),
            body,
            ..Envelope::default()
        };
        for expected in ["at hand", "written"] {
            let read = envelope.read::<AgentRequest>().unwrap();
            assert_eq!(read.question, expected);
        }
        assert_eq!(own.question, "at hand");
        let large = vec![b'x'; LONGEST + 1];
        assert!(!Handover::shared(true, &large, &own).is_some());
    }

    #[test]
    fn what_has_no_body_is_written_where_it_is_read_as_another_type() {
        let unwritten = |text: &str| Envelope {
            handover: Handover::unwritten(100, question(text)),
            ..Envelope::default()
        };
        let one = unwritten("q");
        assert!(one.body.is_empty() && one.handover.is_unwritten());
        assert_eq!(one.size(), 100);
        assert_eq!(one.read::<AgentRequest>().unwrap().question, "q");
        assert!(one.read::<AgentRequest>().is_err(), "it is taken");
        let other = unwritten("q");
        let read = other.read::<QuestionToStructuredQueryRequest>().unwrap();
        assert_eq!(read.question, "q");
        let written = envelope("at hand", "written");
        assert!(!written.handover.is_unwritten());
        assert_eq!(written.size(), written.body.len());
    }

    #[test]
    fn what_is_large_is_neither_kept_at_hand_nor_copied() {
        let kept = |bytes: usize| {
            let mut copies = 0;
            let copy = || {
                copies += 1;
                question("x")
            };
            let handover = Handover::new(true, &vec![b'x'; bytes], copy);
            (handover.is_some(), copies)
        };
        assert_eq!(kept(LONGEST), (true, 1));
        assert_eq!(kept(LONGEST + 1), (false, 0));
    }

    #[test]
    fn each_section_is_taken_once_and_then_read() {
        let mut sections = Sections::default();
        sections.share(&Arc::new(question("written"))).unwrap();
        assert_eq!(sections.take_shared().len(), 1);
        let (header, body) = sections.finish();
        let at_hand: Shared = Arc::new(question("at hand"));
        let other: Shared = Arc::new(TextDocument::default());
        let envelope = Envelope {
            headers: Arc::new(Headers {
                sections: Some(header),
                ..Headers::default()
            }),
            content_type: ContentType::Avro,
            handover: Handover::sections(true, &body, vec![other, at_hand]),
            body,
        };
        for expected in ["at hand", "written", "written"] {
            let read = envelope.read::<AgentRequest>().unwrap();
            assert_eq!(read.question, expected);
        }
        let one: Shared = Arc::new(1_u8);
        assert!(!Handover::sections(false, b"x", vec![one]).is_some());
        assert!(!Handover::sections(true, b"x", Vec::new()).is_some());
        for (bytes, kept) in [(LONGEST_TOGETHER, true), (LONGEST_TOGETHER + 1, false)] {
            let one: Shared = Arc::new(1_u8);
            let handover = Handover::sections(true, &vec![b'x'; bytes], vec![one]);
            assert_eq!(handover.is_some(), kept);
        }
    }

    #[test]
    fn bodies_that_travel_together_keep_their_messages() {
        let small = envelope("first", "x").handover;
        let joined = Handover::joined(vec![small, Handover::default()]);
        let each = joined.split();
        assert_eq!(each[0].take::<AgentRequest>().unwrap().question, "first");
        assert!(each.len() == 2 && !each[1].is_some());
        assert!(joined.split().is_empty(), "taken");
        assert!(!Handover::joined(vec![Handover::default()]).is_some());
    }
}
