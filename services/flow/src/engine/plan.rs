//! What a start writes: rows, names, interfaces. Pure; the epoch comes from outside.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tg_schemas::flow_record::{self, Names, RowKey};
use tg_schemas::ids::check_pair;
use tg_schemas::processors::{self, PROCESSORS, Role};
use tg_schemas::topic::MAX_NAME;
use tg_schemas::{Class, Error, ErrorCode, FlowId, Subscription, Topic, WorkspaceId};

use super::address::{Address, Reach};
use super::blueprint::{Blueprint, Entry, Interface};
use super::catalog::Catalog;
use super::parameters::Resolved;

/// A planned start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Values of the processor rows.
    pub rows: BTreeMap<RowKey, String>,
    /// Processors of this release, or named by a row: those whose attachment is waited for.
    pub expected: BTreeSet<RowKey>,
    /// Interfaces with their topics.
    pub interfaces: BTreeMap<String, flow_record::Interface>,
    /// The names it will hold.
    pub names: Names,
}

impl Plan {
    /// Topics to declare before anything is sent.
    pub fn topics(&self) -> Vec<Topic> {
        let carries = |topic: &&Topic| matches!(topic.class(), Class::Flow | Class::Request);
        self.names.all_topics().filter(carries).cloned().collect()
    }

    /// Record queues to declare before anything is sent.
    pub fn queues(&self) -> Vec<Subscription> {
        self.names.queues.iter().cloned().collect()
    }
}

/// Who is started.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Workspace.
    pub workspace: &'a WorkspaceId,
    /// Flow.
    pub flow: &'a FlowId,
    /// Name of the blueprint.
    pub blueprint: &'a str,
    /// Number of the start.
    pub epoch: u64,
}

/// Plans the start of a checked blueprint.
///
/// # Errors
/// `bad-request`: workspace and flow are together too long for the name of a queue, or a topic of the blueprint does not
/// become one with these parameters.
pub fn plan(
    subject: Subject<'_>,
    blueprint: &Blueprint,
    resolved: &Resolved,
    catalog: &Catalog,
) -> Result<Plan, Error> {
    check_pair(subject.workspace, subject.flow)?;
    let mut planner = Planner {
        subject,
        resolved,
        catalog,
        plan: Plan::default(),
        drafts: Vec::new(),
    };
    for entry in &blueprint.entries {
        planner.entry(entry)?;
    }
    for (name, interface) in &blueprint.interfaces {
        planner.interface(name, interface)?;
    }
    planner.own_topics()?;
    planner.rows();
    Ok(planner.plan)
}

struct Planner<'a> {
    subject: Subject<'a>,
    resolved: &'a Resolved,
    catalog: &'a Catalog,
    plan: Plan,
    drafts: Vec<Draft>,
}

/// A row before every reader is known.
struct Draft {
    key: RowKey,
    value: Value,
    /// Its record topics.
    records: BTreeSet<Topic>,
}

