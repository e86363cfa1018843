//! Who reads which topic of a flow: what a run waits for.

use std::collections::{BTreeMap, BTreeSet};

use tg_schemas::flow_record::ProcessorRow;
use tg_schemas::processors::{Role, SpecRow, processor};
use tg_schemas::{Subscription, Topic};

use super::flow::Flow;

/// One reader of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reader {
    /// What is read.
    pub(crate) topic: String,
    /// Who reads: `processor--workspace--variant--spec`.
    pub(crate) subscription: String,
}

impl Reader {
    /// Id of its processor.
    pub(crate) fn processor(&self) -> &str {
        self.subscription.split("--").next().unwrap_or_default()
    }

    fn spec(&self) -> Option<&'static SpecRow> {
        let name = self.subscription.rsplit("--").next()?;
        processor(self.processor())?.spec(name)
    }

    /// Name of the message it reads; empty if nobody knows.
    pub(crate) fn message(&self) -> &'static str {
        self.spec().map_or("", |spec| spec.message)
    }

    /// Whether what it reads is cut into pages and chunks by it.
    pub(crate) fn cuts(&self) -> bool {
        matches!(self.message(), "Document" | "TextDocument")
    }

    /// Whether it hands on what it makes, rather than store it.
    pub(crate) fn hands_on(&self) -> bool {
        processor(self.processor())
            .is_some_and(|known| known.wired().any(|spec| spec.role == Role::Writes))
    }
}

/// A processor row of the workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) processor: &'a str,
    /// Key of the row: the flow, or the blueprint of a shared one.
    pub(crate) variant: &'a str,
    pub(crate) value: &'a str,
}

/// Where a flow runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowRef<'a> {
    pub(crate) workspace: &'a str,
    pub(crate) flow: &'a str,
}

/// The readers of a flow's topics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wiring {
    pub(crate) readers: Vec<Reader>,
}

impl Wiring {
    /// Whether anybody reads a topic.
    pub(crate) fn reads(&self, topic: &str) -> bool {
        self.readers.iter().any(|reader| reader.topic == topic)
    }
}

/// Works out the wiring. `serves` says whether a processor that reads is there at all: one that only a
/// blueprint names would never confirm anything.
pub(crate) fn wiring(
    place: FlowRef<'_>,
    flow: &Flow,
    rows: &[Row<'_>],
    serves: impl Fn(&str) -> bool,
) -> Wiring {
    let mine = |row: &Row<'_>| row.variant == place.flow || row.variant == flow.blueprint_name;
    let mut topics: BTreeSet<String> = flow.inputs().map(str::to_owned).collect();
    let mut read = Vec::with_capacity(rows.len());
    for row in rows {
        let value = ProcessorRow::read(row.value).unwrap_or_default();
        if mine(row) {
            topics.extend(value.topics.values().cloned());
        }
        read.push((*row, value));
    }
    let mut readers = BTreeSet::new();
    for (row, value) in read {
        for (spec, topic) in value.topics {
            let reads = processor(row.processor)
                .and_then(|known| known.spec(&spec))
                .is_some_and(|known| known.role == Role::Reads);
            if let (true, true, Ok(parsed)) = (reads, topics.contains(&topic), Topic::parse(&topic))
                && serves(row.processor)
            {
                let (ws, variant) = (place.workspace, row.variant);
                let subscription =
                    Subscription::flow(parsed, row.processor, ws, variant, &spec).name;
                readers.insert(Reader {
                    topic,
                    subscription,
                });
            }
        }
    }
    readers.extend(flow.queues().map(|queue| Reader {
        topic: queue.topic.to_string(),
        subscription: queue.name.clone(),
    }));
    Wiring {
        readers: readers.into_iter().collect(),
    }
}

/// Rows of a flow's own processors; where a blueprint has one, too, the flow's counts.
pub(crate) fn own(
    place: FlowRef<'_>,
    flow: &Flow,
    rows: &[Row<'_>],
) -> BTreeMap<String, ProcessorRow> {
    let mut own = BTreeMap::new();
    for variant in [flow.blueprint_name.as_str(), place.flow] {
        for row in rows.iter().filter(|row| row.variant == variant) {
            let value = ProcessorRow::read(row.value).unwrap_or_default();
            own.insert(row.processor.to_owned(), value);
        }
    }
    own
}

/// Processors of a flow that read chunks and ask a model about each.
pub(crate) fn extractors<'a>(
    place: FlowRef<'a>,
    rows: &'a [Row<'a>],
    serves: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &'a str> {
    let asks = ["PromptRequest", "TextCompletionRequest", "AgentRequest"];
    rows.iter()
        .filter(move |row| row.variant == place.flow && serves(row.processor))
        .map(|row| row.processor)
        .filter(move |id| {
            processor(id).is_some_and(|known| {
                let has = |role, messages: &[&str]| {
                    known
                        .wired()
                        .any(|spec| spec.role == role && messages.contains(&spec.message))
                };
                has(Role::Reads, &["Chunk"]) && has(Role::Asks, &asks)
            })
        })
}

