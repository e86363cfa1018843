//! The counters of an import, and what is reported of each frame.

use serde_json::{Value, json};
use tg_schemas::{Error, ErrorCode};

use crate::engine::scrub::scrub;
use crate::engine::translate::bulk::BulkKind;
use crate::engine::translate::{Body, error_value};
use crate::receipts::Refused;

/// Faults that are told one by one.
const TOLD: usize = 20;
/// The same where the stores are waited for.
pub(super) const TOLD_SETTLED: usize = 100;
/// Frames whose numbers are told.
const NUMBERED: usize = 10_000;

/// What came in and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The stores are waited for.
    settled: bool,
    /// Frames.
    pub(super) received: u64,
    /// Frames whose records are all on the bus, which loses none.
    pub(super) sent: u64,
    /// Frames of which stores said that all is stored.
    pub(super) stored: u64,
    /// Frames of which a store refused something.
    pub(super) refused: u64,
    /// Frames of which no store said anything in time.
    pub(super) unconfirmed: u64,
    /// Frames that could not be read or written.
    pub(super) failed: u64,
    /// Items in the stored frames; where the stores are not waited for, in those that were sent.
    pub(super) items: u64,
    faults: Vec<Value>,
    refused_frames: Vec<u64>,
    unconfirmed_frames: Vec<u64>,
}

impl Counts {
    pub(super) fn new(settled: bool) -> Self {
        Self {
            settled,
            ..Self::default()
        }
    }

    pub(super) fn failed(&mut self, frame: u64, error: &Error) {
        self.failed += 1;
        self.note(json!({"frame": frame, "error": error_value(error)}));
    }

    pub(super) fn sent(&mut self, items: usize) {
        self.sent += 1;
        if !self.settled {
            self.items += items as u64;
        }
    }

    pub(super) fn stored(&mut self, items: usize) {
        self.stored += 1;
        self.items += items as u64;
    }

    /// Counts a frame that a store refused; what is told of it, and the first reason.
    pub(super) fn refused(&mut self, frame: u64, refused: Vec<Refused>) -> (Value, Option<Error>) {
        self.refused += 1;
        number(&mut self.refused_frames, frame);
        let (mut told, mut first) = (Vec::new(), None);
        for Refused { from, error } in refused.into_iter().take(TOLD) {
            let error = scrub(error);
            let mut fault = part_fault(from, &error);
            told.push(fault.clone());
            fault["frame"] = frame.into();
            self.note(fault);
            first.get_or_insert(Error::typed(
                &error.kind,
                format!("frame {frame}: {}", error.message),
            ));
        }
        (json!({"refused": {"frame": frame, "errors": told}}), first)
    }

    /// Counts a frame of which nobody said in time that it is stored; what is told of it.
    pub(super) fn unconfirmed(&mut self, frame: u64, why: Option<Error>) -> Value {
        self.unconfirmed += 1;
        number(&mut self.unconfirmed_frames, frame);
        let error = error_value(&unconfirmed(why));
        self.note(json!({"frame": frame, "error": error}));
        json!({"unconfirmed": {"frame": frame, "error": error}})
    }

    fn note(&mut self, fault: Value) {
        let most = if self.settled { TOLD_SETTLED } else { TOLD };
        if self.faults.len() < most {
            self.faults.push(fault);
        }
    }

    /// As clients see them.
    pub(super) fn show(&self, kind: BulkKind) -> Body {
        let mut body = Body::new();
        let mut count = |name: &str, count: u64| body.insert(name.into(), count.into());
        count("received", self.received);
        count("sent", self.sent);
        if self.settled {
            count("stored", self.stored);
            count("refused", self.refused);
            count("unconfirmed", self.unconfirmed);
        }
        count("failed", self.failed);
        count(kind.items(), self.items);
        for (name, frames) in [
            ("refused_frames", &self.refused_frames),
            ("unconfirmed_frames", &self.unconfirmed_frames),
        ] {
            if !frames.is_empty() {
                let mut frames = frames.clone();
                frames.sort_unstable();
                body.insert(name.into(), frames.into());
            }
        }
        if !self.faults.is_empty() {
            body.insert("errors".into(), self.faults.clone().into());
        }
        body
    }

    /// The frame that tells them.
    pub(crate) fn status(&self, kind: BulkKind, complete: bool) -> Value {
        json!({"status": self.show(kind), "complete": complete})
    }

