//! Avro schemas made from the definitions of the message types, as `avro/*.avsc` hold them. For tests only.
//!
//! It reads the types as they are written: names, order and types of fields as serde takes them. What it does not
//! understand, such as a serde attribute that changes what is written, is an error and never passed over.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Field, GenericArgument, Item, ItemStruct, LitStr, Path, PathArguments, Token, Type,
};

/// The namespace of every record.
const NAMESPACE: &str = "threadgraph";

/// The structs of some sources, and which of them are messages.
#[derive(Default)]
pub(super) struct Types {
    structs: BTreeMap<String, ItemStruct>,
    messages: BTreeSet<String>,
}

/// What a message says of itself that its definition does not.
pub(super) struct Said {
    /// Name of the record.
    pub(super) name: &'static str,
    /// `M::default()` as JSON, without the fields that are left out while they say nothing.
    pub(super) default: Value,
}

/// The messages by the names of their types.
pub(super) type Messages = BTreeMap<&'static str, Said>;

/// What a field holds.
#[derive(Debug)]
enum Kind {
    /// A type that Avro has, by its name there.
    Plain(&'static str),
    Nullable(Box<Kind>),
    Array(Box<Kind>),
    Map(Box<Kind>),
    /// JSON of any shape, which travels as text: the codec looks at the field's mark `free`.
    Free,
    Record(String),
}

impl Types {
    /// Adds the definitions of a source file.
    pub(super) fn add(&mut self, source: &str) -> Result<(), String> {
        let file = syn::parse_file(source).map_err(|error| error.to_string())?;
        for item in file.items {
            match item {
                Item::Struct(item) => {
                    // One that stands for a type which serde writes by hand has that type's name.
                    let name = match words(&item.attrs)?.remove("rename") {
                        Some(name) => name,
                        None => item.ident.to_string(),
                    };
                    if self.structs.contains_key(&name) {
                        return Err(format!("{name} is defined twice"));
                    }
                    self.structs.insert(name, item);
                }
                Item::Macro(item) if item.mac.path.is_ident("message") => {
                    let name = item.mac.tokens.into_iter().next();
                    self.messages.extend(name.map(|name| name.to_string()));
                }
                Item::Impl(item) => {
                    if let (Some((path, _)), Type::Path(of)) = (&item.trait_, &*item.self_ty)
                        && last(path) == "Message"
                    {
                        self.messages.insert(last(&of.path));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The types that are messages.
    pub(super) fn messages(&self) -> &BTreeSet<String> {
        &self.messages
    }

    /// The schema of a type: every record is written out where it first stands, and named afterwards.
    pub(super) fn schema(&self, of: &str, messages: &Messages) -> Result<Value, String> {
        self.record(of, messages, &mut BTreeSet::new())
    }

    fn record(
        &self,
        of: &str,
        messages: &Messages,
        seen: &mut BTreeSet<String>,
    ) -> Result<Value, String> {
        let said = messages.get(of);
        let name = said.map_or(of, |said| said.name);
        if !seen.insert(name.to_owned()) {
            return Ok(json!(format!("{NAMESPACE}.{name}")));
        }
        let item = self.structs.get(of).ok_or(format!("{of} is not found"))?;
        if !words(&item.attrs)?.contains_key("default") {
            return Err(format!(
                "{of} needs #[serde(default)]: a body of another release may lack a field"
            ));
        }
        let usual = match said {
            Some(said) => &said.default,
            None if derives_default(item) => &Value::Null,
            None => return Err(format!("the default of {of} is not known")),
        };
        let mut fields = Vec::new();
        for field in &item.fields {
            let made = self.field(field, usual, messages, seen);
            fields.extend(made.map_err(|error| format!("{of}: {error}"))?);
        }
        Ok(json!({"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}))
    }

    /// A field as the schema has it; `None` if it does not travel.
    fn field(
        &self,
        field: &Field,
        usual: &Value,
        messages: &Messages,
        seen: &mut BTreeSet<String>,
    ) -> Result<Option<Value>, String> {
        let mut words = words(&field.attrs)?;
        if words.contains_key("skip") {
            return Ok(None);
        }
        let ident = field.ident.as_ref().ok_or("a field has no name")?;
        let name = match words.remove("rename") {
            Some(name) => name,
            None => ident.unraw().to_string(),
        };
        let kind = kind(&field.ty).ok_or(format!("{name}: Avro has no such type"))?;
        let mut made = json!({
            "name": name,
            "type": self.written(&kind, messages, seen)?,
            "default": kind.default(usual.get(&name)),
        });
        if kind.is_free() {
            made["free"] = json!(true);
        }
        Ok(Some(made))
    }

    fn written(
        &self,
        kind: &Kind,
        messages: &Messages,
        seen: &mut BTreeSet<String>,
    ) -> Result<Value, String> {
        Ok(match kind {
            Kind::Plain(name) => json!(name),
            Kind::Free => json!("string"),
            Kind::Nullable(of) => json!(["null", self.written(of, messages, seen)?]),
            Kind::Array(of) => {
                json!({"type": "array", "items": self.written(of, messages, seen)?})
            }
            Kind::Map(of) => json!({"type": "map", "values": self.written(of, messages, seen)?}),
            Kind::Record(name) => self.record(name, messages, seen)?,
        })
    }
}

impl Kind {
    fn is_free(&self) -> bool {
        match self {
            Self::Free => true,
            Self::Nullable(of) => of.is_free(),
            _ => false,
        }
    }

    /// What a body that lacks the field says: what the type says, or what is left out because it says nothing.
    fn default(&self, usual: Option<&Value>) -> Value {
        match (self, usual) {
            (Self::Free, usual) => json!(usual.unwrap_or(&json!({})).to_string()),
            (_, Some(usual)) => usual.clone(),
            (Self::Plain("string"), _) => json!(""),
            (Self::Plain("boolean"), _) => json!(false),
            (Self::Plain("long"), _) => json!(0),
            (Self::Plain(_), _) => json!(0.0),
            (Self::Nullable(_), _) => Value::Null,
            (Self::Array(_), _) => json!([]),
            (Self::Map(_) | Self::Record(_), _) => json!({}),
        }
    }
}

/// What a field of this type holds. `None` if no message may hold it.
fn kind(of: &Type) -> Option<Kind> {
    let Type::Path(of) = of else {
        return None;
    };
    let last = of.path.segments.last()?;
    let inner = match &last.arguments {
        PathArguments::None => Vec::new(),
        PathArguments::AngleBracketed(inner) => inner.args.iter().map(argument).collect(),
        PathArguments::Parenthesized(_) => return None,
    };
    // The mark `free` is a field's: lists and maps of such values have no place for it.
    let boxed = |of: &Type| kind(of).filter(|kind| !kind.is_free()).map(Box::new);
    Some(match (last.ident.to_string().as_str(), inner.as_slice()) {
        ("String", []) => Kind::Plain("string"),
        ("i64", []) => Kind::Plain("long"),
        ("f32", []) => Kind::Plain("float"),
        ("f64", []) => Kind::Plain("double"),
        ("bool", []) => Kind::Plain("boolean"),
        ("Box", [Some(of)]) => kind(of)?,
        ("Option", [Some(of)]) => Kind::Nullable(Box::new(kind(of)?)),
        ("Vec", [Some(of)]) => Kind::Array(boxed(of)?),
        ("BTreeMap", [Some(Type::Path(key)), Some(of)]) if key.path.is_ident("String") => {
            Kind::Map(boxed(of)?)
        }
        ("Map", [Some(_), Some(_)]) => Kind::Free,
        (name, []) if name.starts_with(char::is_uppercase) => Kind::Record(name.to_owned()),
        _ => return None,
    })
}

fn argument(of: &GenericArgument) -> Option<&Type> {
    match of {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    }
}

fn last(path: &Path) -> String {
    let last = path.segments.last();
    last.map(|last| last.ident.to_string()).unwrap_or_default()
}

/// What the serde attributes say, by word. Those that leave name, order and type alone are let pass.
fn words(attrs: &[Attribute]) -> Result<BTreeMap<String, String>, String> {
    let mut words = BTreeMap::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
        attr.parse_nested_meta(|meta| {
            let word = last(&meta.path);
            let known = ["default", "rename", "skip"].contains(&word.as_str());
            let passes = ["alias", "deserialize_with", "skip_serializing_if"];
            if !known && !passes.contains(&word.as_str()) {
                return Err(meta.error(format!("serde attribute {word} is not understood")));
            }
            let value = match meta.input.peek(Token![=]) {
                true => meta.value()?.parse::<LitStr>()?.value(),
                false => String::new(),
            };
            words.insert(word, value);
            Ok(())
        })
        .map_err(|error| error.to_string())?;
    }
    Ok(words)
}

fn derives_default(item: &ItemStruct) -> bool {
    item.attrs
        .iter()
        .filter(|attr| attr.path().is_ident("derive"))
        .filter_map(|attr| {
            attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)
                .ok()
        })
        .flatten()
        .any(|path| path.is_ident("Default"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(source: &str, messages: &Messages) -> Result<Value, String> {
        let mut types = Types::default();
        types.add(source)?;
        types.schema("A", messages)
    }

    #[test]
    fn a_definition_becomes_a_record() {
        let source = r#"
            #[derive(Clone, Serialize)]
            #[serde(default)]
            pub struct A {
                #[serde(rename = "kind", deserialize_with = "nullable")]
                /// What it is.
                pub generation: String,
                pub r#type: Vec<Option<B>>,
                #[serde(skip)]
                pub raw: Option<Bytes>,
                #[serde(skip_serializing_if = "is_zero")]
                pub limit: i64,
                pub ratio: f64,
                pub payload: serde_json::Map<String, serde_json::Value>,
                pub schema: Option<serde_json::Map<String, serde_json::Value>>,
                pub counts: BTreeMap<String, Vec<f32>>,
                pub more: Option<Box<B>>,
            }
            impl crate::Message for A {}
            #[derive(Default)]
            #[serde(default, rename = "B")]
            struct Wire { on: bool, a: Option<super::other::A> }
            message!(B);
        "#;
        let said = Said {
            name: "Aside",
            default: json!({"kind": "x", "type": [], "ratio": 0.5, "payload": {"a": 1},
                "schema": null, "counts": {}, "more": null}),
        };
        let b = json!({"type": "record", "name": "B", "namespace": "threadgraph", "fields": [
            {"name": "on", "type": "boolean", "default": false},
            {"name": "a", "type": ["null", "threadgraph.Aside"], "default": null}]});
        let free = r#"{"a":1}"#;
        let whole = json!({"type": "record", "name": "Aside", "namespace": "threadgraph", "fields": [
            {"name": "kind", "type": "string", "default": "x"},
            {"name": "type", "type": {"type": "array", "items": ["null", b]}, "default": []},
            {"name": "limit", "type": "long", "default": 0},
            {"name": "ratio", "type": "double", "default": 0.5},
            {"name": "payload", "type": "string", "default": free, "free": true},
            {"name": "schema", "type": ["null", "string"], "default": null, "free": true},
            {"name": "counts", "type": {"type": "map", "values": {"type": "array", "items": "float"}},
                "default": {}},
            {"name": "more", "type": ["null", "threadgraph.B"], "default": null}]});
        let mut types = Types::default();
        types.add(source).unwrap();
        assert_eq!(types.messages().iter().collect::<Vec<_>>(), ["A", "B"]);
        let made = types.schema("A", &Messages::from([("A", said)])).unwrap();
        // As text: the order of fields counts.
        assert_eq!(made.to_string(), whole.to_string());
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let of = |field: &str| {
            let source = format!("#[derive(Default)] #[serde(default)] struct A {{ {field} }}");
            made(&source, &Messages::new()).unwrap_err()
        };
        for (field, error) in [
            ("a: u64", "A: a: Avro has no such type"),
            ("a: Option<i32>", "A: a: Avro has no such type"),
            ("a: (i64, i64)", "A: a: Avro has no such type"),
            ("a: BTreeMap<i64, String>", "A: a: Avro has no such type"),
            ("a: Vec<Map<String, Value>>", "A: a: Avro has no such type"),
            ("a: Elsewhere", "A: Elsewhere is not found"),
            (
                "#[serde(flatten)] a: String",
                "A: serde attribute flatten is not understood",
            ),
        ] {
            assert_eq!(of(field), error);
        }
        for (source, error) in [
            (
                "#[derive(Default)] struct A { a: i64 }",
                "A needs #[serde(default)]: a body of another release may lack a field",
            ),
            (
                "#[serde(default)] struct A { a: i64 }",
                "the default of A is not known",
            ),
            (
                "#[derive(Default)] #[serde(default, rename_all = \"camelCase\")] struct A { a: i64 }",
                "serde attribute rename_all is not understood",
            ),
            (
                "#[serde(default)] struct A { a: i64 } struct A;",
                "A is defined twice",
            ),
        ] {
            assert_eq!(made(source, &Messages::new()).unwrap_err(), error);
        }
    }
}
