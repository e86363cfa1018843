//! One answer under way: its parts as far as they may be asked for again, and what its asker has used up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tg_bus::{Envelope, Handover, Target};
use tg_schemas::codec::ContentType;
use tg_schemas::{Frame, Headers, Topic};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::address::ReplyAddress;
use crate::deadline::Deadline;
use crate::window::{WINDOW_BYTES, WINDOW_PARTS};

/// First pause before a silent server sends a heartbeat; doubles to [`LONGEST_PAUSE`].
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(300);
/// Longest pause between two heartbeats.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// One answer under way in this process.
pub struct ReplyStream {
    pub(crate) id: Arc<str>,
    pub(crate) reply_to: Target,
    pub(crate) plain: bool,
    pub(crate) detach: bool,
    /// Another process goes on with it if this one dies, until it is noted as over: its end is flushed.
    pub(crate) resumed: bool,
    pub(crate) deadline: Deadline,
    pub(crate) cancel: CancellationToken,
    pub(crate) credit: Notify,
    pub(crate) state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) parts: VecDeque<(u64, Envelope)>,
    pub(crate) next: u64,
    pub(crate) credited: u64,
    /// Numbers and sizes of the parts that the asker has not used up, and their sum.
    pub(crate) ahead: VecDeque<(u64, usize)>,
    pub(crate) bytes_ahead: usize,
    pub(crate) kept_bytes: usize,
    pub(crate) spoke: Instant,
    pub(crate) pause: Duration,
    pub(crate) ended: Option<Instant>,
    /// Since when another message is to continue it.
    pub(crate) released: Option<Instant>,
    /// Whoever takes the question next answers, who may be in this process.
    passed_on: bool,
    /// Since when the handler waits for the asker to use up what is there, or when the asker was last looked for.
    pub(crate) waits: Option<Instant>,
}

impl State {
    /// Counts the next part, of so many bytes, as one that the asker has not used up.
    pub(crate) fn goes_ahead(&mut self, bytes: usize) {
        self.ahead.push_back((self.next, bytes));
        self.bytes_ahead += bytes;
        self.next += 1;
    }
}

impl ReplyStream {
    /// An answer to who stands in an address. `None` if it cannot be sent there.
    pub(crate) fn new(address: &ReplyAddress, cancel: CancellationToken) -> Option<Self> {
        let reply_to = if address.plain {
            Target::Topic(Topic::parse(&address.reply_to).ok()?)
        } else {
            Target::Inbox(address.reply_to.as_str().into())
        };
        Some(Self {
            id: address.id.as_str().into(),
            reply_to,
            plain: address.plain,
            detach: address.detach,
            resumed: false,
            deadline: Deadline::from_millis(address.deadline),
            cancel,
            credit: Notify::new(),
            state: Mutex::new(State {
                parts: VecDeque::new(),
                next: address.seq,
                credited: address.seq,
                ahead: VecDeque::new(),
                bytes_ahead: 0,
                kept_bytes: 0,
                spoke: Instant::now(),
                pause: FIRST_PAUSE,
                ended: None,
                released: None,
                passed_on: false,
                waits: None,
            }),
        })
    }

    /// Number of the next part.
    pub fn next_seq(&self) -> u64 {
        self.state.lock().next
    }

    /// Whether it was ended, or given to another message to continue.
    pub fn settled(&self) -> bool {
        let state = self.state.lock();
        state.ended.is_some() || state.released.is_some()
    }

