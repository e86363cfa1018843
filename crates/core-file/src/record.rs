//! Records of a core file and the payloads of the knowledge service: `[tag, map]` on one side, the API form
//! on the other. Pure.
//!
//! Keys beside those of the reference keep what it loses: an entity's `c` (chunk), `r` (types) and `a`
//! (attributes), a chunk's `a`, and `x` (model) of a record of vectors. Readers that do not know them pass
//! them over.

use serde_json::{Map, Value, json};
use tg_schemas::msg::DEFAULT_COLLECTION;
use tg_schemas::{Error, ErrorCode};

/// A JSON object in the API form.
pub type Body = Map<String, Value>;

/// A record as a request of the knowledge service that puts it into a core.
///
/// # Errors
/// `bad-request`: the record is not a pair of tag and map, or its tag is unknown. It can be put into no core.
pub fn to_put(record: Value, core: &str) -> Result<Body, Error> {
    let Value::Array(pair) = record else {
        return Err(fault("must be a list of tag and map"));
    };
    let [Value::String(tag), Value::Object(map)] = pair.as_slice() else {
        return Err(fault("must be a list of tag and map"));
    };
    let field = |key: &str| map.get(key).cloned().unwrap_or(Value::Null);
    let vectors = |list: &str, from: &str, names: &[(&str, &str)]| {
        let mut payload = json!({"metadata": metadata(core)});
        if let Some(model) = map.get("x") {
            payload["model"] = model.clone();
        }
        payload[list] = renamed(map.get(from), names);
        payload
    };
    let (operation, key, payload) = match tag.as_str() {
        "t" => (
            "put-kg-core",
            "triples",
            json!({"metadata": metadata(core), "triples": field("t")}),
        ),
        "ge" => (
            "put-kg-core",
            "graph-embeddings",
            vectors("entities", "e", ENTITY),
        ),
        "de" => (
            "put-de-core",
            "document-embeddings",
            vectors("chunks", "c", CHUNK),
        ),
        "lm" => (
            "put-kg-core",
            "library-metadata",
            json!({"id": field("i"), "kind": field("k"), "title": field("t"),
                   "parent-id": field("p"), "document-type": field("d"),
                   "comments": field("c"), "tags": field("g")}),
        ),
        "lb" => (
            "put-kg-core",
            "library-blob",
            json!({"id": field("i"), "data": field("d")}),
        ),
        _ => return Err(fault("has an unknown tag")),
    };
    let mut body = Body::new();
    body.insert("operation".to_owned(), operation.into());
    body.insert("id".to_owned(), core.into());
    body.insert(key.to_owned(), payload);
    Ok(body)
}

/// A payload of the knowledge service as a record; `None` for what is no record.
pub fn to_record(body: &Body) -> Option<Value> {
    let (key, payload) = body.iter().next()?;
    let meta = || {
        let metadata = &payload["metadata"];
        json!({"i": metadata["id"], "m": metadata["root"], "c": metadata["collection"]})
    };
    let with_model = |mut map: Value| {
        if let Some(model) = payload.get("model") {
            map["x"] = model.clone();
        }
        map
    };
    Some(match key.as_str() {
        "triples" => json!(["t", {"m": meta(), "t": payload["triples"]}]),
        "graph-embeddings" => {
            let entities = shortened(&payload["entities"], ENTITY);
            json!(["ge", with_model(json!({"m": meta(), "e": entities}))])
        }
        "document-embeddings" => {
            let chunks = shortened(&payload["chunks"], CHUNK);
            json!(["de", with_model(json!({"m": meta(), "c": chunks}))])
        }
        "library-metadata" => json!(["lm", {
            "i": payload["id"], "k": payload["kind"], "t": payload["title"],
            "p": payload["parent-id"], "d": payload["document-type"], "c": payload["comments"],
            "g": payload["tags"]}]),
        "library-blob" => json!(["lb", {"i": payload["id"], "d": payload["data"]}]),
        _ => return None,
    })
}

/// Keys in files with keys in the API form.
const ENTITY: &[(&str, &str)] = &[
    ("e", "entity"),
    ("v", "vector"),
    ("c", "chunk_id"),
    ("r", "rdf_type"),
    ("a", "attributes"),
];
const CHUNK: &[(&str, &str)] = &[("i", "chunk_id"), ("v", "vector"), ("a", "attributes")];

/// The core takes the name asked for, whatever the file says.
fn metadata(core: &str) -> Value {
    json!({"id": core, "root": "", "collection": DEFAULT_COLLECTION})
}

fn renamed(items: Option<&Value>, names: &[(&str, &str)]) -> Value {
    each(items, |item| {
        names
            .iter()
            .filter_map(|(short, long)| Some(((*long).to_owned(), item.get(*short)?.clone())))
            .collect()
    })
}

fn shortened(items: &Value, names: &[(&str, &str)]) -> Value {
    each(Some(items), |item| {
        names
            .iter()
            .filter_map(|(short, long)| Some(((*short).to_owned(), item.get(*long)?.clone())))
            .collect()
    })
}

fn each(items: Option<&Value>, change: impl Fn(&Value) -> Map<String, Value>) -> Value {
    match items {
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| Value::Object(change(item)))
            .collect(),
        other => other.cloned().unwrap_or(Value::Null),
    }
}

fn fault(why: &str) -> Error {
    Error::new(ErrorCode::BadRequest, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_payloads_are_the_same_thing() {
        let meta = json!({"i": "core", "m": "", "c": "default"});
        for record in [
            json!(["t", {"m": meta, "t": [{"s": {"t": "i", "i": "urn:a"}}]}]),
            json!(["ge", {"m": meta, "e": [{"e": {"t": "i", "i": "urn:a"}, "v": [0.5], "c": "k",
                                            "r": ["urn:T"], "a": {"x": 1}}], "x": "model"}]),
            json!(["de", {"m": meta, "c": [{"i": "k", "v": [0.5]}]}]),
            json!(["lm", {"i": "d", "k": "text/plain", "t": "T", "p": "", "d": "source", "c": "",
                          "g": ["x"]}]),
            json!(["lb", {"i": "d", "d": "aGk="}]),
        ] {
            let mut body = to_put(record.clone(), "core").unwrap();
            assert_eq!(body["id"], "core");
            body.remove("operation");
            body.remove("id");
            assert_eq!(to_record(&body), Some(record));
        }
    }

    #[test]
    fn the_core_takes_the_name_asked_for() {
        let record = json!(["t", {"m": {"i": "old", "m": ["a", "list"], "c": "c"}, "t": []}]);
        let body = to_put(record, "new").unwrap();
        assert_eq!(
            body["triples"]["metadata"],
            json!({"id": "new", "root": "", "collection": "default"})
        );
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for (wrong, why) in [
            (json!(3), "must be a list of tag and map"),
            (json!(["t"]), "must be a list of tag and map"),
            (json!(["zz", {}]), "has an unknown tag"),
        ] {
            assert_eq!(to_put(wrong, "c").unwrap_err().message, why);
        }
        let eos = json!({"eos": true}).as_object().cloned().unwrap();
        assert_eq!(to_record(&eos), None);
    }
}
