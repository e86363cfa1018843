//! XML: the elements at a path are records. Their attributes and the elements in them are fields: `name`,
//! `@name`, and `a/b` for what is deeper. Of elements with the same name the last one counts. Names are
//! compared without their namespace's prefix. Entities other than XML's own are never expanded.

use std::collections::HashSet;
use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;

use super::{Fields, Out};
use crate::client::Result;

/// Deepest nesting that is read.
const DEEPEST: usize = 256;

/// Where records are in an XML file, and how their fields are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct XmlOptions {
    pub(in super::super) path: RecordPath,
    /// The attribute that names a field, where elements are all called the same.
    pub(in super::super) field_attribute: Option<String>,
}

impl Default for XmlOptions {
    fn default() -> Self {
        Self {
            path: RecordPath {
                anywhere: true,
                steps: vec!["record".to_owned()],
            },
            field_attribute: None,
        }
    }
}

/// The path of records: names of elements, `*` for any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct RecordPath {
    /// The path may begin at any depth.
    anywhere: bool,
    steps: Vec<String>,
}

impl RecordPath {
    /// Reads `//a/b`, `/root/a/b`, `/ROOT/a/b` (whatever the root is called) or `a/b` (below the root).
    pub(in super::super) fn read(text: &str) -> Result<Self, String> {
        let path = text.trim();
        let path = path.strip_prefix('.').unwrap_or(path);
        let (anywhere, steps) = match path.strip_prefix("//") {
            Some(rest) => (true, rest.to_owned()),
            None => (false, path.trim_start_matches('/').to_owned()),
        };
        let steps: Vec<String> = steps
            .split('/')
            .map(|step| local(step).to_owned())
            .collect();
        let plain = |step: &String| {
            !step.is_empty() && !step.contains(['[', ']', '(', ')', '@', '.', '|', ' '])
        };
        match steps.iter().all(plain) {
            true => Ok(Self { anywhere, steps }),
            false => Err(format!(
                "'{text}' is not supported: a path of element names such as '//record' is wanted"
            )),
        }
    }

    /// Whether the elements from the root on lead to a record.
    fn leads_to(&self, open: &[String]) -> bool {
        let same = |open: &[String]| {
            let mut pairs = open.iter().zip(&self.steps);
            open.len() == self.steps.len() && pairs.all(|(open, step)| step == "*" || open == step)
        };
        if self.anywhere {
            let from = open.len().saturating_sub(self.steps.len());
            return same(&open[from..]);
        }
        let below = open.get(1..).unwrap_or_default();
        let whole = self.steps.first().is_some_and(|step| step == "ROOT")
            && below.len() + 1 == self.steps.len()
            && below
                .iter()
                .zip(&self.steps[1..])
                .all(|(open, step)| step == "*" || open == step);
        same(open) || same(below) || whole
    }
}

/// Hands over each record.
pub(super) fn each(
    options: &XmlOptions,
    reader: impl BufRead,
    out: &mut Out<'_, '_>,
) -> Result<()> {
    let mut reader = Reader::from_reader(reader);
    reader.config_mut().expand_empty_elements = true;
    let mut buffer = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut growing: Option<Growing> = None;
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let place = reader.buffer_position();
        let fault = |why: String| out.fault(format!("byte {place}: {why}"));
        let event = event.map_err(|error| fault(error.to_string()))?;
        match event {
            Event::Start(start) => {
                if open.len() == DEEPEST {
                    return Err(fault("is nested too deeply".to_owned()));
                }
                open.push(local(&String::from_utf8_lossy(start.name().as_ref())).to_owned());
                match &mut growing {
                    Some(record) => record.open(options, &open, &start).map_err(fault)?,
                    None if options.path.leads_to(&open) => {
                        growing = Some(Growing::new(open.len(), &start).map_err(fault)?);
                    }
                    None => {}
                }
            }
            Event::Text(text) => {
                if let Some(record) = &mut growing {
                    let text = text.unescape().map_err(|error| fault(error.to_string()))?;
                    record.text.push_str(&text);
                }
            }
            Event::CData(text) => {
                if let Some(record) = &mut growing {
                    let text = text.decode().map_err(|error| fault(error.to_string()))?;
                    record.text.push_str(&text);
                }
            }
            Event::End(_) => {
                let depth = open.len();
                open.pop();
                if let Some(mut record) = growing.take() {
                    if record.depth < depth {
                        record.close();
                        growing = Some(record);
                    } else if !out.put(None, Ok(record.end()))? {
                        return Ok(());
                    }
                }
            }
            Event::Eof => break,
            Event::Empty(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
        }
        if growing.is_none() {
            out.allowance.renew();
        }
    }
    if !open.is_empty() {
        return Err(out.fault(format!("ends inside of <{}>", open.join("/"))));
    }
    match out.number {
        0 => {
            let start = if options.path.anywhere { "//" } else { "/" };
            let path = options.path.steps.join("/");
            Err(out.fault(format!("has no record at '{start}{path}' (record_path)")))
        }
        _ => Ok(()),
    }
}

