//! Whether a blueprint makes sense: every fault at once, each with its path. Pure.

use std::collections::{BTreeMap, BTreeSet};

use tg_schemas::Class;
use tg_schemas::ids::MAX_PAIR;
use tg_schemas::processors::Role;
use tg_schemas::topic::{MAX_NAME, SPACE};

use super::address::{Address, Reach};
use super::blueprint::{Blueprint, Entry, Interface, RESERVED};
use super::catalog::{Catalog, Known, SpecUse, service_message};
use super::template::{Template, is_name};
use super::validation::{Path, ValidationErrors};

/// Checks a definition. An empty list means that flows can be started from it.
pub fn check(name: &str, definition: &str, catalog: &Catalog) -> ValidationErrors {
    let (blueprint, mut faults) = Blueprint::parse(definition);
    let mut check = Check {
        name,
        blueprint: &blueprint,
        catalog,
        faults: &mut faults,
    };
    check.name();
    check.controllers();
    for entry in &blueprint.entries {
        check.entry(entry);
    }
    check.answered_once();
    check.messages();
    for (name, interface) in &blueprint.interfaces {
        check.interface(&Path::root().at("interfaces").at(name), interface);
    }
    faults
}

struct Check<'a> {
    name: &'a str,
    blueprint: &'a Blueprint,
    catalog: &'a Catalog,
    faults: &'a mut ValidationErrors,
}

