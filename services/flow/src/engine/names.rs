//! The names that a running flow holds, as written into its record: what stop-flow takes away, whatever
//! has become of the blueprint meanwhile.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tg_schemas::{FlowId, Subscription, Topic, WorkspaceId};

/// Key of a processor row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RowKey {
    /// Processor id.
    pub processor: String,
    /// Key of the row; the flow id, or the blueprint's name for shared rows.
    pub variant: String,
}

impl RowKey {
    /// Config type of the row.
    pub fn kind(&self) -> String {
        format!("processor:{}", self.processor)
    }
}

impl TryFrom<String> for RowKey {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (processor, variant) = text.split_once(':').ok_or("expected processor:variant")?;
        Ok(Self {
            processor: processor.to_owned(),
            variant: variant.to_owned(),
        })
    }
}

impl From<RowKey> for String {
    fn from(key: RowKey) -> String {
        format!("{}:{}", key.processor, key.variant)
    }
}

/// Names by who may need them besides the flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Names {
    /// Processor rows of this flow.
    pub rows: BTreeSet<RowKey>,
    /// Processor rows that flows of the blueprint share.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub shared_rows: BTreeSet<RowKey>,
    /// Topics of this flow.
    pub topics: BTreeSet<Topic>,
    /// Topics that other flows may use too.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub shared_topics: BTreeSet<Topic>,
    /// Record queues that exist from the start.
    pub queues: BTreeSet<Subscription>,
    /// Queues that processors may have made: of questions, and of foreign readers.
    pub other_queues: BTreeSet<Subscription>,
}

impl Names {
    /// All topics.
    pub fn all_topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.iter().chain(&self.shared_topics)
    }

    /// All rows.
    pub fn all_rows(&self) -> impl Iterator<Item = &RowKey> {
        self.rows.iter().chain(&self.shared_rows)
    }

    /// All queues.
    pub fn all_queues(&self) -> impl Iterator<Item = &Subscription> {
        self.queues.iter().chain(&self.other_queues)
    }

    /// The names of a flow whose record does not say: read off its processor rows. Only topics that
    /// carry both ids are taken for its own.
    pub fn from_rows<'a>(
        workspace: &WorkspaceId,
        flow: &FlowId,
        rows: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        #[derive(Deserialize)]
        struct Row {
            #[serde(default)]
            topics: std::collections::BTreeMap<String, String>,
        }
        let mut names = Self::default();
        let (ws, id) = (workspace.as_str(), flow.as_str());
        for (processor, text) in rows {
            names.rows.insert(RowKey {
                processor: processor.to_owned(),
                variant: id.to_owned(),
            });
            let Ok(row) = serde_json::from_str::<Row>(text) else {
                continue;
            };
            for (spec, text) in row.topics {
                let Ok(topic) = Topic::parse(&text) else {
                    continue;
                };
                let mut parts = topic.name().split(':').skip(1);
                if (parts.next(), parts.next()) != (Some(ws), Some(id)) {
                    continue;
                }
                let queue = Subscription::flow(topic.clone(), processor, ws, id, &spec);
                names.topics.insert(topic);
                names.other_queues.insert(queue);
            }
        }
        names
    }
}
