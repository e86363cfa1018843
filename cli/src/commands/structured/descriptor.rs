//! The descriptor of a load, read whole: how the file is written, what its records become, what happens to
//! records that do not fit. What this program does not do is refused by name and place, never passed over. Pure.

mod globals;
mod mapping;
mod node;

use std::collections::BTreeSet;

use serde_json::Value;

use self::globals::Globals;
use self::mapping::read_mapping;
use self::node::{DescriptorNode, MOST, Read};
use super::records::{CsvOptions, Encoding, Format, XmlOptions};
use super::transform::Transform;
use super::validate::Check;

/// Most rows in a batch.
pub(super) const LARGEST_BATCH: u64 = 10_000;

/// A descriptor.
#[derive(Debug)]
pub(super) struct Descriptor {
    pub(super) format: Format,
    pub(super) encoding: Encoding,
    pub(super) mappings: Vec<Mapping>,
    /// Key of the schema; empty if the descriptor names none.
    pub(super) schema_name: String,
    pub(super) confidence: f64,
    /// Rows of a batch, if it says.
    pub(super) batch_size: Option<u64>,
    pub(super) on_transform_error: OnTransform,
    pub(super) on_validation_error: OnValidation,
    /// Records that may be refused, if it says.
    pub(super) max_errors: Option<u64>,
    /// Where refused records go, if it says.
    pub(super) error_output: Option<String>,
}

/// A field of the rows and where it comes from.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    pub(super) source: String,
    pub(super) target: String,
    pub(super) transforms: Vec<Transform>,
    pub(super) checks: Vec<Check>,
}

/// What happens to a record with a value that cannot be changed as wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnTransform {
    Skip,
    Fail,
    /// The field stays empty.
    Default,
}

/// What happens to a record with a value that does not pass its checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnValidation {
    Skip,
    Fail,
    /// It is told, and loaded all the same.
    Log,
}

impl Descriptor {
    /// Reads a descriptor. The error names the place in it.
    pub(super) fn read(text: &str) -> Read<Self> {
        let value: Value =
            serde_json::from_slice(text.as_bytes()).map_err(|e| format!("is not JSON ({e})"))?;
        Self::of(&value)
    }

    /// As [`Self::read`] for what is JSON already.
    pub(super) fn of(value: &Value) -> Read<Self> {
        let whole = DescriptorNode::root(value)?;
        whole.only(&[
            "version",
            "metadata",
            "format",
            "globals",
            "preprocessing",
            "mappings",
            "postprocessing",
            "output",
        ])?;
        for stage in ["preprocessing", "postprocessing"] {
            if !whole.list(stage)?.is_empty() {
                let kinds = whole.list(stage)?;
                let kind = kinds[0].get("type").and_then(Value::as_str).unwrap_or("?");
                return Err(whole.wrong(
                    stage,
                    &format!("'{kind}' is not supported: records go one by one"),
                ));
            }
        }
        let globals = Globals::read(&whole)?;
        let (format, encoding) = read_format(&whole.object("format")?)?;
        let output = globals.filled(value.get("output").unwrap_or(&Value::Null));
        let output = DescriptorNode::of(&output, "output")?;
        let mappings = whole.list("mappings")?;
        if mappings.is_empty() {
            return Err(whole.wrong("mappings", "is required: which fields go where"));
        }
        if mappings.len() > MOST {
            return Err(whole.wrong("mappings", &format!("has more than {MOST}")));
        }
        let mut descriptor = Self {
            format,
            encoding,
            mappings: Vec::new(),
            schema_name: String::new(),
            confidence: 0.9,
            batch_size: None,
            on_transform_error: OnTransform::Skip,
            on_validation_error: OnValidation::Skip,
            max_errors: None,
            error_output: None,
        };
        let mut targets = BTreeSet::new();
        for (at, mapping) in mappings.iter().enumerate() {
            let mapping = globals.filled(mapping);
            let mapping = read_mapping(
                &DescriptorNode::of(&mapping, &format!("mappings[{at}]"))?,
                &globals,
            )?;
            if !targets.insert(mapping.target.clone()) {
                return Err(format!(
                    "mappings[{at}]: '{}' has a source already",
                    mapping.target
                ));
            }
            descriptor.mappings.push(mapping);
        }
        descriptor.read_output(&output)?;
        Ok(descriptor)
    }

