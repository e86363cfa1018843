//! What was tried and what came of it, for somebody who audits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::doors::{Effect, Trial};
use super::timed::Times;
use super::verdict::Leak;
use crate::layout::{Width, table};

/// One try: an operation, by a role, about the other workspace or about its things by their ids.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The endpoint.
    pub endpoint: String,
    /// The operation at it.
    pub operation: String,
    /// read, write, delete.
    pub effect: &'static str,
    /// Whoever asked.
    pub role: &'static str,
    /// `rest`, `socket` for a frame of the socket, `upgrade` for a socket of records.
    pub over: &'static str,
    /// Whether the other workspace was named, or its things only.
    pub named: bool,
    /// The status that came back.
    pub status: u16,
    /// What is wrong with it.
    pub fault: Option<Leak>,
}

/// The whole audit.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Each try.
    pub cells: Vec<Cell>,
    /// What is otherwise in the other workspace than before.
    pub changed: Vec<String>,
    /// The greatest gap between times about what is there and what is not, in milliseconds, by operation.
    pub gaps_ms: BTreeMap<String, f64>,
    /// How many pairs of requests were timed.
    pub timed: Timed,
    /// What times tell of each operation, of all roles together.
    pub timing: Vec<Timing>,
}

/// Times of an operation: about what is there, and about what is not.
#[derive(Debug, Clone, Serialize)]
pub struct Timing {
    /// The endpoint.
    pub endpoint: String,
    /// The operation at it.
    pub operation: String,
    /// Whether the other workspace was named, or its things only.
    pub named: bool,
    /// It is not repeated for its times, as guesses are counted.
    pub once: bool,
    /// Pairs that were timed.
    pub pairs: usize,
    /// The middle of the differences within pairs, in milliseconds.
    pub median_ms: f64,
    /// What it may be.
    pub bound_ms: f64,
}

/// Pairs of requests that were timed: about what is there, and about what is not.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Timed {
    /// Naming the other workspace.
    pub named: usize,
    /// Naming something in it by an id.
    pub by_id: usize,
    /// Those of both that were frames of a socket.
    pub frames: usize,
}

impl Report {
    /// Notes a try.
    pub fn add(
        &mut self,
        trial: &Trial,
        (role, over, named): (&'static str, &'static str, bool),
        status: u16,
        fault: Option<Leak>,
    ) {
        self.cells.push(Cell {
            endpoint: trial.door.clone(),
            operation: trial.operation.clone(),
            effect: trial.effect.word(),
            role,
            over,
            named,
            status,
            fault,
        });
    }

    /// Notes that pairs were timed.
    pub fn timed(&mut self, is_frame: bool, named: bool, pairs: usize) {
        if is_frame {
            self.timed.frames += pairs;
        }
        match named {
            true => self.timed.named += pairs,
            false => self.timed.by_id += pairs,
        }
    }

    /// Notes the gap between the times of an operation: the greatest of all roles.
    pub fn gap(&mut self, trial: &Trial, (over, named): (&str, bool), gap: Duration) {
        let operation = format!("{} {}", trial.door, trial.operation);
        let by = if named { "" } else { " by id" };
        let over = if over == "socket" {
            " over a socket"
        } else {
            ""
        };
        let name = format!("{}{by}{over}", operation.trim_end());
        let ms = in_ms(gap);
        let greatest = self.gaps_ms.entry(name).or_default();
        *greatest = greatest.max(ms);
    }

    /// Notes what the times of an operation tell.
    pub fn timing(&mut self, trial: &Trial, (named, once): (bool, bool), times: &Times) {
        self.timing.push(Timing {
            endpoint: trial.door.clone(),
            operation: trial.operation.clone(),
            named,
            once,
            pairs: times.len(),
            median_ms: in_ms(times.median()),
            bound_ms: in_ms(times.bound()),
        });
    }

    /// How much is wrong.
    pub fn faults(&self) -> usize {
        let cells = self.cells.iter().filter(|cell| cell.fault.is_some());
        cells.count() + self.changed.len()
    }

