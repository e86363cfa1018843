//! A blueprint as a value. Reading finds what is malformed; whether it makes sense is [`super::check`]'s
//! question. Never touches config or a bus.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::address::Address;
use super::template::{Template, is_name};
use super::validation::{Path, ValidationErrors};

/// Largest definition in bytes: it is a value of the configuration.
pub const MAX_BYTES: usize = tg_schemas::limits::CONFIG_VALUE;
/// Most entries of a section, topics of an entry, interfaces, parameters.
const MAX_ITEMS: usize = 256;
/// Names that substitution gives a meaning of its own.
pub const RESERVED: [&str; 3] = ["workspace", "blueprint", "id"];

/// A blueprint.
#[derive(Debug, Clone, Default)]
pub struct Blueprint {
    /// Instances of each flow, then those that flows of the blueprint share.
    pub entries: Vec<Entry>,
    /// Interfaces by name, then direction (`flow`, or `request` and `response`).
    pub interfaces: BTreeMap<String, Interface>,
    /// Parameters by name, in their order in the text; `None` when there is no such section and
    /// whatever the user gives is passed on.
    pub parameters: Option<Vec<(String, Parameter)>>,
}

/// One processor instance.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Where it stands in the text.
    pub path: Path,
    /// Processor id.
    pub processor: String,
    /// From the `blueprint` section: shared by all flows of the blueprint in a workspace.
    pub shared: bool,
    /// Topics by spec.
    pub topics: BTreeMap<String, Address>,
    /// Parameter values by name.
    pub parameters: BTreeMap<String, Template>,
}

/// One interface.
#[derive(Debug, Clone)]
pub enum Interface {
    /// Takes records.
    Flow(Address),
    /// Answers questions.
    Request {
        /// Where questions go.
        request: Address,
        /// Where answers come from.
        response: Address,
    },
}

/// How a blueprint uses a parameter type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameter {
    /// Key of the parameter type; empty for none.
    pub kind: String,
    /// Parameter whose value this one follows unless set.
    pub controlled_by: Option<String>,
}

impl Blueprint {
    /// Reads a definition. Faulty parts are left out of the value and listed.
    pub fn parse(text: &str) -> (Self, ValidationErrors) {
        let mut faults = ValidationErrors::default();
        let mut blueprint = Self::default();
        let root = Path::root();
        if text.len() > MAX_BYTES {
            faults.add(&root, format!("is larger than {MAX_BYTES} bytes"));
            return (blueprint, faults);
        }
        match serde_json::from_slice::<Value>(text.as_bytes()) {
            Ok(Value::Object(map)) => blueprint.read(&map, &mut faults),
            Ok(_) => faults.add(&root, "must be a JSON object"),
            Err(error) => faults.add(
                &root,
                format!(
                    "is not JSON (line {}, column {})",
                    error.line(),
                    error.column()
                ),
            ),
        }
        (blueprint, faults)
    }

    /// Whether a name is substituted in some topic, so that its value becomes part of shared names.
    pub fn names_topics(&self, name: &str) -> bool {
        self.addresses()
            .any(|address| address.template.names().any(|used| used == name))
    }

    /// Every topic template.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        let entries = self.entries.iter().flat_map(|entry| entry.topics.values());
        let interfaces = self.interfaces.values().flat_map(Interface::addresses);
        entries.chain(interfaces)
    }

    fn read(&mut self, map: &Map<String, Value>, faults: &mut ValidationErrors) {
        let root = Path::root();
        match object(map, "flow", &root, faults) {
            Some(section) => self.read_entries(section, &root.at("flow"), false, faults),
            None if !map.contains_key("flow") => faults.add(&root.at("flow"), "is required"),
            None => {}
        }
        if let Some(section) = object(map, "blueprint", &root, faults) {
            self.read_entries(section, &root.at("blueprint"), true, faults);
        }
        if let Some(section) = object(map, "interfaces", &root, faults) {
            let path = root.at("interfaces");
            for (name, value) in section.iter().take(MAX_ITEMS) {
                if let Some(interface) = read_interface(value, &path.at(name), faults) {
                    self.interfaces.insert(name.clone(), interface);
                }
            }
        }
        if let Some(section) = object(map, "parameters", &root, faults) {
            let path = root.at("parameters");
            let read = section.iter().take(MAX_ITEMS).filter_map(|(name, value)| {
                read_parameter(name, value, &path.at(name), faults).map(|use_| (name.clone(), use_))
            });
            self.parameters = Some(read.collect());
        }
    }

    fn read_entries(
        &mut self,
        section: &Map<String, Value>,
        path: &Path,
        shared: bool,
        faults: &mut ValidationErrors,
    ) {
        let variant = if shared { "{blueprint}" } else { "{id}" };
        for (key, value) in section {
            let path = path.at(key);
            let Some((processor, given)) = key.split_once(':') else {
                faults.add(&path, format!("must have the form processor:{variant}"));
                continue;
            };
            if given != variant {
                faults.add(
                    &path,
                    format!("the part after the processor must be '{variant}'"),
                );
            }
            if !is_name(processor) || processor.contains("--") {
                faults.add(
                    &path,
                    "the processor id may contain letters, digits, '.', '_' and single '-'",
                );
                continue;
            }
            let Value::Object(map) = value else {
                faults.add(&path, "must be an object with 'topics' and 'parameters'");
                continue;
            };
            let mut entry = Entry {
                path: path.clone(),
                processor: processor.to_owned(),
                shared,
                topics: BTreeMap::new(),
                parameters: BTreeMap::new(),
            };
            entry.read(map, faults);
            self.entries.push(entry);
        }
    }
}

