//! Vectors of texts: what a client asks, as `embeddings` reads it, and what it is answered.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::limits::{CHAT_BODY, human};

use super::asking::model;
use super::errors::CompatError;
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// The name that stands for whatever model the flow has.
const OWN: &str = "default";
/// Most tokens in the place of texts.
const TOKENS: usize = 300_000;
/// Characters of a token, about: the service counts none.
const CHARACTERS: usize = 4;

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// As a list.
    Numbers,
    /// As little-endian `f32` in base64. Official clients ask for it.
    Base64,
}

/// Vectors that are asked for.
#[derive(Debug, PartialEq)]
pub(crate) struct Asked {
    model: String,
    texts: Vec<String>,
    encoding: Encoding,
    dimensions: Option<i64>,
}

impl Asked {
    /// Reads a request. Fields that are not known mean nothing.
    ///
    /// # Errors
    /// `bad-request`, with the field that is missing or wrong, or that asks for what is not done here.
    pub(crate) fn read(body: &Body) -> Result<Self, Error> {
        let fields = Fields::new(body);
        let encoding = match fields.name_or("encoding_format", "float")?.as_str() {
            "float" => Encoding::Numbers,
            "base64" => Encoding::Base64,
            _ => return Err(fault("encoding_format", "must be float or base64")),
        };
        let dimensions = match fields.value("dimensions") {
            None => None,
            Some(_) => match fields.integer_or("dimensions", 0)? {
                most @ 1.. => Some(most),
                _ => return Err(fault("dimensions", "must be at least 1")),
            },
        };
        Ok(Self {
            model: model(&fields)?,
            texts: texts(&fields)?,
            encoding,
            dimensions,
        })
    }

    /// The body of `embeddings`. A name that ends in a number of dimensions means that model and no other. Any other name is
    /// compared with the model of the flow, once that is known.
    pub(crate) fn question(&self) -> Body {
        let mut own = Body::new();
        own.insert("texts".into(), json!(self.texts));
        if is_exact(&self.model) {
            own.insert("model".into(), json!(self.model));
        }
        own
    }

    /// The answer, from that of `embeddings`.
    ///
    /// # Errors
    /// The flow has another model, or one whose vectors have another length than was asked for.
    pub(crate) fn answer(&self, body: &Body) -> Result<Value, CompatError> {
        let model = body.get("model").and_then(Value::as_str);
        let model = model.unwrap_or_default();
        if !self.means(model) {
            return Err(unknown());
        }
        let vectors = body.get("vectors").and_then(Value::as_array);
        let vectors = vectors.map_or(&[][..], Vec::as_slice);
        let length = vectors.first().and_then(Value::as_array).map(Vec::len);
        if let (Some(asked), Some(length)) = (self.dimensions, length)
            && usize::try_from(asked) != Ok(length)
        {
            let why = format!("dimensions: must be {length}, as many as this model makes");
            return Err(CompatError::new(400, "validation_error", why));
        }
        let shown = |(at, vector): (usize, &Value)| {
            let vector = match self.encoding {
                Encoding::Numbers => vector.clone(),
                Encoding::Base64 => packed(vector).into(),
            };
            json!({"object": "embedding", "index": at, "embedding": vector})
        };
        let data: Vec<Value> = vectors.iter().enumerate().map(shown).collect();
        let tokens: usize = self.texts.iter().map(|text| tokens(text)).sum();
        let mut answer = json!({
            "object": "list", "data": null,
            "model": if model.is_empty() { &self.model } else { model },
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        });
        // Moved in: the macro would copy the whole tree.
        answer["data"] = data.into();
        Ok(answer)
    }

    /// Whether the model that answered is the one that was asked for: by its whole name (`provider/model/dimension`), by a
    /// part of it, or by the name that stands for any. One that does not say its name cannot be compared.
    fn means(&self, answered: &str) -> bool {
        let asked = self.model.as_str();
        if answered.is_empty() || asked == OWN || asked == answered {
            return true;
        }
        let name = answered.rsplit_once('/').map_or(answered, |(name, _)| name);
        let bare = name.split_once('/').map_or(name, |(_, model)| model);
        asked == name || asked == bare
    }
}

