//! Why a document does not come through: how its processings stand, what of their flows does not move, and the command
//! that helps.

use serde_json::{Value, json};

use crate::client::{Error, Result};
use crate::commands::library::listing;
use crate::commands::library::processing::troubles;
use crate::commands::library::standing::{is_good, is_open, retry, standing};
use crate::fields::{embedded, in_shell, text};
use crate::session::Session;

/// What the flow service says of a flow that it does not know.
const UNKNOWN: &str = "Flow ID invalid";

/// A line for the document or each of its processings, then one for each part of their flows.
pub(in crate::commands) async fn document(session: &Session, id: &str) -> Result<Vec<Value>> {
    let http = session.http()?;
    // One that the library does not have is refused by it.
    let request = json!({"operation": "get-document-metadata", "document-id": id});
    http.service("librarian", request).await?;
    let mut records = listing::processings(&http).await?;
    records.retain(|record| text(record, "document-id") == id);
    if records.is_empty() {
        let command = format!("tg start-library-processing {}", in_shell(id));
        return Ok(vec![line(
            id,
            "unprocessed",
            "no flow was asked to process it",
            command,
        )]);
    }
    let mut said = Vec::new();
    for record in &records {
        said.push(processing(session, record).await);
    }
    let mut flows: Vec<String> = records
        .iter()
        .filter(|record| is_open(record))
        .map(|record| text(record, "flow"))
        .collect();
    flows.sort();
    flows.dedup();
    for flow in flows {
        let request = json!({"operation": "why", "flow-id": flow});
        match http.service("flow", request).await {
            Ok(reply) => match embedded(&reply, "why") {
                Value::Array(lines) => said.extend(lines),
                _ => return Err(Error::Protocol("no list of reasons".to_owned())),
            },
            Err(Error::Service { message, .. }) if message == UNKNOWN => {
                let detail = "the flow does not run; start it with its blueprint";
                said.push(line(
                    &flow,
                    "missing",
                    detail,
                    "tg show-flow-blueprints".to_owned(),
                ));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(said)
}

async fn processing(session: &Session, record: &Value) -> Value {
    let id = text(record, "id");
    let detail = match (is_open(record), is_good(record)) {
        (true, _) => format!("with flow '{}'", text(record, "flow")),
        (_, true) => String::new(),
        _ => troubles(session, record).await,
    };
    let command = match (retry(record), is_good(record)) {
        (Some(command), _) => command,
        (None, true) => String::new(),
        (None, false) => format!("tg process-status {}", in_shell(&id)),
    };
    line(&id, &standing(record), &detail, command)
}

fn line(subject: &str, state: &str, detail: &str, command: String) -> Value {
    let mut line = json!({"subject": subject, "state": state, "detail": detail});
    if !command.is_empty() {
        line["command"] = json!(command);
    }
    line
}