    fn read_output(&mut self, output: &DescriptorNode<'_>) -> Read<()> {
        output.only(&["format", "schema_name", "options", "error_handling"])?;
        let format = output.text("format")?.unwrap_or_default();
        if !matches!(format.as_str(), "" | "trustgraph-objects") {
            return Err(output.wrong(
                "format",
                &format!("'{format}' is not supported, only 'trustgraph-objects'"),
            ));
        }
        self.schema_name = output.text("schema_name")?.unwrap_or_default();
        let options = output.object("options")?;
        options.only(&["batch_size", "confidence", "metadata", "source_span_field"])?;
        if options.has("source_span_field") {
            return Err(options.wrong("source_span_field", "is not supported: rows keep no text"));
        }
        if let Some(confidence) = options.number("confidence")? {
            if !(0.0..=1.0).contains(&confidence) {
                return Err(options.wrong("confidence", "must be from 0 to 1"));
            }
            self.confidence = confidence;
        }
        self.batch_size = options.whole("batch_size")?;
        if self
            .batch_size
            .is_some_and(|size| !(1..=LARGEST_BATCH).contains(&size))
        {
            return Err(options.wrong("batch_size", &format!("must be from 1 to {LARGEST_BATCH}")));
        }
        let errors = output.object("error_handling")?;
        errors.only(&[
            "on_validation_error",
            "on_transform_error",
            "max_errors",
            "error_output",
        ])?;
        self.on_transform_error = match errors.text("on_transform_error")?.as_deref() {
            None | Some("skip") => OnTransform::Skip,
            Some("fail") => OnTransform::Fail,
            Some("default") => OnTransform::Default,
            Some(_) => {
                return Err(errors.wrong("on_transform_error", "must be skip, fail or default"));
            }
        };
        self.on_validation_error = match errors.text("on_validation_error")?.as_deref() {
            None | Some("skip") => OnValidation::Skip,
            Some("fail") => OnValidation::Fail,
            Some("log") => OnValidation::Log,
            Some(_) => return Err(errors.wrong("on_validation_error", "must be skip, fail or log")),
        };
        self.max_errors = errors.whole("max_errors")?;
        self.error_output = errors.text("error_output")?;
        Ok(())
    }
}

fn read_format(format: &DescriptorNode<'_>) -> Read<(Format, Encoding)> {
    format.only(&["type", "encoding", "options"])?;
    let encoding = format.text("encoding")?.unwrap_or_default();
    let encoding = Encoding::named(&encoding).ok_or_else(|| {
        format.wrong(
            "encoding",
            &format!("'{encoding}' is not supported; save the file as UTF-8, or name its charset"),
        )
    })?;
    let options = format.object("options")?;
    let kind = format.text("type")?.unwrap_or_else(|| "csv".to_owned());
    let read = match kind.to_ascii_lowercase().as_str() {
        "csv" => Format::Csv(read_csv(&options)?),
        "json" => Format::Json(read_json(&options)?),
        "xml" => Format::Xml(read_xml(&options)?),
        _ => {
            let why = format!("'{kind}' is not supported, only csv, json and xml");
            return Err(format.wrong("type", &why));
        }
    };
    Ok((read, encoding))
}

fn read_csv(options: &DescriptorNode<'_>) -> Read<CsvOptions> {
    options.only(&[
        "delimiter",
        "quote_char",
        "escape_char",
        "skip_rows",
        "has_header",
        "header",
        "null_values",
        "encoding",
    ])?;
    let byte = |key: &str, default: u8| match options.text(key)?.as_deref() {
        None => Ok(default),
        Some("\\t" | "tab") => Ok(b'\t'),
        Some(text) => match text.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
            _ => Err(options.wrong(key, "must be one ASCII character")),
        },
    };
    let quote = match options.text("quote_char")?.as_deref() {
        Some("") => None,
        _ => Some(byte("quote_char", b'"')?),
    };
    let delimiter = byte("delimiter", b',')?;
    if quote == Some(delimiter) {
        return Err(options.wrong("delimiter", "is the same as quote_char"));
    }
    // A quote that escapes itself is a doubled quote, which is always understood.
    let escape = match options.text("escape_char")? {
        Some(text) if !text.is_empty() => {
            Some(byte("escape_char", b'\\')?).filter(|e| Some(*e) != quote)
        }
        _ => None,
    };
    Ok(CsvOptions {
        delimiter,
        quote,
        escape,
        skip_rows: options.whole("skip_rows")?.unwrap_or(0),
        has_header: options.flag("has_header", true)? && options.flag("header", true)?,
        null_values: options.texts("null_values")?.into_iter().collect(),
    })
}