/// A number among a flow's parameters of a processor.
pub(crate) fn parameter(row: &Row<'_>, name: &str) -> Option<u64> {
    ProcessorRow::read(row.value)?.number(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: FlowRef<'static> = FlowRef {
        workspace: "w",
        flow: "f",
    };
    const CHUNKER: &str = r#"{"topics":{"input":"flow:tg:text:w:f","output":"flow:tg:chunk:w:f",
        "triples":"flow:tg:triples:w:f"},"parameters":{"chunk-size":"500"},"epoch":3}"#;
    const EXTRACT: &str = r#"{"topics":{"input":"flow:tg:chunk:w:f","triples":"flow:tg:triples:w:f",
        "prompt-request":"request:tg:prompt:w:f"}}"#;
    const WRITE: &str = r#"{"topics":{"input":"flow:tg:triples:w:f"}}"#;

    fn row(processor: &'static str, variant: &'static str, value: &'static str) -> Row<'static> {
        Row {
            processor,
            variant,
            value,
        }
    }

    fn rows() -> Vec<Row<'static>> {
        vec![
            row("chunker", "f", CHUNKER),
            row("kg-extract-definitions", "f", EXTRACT),
            row("triples-write", "f", WRITE),
            row(
                "kg-store",
                "g",
                r#"{"topics":{"triples-input":"flow:tg:triples:w:f"}}"#,
            ),
            row(
                "triples-write",
                "g",
                r#"{"topics":{"input":"flow:tg:triples:w:g"}}"#,
            ),
            row("nobody", "f", WRITE),
        ]
    }

    #[test]
    fn readers_are_those_of_the_flows_topics_wherever_they_run() {
        let flow = Flow::read(
            r#"{"plan":{"queues":[{"topic":"flow:tg:retract:w:f","name":"triples-write--w--f--retract"},
                {"topic":"flow:tg:triples:w:f","name":"triples-write--w--f--input"}]}}"#,
        )
        .unwrap();
        let found = wiring(PLACE, &flow, &rows(), |_| true);
        let names: Vec<_> = found
            .readers
            .iter()
            .map(|reader| reader.subscription.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "kg-extract-definitions--w--f--input",
                "triples-write--w--f--retract",
                "chunker--w--f--input",
                "kg-store--w--g--triples-input",
                "triples-write--w--f--input",
            ]
        );
        assert!(found.readers[2].cuts() && found.readers[2].hands_on());
        assert_eq!(found.readers[0].message(), "Chunk");
        assert!(!found.readers[4].hands_on());
        let fewer = wiring(PLACE, &flow, &rows(), |id| id != "kg-store");
        assert_eq!(fewer.readers.len(), 4);
    }

    #[test]
    fn a_flows_own_row_counts_before_that_of_its_blueprint() {
        let flow = Flow::read(r#"{"blueprint-name":"b"}"#).unwrap();
        let mut rows = rows();
        rows.push(row("chunker", "b", WRITE));
        let own = own(PLACE, &flow, &rows);
        assert_eq!(own["chunker"].number("chunk-size"), Some(500));
        assert!(!own.contains_key("kg-store"), "it is of another flow");
    }

    #[test]
    fn model_callers_are_found() {
        let rows = rows();
        let found: Vec<_> = extractors(PLACE, &rows, |_| true).collect();
        assert_eq!(found, ["kg-extract-definitions"]);
        assert_eq!(parameter(&rows[0], "chunk-size"), Some(500));
        assert_eq!(parameter(&rows[0], "chunk-overlap"), None);
    }
}
