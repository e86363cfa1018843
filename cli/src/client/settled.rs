//! What a gateway says that stores made of the frames of an import.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::error::{Error, Result};

/// Frames that are told one by one, with why.
const TOLD: usize = 100;
/// Frames whose items are known by their numbers: more than a gateway has under way.
const KNOWN: usize = 1 << 17;
/// Keys of a frame that hold its items.
const ITEMS: [&str; 4] = ["triples", "entities", "chunks", "values"];

/// The word of the stores on an import.
#[derive(Debug, Default)]
pub struct Settled {
    /// Frames and items that are stored.
    stored: (u64, u64),
    refused: Faults,
    unconfirmed: Faults,
    /// Frames that were sent.
    sent: u64,
    /// Items up to the end of each of the last of them.
    ends: VecDeque<u64>,
    /// Lines of a file on which items end, by their numbers, where the loader looked them up.
    in_file: BTreeMap<u64, u64>,
}

/// Frames that are not, or not known to be, stored.
#[derive(Debug, Default)]
struct Faults {
    count: u64,
    /// The first of them.
    told: Vec<FrameError>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameError {
    /// Its number, from 1.
    pub frame: u64,
    /// Numbers of its first and last item among all that were sent, from 1.
    pub items: (u64, u64),
    /// Wire type of the first reason.
    pub kind: String,
    /// The reasons.
    pub why: String,
    /// The items with a fault, by their numbers among all that were sent, where the store names all of them.
    pub named: Vec<(u64, String)>,
}

/// The items that a reason names, such as `values[3].n: must be a number; values[7].n: …`, counted from the first of the part.
/// `None` where it names none, or has no room for all.
fn named(why: &str, first: u64) -> Option<Vec<(u64, String)>> {
    let mut found: Vec<(u64, String)> = Vec::new();
    for part in why.split("; ") {
        let item = ITEMS.iter().find_map(|name| {
            let (at, rest) = part
                .strip_prefix(name)?
                .strip_prefix('[')?
                .split_once(']')?;
            let at: u64 = at.parse().ok()?;
            Some((
                first.checked_add(at)?,
                rest.trim_start_matches(['.', ':', ' ']),
            ))
        });
        if let Some((at, rest)) = item {
            found.push((at, rest.to_owned()));
        } else if let Some((_, last)) = found.last_mut() {
            // A reason may have such a mark itself.
            last.push_str(&format!("; {part}"));
        } else {
            return None;
        }
    }
    let more = |text: &str| text.ends_with(" more)") && text.contains(" (and ");
    found
        .last()
        .is_some_and(|(_, last)| !more(last))
        .then_some(found)
}

impl Settled {
    /// A frame is about to be sent.
    pub(super) fn sends(&mut self, frame: &Value) {
        let items = ITEMS.iter().find_map(|name| frame[name].as_array());
        // A frame of one thing without a list.
        let count = items.map_or(1, |items| items.len() as u64);
        self.ends.push_back(self.items_sent() + count);
        self.sent += 1;
        if self.ends.len() > KNOWN {
            self.ends.pop_front();
        }
    }

    /// Takes in what the gateway says; whether it is the word of a store.
    pub(super) fn hear(&mut self, said: &Value) -> bool {
        if let Some(counts) = said["stored"].as_object() {
            let count = |name: Option<&Value>| name.and_then(Value::as_u64).unwrap_or(0);
            let items = counts.iter().find(|(name, _)| *name != "frames");
            self.stored = (count(counts.get("frames")), count(items.map(|one| one.1)));
            return true;
        }
        let refused = said["refused"].is_object();
        let fault = match (refused, said["unconfirmed"].is_object()) {
            (true, _) => self.fault(&said["refused"]),
            (_, true) => self.fault(&said["unconfirmed"]),
            _ => return false,
        };
        let faults = match refused {
            true => &mut self.refused,
            false => &mut self.unconfirmed,
        };
        faults.count += 1;
        if faults.told.len() < TOLD {
            faults.told.push(fault);
        }
        true
    }

    fn fault(&self, said: &Value) -> FrameError {
        let errors = said["errors"].as_array().map_or(&[][..], Vec::as_slice);
        let starts = errors.iter().map(|one| one["from"].as_u64().unwrap_or(0));
        let starts: Vec<u64> = starts.chain([0]).collect();
        let errors = errors.iter().map(|one| &one["error"]);
        let errors: Vec<&Value> = errors.chain(said.get("error")).collect();
        let texts = errors.iter().filter_map(|one| one["message"].as_str());
        let kind = errors.iter().find_map(|one| one["type"].as_str());
        let frame = said["frame"].as_u64().unwrap_or(0);
        let items = self.items(frame);
        let parts = errors.iter().zip(starts);
        let named = parts.map(|(one, start)| {
            let why = one["message"].as_str().unwrap_or_default();
            named(why, items.0.saturating_add(start))
        });
        let named: Option<Vec<_>> = named.collect();
        FrameError {
            frame,
            items,
            kind: kind.unwrap_or_default().to_owned(),
            why: texts.collect::<Vec<_>>().join("; "),
            named: named.map_or_else(Vec::new, |parts| parts.concat()),
        }
    }