fn read_json(options: &DescriptorNode<'_>) -> Read<Vec<String>> {
    options.only(&["root_path", "array_mode", "flatten"])?;
    match options.text("array_mode")?.as_deref() {
        None | Some("records" | "single") => {}
        Some(_) => return Err(options.wrong("array_mode", "must be records or single")),
    }
    // A source may be a path, so nothing needs to be flattened first.
    options.flag("flatten", false)?;
    let path = options.text("root_path")?.unwrap_or_default();
    let bare = path.strip_prefix('$').unwrap_or(&path);
    let bare = bare
        .strip_suffix("[*]")
        .unwrap_or(bare)
        .trim_start_matches('.');
    if bare.contains(['[', ']', '*', '(', '?']) || path.contains("..") {
        let why = format!("'{path}' is not supported: a path such as '$.data.items' is wanted");
        return Err(options.wrong("root_path", &why));
    }
    let steps = bare.split('.').filter(|step| !step.is_empty());
    Ok(steps.map(str::to_owned).collect())
}

fn read_xml(options: &DescriptorNode<'_>) -> Read<XmlOptions> {
    options.only(&[
        "record_path",
        "field_attribute",
        "root_element",
        "record_element",
        "namespaces",
    ])?;
    let record = options.text("record_element")?;
    let root = options
        .text("root_element")?
        .filter(|root| !root.is_empty());
    let (key, path) = match (options.text("record_path")?, root, record) {
        (_, Some(root), None) if root.contains('/') => ("root_element", root),
        (_, Some(root), record) => {
            let record = record.unwrap_or_else(|| "record".to_owned());
            ("record_element", format!("//{root}/{record}"))
        }
        (_, None, Some(record)) => ("record_element", format!("//{record}")),
        (Some(path), None, None) => ("record_path", path),
        (None, None, None) => ("record_path", "//record".to_owned()),
    };
    Ok(XmlOptions {
        path: super::records::RecordPath::read(&path).map_err(|why| options.wrong(key, &why))?,
        field_attribute: options
            .text("field_attribute")?
            .filter(|name| !name.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(changes: Value) -> Value {
        let mut whole = json!({
            "format": {"type": "csv"},
            "mappings": [{"source_field": "a"}],
            "output": {"schema_name": "s"},
        });
        for (key, value) in changes.as_object().expect("an object") {
            whole[key] = value.clone();
        }
        whole
    }

    fn fault(changes: Value) -> String {
        Descriptor::of(&with(changes)).expect_err("refused")
    }

    #[test]
    fn the_example_of_the_reference_is_understood() {
        let text = r#"{
            "version": "1.0", "metadata": {"name": "Customers"},
            "format": {"type": "csv", "encoding": "utf-8",
                "options": {"delimiter": ";", "has_header": true, "null_values": ["NULL"]}},
            "globals": {"variables": {"default_confidence": 0.85, "unknown": "Unknown"},
                "lookup_tables": {"codes": {"US": "United States"}}},
            "mappings": [
                {"target_field": "name", "source": "customer",
                 "transforms": [{"type": "trim"}, {"type": "title_case"}],
                 "validation": [{"type": "required"}, {"type": "min_length", "value": 2}]},
                {"target_field": "country", "source": "code",
                 "transforms": [{"type": "lookup", "table": "codes"},
                                {"type": "default", "value": "${unknown}"}]}],
            "output": {"format": "trustgraph-objects", "schema_name": "customer",
                "options": {"confidence": "${default_confidence}", "batch_size": 500},
                "error_handling": {"on_validation_error": "log", "max_errors": 50}}
        }"#;
        let read = Descriptor::read(text).expect("understood");
        assert_eq!(
            (read.format.name(), read.schema_name.as_str()),
            ("csv", "customer")
        );
        assert_eq!((read.confidence, read.batch_size), (0.85, Some(500)));
        assert_eq!(read.on_validation_error, OnValidation::Log);
        assert_eq!(read.max_errors, Some(50));
        assert_eq!(read.mappings[0].checks.len(), 2);
        let [Transform::Lookup { lenient, .. }, Transform::Default(value)] =
            read.mappings[1].transforms.as_slice()
        else {
            panic!("{:?}", read.mappings[1]);
        };
        assert!(lenient);
        assert_eq!(value, "Unknown");
    }

    #[test]
    fn what_is_not_done_is_refused_by_its_place() {
        let mapping = |more: Value| {
            let mut mapping = json!({"source_field": "a"});
            for (key, value) in more.as_object().expect("an object") {
                mapping[key] = value.clone();
            }
            json!({"mappings": [mapping]})
        };
        for (changes, wanted) in [
            (
                json!({"format": {"type": "parquet"}}),
                "format.type: 'parquet' is not supported",
            ),
            (
                json!({"format": {"encoding": "utf-16"}}),
                "format.encoding: 'utf-16' is not",
            ),
            (
                json!({"format": {"options": {"quoting": 3}}}),
                "format.options.quoting: is not known",
            ),
            (
                json!({"format": {"options": {"delimiter": "::"}}}),
                "format.options.delimiter: must be one",
            ),
            (
                json!({"preprocessing": [{"type": "sort"}]}),
                "preprocessing: 'sort' is not supported",
            ),
            (json!({"mappings": []}), "mappings: is required"),
            (
                json!({"mappings": [{"target": "x"}]}),
                "mappings[0].source_field: is required",
            ),
            (
                mapping(json!({"transforms": [{"type": "calculate"}]})),
                "mappings[0].transforms[0].type: 'calculate' is not supported; known are trim",
            ),
            (
                mapping(json!({"transforms": [{"type": "lookup", "table": "t"}]})),
                "mappings[0].transforms[0].table: there is no 't'",
            ),
            (
                mapping(json!({"transforms": [{"type": "trim", "side": "left"}]})),
                "mappings[0].transforms[0].side: is not known",
            ),
            (
                mapping(json!({"validation": [{"type": "custom"}]})),
                "mappings[0].validation[0].type: 'custom' is not supported",
            ),
            (
                mapping(json!({"validation": [{"type": "pattern", "value": "("}]})),
                "mappings[0].validation[0].value: '(' is not a valid pattern",
            ),
            (
                mapping(json!({"transforms": 3})),
                "mappings[0].transforms: must be a list",
            ),
            (
                json!({"mappings": [{"source": "a"}, {"source": "b", "target": "a"}]}),
                "mappings[1]: 'a' has a source already",
            ),
            (
                json!({"output": {"options": {"confidence": 7}}}),
                "output.options.confidence: must be from 0",
            ),
            (
                json!({"output": {"options": {"source_span_field": "x"}}}),
                "output.options.source_span_field",
            ),
            (
                json!({"output": {"error_handling": {"on_transform_error": "x"}}}),
                "output.error_handling.on_transform_error: must be",
            ),
        ] {
            let why = fault(changes);
            assert!(why.starts_with(wanted), "{why}\nwanted {wanted}");
        }
        assert_eq!(
            Descriptor::of(&json!(3)).expect_err("refused"),
            "must be a JSON object"
        );
        assert!(
            Descriptor::read("{")
                .expect_err("refused")
                .starts_with("is not JSON")
        );
    }

    #[test]
    fn formats_have_their_own_options() {
        let format = |format: Value| Descriptor::of(&with(json!({"format": format})));
        let json = format(json!({"type": "json", "options": {"root_path": "$.data.items[*]"}}));
        let Format::Json(path) = json.expect("read").format else {
            panic!("no JSON");
        };
        assert_eq!(path, ["data", "items"]);
        for options in [
            json!({"record_path": "//shop/item"}),
            json!({"root_element": "shop", "record_element": "item"}),
            json!({"root_element": "//shop/item"}),
        ] {
            let xml = format(json!({"type": "xml", "options": options})).expect("read");
            let Format::Xml(options) = xml.format else {
                panic!("no XML");
            };
            let wanted = super::super::records::RecordPath::read("//shop/item");
            assert_eq!(Ok(options.path), wanted);
        }
        assert!(format(json!({"type": "json", "options": {"root_path": "$..x"}})).is_err());
    }
}
