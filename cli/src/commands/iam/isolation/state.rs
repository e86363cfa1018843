//! Everything of the other workspace, seen with an administrator's eyes: what is compared before and after.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_schemas::ErrorCode;

use super::body::document;
use super::scratch::Scratch;
use crate::client::{Error, Result};

/// Of a listing of quads or of what is near a vector, more than there is.
const ALL: u64 = 10_000;

impl Scratch {
    /// Everything of the other workspace that an administrator sees, by what it is.
    ///
    /// # Errors
    /// As [`Http::iam`].
    pub async fn state(&self) -> Result<Vec<(&'static str, Value)>> {
        let things = &self.other;
        let (id, name) = (document(things), &things.name);
        let mut seen = Vec::new();
        for (what, service, ask) in [
            ("configuration", "config", json!({"operation": "config"})),
            ("flows", "flow", json!({"operation": "list-flows"})),
            (
                "flow",
                "flow",
                json!({"operation": "get-flow", "flow-id": name}),
            ),
            (
                "documents",
                "librarian",
                json!({"operation": "list-documents"}),
            ),
            (
                "document",
                "librarian",
                json!({"operation": "get-document-content", "document-id": id}),
            ),
            (
                "processings",
                "librarian",
                json!({"operation": "list-processing"}),
            ),
            ("uploads", "librarian", json!({"operation": "list-uploads"})),
            (
                "collections",
                "collection-management",
                json!({"operation": "list-collections"}),
            ),
            (
                "knowledge cores",
                "knowledge",
                json!({"operation": "list-kg-cores"}),
            ),
            (
                "embedding cores",
                "knowledge",
                json!({"operation": "list-de-cores"}),
            ),
        ] {
            let mut found = self.put(service, ask).await?;
            // The version is of the whole system, the time that of the answer.
            found["version"] = Value::Null;
            found["timestamp"] = Value::Null;
            seen.push((what, found));
        }
        seen.extend(self.stores().await?);
        seen.extend(self.conversations().await?);
        let user = &things.user;
        for (what, ask) in [
            ("user", json!({"operation": "get-user", "user_id": user})),
            (
                "keys",
                json!({"operation": "list-api-keys", "user_id": user}),
            ),
            (
                "grants of its user",
                json!({"operation": "list-user-grants", "user_id": user}),
            ),
            (
                "users",
                json!({"operation": "list-users", "workspace": things.workspace}),
            ),
            (
                "workspace",
                json!({"operation": "get-workspace", "workspace_record": {"id": things.workspace}}),
            ),
        ] {
            seen.push((what, self.admin.iam(ask).await?));
        }
        for user in &self.users {
            let ask = json!({"operation": "resolve-effective-permissions", "user_id": user});
            seen.push(("permissions of those who ask", self.admin.iam(ask).await?));
        }
        Ok(seen)
    }

    /// What is in the stores of the other workspace: quads of every graph, among them runs of agents; rows; vectors; contents of cores.
    ///
    /// # Errors
    /// As [`Scratch::state`].
    pub async fn stores(&self) -> Result<Vec<(&'static str, Value)>> {
        let things = &self.other;
        let mut seen = Vec::new();
        for (what, kind, ask) in [
            ("graph", "triples", json!({"g": "*"})),
            (
                "vectors of entities",
                "graph-embeddings",
                json!({"vector": [0.5, 0.5]}),
            ),
            (
                "vectors of chunks",
                "document-embeddings",
                json!({"vector": [0.5, 0.5]}),
            ),
        ] {
            let mut ask = ask;
            ask["limit"] = json!(ALL);
            ask["collection"] = json!(things.name);
            let service = format!("flow/{}/service/{kind}", things.name);
            seen.push((what, self.put(&service, ask).await?));
        }
        let rows = format!("api/v1/flow/{}/export/rows", things.name);
        let of = [("collection", things.name.as_str()), ("stored", "1")];
        seen.push(("rows", json!(self.text(&rows, &of).await?)));
        let id = [("id", things.name.as_str())];
        seen.push(("contents of the core", self.core(&id).await?));
        Ok(seen)
    }

    /// Runs of the agent in the other workspace, and its thread.
    async fn conversations(&self) -> Result<[(&'static str, Value); 2]> {
        let things = &self.other;
        let list = json!({"operation": "list-runs", "all": true});
        let runs = self.put("requests", list).await?;
        let show =
            json!({"operation": "show-thread", "flow": things.name, "thread": things.thread});
        let thread = match self.put("threads", show).await {
            // It is not there any more: that is compared.
            Err(error) if error.code() == Some(ErrorCode::NotFound) => Value::Null,
            thread => thread?,
        };
        Ok([("runs of the agent", runs), ("thread", thread)])
    }

    async fn text(&self, path: &str, query: &[(&str, &str)]) -> Result<String> {
        let mut query = query.to_vec();
        query.push(("workspace", &self.other.workspace));
        match self.admin.get_text(path, &query).await? {
            (200, text) => Ok(text),
            (status, text) => Err(Error::from_status(status, &text)),
        }
    }

    /// The core as clients download it, with the marker where its bytes have it.
    async fn core(&self, query: &[(&str, &str)]) -> Result<Value> {
        let mut query = query.to_vec();
        query.push(("workspace", &self.other.workspace));
        let asked = self.admin.get_stream("api/v1/export-core", &query).await;
        let mut response = match asked {
            // It is not there yet, or not any more: that is compared, too.
            Err(error) if error.code() == Some(ErrorCode::NotFound) => return Ok(Value::Null),
            asked => asked?,
        };
        let mut bytes = Vec::new();
        while let Some(more) = self.admin.next_bytes(&mut response).await? {
            bytes.extend(more);
        }
        let text = String::from_utf8_lossy(&bytes);
        Ok(json!({"text": text, "bytes": STANDARD.encode(&bytes)}))
    }
}
