//! What a sample of a file is, as the flow's `structured-diag` says: which schema it fits, and how it is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};
use tg_schemas::table::{TABLE, Table};

use crate::client::{Error, Http, Result};
use crate::commands::config::get_item;
use crate::fields::{embedded, texts};

/// The service.
const SERVICE: &str = "structured-diag";

/// The first characters of a file. Where it has lines, the last one is whole.
pub(super) fn sample(path: &Path, chars: usize) -> Result<String> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    // No character is longer than four bytes.
    let most = u64::try_from(chars.saturating_mul(4)).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let read = file.take(most).read_to_end(&mut bytes);
    read.map_err(|error| Error::file(path, error))?;
    let whole = String::from_utf8_lossy(&bytes);
    let whole = whole.trim_start_matches('\u{feff}');
    let sample: String = whole.chars().take(chars).collect();
    if sample.trim().is_empty() {
        return Err(Error::file(path, "is empty"));
    }
    let cut = sample.len() < whole.len();
    match sample.rfind('\n').filter(|_| cut) {
        // A sample of half a line says more than none.
        Some(end) if sample[..end].contains('\n') => Ok(sample[..=end].to_owned()),
        _ => Ok(sample),
    }
}

/// Keys of the schemas that a sample may be rows of, the best first.
pub(super) async fn matches(http: &Http, flow: &str, sample: &str) -> Result<Vec<String>> {
    let request = json!({"operation": "schema-selection", "sample": sample});
    let reply = http.flow_service(flow, SERVICE, request).await?;
    Ok(texts(&reply, "schema-matches"))
}

/// How a sample is read into rows of a schema: a descriptor, which nobody has checked yet.
pub(super) async fn describe(
    http: &Http,
    flow: &str,
    path: &Path,
    sample: &str,
    schema: &str,
) -> Result<Value> {
    let mut request = json!({"operation": "diagnose", "sample": sample, "schema-name": schema});
    if let Some(kind) = kind(path) {
        request["type"] = json!(kind);
    }
    let reply = http.flow_service(flow, SERVICE, request).await?;
    let mut descriptor = embedded(&reply, "descriptor");
    if !descriptor.is_object() {
        return Err(Error::Protocol("no descriptor in the reply".to_owned()));
    }
    // Models write the name that people use; what counts is the key.
    if !descriptor["output"].is_object() {
        descriptor["output"] = json!({});
    }
    descriptor["output"]["schema_name"] = json!(schema);
    Ok(descriptor)
}

/// Keys of the schemas that there are.
pub(super) async fn schemas(http: &Http) -> Result<Vec<String>> {
    let request = json!({"operation": "list", "type": TABLE});
    let reply = http.service("config", request).await?;
    Ok(texts(&reply, "directory"))
}

/// What the name of a file says of its kind.
pub(super) fn kind(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "csv" | "tsv" => Some("csv"),
        "json" | "jsonl" | "ndjson" => Some("json"),
        "xml" => Some("xml"),
        _ => None,
    }
}

/// The schema of that key.
pub(super) async fn table(http: &Http, key: &str) -> Result<Table> {
    let text = get_item(http, TABLE, key).await?;
    let text = text.ok_or_else(|| Error::Missing(format!("there is no schema '{key}'")))?;
    Table::read(key, &text).map_err(|why| Error::Check(format!("the schema '{key}': {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_short_and_ends_with_a_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.CSV");
        assert_eq!(kind(&path), Some("csv"));
        std::fs::write(&path, "\u{feff}a,b\n1,ü\n2,yyyyyyyy\n").expect("written");
        assert_eq!(sample(&path, 12).expect("a sample"), "a,b\n1,ü\n");
        assert_eq!(sample(&path, 3).expect("a sample"), "a,b");
        assert_eq!(sample(&path, 5).expect("a sample"), "a,b\n1");
        let whole = sample(&path, 500).expect("a sample");
        assert!(whole.ends_with("yyyy\n"));
        std::fs::write(&path, " \n").expect("written");
        assert!(
            sample(&path, 9)
                .expect_err("empty")
                .to_string()
                .ends_with("is empty")
        );
    }
}
