//! What is near a vector, and which chunks hold words: `graph-embeddings`, `document-embeddings`,
//! `row-embeddings`, `keyword-index`.

use serde_json::{Map, Value};
use tg_schemas::msg::{
    ChunkMatch, DocumentEmbeddingsRequest, DocumentEmbeddingsResponse, EntityMatch,
    GraphEmbeddingsRequest, GraphEmbeddingsResponse, KeywordIndexRequest, KeywordIndexResponse,
    RowEmbeddingsRequest, RowEmbeddingsResponse, RowIndexMatch,
};
use tg_schemas::{Error, Term};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `graph-embeddings` service.
pub struct GraphEmbeddings;

impl Translate for GraphEmbeddings {
    type Question = GraphEmbeddingsRequest;
    type Answer = GraphEmbeddingsResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(GraphEmbeddingsRequest {
            vector: required_vector(body)?,
            limit: body.integer_or("limit", 10)?,
            collection: body.collection()?,
            rdf_type: body.text("rdf_type")?,
            attributes: attributes(body)?,
            model: body.text("model")?,
            ..Self::Question::default()
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        let entities: Vec<_> = part.entities.iter().map(entity).collect();
        Reply::new().put("entities", entities).done()
    }
}

fn entity(one: &EntityMatch) -> Value {
    let reply = Reply::new()
        .put_some("entity", one.entity.as_ref().map(Term::to_api))
        .put("score", one.score)
        .put_truthy("rdf_type", one.rdf_type.clone())
        .put_truthy("attributes", one.attributes.clone());
    Value::Object(reply.done())
}

/// The `document-embeddings` service.
pub struct DocumentEmbeddings;

impl Translate for DocumentEmbeddings {
    type Question = DocumentEmbeddingsRequest;
    type Answer = DocumentEmbeddingsResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(DocumentEmbeddingsRequest {
            vector: required_vector(body)?,
            limit: body.integer_or("limit", 10)?,
            collection: body.collection()?,
            attributes: attributes(body)?,
            model: body.text("model")?,
            ..Self::Question::default()
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        chunks(&part.chunks)
    }
}

/// The `keyword-index` service.
pub struct KeywordIndex;

impl Translate for KeywordIndex {
    type Question = KeywordIndexRequest;
    type Answer = KeywordIndexResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(KeywordIndexRequest {
            query: body.required_text("query")?,
            limit: body.integer_or("limit", 20)?,
            collection: body.collection()?,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        chunks(&part.chunks)
    }
}

fn chunks(found: &[ChunkMatch]) -> Body {
    let one = |chunk: &ChunkMatch| {
        let reply = Reply::new()
            .put("chunk_id", chunk.chunk_id.as_str())
            .put("score", chunk.score)
            .put_truthy("attributes", chunk.attributes.clone());
        Value::Object(reply.done())
    };
    let chunks: Vec<_> = found.iter().map(one).collect();
    Reply::new().put("chunks", chunks).done()
}

/// The `row-embeddings` service.
pub struct RowEmbeddings;

impl Translate for RowEmbeddings {
    type Question = RowEmbeddingsRequest;
    type Answer = RowEmbeddingsResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(RowEmbeddingsRequest {
            vector: required_vector(body)?,
            limit: body.integer_or("limit", 10)?,
            collection: body.collection()?,
            schema_name: body.text("schema_name")?,
            index_name: body.opt_text("index_name")?.filter(|name| !name.is_empty()),
            attributes: attributes(body)?,
            model: body.text("model")?,
            tell_model: false,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        let matches: Vec<_> = part.matches.iter().map(row).collect();
        Reply::new().put("matches", matches).done()
    }
}

fn row(one: &RowIndexMatch) -> Value {
    let reply = Reply::new()
        .put("index_name", one.index_name.as_str())
        .put("index_value", one.index_value.clone())
        .put("text", one.text.as_str())
        .put("score", one.score)
        .put_truthy("attributes", one.attributes.clone());
    Value::Object(reply.done())
}

fn attributes(body: &Fields<'_>) -> Result<Map<String, Value>, Error> {
    Ok(body.map("attributes")?.cloned().unwrap_or_default())
}

/// The one vector of a query.
fn required_vector(body: &Fields<'_>) -> Result<Vec<f32>, Error> {
    let mut all = vectors(body)?;
    match all.len() {
        1 => Ok(all.remove(0)),
        _ => Err(body.fault("vector", "must be one vector")),
    }
}

/// `vector`, or `vectors` as older clients spell it: one vector, or a list of them.
pub(super) fn vectors(body: &Fields<'_>) -> Result<Vec<Vec<f32>>, Error> {
    let key = match body.value("vector") {
        None if body.value("vectors").is_some() => "vectors",
        _ => "vector",
    };
    let Some(items) = body.opt_list(key)? else {
        return Err(body.fault("vector", "is required"));
    };
    if !matches!(items.first(), Some(Value::Array(_))) {
        return Ok(vec![body.numbers(key, items)?]);
    }
    let mut all = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let name = format!("{key}[{at}]");
        match item {
            Value::Array(numbers) => all.push(body.numbers(&name, numbers)?),
            _ => return Err(body.fault(&name, "must be a list")),
        }
    }
    Ok(all)
}

/// A vector with as few digits as say what it is.
pub(super) fn vector_to_api(vector: &[f32]) -> Value {
    let short = |number: &f32| {
        let digits: f64 = number.to_string().parse().unwrap_or(f64::from(*number));
        Value::from(digits)
    };
    Value::Array(vector.iter().map(short).collect())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;

    #[test]
    fn nulls_of_official_clients_are_absent() {
        let request = question::<GraphEmbeddings>(
            json!({"vector": [0.5, 1], "rdf_type": null, "attributes": null, "limit": "3"}),
            "",
        )
        .unwrap();
        assert_eq!(request.vector, [0.5, 1.0]);
        assert_eq!((request.limit, request.rdf_type.as_str()), (3, ""));
        assert_eq!(request.collection, "default");
        let request =
            question::<RowEmbeddings>(json!({"vector": [1], "index_name": null}), "").unwrap();
        assert_eq!((request.limit, request.index_name), (10, None));
    }

    #[test]
    fn older_spellings_of_a_vector_are_read() {
        for body in [
            json!({"vectors": [1, 2]}),
            json!({"vectors": [[1, 2]]}),
            json!({"vector": [1, 2], "vectors": [3]}),
        ] {
            let request = question::<DocumentEmbeddings>(body, "").unwrap();
            assert_eq!(request.vector, [1.0, 2.0]);
        }
    }

    #[test]
    fn faults_name_the_number() {
        let message = |body| {
            question::<DocumentEmbeddings>(body, "")
                .unwrap_err()
                .message
        };
        assert_eq!(message(json!({})), "vector: is required");
        assert_eq!(
            message(json!({"vector": [1, "x"]})),
            "vector[1]: must be a number"
        );
        assert_eq!(
            message(json!({"vector": [1e300]})),
            "vector[0]: must be a number"
        );
        let error = question::<KeywordIndex>(json!({"limit": 3}), "").unwrap_err();
        assert_eq!(error.message, "query: is required");
    }

    #[test]
    fn empty_extras_are_left_out() {
        let reply = GraphEmbeddingsResponse {
            entities: vec![EntityMatch {
                entity: Some(Term::iri("urn:a")),
                score: 0.5,
                ..Default::default()
            }],
            ..Default::default()
        };
        assert_eq!(
            part::<GraphEmbeddings>(reply, ""),
            json!({"entities": [{"entity": {"t": "i", "i": "urn:a"}, "score": 0.5}]})
        );
        let reply = DocumentEmbeddingsResponse {
            chunks: vec![ChunkMatch {
                chunk_id: "c".into(),
                score: 1.0,
                attributes: json!({"a": [1]}).as_object().cloned().unwrap(),
            }],
            ..Default::default()
        };
        assert_eq!(
            part::<DocumentEmbeddings>(reply, ""),
            json!({"chunks": [{"chunk_id": "c", "score": 1.0, "attributes": {"a": [1]}}]})
        );
        assert_eq!(
            part::<RowEmbeddings>(Default::default(), ""),
            json!({"matches": []})
        );
    }
}
