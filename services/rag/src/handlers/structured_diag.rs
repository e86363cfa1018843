//! `structured-diag`: what kind of data a sample is and how it is to be read into rows.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::{Value, json};
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{StructuredDataDiagnosisRequest, StructuredDataDiagnosisResponse};

use super::{SELECT, required};
use crate::ask;
use crate::engine::detect::{Detected, detect};
use crate::engine::schemas;
use crate::error::RagError;

/// Characters of a sample that the model is shown.
const SAMPLE: usize = 16_000;
/// Confidence of a description that tells none.
const CONFIDENCE: f64 = 0.8;

/// Serves `request` of `structured-diag`.
pub(crate) struct Diagnosis;

#[async_trait]
impl RequestHandler<StructuredDataDiagnosisRequest, StructuredDataDiagnosisResponse> for Diagnosis {
    async fn serve(
        &self,
        cx: Cx,
        ask: StructuredDataDiagnosisRequest,
        mut out: Responder<StructuredDataDiagnosisResponse>,
    ) -> Result<(), Error> {
        out.send(answer(&cx, ask).await?).await
    }
}

async fn answer(
    cx: &Cx,
    ask: StructuredDataDiagnosisRequest,
) -> Result<StructuredDataDiagnosisResponse, Error> {
    let operation = ask.operation.clone();
    if ask.sample.trim().is_empty() {
        return Err(required("sample").into());
    }
    let mut answer = match operation.as_str() {
        "detect-type" => kind(&found(&ask.sample)?),
        "generate-descriptor" => describe(cx, &ask).await?,
        "diagnose" => diagnose(cx, ask).await?,
        "schema-selection" => select(cx, &ask).await?,
        other => return Err(RagError::Operation(other.to_owned()).into()),
    };
    answer.operation = operation;
    Ok(answer)
}

fn found(sample: &str) -> Result<Detected, RagError> {
    detect(sample).ok_or(RagError::Field {
        field: "sample",
        why: "is neither CSV, JSON nor XML",
    })
}

fn kind(found: &Detected) -> StructuredDataDiagnosisResponse {
    let options = found.csv.map(|csv| csv.options().to_string());
    StructuredDataDiagnosisResponse {
        detected_type: found.kind.to_owned(),
        confidence: found.confidence,
        metadata: options
            .map(|options| ("csv_options".to_owned(), options))
            .into_iter()
            .collect(),
        ..StructuredDataDiagnosisResponse::default()
    }
}

/// Detects what is not told, takes the first schema if none is named.
async fn diagnose(
    cx: &Cx,
    mut ask: StructuredDataDiagnosisRequest,
) -> Result<StructuredDataDiagnosisResponse, Error> {
    let detected = found(&ask.sample)?;
    if ask.r#type.is_empty() {
        ask.r#type = detected.kind.to_owned();
    }
    if let Some(csv) = detected.csv.filter(|_| ask.r#type == "csv") {
        for (name, value) in csv.options().as_object().into_iter().flatten() {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            ask.options.entry(name.clone()).or_insert(text);
        }
    }
    if ask.schema_name.is_empty() {
        let first = ask::schemas_of(cx).into_iter().next();
        ask.schema_name = first.ok_or(RagError::NoSchemas)?.key;
    }
    let described = describe(cx, &ask).await?;
    Ok(StructuredDataDiagnosisResponse {
        detected_type: ask.r#type,
        descriptor: described.descriptor,
        confidence: described.confidence.min(detected.confidence),
        ..kind(&detected)
    })
}

async fn describe(
    cx: &Cx,
    ask: &StructuredDataDiagnosisRequest,
) -> Result<StructuredDataDiagnosisResponse, Error> {
    let prompt = match ask.r#type.to_lowercase().as_str() {
        "csv" => "diagnose-csv",
        "json" => "diagnose-json",
        "xml" => "diagnose-xml",
        "" => return Err(required("type").into()),
        _ => {
            let (field, why) = ("type", "must be csv, json or xml");
            return Err(RagError::Field { field, why }.into());
        }
    };
    if ask.schema_name.is_empty() {
        return Err(required("schema-name").into());
    }
    let all = ask::schemas_of(cx);
    let schema = all.iter().find(|schema| schema.key == ask.schema_name);
    let schema = schema.ok_or_else(|| RagError::UnknownSchema(ask.schema_name.clone()))?;
    let reply = prompted(cx, prompt, ask, "sample", &[schemas::brief(schema)]).await?;
    if !reply.is_object() {
        return Err(RagError::NotAnObject.into());
    }
    let confidence = reply.pointer("/output/options/confidence");
    let confidence = confidence.or_else(|| reply.get("confidence"));
    Ok(StructuredDataDiagnosisResponse {
        confidence: confidence.and_then(Value::as_f64).unwrap_or(CONFIDENCE),
        descriptor: reply.to_string(),
        ..StructuredDataDiagnosisResponse::default()
    })
}

async fn select(
    cx: &Cx,
    ask: &StructuredDataDiagnosisRequest,
) -> Result<StructuredDataDiagnosisResponse, Error> {
    let all = ask::schemas_of(cx);
    if all.is_empty() {
        return Err(RagError::NoSchemas.into());
    }
    let shown: Vec<Value> = all.iter().map(schemas::brief).collect();
    let reply = prompted(cx, SELECT, ask, "question", &shown).await?;
    let matches = schemas::named(&all, &reply);
    Ok(StructuredDataDiagnosisResponse {
        confidence: if matches.is_empty() { 0.0 } else { CONFIDENCE },
        schema_matches: matches.iter().map(|schema| schema.key.clone()).collect(),
        ..StructuredDataDiagnosisResponse::default()
    })
}

/// Asks the model about the sample, under the name that the prompt knows it by.
async fn prompted(
    cx: &Cx,
    prompt: &str,
    ask: &StructuredDataDiagnosisRequest,
    sample: &str,
    schemas: &[Value],
) -> Result<Value, Error> {
    let shown: String = ask.sample.chars().take(SAMPLE).collect();
    let terms = BTreeMap::from([
        (sample.to_owned(), json!(shown).to_string()),
        ("schemas".to_owned(), json!(schemas).to_string()),
        ("options".to_owned(), json!(ask.options).to_string()),
    ]);
    ask::object(cx, prompt, terms).await
}