    /// Frames of which something is known.
    pub(super) fn frames(&self) -> u64 {
        self.stored.0 + self.refused.count + self.unconfirmed.count
    }

    fn items(&self, frame: u64) -> (u64, u64) {
        let first = self.sent - self.ends.len() as u64;
        let end = |frame: u64| {
            let at = frame.checked_sub(first + 1)?;
            self.ends.get(usize::try_from(at).ok()?).copied()
        };
        let before = frame.checked_sub(1).and_then(end).unwrap_or(0);
        (before + 1, end(frame).unwrap_or(0).max(before + 1))
    }

    fn items_sent(&self) -> u64 {
        self.ends.back().copied().unwrap_or(0)
    }

    /// Items that are stored.
    pub fn stored(&self) -> u64 {
        self.stored.1
    }

    /// Whether all that was sent is stored.
    pub fn is_whole(&self) -> bool {
        self.refused.count + self.unconfirmed.count == 0
    }

    /// Numbers of the items that are reported: those with a fault, or the first and last of a frame.
    pub fn numbers(&self) -> BTreeSet<u64> {
        let faults = self.refused.told.iter().chain(&self.unconfirmed.told);
        let numbers = faults.flat_map(|one| match one.named.as_slice() {
            [] => vec![one.items.0, one.items.1],
            named => named.iter().map(|(at, _)| *at).collect(),
        });
        numbers.collect()
    }

    /// Says on which lines of the file the items of [`Self::numbers`] end.
    pub fn found_at(&mut self, lines: BTreeMap<u64, u64>) {
        self.in_file = lines;
    }

    /// For programs.
    pub fn show(&self) -> Value {
        let named = |(at, why): &(u64, String)| {
            let mut item = json!({"item": at, "message": why});
            if let Some(line) = self.in_file.get(at) {
                item["line"] = json!(line);
            }
            item
        };
        let fault = |one: &FrameError| {
            let mut shown = json!({"frame": one.frame, "from": one.items.0, "to": one.items.1, "type": one.kind,
                "message": one.why, "items": one.named.iter().map(named).collect::<Vec<_>>()});
            let (from, to) = one.items;
            if let (Some(from), Some(to)) = (self.in_file.get(&from), self.in_file.get(&to)) {
                shown["lines"] = json!([from, to]);
            }
            shown
        };
        let list = |faults: &Faults| Value::from(faults.told.iter().map(fault).collect::<Vec<_>>());
        json!({
            "stored": self.stored(),
            "refused-frames": self.refused.count, "refused": list(&self.refused),
            "unconfirmed-frames": self.unconfirmed.count, "unconfirmed": list(&self.unconfirmed),
        })
    }

    /// For people, a line each; `items` is what things are called.
    pub fn lines(&self, items: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (what, faults) in [
            ("refused", &self.refused),
            ("not confirmed", &self.unconfirmed),
        ] {
            for one in &faults.told {
                match one.named.as_slice() {
                    [] => lines.push(format!(
                        "{} {what}: {}",
                        self.name(items, one.items),
                        one.why
                    )),
                    named => lines.extend(named.iter().map(|(at, why)| {
                        format!("{} {what}: {why}", self.name(items, (*at, *at)))
                    })),
                }
            }
            let more = faults.count - faults.told.len() as u64;
            if more > 0 {
                lines.push(format!("{more} more batches {what}"));
            }
        }
        lines
    }

    /// Items by their numbers, behind their lines where these are known.
    fn name(&self, items: &str, (from, to): (u64, u64)) -> String {
        let range = |from: &u64, to: &u64| match from == to {
            true => from.to_string(),
            false => format!("{from} to {to}"),
        };
        let numbers = format!("{items} {}", range(&from, &to));
        match (self.in_file.get(&from), self.in_file.get(&to)) {
            (Some(first), Some(last)) if first == last => format!("line {first} ({numbers})"),
            (Some(first), Some(last)) => format!("lines {} ({numbers})", range(first, last)),
            _ => numbers,
        }
    }