    /// The frame that confirms what is safe: stored, where the stores are waited for, else on the bus.
    pub(crate) fn confirmed(&self, kind: BulkKind) -> Value {
        match self.settled {
            true => json!({"stored": {"frames": self.stored, kind.items(): self.items}}),
            false => json!({"confirmed": {"frames": self.sent, kind.items(): self.items}}),
        }
    }

    /// Counters with faults, for who looks at the frames only.
    #[cfg(test)]
    pub(crate) fn sample(settled: bool) -> Self {
        let mut counts = Self::new(settled);
        counts.received = 3;
        counts.failed(2, &Error::new(ErrorCode::BadRequest, "no"));
        counts.sent(10);
        if settled {
            counts.stored(10);
            let error = Error::new(ErrorCode::TooLarge, "full");
            let from = Some(1000);
            counts.refused(4, vec![Refused { from, error }]);
            counts.unconfirmed(5, None);
        }
        counts
    }

    /// Frames that tell of one that a store refused, whole and in parts, and of one that none confirmed.
    #[cfg(test)]
    pub(crate) fn sample_frames() -> Vec<Value> {
        let mut counts = Self::new(true);
        let refused = [None, Some(1000)].map(|from| {
            let error = Error::new(ErrorCode::TooLarge, "full");
            counts.refused(4, vec![Refused { from, error }]).0
        });
        let mut frames = refused.to_vec();
        frames.push(counts.unconfirmed(5, None));
        frames
    }

    /// In a few words.
    pub(super) fn text(&self) -> String {
        let Self {
            received,
            sent,
            stored,
            refused,
            unconfirmed,
            failed,
            ..
        } = self;
        match self.settled {
            true => format!(
                "received {received}, stored {stored}, refused {refused}, unconfirmed {unconfirmed}, failed {failed}"
            ),
            false => format!("received {received}, sent {sent}, failed {failed}"),
        }
    }
}

fn number(frames: &mut Vec<u64>, frame: u64) {
    if frames.len() < NUMBERED {
        frames.push(frame);
    }
}

/// Why the store refused a part; `from` is the number of its first item.
pub(super) fn part_fault(from: Option<usize>, error: &Error) -> Value {
    let mut fault = json!({"error": error_value(error)});
    if let Some(from) = from {
        fault["from"] = from.into();
    }
    fault
}

/// What is said of a record that nobody has confirmed, nor refused.
pub(super) fn unconfirmed(why: Option<Error>) -> Error {
    let text = "the store has not confirmed it in time; it may still be stored";
    let text = match why {
        Some(why) => format!("{text}. So far it failed: {}", scrub(why).message),
        None => text.to_owned(),
    };
    Error::new(ErrorCode::Timeout, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_faults_are_told_and_the_numbers_of_more_frames() {
        let mut counts = Counts::new(false);
        for frame in 0..100 {
            counts.failed(frame, &Error::typed("bad-request", "no"));
        }
        let shown = counts.show(BulkKind::Rows);
        assert_eq!(shown["errors"].as_array().unwrap().len(), TOLD);
        assert_eq!((&shown["rows"], shown.get("stored")), (&json!(0), None));
        let mut counts = Counts::new(true);
        for frame in (1..=20_000).rev() {
            counts.unconfirmed(frame, None);
        }
        let shown = counts.show(BulkKind::Rows);
        assert_eq!(shown["errors"].as_array().unwrap().len(), TOLD_SETTLED);
        let frames = shown["unconfirmed_frames"].as_array().unwrap();
        assert_eq!((frames.len(), &frames[0]), (NUMBERED, &json!(10_001)));
    }

    #[test]
    fn what_a_store_refused_is_told_by_frame_and_first_item() {
        let shown = Counts::sample(true).show(BulkKind::Triples);
        assert_eq!(shown["refused_frames"], json!([4]));
        assert_eq!(shown["unconfirmed_frames"], json!([5]));
        let errors = shown["errors"].as_array().unwrap();
        assert_eq!(
            (&errors[1]["frame"], &errors[1]["from"]),
            (&json!(4), &json!(1000))
        );
        assert_eq!(errors[2]["error"]["type"], "timeout");
        let text = Counts::sample(true).text();
        assert_eq!(
            text,
            "received 3, stored 1, refused 1, unconfirmed 1, failed 1"
        );
    }

    #[test]
    fn why_it_failed_before_is_told_without_addresses() {
        let why = Error::new(ErrorCode::Storage, "the disk of 10.0.0.1:5672 is full");
        let told = unconfirmed(Some(why)).message;
        assert!(
            told.contains("is full") && !told.contains("10.0.0.1"),
            "{told}"
        );
    }
}