/// A failure of the service. A model that it does not have is none that there is.
pub(crate) fn failed(fault: CompatError) -> CompatError {
    match fault.status == 400 && fault.field() == Some("model") {
        true => unknown(),
        false => fault.renamed("texts", "input"),
    }
}

fn unknown() -> CompatError {
    let text = "model: the flow has no embeddings model of this name; \"default\" stands for the one that it has";
    CompatError::new(404, "model_not_found", text)
}

fn is_exact(model: &str) -> bool {
    let dimension = model.rsplit_once('/').map(|(_, last)| last);
    dimension.is_some_and(|last| !last.is_empty() && last.bytes().all(|one| one.is_ascii_digit()))
}

/// Whether texts come as tokens. The first of these take time: their table is read from the program.
pub(crate) fn has_tokens(body: &Body) -> bool {
    let items = body.get("input").and_then(Value::as_array);
    let first = items.and_then(|items| items.first());
    first.is_some_and(|first| first.is_number() || first.is_array())
}

/// Texts that come as tokens of `cl100k_base`, as LangChain sends them: those of one text, or of several.
fn untokened(items: &[Value]) -> Result<Vec<String>, Error> {
    let one = items.iter().all(Value::is_number);
    let lists: Option<Vec<&[Value]>> = match one {
        true => Some(vec![items]),
        false => {
            let lists = items.iter();
            lists
                .map(|item| item.as_array().map(Vec::as_slice))
                .collect()
        }
    };
    let lists = lists.ok_or_else(|| fault("input", "must be texts, or lists of tokens"))?;
    if lists.iter().map(|list| list.len()).sum::<usize>() > TOKENS {
        let why = format!("must be at most {TOKENS} tokens together");
        return Err(fault("input", &why));
    }
    let mut texts = Vec::with_capacity(lists.len());
    let mut room = CHAT_BODY;
    for (at, list) in lists.into_iter().enumerate() {
        let field = match one {
            true => "input".to_owned(),
            false => format!("input[{at}]"),
        };
        let token = |one: &Value| u32::try_from(one.as_u64()?).ok();
        let tokens: Option<Vec<u32>> = list.iter().map(token).collect();
        let text = tokens.and_then(|tokens| tg_tokens::text(&tokens, room));
        let text = text.ok_or_else(|| fault(&field, "must be tokens of cl100k_base, or a text"))?;
        // Few tokens can be a long text.
        room = room.checked_sub(text.len()).ok_or_else(|| {
            let why = format!("must be at most {} of text together", human(CHAT_BODY));
            fault("input", &why)
        })?;
        texts.push(text);
    }
    Ok(texts)
}

/// One text, or several.
fn texts(fields: &Fields<'_>) -> Result<Vec<String>, Error> {
    let items = match fields.value("input") {
        None => return Err(fault("input", "is required")),
        Some(Value::String(text)) => return Ok(vec![text.clone()]),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(fault("input", "must be a text or a list of texts")),
    };
    if items.is_empty() {
        return Err(fault("input", "must have at least one text"));
    }
    if items.iter().any(|item| item.is_number() || item.is_array()) {
        return untokened(items);
    }
    fields.texts("input")
}

fn packed(vector: &Value) -> String {
    let numbers = vector.as_array().map_or(&[][..], Vec::as_slice);
    let numbers = numbers.iter().filter_map(Value::as_f64);
    let bytes: Vec<u8> = numbers
        .flat_map(|number| (number as f32).to_le_bytes())
        .collect();
    STANDARD.encode(bytes)
}

fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(CHARACTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Asked, String> {
        Asked::read(body.as_object().unwrap()).map_err(|error| error.message)
    }

    fn answered() -> Body {
        let body = json!({"vectors": [[0.5, -2.0], [1.0, 0.1]], "model": "p/m/2"});
        body.as_object().cloned().unwrap()
    }

    #[test]
    fn a_text_or_several_are_read_and_tokens_are_refused_by_name() {
        let one = read(json!({"model": "m", "input": "a", "user": "u", "unknown": 1})).unwrap();
        assert_eq!(Value::Object(one.question()), json!({"texts": ["a"]}));
        let exact = read(json!({"model": "p/m/2", "input": ["a", "b"]})).unwrap();
        assert_eq!(
            Value::Object(exact.question()),
            json!({"texts": ["a", "b"], "model": "p/m/2"})
        );
        for (body, told) in [
            (json!({"input": "a"}), "model: is required"),
            (json!({"model": "m"}), "input: is required"),
            (
                json!({"model": "m", "input": []}),
                "input: must have at least one text",
            ),
            (
                json!({"model": "m", "input": [1, -2]}),
                "input: must be tokens of cl100k_base, or a text",
            ),
            (
                json!({"model": "m", "input": [[1, 2], [1, 4_000_000_000_u32]]}),
                "input[1]: must be tokens of cl100k_base, or a text",
            ),
            (
                json!({"model": "m", "input": [[1, 2], "a"]}),
                "input: must be texts, or lists of tokens",
            ),
            (
                json!({"model": "m", "input": ["a", null]}),
                "input[1]: must be a string",
            ),
            (
                json!({"model": "m", "input": "a", "encoding_format": "hex"}),
                "encoding_format: must be float or base64",
            ),
            (
                json!({"model": "m", "input": "a", "dimensions": 0}),
                "dimensions: must be at least 1",
            ),
        ] {
            assert_eq!(read(body).unwrap_err(), told);
        }
    }

    #[test]
    fn tokens_are_read_as_the_texts_that_they_are() {
        let table = tg_tokens::table().unwrap();
        let tokens = |text: &str| json!(table.encode_ordinary(text));
        let texts = |input: Value| {
            assert!(has_tokens(json!({"input": input}).as_object().unwrap()));
            let asked = read(json!({"model": "m", "input": input}));
            asked.map(|asked| asked.texts)
        };
        assert_eq!(
            texts(tokens("a lighthouse")),
            Ok(vec!["a lighthouse".to_owned()])
        );
        let several = json!([tokens("one"), tokens("zwei")]);
        assert_eq!(
            texts(several),
            Ok(vec!["one".to_owned(), "zwei".to_owned()])
        );
        let many = json!([vec![1; TOKENS], [1]]);
        assert!(
            texts(many)
                .unwrap_err()
                .starts_with("input: must be at most")
        );
        assert!(!has_tokens(json!({"input": ["a"]}).as_object().unwrap()));
    }

    #[test]
    fn vectors_are_numbers_or_little_endian_base64() {
        let asked = read(json!({"model": "m", "input": ["abcde", "b"]})).unwrap();
        let answer = asked.answer(&answered()).unwrap();
        assert_eq!(
            answer["data"][1],
            json!({"object": "embedding", "index": 1, "embedding": [1.0, 0.1]})
        );
        assert_eq!(
            (&answer["model"], &answer["usage"]["prompt_tokens"]),
            (&json!("p/m/2"), &json!(3))
        );
        let asked =
            read(json!({"model": "default", "input": "a", "encoding_format": "base64"})).unwrap();
        let answer = asked.answer(&answered()).unwrap();
        assert_eq!(answer["data"][0]["embedding"], "AAAAPwAAAMA=");
    }

    #[test]
    fn a_model_that_the_flow_does_not_have_and_another_length_are_refused() {
        let ask = |model: &str, dimensions: i64| {
            let body = json!({"model": model, "input": "a", "dimensions": dimensions});
            read(body).unwrap().answer(&answered())
        };
        for named in ["default", "p/m/2", "p/m", "m"] {
            assert!(ask(named, 2).is_ok(), "{named}");
        }
        for other in ["p", "m/2", "p/m/3", "other"] {
            assert_eq!(ask(other, 2).unwrap_err().status, 404, "{other}");
        }
        assert_eq!(ask("m", 3).unwrap_err().field(), Some("dimensions"));
    }

    #[test]
    fn failures_of_the_service_name_the_fields_of_the_request() {
        let of = |text: &str| failed(CompatError::new(400, "validation_error", text));
        assert_eq!(of("model: is not there").status, 404);
        assert_eq!(of("texts[3]: is too long").field(), Some("input[3]"));
        assert_eq!(of("other: x").field(), Some("other"));
    }
}