    /// For people.
    pub fn text(&self, width: Width) -> String {
        let mut text = table(
            [
                "endpoint",
                "read",
                "write",
                "delete",
                "exists-timing",
                "ms",
                "refused",
                "faults",
            ],
            self.rows(),
            width,
        );
        text.push('\n');
        let slowest = self.gaps_ms.iter().max_by(|a, b| a.1.total_cmp(b.1));
        if let Some((what, gap)) = slowest {
            text.push_str(&format!(
                "\nGreatest gap in time between what is there and what is not: {gap:.1} ms ({what}).\n"
            ));
        }
        let Timed {
            named,
            by_id,
            frames,
        } = self.timed;
        text.push_str(&format!(
            "\nPairs of requests timed: {named} naming the other workspace, {by_id} with ids of it; {frames} of them frames.\n"
        ));
        for cell in &self.cells {
            if let Some(fault) = cell.fault {
                text.push_str(&format!("\nFAULT: {}", told(cell, fault)));
            }
        }
        for what in &self.changed {
            text.push_str(&format!("\nFAULT: changed in the other workspace: {what}"));
        }
        let verdict = match self.faults() {
            0 => "Nothing of the other workspace was shown, changed or revealed.".to_owned(),
            1 => "1 fault.".to_owned(),
            many => format!("{many} faults."),
        };
        text.push_str(&format!("\n{} tries. {verdict}", self.cells.len()));
        text
    }

    /// Of each endpoint: tries, pairs that were timed with the greatest median of an operation, and what came of it.
    fn rows(&self) -> impl Iterator<Item = [String; 8]> {
        let mut timings: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
        for timing in &self.timing {
            let (pairs, greatest) = timings.entry(&timing.endpoint).or_default();
            *pairs += timing.pairs;
            *greatest = greatest.max(timing.median_ms);
        }
        let mut doors: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
        for cell in &self.cells {
            let counts = doors.entry(&cell.endpoint).or_default();
            let effects = [Effect::Read, Effect::Write, Effect::Delete];
            let column = effects.iter().position(|one| one.word() == cell.effect);
            counts[column.unwrap_or_default()] += 1;
            counts[3] += usize::from(cell.status == 403);
            counts[4] += usize::from(cell.fault.is_some());
        }
        doors.into_iter().map(move |(door, counts)| {
            let [read, write, delete, refused, faults] = counts.map(|count| count.to_string());
            // What names nothing is not timed.
            let (pairs, ms) = timings.get(door).map_or_else(
                || ("-".to_owned(), "-".to_owned()),
                |(pairs, ms)| (pairs.to_string(), format!("{ms:.1}")),
            );
            let door = door.to_owned();
            [door, read, write, delete, pairs, ms, refused, faults]
        })
    }
}

/// In milliseconds, with one digit behind the point.
fn in_ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

fn told(cell: &Cell, fault: Leak) -> String {
    let about = match cell.named {
        true => "naming the other workspace",
        false => "with ids of the other workspace",
    };
    format!(
        "{} {} by {} over {}, {about}: {} (status {})",
        cell.endpoint,
        cell.operation,
        cell.role,
        cell.over,
        fault.text(),
        cell.status
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::iam::isolation::doors::{Gate, Way};

    #[test]
    fn the_report_says_how_much_was_timed() {
        let trial = Trial {
            door: "/api/v1/iam".to_owned(),
            operation: "get-user".to_owned(),
            effect: Effect::Read,
            gate: Gate::Needs("any".into()),
            way: Way::Service("iam".into(), "get-user".into()),
            example: serde_json::Map::new(),
        };
        let mut report = Report::default();
        report.timed(false, true, 4);
        report.timed(false, false, 3);
        report.timed(true, false, 25);
        for micros in [1_240, 200] {
            report.gap(&trial, ("socket", false), Duration::from_micros(micros));
        }
        report.add(&trial, ("reader", "rest", true), 403, None);
        let mut times = Times::default();
        for millis in [3, 4, 9] {
            times.push((Duration::from_millis(millis), Duration::from_millis(3)));
        }
        report.timing(&trial, (true, false), &times);
        let text = report.text(Width::default());
        let row =
            "| /api/v1/iam | 1    | 0     | 0      | 3             | 1.0 | 1       | 0      |";
        assert!(text.contains(row), "{text}");
        let said = "timed: 4 naming the other workspace, 28 with ids of it; 25 of them frames.";
        assert!(text.contains(said), "{text}");
        let said = "1.2 ms (/api/v1/iam get-user by id over a socket)";
        assert!(text.contains(said), "{text}");
    }
}