impl Check<'_> {
    fn name(&mut self) {
        let path = Path::root();
        if self.name.is_empty() || self.name.chars().any(char::is_control) || self.name.len() > 128
        {
            self.faults
                .add(&path, "the blueprint's name must have 1 to 128 characters");
        } else if (self.blueprint.names_topics("blueprint") || self.has_shared())
            && (!is_name(self.name) || self.name.contains("--"))
        {
            self.faults.add(
                &path,
                "the blueprint's name becomes part of topics: it may contain letters, digits, '.', '_' and single '-'",
            );
        }
    }

    fn has_shared(&self) -> bool {
        self.blueprint.entries.iter().any(|entry| entry.shared)
    }

    /// Controllers exist and do not go in circles.
    fn controllers(&mut self) {
        let Some(parameters) = &self.blueprint.parameters else {
            return;
        };
        let by: BTreeMap<&str, &str> = parameters
            .iter()
            .filter_map(|(name, use_)| Some((name.as_str(), use_.controlled_by.as_deref()?)))
            .collect();
        for (name, _) in parameters {
            let path = Path::root().at("parameters").at(name).at("controlled-by");
            let mut seen = BTreeSet::from([name.as_str()]);
            let mut at = name.as_str();
            while let Some(next) = by.get(at) {
                if !parameters.iter().any(|(known, _)| known == next) {
                    if at == name {
                        self.faults
                            .add(&path, format!("unknown parameter '{next}'"));
                    }
                    break;
                }
                if !seen.insert(next) {
                    self.faults.add(&path, "is a circular reference");
                    break;
                }
                at = next;
            }
        }
    }

    fn entry(&mut self, entry: &Entry) {
        match self.catalog.known(&entry.processor) {
            Known::No => {
                self.faults.add(
                    &entry.path,
                    "unknown processor; a 'processor-spec' row can name it with its specs",
                );
                return;
            }
            Known::Table { flow: false, .. } => {
                self.faults.add(
                    &entry.path,
                    "is a service outside of flows, not part of one",
                );
                return;
            }
            Known::Table { .. } | Known::Row | Known::Foreign => {}
        }
        for (spec, address) in &entry.topics {
            let path = entry.path.at("topics").at(spec);
            let known = self.catalog.spec(&entry.processor, spec);
            if known.is_none() && !self.catalog.foreign() {
                let names = self.catalog.spec_names(&entry.processor).join(", ");
                self.faults.add(
                    &path,
                    format!("the processor has no such spec; it has {names}"),
                );
                continue;
            }
            self.placeholders(&path, &address.template, entry.shared);
            self.topic(&path, entry, address, known.as_ref());
            self.length(&path, &entry.processor, spec, address);
        }
        for (name, template) in &entry.parameters {
            self.placeholders(
                &entry.path.at("parameters").at(name),
                template,
                entry.shared,
            );
        }
    }

    /// Every placeholder has something to stand for.
    fn placeholders(&mut self, path: &Path, template: &Template, shared: bool) {
        for name in template.names() {
            if shared && name == "id" {
                self.faults.add(
                    path,
                    "'{id}' is not supported in an instance that flows share",
                );
            } else if !RESERVED.contains(&name) && !self.declared(name) {
                self.faults.add(
                    path,
                    format!("'{{{name}}}' matches no parameter of the blueprint"),
                );
            }
        }
    }

    fn declared(&self, name: &str) -> bool {
        self.blueprint
            .parameters
            .iter()
            .flatten()
            .any(|(known, _)| known == name)
    }

    fn topic(&mut self, path: &Path, entry: &Entry, address: &Address, known: Option<&SpecUse>) {
        let Some(SpecUse { role, message }) = known else {
            if address.class == Class::Notify {
                self.faults.add(path, "flows have no 'notify' topics");
            }
            return;
        };
        if address.class != role.class() {
            let need = role.class().as_str();
            self.faults
                .add(path, format!("needs a topic of class '{need}'"));
            return;
        }
        let takes = matches!(role, Role::Serves | Role::Reads | Role::Answers);
        match address.reach {
            Reach::System | Reach::Service if takes => {
                self.faults.add(path, "a flow cannot replace a service outside of flows");
            }
            Reach::System | Reach::Service => {
                let request = matches!(role, Role::Asks);
                if request && service_message(&address.base) != Some(message.as_str()) {
                    self.faults.add(path, format!("that service does not take {message}"));
                }
            }
            Reach::Workspace if takes && !entry.shared => self.faults.add(
                path,
                "'{id}' must follow '{workspace}': two flows would both take each message",
            ),
            Reach::Workspace if takes && !just_blueprint(address) => self.faults.add(
                path,
                "'{blueprint}' must follow '{workspace}': two blueprints would both take each message",
            ),
            Reach::Workspace | Reach::Flow => {}
        }
    }

    /// A request topic with two servers would answer everything twice.
    fn answered_once(&mut self) {
        let mut servers: BTreeMap<String, &str> = BTreeMap::new();
        for entry in &self.blueprint.entries {
            for (spec, address) in &entry.topics {
                let Some(known) = self.catalog.spec(&entry.processor, spec) else {
                    continue;
                };
                if known.role != Role::Serves {
                    continue;
                }
                if let Some(other) = servers.insert(address.template.to_string(), &entry.processor)
                {
                    let path = entry.path.at("topics").at(spec);
                    self.faults
                        .add(&path, format!("'{other}' answers this topic already"));
                }
            }
        }
    }

    /// Everybody on a topic must mean the same message.
    fn messages(&mut self) {
        let mut meant: BTreeMap<String, String> = BTreeMap::new();
        for entry in &self.blueprint.entries {
            for (spec, address) in &entry.topics {
                let Some(known) = self.catalog.spec(&entry.processor, spec) else {
                    continue;
                };
                if known.message.is_empty() || !address.owned() {
                    continue;
                }
                let first = meant
                    .entry(address.template.to_string())
                    .or_insert_with(|| known.message.clone());
                if *first != known.message {
                    let path = entry.path.at("topics").at(spec);
                    let why = format!("carries {first} elsewhere, but {} here", known.message);
                    self.faults.add(&path, why);
                }
            }
        }
    }

    /// Names must fit with the longest ids: exchange, and queue if the spec has one.
    fn length(&mut self, path: &Path, processor: &str, spec: &str, address: &Address) {
        let fixed = |name: &str| {
            if name == "blueprint" {
                self.name.len()
            } else {
                0
            }
        };
        let mut bytes = address.template.to_string().len();
        let (mut workspaces, mut flows) = (0, 0);
        for name in address.template.names() {
            bytes -= name.len() + 2;
            match name {
                "workspace" => workspaces += 1,
                "id" => flows += 1,
                other => bytes += fixed(other),
            }
        }
        let consumes = self
            .catalog
            .spec(processor, spec)
            .is_none_or(|known| known.role.consumes());
        if consumes {
            // ".<processor>--<workspace>--<id>--<spec>"
            bytes += processor.len() + spec.len() + 7;
            workspaces += 1;
            flows += 1;
        }
        let (more, fewer) = (workspaces.max(flows), workspaces.min(flows));
        let longest = bytes + more * (MAX_PAIR - 1) + fewer;
        if longest > MAX_NAME {
            self.faults.add(
                path,
                format!("with the longest ids its name would have {longest} bytes; {MAX_NAME} is the most"),
            );
        }
    }

    fn interface(&mut self, path: &Path, interface: &Interface) {
        for address in interface.addresses() {
            self.placeholders(path, &address.template, false);
            if !address.owned() {
                self.faults.add(path, "must be a topic of the flow");
            }
        }
        match interface {
            Interface::Flow(flow) if flow.class != Class::Flow => {
                self.faults
                    .add(&path.at("flow"), "needs a topic of class 'flow'");
            }
            Interface::Flow(_) => {}
            Interface::Request { request, response } => {
                if request.class != Class::Request {
                    self.faults
                        .add(&path.at("request"), "needs a topic of class 'request'");
                } else if !self.served(request) {
                    self.faults.add(
                        &path.at("request"),
                        "no processor of the blueprint answers it",
                    );
                }
                let twin = twin(request);
                if response.class != Class::Response || response.template.to_string() != twin {
                    self.faults
                        .add(&path.at("response"), format!("must be '{twin}'"));
                }
            }
        }
    }

    fn served(&self, request: &Address) -> bool {
        self.blueprint.entries.iter().any(|entry| {
            entry.topics.iter().any(|(spec, address)| {
                address.template == request.template
                    && match self.catalog.spec(&entry.processor, spec) {
                        Some(known) => known.role == Role::Serves,
                        None => self.catalog.foreign(),
                    }
            })
        })
    }
}

fn just_blueprint(address: &Address) -> bool {
    let text = address.template.to_string();
    text.split(':').nth(4) == Some("{blueprint}")
}

fn twin(request: &Address) -> String {
    let text = request.template.to_string();
    let rest = text.splitn(3, ':').nth(2).unwrap_or_default();
    format!("{}:{SPACE}:{rest}", Class::Response.as_str())
}
