//! What every bench prints: the version of its workload, the machine and its load, and of each figure the median of the
//! rounds with the least and the greatest.

use crate::machine::{described, load};

/// Rounds of a measurement whose figures would else be of one run.
pub const ROUNDS: usize = 3;

/// A bench's first line. The version goes up when a figure cannot be compared with those of before.
pub fn headline(workload: u32) -> String {
    format!(
        "workload {workload}; machine: {}; load {}",
        described(),
        load()
    )
}

/// Figures by name, in the order in which they came first.
#[derive(Debug, Default)]
pub struct Rounds(Vec<Figure>);

#[derive(Debug)]
struct Figure {
    name: String,
    unit: &'static str,
    values: Vec<f64>,
}

impl Rounds {
    /// What a round measured.
    pub fn add(&mut self, name: impl Into<String>, unit: &'static str, value: f64) {
        let name = name.into();
        match self.0.iter_mut().find(|figure| figure.name == name) {
            Some(figure) => figure.values.push(value),
            None => self.0.push(Figure {
                name,
                unit,
                values: vec![value],
            }),
        }
    }

    /// The median of a figure.
    pub fn median(&self, name: &str) -> Option<f64> {
        let figure = self.0.iter().find(|figure| figure.name == name)?;
        Some(sorted(&figure.values)[figure.values.len() / 2])
    }

    /// A line for each figure.
    pub fn print(&self) {
        for line in self.lines() {
            println!("  {line}");
        }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|figure| {
            let Figure { name, unit, .. } = figure;
            let spread = spread(&figure.values);
            format!("{name}, {unit}: {spread}")
        })
    }
}

/// Median, least, greatest and how many there are.
pub fn spread(values: &[f64]) -> String {
    let sorted = sorted(values);
    let Some(last) = sorted.last() else {
        return "not measured".to_owned();
    };
    format!(
        "median {} ({} to {}, {} rounds)",
        short(sorted[sorted.len() / 2]),
        short(sorted[0]),
        short(*last),
        sorted.len()
    )
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Processor time of a process so far, in milliseconds.
pub fn processor_time(pid: u32) -> Option<f64> {
    let [user, system] = processor_times(pid)?;
    Some(user + system)
}

/// The same in its own code and in the kernel: fields 14 and 15 of `/proc/PID/stat`, in ticks of 10 ms.
pub fn processor_times(pid: u32) -> Option<[f64; 2]> {
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
    let (user, system) = ticks(11).zip(ticks(12))?;
    Some([user, system].map(|ticks| ticks / TICKS * 1_000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_their_order_and_tell_their_spread() {
        let mut rounds = Rounds::default();
        for value in [3.0, 1.0, 200.0] {
            rounds.add("writing", "triples/s", value);
            rounds.add("a look-up", "ms", value / 100.0);
        }
        let lines: Vec<String> = rounds.lines().collect();
        assert_eq!(
            lines,
            [
                "writing, triples/s: median 3.00 (1.00 to 200, 3 rounds)",
                "a look-up, ms: median 0.0300 (0.0100 to 2.00, 3 rounds)",
            ]
        );
        assert_eq!(rounds.median("writing"), Some(3.0));
        assert_eq!(rounds.median("reading"), None);
        assert_eq!(spread(&[]), "not measured");
    }

    #[test]
    fn the_first_line_says_what_was_measured_where() {
        let line = headline(7);
        assert!(line.starts_with("workload 7; machine: ") && line.contains("; load "));
        assert!(!line.contains('\n'), "{line}");
    }
}
