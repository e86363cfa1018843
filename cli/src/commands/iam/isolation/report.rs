//! What was tried and what came of it, for somebody who audits.

use std::collections::BTreeMap;

use serde::Serialize;

use super::doors::{Effect, Trial};
use super::verdict::Fault;
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
    /// `rest` or `socket`.
    pub over: &'static str,
    /// Whether the other workspace was named, or its things only.
    pub named: bool,
    /// The status that came back.
    pub status: u16,
    /// What is wrong with it.
    pub fault: Option<Fault>,
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
}

impl Report {
    /// Notes a try.
    pub fn add(
        &mut self,
        trial: &Trial,
        (role, over, named): (&'static str, &'static str, bool),
        status: u16,
        fault: Option<Fault>,
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

    /// How much is wrong.
    pub fn faults(&self) -> usize {
        let cells = self.cells.iter().filter(|cell| cell.fault.is_some());
        cells.count() + self.changed.len()
    }

    /// For people.
    pub fn text(&self, width: Width) -> String {
        let mut text = table(
            ["endpoint", "read", "write", "delete", "refused", "faults"],
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
        for cell in &self.cells {
            if let Some(fault) = cell.fault {
                text.push_str(&format!("\nFAULT: {}", told(cell, fault)));
            }
        }
        for what in &self.changed {
            text.push_str(&format!("\nFAULT: changed in the other workspace: {what}"));
        }
        let verdict = match self.faults() {
            0 => "Nothing of the other workspace was shown, changed or told.".to_owned(),
            1 => "1 fault.".to_owned(),
            many => format!("{many} faults."),
        };
        text.push_str(&format!("\n{} tries. {verdict}", self.cells.len()));
        text
    }

    fn rows(&self) -> impl Iterator<Item = [String; 6]> {
        let mut doors: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
        for cell in &self.cells {
            let counts = doors.entry(&cell.endpoint).or_default();
            let effects = [Effect::Read, Effect::Write, Effect::Delete];
            let column = effects.iter().position(|one| one.word() == cell.effect);
            counts[column.unwrap_or_default()] += 1;
            counts[3] += usize::from(cell.status == 403);
            counts[4] += usize::from(cell.fault.is_some());
        }
        doors.into_iter().map(|(door, counts)| {
            let [read, write, delete, refused, faults] = counts.map(|count| count.to_string());
            [door.to_owned(), read, write, delete, refused, faults]
        })
    }
}

fn told(cell: &Cell, fault: Fault) -> String {
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