impl Entry {
    fn read(&mut self, map: &Map<String, Value>, faults: &mut ValidationErrors) {
        let path = self.path.clone();
        if let Some(topics) = object(map, "topics", &path, faults) {
            let path = path.at("topics");
            for (spec, value) in topics {
                let path = path.at(spec);
                if !is_name(spec) || spec.contains("--") {
                    faults.add(
                        &path,
                        "the name may contain letters, digits, '.', '_' and single '-'",
                    );
                } else if let Some(address) = read_address(value, &path, faults) {
                    self.topics.insert(spec.clone(), address);
                }
            }
        }
        if let Some(parameters) = object(map, "parameters", &path, faults) {
            let path = path.at("parameters");
            for (name, value) in parameters {
                let path = path.at(name);
                let Some(text) = text(value, &path, faults) else {
                    continue;
                };
                match Template::parse(text) {
                    _ if !is_name(name) => {
                        faults.add(
                            &path,
                            "the name may contain letters, digits, '.', '_' and '-'",
                        );
                    }
                    Ok(template) => {
                        self.parameters.insert(name.clone(), template);
                    }
                    Err(why) => faults.add(&path, why),
                }
            }
        }
    }
}

impl Interface {
    /// Its topic templates.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        let (first, second) = match self {
            Self::Flow(flow) => (flow, None),
            Self::Request { request, response } => (request, Some(response)),
        };
        std::iter::once(first).chain(second)
    }
}

fn read_interface(value: &Value, path: &Path, faults: &mut ValidationErrors) -> Option<Interface> {
    let expected = "must be an object with 'flow', or with 'request' and 'response'";
    let Value::Object(map) = value else {
        faults.add(path, expected);
        return None;
    };
    let keys: Vec<&str> = map.keys().map(String::as_str).collect();
    match keys.as_slice() {
        ["flow"] => read_address(&map["flow"], &path.at("flow"), faults).map(Interface::Flow),
        ["request", "response"] | ["response", "request"] => {
            let request = read_address(&map["request"], &path.at("request"), faults);
            let response = read_address(&map["response"], &path.at("response"), faults);
            Some(Interface::Request {
                request: request?,
                response: response?,
            })
        }
        _ => {
            faults.add(path, expected);
            None
        }
    }
}

fn read_parameter(
    name: &str,
    value: &Value,
    path: &Path,
    faults: &mut ValidationErrors,
) -> Option<Parameter> {
    if !is_name(name) || RESERVED.contains(&name) {
        faults.add(
            path,
            "the name is reserved, or contains characters other than letters, digits, '.', '_' and '-'",
        );
        return None;
    }
    let Value::Object(map) = value else {
        faults.add(path, "must be an object");
        return None;
    };
    let mut field = |key: &str| match map.get(key) {
        None | Some(Value::Null) => None,
        Some(value) => text(value, &path.at(key), faults).map(str::to_owned),
    };
    Some(Parameter {
        kind: field("type").unwrap_or_default(),
        controlled_by: field("controlled-by").filter(|by| !by.is_empty()),
    })
}

fn read_address(value: &Value, path: &Path, faults: &mut ValidationErrors) -> Option<Address> {
    match Address::parse(text(value, path, faults)?) {
        Ok(address) => Some(address),
        Err(why) => {
            faults.add(path, why);
            None
        }
    }
}

fn text<'a>(value: &'a Value, path: &Path, faults: &mut ValidationErrors) -> Option<&'a str> {
    let text = value.as_str();
    if text.is_none() {
        faults.add(path, "must be a string");
    }
    text
}

fn object<'a>(
    map: &'a Map<String, Value>,
    key: &str,
    path: &Path,
    faults: &mut ValidationErrors,
) -> Option<&'a Map<String, Value>> {
    match map.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::Object(inner)) if inner.len() <= MAX_ITEMS => Some(inner),
        Some(Value::Object(_)) => {
            faults.add(&path.at(key), format!("has more than {MAX_ITEMS} entries"));
            None
        }
        Some(_) => {
            faults.add(&path.at(key), "must be an object");
            None
        }
    }
}