    /// An error unless all of it is stored.
    ///
    /// # Errors
    /// [`Error::Service`] of the type of the first refusal, else `timeout`.
    pub fn check(&self, items: &str) -> Result<()> {
        let (sent, stored) = (self.items_sent(), self.stored());
        let (refused, unconfirmed) = (self.refused.count, self.unconfirmed.count);
        let first = self.refused.told.first().or(self.unconfirmed.told.first());
        let Some(first) = first else {
            return Ok(());
        };
        let parts = [
            (refused, "refused something of"),
            (unconfirmed, "did not confirm in time"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, what)| format!("{what} {count} of {} batches", self.sent))
            .collect();
        Err(Error::Service {
            kind: first.kind.clone(),
            message: format!(
                "{stored} of {sent} {items} are known to be stored: the store {}",
                parts.join(", and ")
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_stored_is_told_by_the_items_that_were_sent() {
        let mut settled = Settled::default();
        for count in [2, 3, 4] {
            settled.sends(&json!({"values": vec![json!({}); count]}));
        }
        assert!(settled.hear(&json!({"stored": {"frames": 1, "rows": 2}})));
        assert!(settled.is_whole() && settled.check("rows").is_ok());
        let error = json!({"type": "bad-content", "message": "values[1].n: must be a number"});
        let refused = json!({"refused": {"frame": 2, "errors": [{"error": error}]}});
        assert!(settled.hear(&refused));
        let error = json!({"type": "timeout", "message": "not in time"});
        assert!(settled.hear(&json!({"unconfirmed": {"frame": 3, "error": error}})));
        assert!(!settled.hear(&json!({"confirmed": {"frames": 1, "rows": 2}})));
        assert_eq!((settled.frames(), settled.stored()), (3, 2));
        assert_eq!(
            settled.lines("rows"),
            [
                "rows 4 refused: n: must be a number",
                "rows 6 to 9 not confirmed: not in time"
            ]
        );
        let shown = settled.show();
        assert_eq!(shown["refused"][0]["from"], 3);
        let item = json!([{"item": 4, "message": "n: must be a number"}]);
        assert_eq!(shown["refused"][0]["items"], item);
        assert_eq!(
            (&shown["stored"], &shown["unconfirmed-frames"]),
            (&json!(2), &json!(1))
        );
        let error = settled.check("rows").expect_err("not whole").to_string();
        assert!(
            error.contains("2 of 9 rows are known to be stored"),
            "{error}"
        );
    }

    #[test]
    fn items_are_reported_by_their_lines_where_these_are_known() {
        let mut settled = Settled::default();
        for _ in 0..2 {
            settled.sends(&json!({"triples": vec![json!({}); 3]}));
        }
        let error = json!({"type": "bad-content", "message": "triples[1].s: no IRI"});
        settled.hear(&json!({"refused": {"frame": 1, "errors": [{"error": error}]}}));
        let error = json!({"type": "quota", "message": "no room"});
        settled.hear(&json!({"refused": {"frame": 2, "errors": [{"error": error}]}}));
        assert_eq!(settled.numbers(), BTreeSet::from([2, 4, 6]));
        settled.found_at(BTreeMap::from([(2, 7), (4, 9), (6, 12)]));
        assert_eq!(
            settled.lines("triples"),
            [
                "line 7 (triples 2) refused: s: no IRI",
                "lines 9 to 12 (triples 4 to 6) refused: no room"
            ]
        );
        let shown = settled.show();
        assert_eq!(shown["refused"][0]["items"][0]["line"], 7);
        assert_eq!(shown["refused"][1]["lines"], json!([9, 12]));
    }

    #[test]
    fn items_are_named_as_far_as_the_store_names_all() {
        let told = |why| {
            let named = named(why, 41)?;
            Some(named.into_iter().map(|(at, _)| at).collect::<Vec<_>>())
        };
        assert_eq!(
            told("values[0].n: must be a; b; values[39].n: y"),
            Some(vec![41, 80])
        );
        assert_eq!(
            told("triples[6].s: a literal cannot be a subject"),
            Some(vec![47])
        );
        for none in [
            "the quota of rows: at most 10",
            "values[0].n: x (and 3 more)",
            "",
        ] {
            assert_eq!(told(none), None, "{none}");
        }
    }

    #[test]
    fn only_the_first_are_told() {
        let mut settled = Settled::default();
        for frame in 1..=200 {
            settled.sends(&json!({"triples": [1]}));
            settled.hear(&json!({"refused": {"frame": frame, "errors": []}}));
        }
        let lines = settled.lines("triples");
        assert_eq!(lines.len(), TOLD + 1);
        assert_eq!(lines[TOLD], "100 more batches refused");
        // Noise is no panic.
        settled.hear(&json!({"refused": {"frame": u64::MAX}}));
        settled.hear(&json!({"refused": {}}));
    }
}
