//! What a stopping flow may take away: what it holds and no other flow does. Pure.

use std::collections::BTreeSet;

use memchr::memmem::Finder;
use tg_schemas::{Subscription, Topic};

use tg_schemas::flow_record::{Names, RowKey};

/// Another flow whose record exists, whatever its status: one that is stopping still needs its names.
#[derive(Debug, Clone)]
pub struct Other {
    /// Its workspace.
    pub workspace: String,
    /// Its names; `None` if its record does not say, so that nothing shared may go.
    pub names: Option<Names>,
}

/// Tells from the text of another flow's record alone whether it can hold any of a flow's names, so that most records need
/// not be read: every stop looks through all of them.
pub struct Mentions([Option<Finder<'static>>; 3]);

impl Mentions {
    /// Of a flow with these names.
    pub fn of(workspace: &str, flow: &str, names: &Names) -> Self {
        let shares = !names.shared_topics.is_empty() || !names.shared_rows.is_empty();
        let find = |text: String| Finder::new(&text).into_owned();
        // The ids as they end or continue a name: another flow's own names do not contain them so.
        Self([
            shares.then(|| find(format!(":{workspace}"))),
            Some(find(format!(":{flow}\""))),
            Some(find(format!(":{workspace}:{flow}:"))),
        ])
    }

    /// Whether a record can hold one.
    pub fn are_in(&self, text: &str) -> bool {
        let mut sought = self.0.iter().flatten();
        sought.any(|finder| finder.find(text.as_bytes()).is_some())
    }
}

/// What may go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Released {
    /// Processor rows.
    pub rows: BTreeSet<RowKey>,
    /// Topics.
    pub topics: BTreeSet<Topic>,
    /// Queues whose records are to be kept: declared by the start.
    pub queues: BTreeSet<Subscription>,
    /// Queues that others may have made.
    pub other_queues: BTreeSet<Subscription>,
}

/// Computes what the stop of a flow with these names may take away.
pub fn released(workspace: &str, names: &Names, others: &[Other]) -> Released {
    let mut topics: BTreeSet<Topic> = names.topics.clone();
    let mut rows: BTreeSet<RowKey> = names.rows.clone();
    let neighbours = || others.iter().filter(|other| other.workspace == workspace);
    if others.iter().all(|other| other.names.is_some()) {
        topics.extend(names.shared_topics.iter().cloned());
    }
    if neighbours().all(|other| other.names.is_some()) {
        rows.extend(names.shared_rows.iter().cloned());
    }
    for held in others.iter().filter_map(|other| other.names.as_ref()) {
        for topic in held.all_topics() {
            topics.remove(topic);
        }
    }
    for held in neighbours().filter_map(|other| other.names.as_ref()) {
        for row in held.all_rows() {
            rows.remove(row);
        }
    }
    let held: BTreeSet<&Subscription> = others
        .iter()
        .filter_map(|other| other.names.as_ref())
        .flat_map(Names::all_queues)
        .collect();
    // A queue goes with the reader that it belongs to, not with its topic.
    let reader_goes = |queue: &&Subscription| {
        let belongs = |row: &RowKey| {
            let start = format!("{}--{workspace}--{}--", row.processor, row.variant);
            queue.name.starts_with(&start)
        };
        !held.contains(queue) && rows.iter().any(belongs)
    };
    let queues = names.queues.iter().filter(reader_goes).cloned().collect();
    let other_queues = names
        .other_queues
        .iter()
        .filter(reader_goes)
        .cloned()
        .collect();
    Released {
        rows,
        topics,
        queues,
        other_queues,
    }
}