    /// Cancelled when the asker gave up, unless the answer is detached.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended().is_some()
    }

    /// When it ended.
    pub(crate) fn ended(&self) -> Option<Instant> {
        self.state.lock().ended
    }

    /// Bytes of the parts that may be asked for again.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.state.lock().kept_bytes
    }

    /// Whether its parts go to the process with this inbox.
    pub(crate) fn is_for(&self, inbox: &str) -> bool {
        matches!(&self.reply_to, Target::Inbox(own) if **own == *inbox)
    }

    /// Inbox of its asker; none of a plain one.
    pub(crate) fn asker(&self) -> Option<&Arc<str>> {
        match &self.reply_to {
            Target::Inbox(inbox) => Some(inbox),
            _ => None,
        }
    }

    /// Ended, and nothing that this asker lacks is kept.
    pub(crate) fn is_over_for(&self, address: &ReplyAddress, in_process: bool) -> bool {
        let state = self.state.lock();
        let kept = state
            .parts
            .front()
            .is_some_and(|(seq, _)| *seq <= address.seq);
        state.ended.is_some() && (in_process || !self.is_for(&address.reply_to) || !kept)
    }

    pub(crate) fn release(&self) -> ReplyAddress {
        let mut state = self.state.lock();
        state.released = Some(Instant::now());
        ReplyAddress {
            id: self.id.to_string(),
            reply_to: match &self.reply_to {
                Target::Inbox(name) => name.to_string(),
                Target::Topic(topic) => topic.to_string(),
                Target::Subscription(_) | Target::Liveness(_) => String::new(),
            },
            seq: state.next,
            deadline: self.deadline.millis(),
            detach: self.detach,
            plain: self.plain,
        }
    }

    /// Released to be answered by whoever takes the question next, who may be in this process.
    pub(crate) fn pass_on(&self) -> ReplyAddress {
        self.state.lock().passed_on = true;
        self.release()
    }

    pub(crate) fn is_passed_on(&self) -> bool {
        self.state.lock().passed_on
    }

    /// Goes on with an answer under this one's id. `false` while that one is still worked on.
    pub(crate) fn continues(&self, earlier: &Self) -> bool {
        let mut earlier = earlier.state.lock();
        if earlier.released.is_none() || earlier.ended.is_some() {
            return false;
        }
        let mut state = self.state.lock();
        state.parts = std::mem::take(&mut earlier.parts);
        state.kept_bytes = std::mem::take(&mut earlier.kept_bytes);
        true
    }

    /// The asker has used up the parts before this number.
    pub(crate) fn used_up(&self, seq: u64) {
        let mut state = self.state.lock();
        state.credited = state.credited.max(seq);
        while state.ahead.front().is_some_and(|(number, _)| *number < seq) {
            if let Some((_, bytes)) = state.ahead.pop_front() {
                state.bytes_ahead -= bytes;
            }
        }
        while state.parts.front().is_some_and(|(number, _)| *number < seq) {
            if let Some((_, part)) = state.parts.pop_front() {
                state.kept_bytes -= part.body.len();
            }
        }
        drop(state);
        self.credit.notify_one();
    }

    /// Whether the asker is a window behind, so that the next part waits.
    pub(crate) fn waits_for_credit(&self) -> bool {
        let mut state = self.state.lock();
        let ahead = state.next.saturating_sub(state.credited);
        let waits = ahead >= WINDOW_PARTS || (state.bytes_ahead >= WINDOW_BYTES && ahead > 0);
        state.waits = waits.then(|| state.waits.unwrap_or_else(Instant::now));
        waits
    }

    /// The kept parts from this number on.
    pub(crate) fn parts_from(&self, seq: u64) -> Vec<Envelope> {
        let state = self.state.lock();
        let parts = state.parts.iter().filter(|(number, _)| *number >= seq);
        parts.map(|(_, part)| part.clone()).collect()
    }

    /// Parts that are not written, from this number on, as one message.
    pub(crate) fn together(
        &self,
        inbox: &str,
        frame: Frame,
        seq: u64,
        parts: Vec<Handover>,
    ) -> Envelope {
        let mut message = self.frame(inbox, frame, seq, Bytes::new());
        Arc::make_mut(&mut message.headers).parts = u32::try_from(parts.len()).ok();
        message.handover = Handover::joined(parts);
        message
    }

    pub(crate) fn frame(&self, inbox: &str, frame: Frame, seq: u64, body: Bytes) -> Envelope {
        let headers = if self.plain {
            Headers {
                id: Some(self.id.to_string()),
                ..Headers::default()
            }
        } else {
            Headers {
                id: Some(self.id.to_string()),
                from: Some(inbox.to_owned()),
                frame: Some(frame),
                seq: Some(seq),
                detach: self.detach,
                ..Headers::default()
            }
        };
        Envelope {
            headers: Arc::new(headers),
            content_type: ContentType::Json,
            body,
            ..Envelope::default()
        }
    }
}
