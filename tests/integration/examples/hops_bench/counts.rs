//! What the processes of a system did so far, by what they tell of themselves and by what the kernel tells of them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use tg_testkit::bench::processor_time;
use tg_testkit::rabbitmq::RabbitNode;

use crate::system::System;

/// What a store commits for in a run, by the store's name.
const CAUSES: [(&str, &str); 3] = [
    (
        "agent",
        "the run begins, each decision with what the model took, what each tool returned, the run ends",
    ),
    ("librarian", "the texts of each step"),
    ("graph", "the triples of each step, in the journal"),
];

/// How it is printed: the heading of a kind, and the unit.
const KINDS: [(Kind, &str); 7] = [
    (Kind::Messages, "messages, by processor"),
    (Kind::Commits, "commits, by store"),
    (Kind::Tasks, "tasks that were started, by kind"),
    (Kind::Time, "processor time in ms, by process"),
    (Kind::Core, "ms that threads waited for a core, by process"),
    (
        Kind::Woken,
        "threads that were woken (voluntary switches), by process",
    ),
    (
        Kind::Bytes,
        "bytes copied by the kernel (read and written), by process",
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Messages,
    Commits,
    Tasks,
    Time,
    Core,
    Woken,
    Bytes,
}

/// Numbers that only rise, by what they are of.
#[derive(Debug, Default)]
pub struct Counts(BTreeMap<(Kind, String), f64>);

impl Counts {
    /// Of a system, of its broker and of what asks it, as they are now.
    pub async fn of(system: &System, node: Option<&RabbitNode>) -> Result<Self> {
        let mut counts = Self::default();
        for part in &system.parts {
            counts.told(&part.metrics().await?);
        }
        for part in &system.parts {
            counts.seen(part.name, part.pid)?;
        }
        if let Some(node) = node {
            counts.seen("the broker", node.pid()?)?;
        }
        counts.seen("client and model", std::process::id())?;
        Ok(counts)
    }

    fn add(&mut self, kind: Kind, of: &str, value: f64) {
        *self.0.entry((kind, of.to_owned())).or_default() += value;
    }

    /// What a process tells of itself.
    fn told(&mut self, page: &str) {
        for line in page.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let (kind, by) = match name {
                "tg_consumer_processing_total" => (Kind::Messages, "processor"),
                "tg_store_commits_total" => (Kind::Commits, "store"),
                "tg_tasks_total" => (Kind::Tasks, "kind"),
                _ => continue,
            };
            if let (Some(of), Ok(value)) = (label(labels, by), value.parse()) {
                self.add(kind, of, value);
            }
        }
    }

    /// What the kernel tells of a process.
    fn seen(&mut self, name: &str, pid: u32) -> Result<()> {
        let time = processor_time(pid).context("no time of a process")?;
        self.add(Kind::Time, name, time);
        for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = thread?.path();
            // One that ended meanwhile has none.
            let of = |file: &str| std::fs::read_to_string(thread.join(file)).unwrap_or_default();
            let switches = field(&of("status"), "voluntary_ctxt_switches:");
            self.add(Kind::Woken, name, switches.unwrap_or_default());
            let waited = waited_for_a_core(&of("schedstat"));
            self.add(Kind::Core, name, waited.unwrap_or_default());
        }
        let io = std::fs::read_to_string(format!("/proc/{pid}/io"))?;
        for one in ["rchar:", "wchar:"] {
            self.add(Kind::Bytes, name, field(&io, one).unwrap_or_default());
        }
        Ok(())
    }

    /// What came since.
    pub fn since(&self, before: &Self) -> Self {
        let rose = self.0.iter().map(|(of, now)| {
            let earlier = before.0.get(of).copied().unwrap_or_default();
            (of.clone(), now - earlier)
        });
        Self(rose.filter(|(_, rose)| *rose > 0.0).collect())
    }

    /// Each kind with what is most first, divided by the runs.
    pub fn print(&self, runs: usize) {
        for (kind, heading) in KINDS {
            let mut each: Vec<(&str, f64)> = self
                .0
                .iter()
                .filter(|((of, _), _)| *of == kind)
                .map(|((_, of), count)| (of.as_str(), count / runs as f64))
                .collect();
            each.sort_by(|one, other| other.1.total_cmp(&one.1));
            let sum: f64 = each.iter().map(|(_, count)| count).sum();
            let texts: Vec<String> = each
                .iter()
                .map(|(of, count)| format!("{of} {count:.2}"))
                .collect();
            println!("  {heading}: {sum:.2}: {}", texts.join(", "));
            if kind == Kind::Commits {
                for (store, cause) in CAUSES {
                    println!("    {store}: {cause}");
                }
            }
        }
    }
}

/// What stands behind a label.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = labels.split_once(&format!("{name}=\""))?;
    Some(rest.split_once('"')?.0)
}

/// Milliseconds that a thread could have run and had no core: the second number of its `schedstat`, in nanoseconds.
fn waited_for_a_core(schedstat: &str) -> Option<f64> {
    let nanos: f64 = schedstat.split_whitespace().nth(1)?.parse().ok()?;
    Some(nanos / 1e6)
}

/// A number of a file of `/proc`, which stands alone at the beginning of its line.
fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
