//! What an operation is: one trait, declared once for each operation and read by the gateway, the bus and the commands.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorCode};
use crate::topic::Class;

/// A type that can describe itself as a JSON schema. Without the feature `schema` every type qualifies.
#[cfg(feature = "schema")]
pub trait Described: schemars::JsonSchema {}
#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> Described for T {}

/// A type that can describe itself as a JSON schema. Without the feature `schema` every type qualifies.
#[cfg(not(feature = "schema"))]
pub trait Described {}
#[cfg(not(feature = "schema"))]
impl<T> Described for T {}

/// What a request, a reply, a chunk or an error is: a JSON object with a schema.
pub trait Wire: Serialize + DeserializeOwned + Described + Clone + Send + Sync + 'static {}
impl<T: Serialize + DeserializeOwned + Described + Clone + Send + Sync + 'static> Wire for T {}

/// An operation's own error.
pub trait Refusal: Wire {
    /// Its code, as clients read it.
    fn code(&self) -> &'static str;
    /// HTTP status of the response that reports it.
    fn status(&self) -> u16;
    /// The same in the errors of the mesh.
    fn error(&self) -> Error;
    /// A request that cannot be read; `message` names the field.
    fn unreadable(message: String) -> Self;
    /// A header that cannot be read; `message` names it.
    fn bad_header(message: String) -> Self;
}

/// What an operation changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Read,
    /// Something, and doing it again under the same id changes nothing more.
    Write,
    /// Something that cannot be taken back: commands ask first.
    Confirm,
}

/// How the text of a header or of a query parameter is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Text,
    /// As a whole number.
    Whole,
    /// `true` or `false`.
    Flag,
}

/// A field of the request that does not come in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name of the header, in small letters, or of the query parameter.
    pub name: &'static str,
    /// Field of the request.
    pub field: &'static str,
    /// How it is read.
    pub form: Form,
}

impl Field {
    /// A field that is read in a form.
    pub const fn new(name: &'static str, field: &'static str, form: Form) -> Self {
        Self { name, field, form }
    }

    /// Reads the text. `None`: it has not this form.
    pub fn read(&self, text: &str) -> Option<Value> {
        match self.form {
            Form::Text => Some(Value::from(text)),
            Form::Whole => text.trim().parse::<i64>().ok().map(Value::from),
            Form::Flag => text.parse::<bool>().ok().map(Value::from),
        }
    }
}

/// What a path calls the workspace.
pub const WORKSPACE: &str = "workspace";

/// What is said of an operation beside its types.
#[derive(Debug, Clone, Copy)]
pub struct Meta {
    /// Base of the topic of workspaces on which it is served.
    pub service: &'static str,
    /// Its name in that service.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The capability that a caller needs.
    pub capability: &'static str,
    /// HTTP method.
    pub method: &'static str,
    /// HTTP path; what stands in braces is a field of the request, or the workspace.
    pub path: &'static str,
    /// HTTP status of its reply.
    pub status: u16,
    /// HTTP path where the same request is answered as server-sent events; empty: there is none.
    pub stream: &'static str,
    /// What the id of the request is called in an error over HTTP.
    pub id_key: &'static str,
    /// Fields that headers carry.
    pub headers: &'static [Field],
    /// Fields that the query carries.
    pub query: &'static [Field],
    /// Class of its topic.
    pub class: Class,
    /// What it changes.
    pub effect: Effect,
    /// Whether it has models asked: their tokens count against budgets, and a key that is held to models may not call it, as nobody
    /// can say which model it will be.
    pub asks_models: bool,
    /// The release that brought it.
    pub since: &'static str,
}

impl Meta {
    /// The fields that its path names, in their order, without the workspace.
    pub fn path_fields(&self) -> impl Iterator<Item = &'static str> {
        let parts = self.path.split('/');
        let named = parts.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        named.filter(|name| *name != WORKSPACE)
    }
}

/// An operation.
pub trait Operation: Send + Sync + 'static {
    /// What is said of it.
    const META: Meta;
    /// What it is asked.
    type Request: Wire;
    /// What it answers.
    type Reply: Wire;
    /// What it reports on the way.
    type Chunk: Wire;
    /// How it fails.
    type Error: Refusal;

    /// Headers of the HTTP response.
    fn headers(_reply: &Self::Reply) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Of a request that is answered as events: the last of them. `None`: the reply is one part.
    fn end(_request: &Self::Request, _reply: &Self::Reply) -> Option<(&'static str, Object)> {
        None
    }
}

/// The types of an operation whose name is not known where they are used.
pub type Object = Map<String, Value>;

/// Reads a type from an object.
///
/// # Errors
/// The text of the error, which begins with the field that does not fit.
pub fn read<T: Wire>(object: &Object) -> Result<T, String> {
    // What is read is not copied before.
    T::deserialize(object).map_err(|whole| {
        let fits = |one: &Object| T::deserialize(one).is_ok();
        misfit(object, &fits, &whole)
    })
}

/// What does not fit, of an object that does not as a whole.
fn misfit(object: &Object, fits: &dyn Fn(&Object) -> bool, whole: &serde_json::Error) -> String {
    // Each field has a default, so the one at fault fails alone, too.
    let alone = |(key, value): (&String, &Value)| {
        let one: Object = [(key.clone(), value.clone())].into_iter().collect();
        let failed = !fits(&one);
        failed.then(|| format!("{key}: is not what the operation takes here"))
    };
    let field = object.iter().find_map(alone);
    field.unwrap_or_else(|| format!("request: {whole}"))
}

/// Writes a type as an object.
///
/// # Errors
/// The type is not an object: a fault of ours.
pub fn write<T: Wire>(value: &T) -> Result<Object, Error> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(Error::new(
            ErrorCode::Internal,
            "the answer could not be written",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(default)]
    struct Sample {
        text: String,
        count: i64,
    }

    #[test]
    fn a_field_of_another_type_is_named() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let fits = read::<Sample>(&object(json!({"text": "a", "more": 1})));
        assert_eq!(fits.unwrap().text, "a");
        let named = read::<Sample>(&object(json!({"text": "a", "count": "5"})));
        assert!(named.unwrap_err().starts_with("count: "));
    }

    #[test]
    fn headers_are_read_in_their_form() {
        let field = |form| Field::new("x", "x", form);
        assert_eq!(field(Form::Whole).read(" 3 "), Some(json!(3)));
        assert_eq!(field(Form::Whole).read("x"), None);
        assert_eq!(field(Form::Flag).read("true"), Some(json!(true)));
        assert_eq!(field(Form::Flag).read("yes"), None);
        assert_eq!(field(Form::Text).read("3"), Some(json!("3")));
    }
}