/// A record that is being read.
struct Growing {
    /// Depth of its element.
    depth: usize,
    fields: Fields,
    /// Names of the fields whose elements are open.
    names: Vec<String>,
    /// Text of the innermost one.
    text: String,
    /// The innermost one had elements of its own.
    parent: bool,
}

impl Growing {
    fn new(depth: usize, start: &BytesStart<'_>) -> Result<Self, String> {
        let mut record = Self {
            depth,
            fields: Fields::new(),
            names: Vec::new(),
            text: String::new(),
            parent: false,
        };
        for (name, value) in attributes(start)? {
            record
                .fields
                .insert(format!("@{name}"), value.clone().into());
            record.fields.insert(name, value.into());
        }
        Ok(record)
    }

    fn open(
        &mut self,
        options: &XmlOptions,
        open: &[String],
        start: &BytesStart<'_>,
    ) -> Result<(), String> {
        let mut name = open[self.depth..].join("/");
        for (attribute, value) in attributes(start)? {
            if options.field_attribute.as_ref() == Some(&attribute) {
                name = value;
            } else {
                self.fields
                    .insert(format!("{name}/@{attribute}"), value.into());
            }
        }
        self.names.push(name);
        self.text.clear();
        self.parent = false;
        Ok(())
    }

    fn close(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        if let Some(name) = self.names.pop()
            && (!self.parent || !text.is_empty())
        {
            self.fields.insert(name, Value::from(text));
        }
        self.parent = true;
    }

    fn end(mut self) -> Fields {
        let text = self.text.trim();
        if self.fields.is_empty() && !text.is_empty() {
            self.fields.insert("value".to_owned(), Value::from(text));
        }
        self.fields
    }
}

fn attributes(start: &BytesStart<'_>) -> Result<Vec<(String, String)>, String> {
    let (mut all, mut names) = (Vec::new(), HashSet::new());
    // Checked here: the library's way to look for names that stand twice takes the square of their number.
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let name = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
        if !names.insert(name.clone()) {
            return Err(format!("attribute '{name}' stands twice"));
        }
        let value = attribute
            .unescape_value()
            .map_err(|error| error.to_string())?;
        all.push((local(&name).to_owned(), value.into_owned()));
    }
    Ok(all)
}

/// A name without its prefix.
fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fields, read};
    use super::super::{Encoding, Format};
    use super::*;
    use serde_json::json;

    fn at(path: &str) -> Format {
        Format::Xml(XmlOptions {
            path: RecordPath::read(path).expect("a path"),
            field_attribute: None,
        })
    }

    const SHOP: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE shop>\n<shop><stock>\
        <p:item p:id=\"1\"><name> Lamp &amp; shade </name><size unit=\"cm\"><h>3</h></size><x/></p:item>\
        <item id=\"2\"><name><![CDATA[<b>]]></name></item></stock><item id=\"3\">gone</item></shop>";

    #[test]
    fn elements_and_attributes_are_fields() {
        let all = fields(&at("/shop/stock/item"), SHOP);
        assert_eq!(
            all,
            [
                json!({"@id": "1", "id": "1", "name": "Lamp & shade", "size/@unit": "cm",
                       "size/h": "3", "x": ""}),
                json!({"@id": "2", "id": "2", "name": "<b>"}),
            ]
        );
        for (path, count) in [
            ("//item", 3),
            ("stock/item", 2),
            ("/stock/item", 2),
            ("/ROOT/stock/item", 2),
            ("//stock/*", 2),
            ("/shop/item", 1),
        ] {
            assert_eq!(fields(&at(path), SHOP).len(), count, "{path}");
        }
        assert_eq!(
            fields(&at("//v"), "<r><v>1</v></r>"),
            [json!({"value": "1"})]
        );
    }

    #[test]
    fn an_attribute_may_name_the_field() {
        let format = Format::Xml(XmlOptions {
            path: RecordPath::read("//record").expect("a path"),
            field_attribute: Some("name".to_owned()),
        });
        let text = "<r><record><field name=\"Country or Area\">Albania</field>\
                    <field name=\"Year\">2020</field></record></r>";
        assert_eq!(
            fields(&format, text),
            [json!({"Country or Area": "Albania", "Year": "2020"})]
        );
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let fault = |path: &str, text: &str| {
            let error = read(&at(path), Encoding::Utf8, text.as_bytes()).expect_err("refused");
            error.to_string()
        };
        assert!(fault("//nothing", SHOP).contains("has no record at '//nothing'"));
        assert!(fault("//item", "<a><item></a>").contains("byte"));
        assert!(fault("//item", "<a><item/>").contains("ends inside"));
        assert!(fault("//item", "<a><item b='1' b='2'/></a>").contains("'b' stands twice"));
        let bomb = "<!DOCTYPE a [<!ENTITY x \"y\">]><a><item><b>&x;</b></item></a>";
        assert!(fault("//item", bomb).contains("byte"));
        assert!(fault("//item", &"<a>".repeat(300)).contains("nested too deeply"));
        for path in ["//a[@id]", "", "//", "a//b", "text()"] {
            assert!(RecordPath::read(path).is_err(), "{path}");
        }
    }
}