impl<'a> Planner<'a> {
    fn value(&self, name: &str) -> Option<&'a str> {
        match name {
            "workspace" => Some(self.subject.workspace.as_str()),
            "id" => Some(self.subject.flow.as_str()),
            "blueprint" => Some(self.subject.blueprint),
            other => self.resolved.values.get(other).map(String::as_str),
        }
    }

    fn topic(&mut self, address: &Address) -> Result<Topic, Error> {
        let text = address
            .template
            .render(|name| self.value(name))
            .map_err(|name| bad(format!("parameters/{name}: is required and has no value")))?;
        let topic = Topic::parse(&text)?;
        match address.reach {
            Reach::Flow => self.plan.names.topics.insert(topic.clone()),
            Reach::Workspace => self.plan.names.shared_topics.insert(topic.clone()),
            Reach::System | Reach::Service => false,
        };
        Ok(topic)
    }

    fn entry(&mut self, entry: &Entry) -> Result<(), Error> {
        let subject = self.subject;
        let variant = if entry.shared {
            subject.blueprint
        } else {
            subject.flow.as_str()
        };
        let key = RowKey {
            processor: entry.processor.clone(),
            variant: variant.to_owned(),
        };
        let mut topics = BTreeMap::new();
        let mut records = BTreeSet::new();
        for (spec, address) in &entry.topics {
            let topic = self.topic(address)?;
            if address.owned() {
                self.queue(entry, variant, spec, &topic)?;
            }
            if address.reach == Reach::Flow && topic.class() == Class::Flow {
                records.insert(topic.clone());
            }
            topics.insert(spec.as_str(), topic);
        }
        records.extend(self.droppable(entry, variant));
        let mut parameters = BTreeMap::new();
        for (name, template) in &entry.parameters {
            // An unset or empty value is left out: the processor's own default holds.
            let value = template.render(|name| self.value(name)).unwrap_or_default();
            if !value.is_empty() {
                parameters.insert(name.as_str(), value);
            }
        }
        sizes_agree(&parameters)?;
        let mut row = json!({ "topics": topics, "parameters": parameters });
        let names = &mut self.plan.names;
        if entry.shared {
            names.shared_rows.insert(key.clone());
        } else {
            row["epoch"] = subject.epoch.into();
            names.rows.insert(key.clone());
        }
        if self.catalog.expects(&entry.processor) {
            self.plan.expected.insert(key.clone());
        }
        self.drafts.push(Draft {
            key,
            value: row,
            records,
        });
        Ok(())
    }

    /// Topics of the mesh's own that the processor writes to, whether or not somebody of the flow reads them.
    fn droppable(&self, entry: &Entry, variant: &str) -> Vec<Topic> {
        let known = processors::processor(&entry.processor);
        let (Some(known), Ok(flow)) = (known, FlowId::new(variant)) else {
            return Vec::new();
        };
        known
            .own()
            .filter(|spec| spec.role == Role::Writes)
            .filter(|spec| !processors::must_be_read(spec.name) && !processors::is_relay(spec.name))
            .map(|spec| Topic::flow(Class::Flow, spec.name, self.subject.workspace, &flow))
            .collect()
    }

    /// The rows, now that every reader is known. A row names the record topics that nobody of the flow reads, so
    /// that a writer does not wait for a reader that never comes.
    fn rows(&mut self) {
        let names = &self.plan.names;
        let queues = names.queues.iter().chain(&names.other_queues);
        let read: BTreeSet<&Topic> = queues.map(|queue| &queue.topic).collect();
        for draft in std::mem::take(&mut self.drafts) {
            let mut row = draft.value;
            let unread: Vec<&Topic> = draft
                .records
                .iter()
                .filter(|topic| !read.contains(topic))
                .collect();
            if !unread.is_empty() {
                row["unread"] = json!(unread);
            }
            self.plan.rows.insert(draft.key, row.to_string());
        }
    }

    /// The queue of a spec that consumes, or of a foreign one of which nobody knows.
    fn queue(
        &mut self,
        entry: &Entry,
        variant: &str,
        spec: &str,
        topic: &Topic,
    ) -> Result<(), Error> {
        let known = self.catalog.spec(&entry.processor, spec);
        let consumes = known.is_none_or(|known| known.role.consumes());
        if !consumes || !matches!(topic.class(), Class::Flow | Class::Request) {
            return Ok(());
        }
        let workspace = self.subject.workspace.as_str();
        let queue = Subscription::flow(topic.clone(), &entry.processor, workspace, variant, spec);
        self.fits(&queue)?;
        if topic.class() == Class::Flow && self.catalog.expects(&entry.processor) {
            self.plan.names.queues.insert(queue);
        } else {
            self.plan.names.other_queues.insert(queue);
        }
        Ok(())
    }

    fn fits(&self, queue: &Subscription) -> Result<(), Error> {
        if queue.queue(None).len() > MAX_NAME {
            let text =
                "flow-id: is too long together with the parameters that become part of names";
            return Err(bad(text.to_owned()));
        }
        Ok(())
    }

    fn interface(&mut self, name: &str, interface: &Interface) -> Result<(), Error> {
        let (first, second) = match interface {
            Interface::Flow(_) => ("flow", ""),
            Interface::Request { .. } => ("request", "response"),
        };
        let mut topics = flow_record::Interface::new();
        for (direction, address) in [first, second].into_iter().zip(interface.addresses()) {
            topics.insert(direction.to_owned(), self.topic(address)?.to_string());
        }
        self.plan.interfaces.insert(name.to_owned(), topics);
        Ok(())
    }

    /// The topics that the mesh adds to every flow.
    fn own_topics(&mut self) -> Result<(), Error> {
        let Subject {
            workspace, flow, ..
        } = self.subject;
        let (ws, id) = (workspace.as_str(), flow.as_str());
        for processor in PROCESSORS {
            let mut rows = self.plan.names.rows.iter();
            let here = rows.any(|row| row.processor == processor.id);
            for spec in processor.own() {
                let class = spec.role.class();
                let topic = Topic::flow(class, spec.name, workspace, flow);
                if here && spec.role.consumes() {
                    let queue = Subscription::flow(topic.clone(), processor.id, ws, id, spec.name);
                    self.fits(&queue)?;
                    // A record waits for a reader that is away; a question does not.
                    match spec.role == Role::Reads && self.catalog.expects(processor.id) {
                        true => self.plan.names.queues.insert(queue),
                        false => self.plan.names.other_queues.insert(queue),
                    };
                }
                // Whoever writes is in any flow; who asks comes with who answers.
                if class == Class::Flow || here && spec.role == Role::Serves {
                    self.plan.names.topics.insert(topic);
                }
            }
        }
        Ok(())
    }
}

/// Chunks that share as much as they hold would never come to an end of their text.
fn sizes_agree(parameters: &BTreeMap<&str, String>) -> Result<(), Error> {
    let number = |name: &str| parameters.get(name)?.trim().parse::<u64>().ok();
    match (number("chunk-size"), number("chunk-overlap")) {
        (Some(size), Some(overlap)) if overlap >= size => Err(bad(format!(
            "parameters/chunk-overlap: is {overlap} and must be less than chunk-size, which is {size}"
        ))),
        _ => Ok(()),
    }
}

fn bad(text: String) -> Error {
    Error::new(ErrorCode::BadRequest, text)
}
