//! Two workspaces made for the audit: one of those who ask, one with everything that they must not see.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::body::{Things, document, line};
use super::probe::Asker;
use crate::args::Options;
use crate::client::{Error, Http, Result};
use crate::fields::text;
use crate::interrupt::Interrupt;

/// The flow of those who ask.
pub const OWN_FLOW: &str = "isolation-own";
/// Longest wait until what was written is there.
const SETTLED: Duration = Duration::from_secs(60);
/// Between two looks at whether it is.
const AGAIN: Duration = Duration::from_millis(100);

/// The roles that ask, with what they are granted in their own workspace.
const ROLES: [(&str, &[&str], Option<&str>); 4] = [
    ("nobody", &[], None),
    ("reader", &["reader"], None),
    ("writer", &["writer"], None),
    ("manager", &[], Some("admin")),
];

/// What was made.
pub struct Scratch {
    admin: Http,
    /// The workspace of those who ask.
    pub own: String,
    /// The other workspace.
    pub other: Things,
    /// One that is not there.
    pub absent: Things,
    /// What only the other workspace has.
    pub marker: String,
    users: Vec<String>,
}

impl Scratch {
    /// Names only; nothing is made yet.
    pub fn named(admin: Http) -> Self {
        let run = uuid::Uuid::new_v4().simple().to_string();
        let run = &run[..8];
        let things = |name: &str| Things {
            workspace: format!("isolation-{run}-{name}"),
            name: format!("{name}-{run}"),
            user: uuid::Uuid::new_v4().to_string(),
            username: format!("isolation-{run}-{name}-user"),
            key: uuid::Uuid::new_v4().to_string(),
            upload: uuid::Uuid::new_v4().to_string(),
        };
        Self {
            admin,
            own: format!("isolation-{run}-own"),
            other: things("other"),
            absent: things("never"),
            marker: format!("marker{}", uuid::Uuid::new_v4().simple()),
            users: Vec::new(),
        }
    }

    /// Makes and fills both workspaces, and those who ask.
    ///
    /// # Errors
    /// As [`Http::iam`]; [`Error::Check`] where what was written does not come to be there.
    pub async fn make(
        &mut self,
        blueprint: &str,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<Vec<Asker>> {
        let other = self.other.workspace.clone();
        for (workspace, flow) in [
            (self.own.clone(), OWN_FLOW.to_owned()),
            (other.clone(), self.other.name.clone()),
        ] {
            let record = json!({"id": workspace, "name": workspace, "enabled": true});
            let make = json!({"operation": "create-workspace", "workspace_record": record});
            self.admin.iam(make).await?;
            let start = json!({"operation": "start-flow", "flow-id": flow, "workspace": workspace,
                "blueprint-name": blueprint, "description": self.marker, "parameters": {}});
            let start = match workspace == other {
                true => start,
                false => without(start, "description"),
            };
            self.admin.post("api/v1/flow", &start).await?;
        }
        self.fill().await?;
        let mut askers = Vec::new();
        for (role, roles, grant) in ROLES {
            let user = self.user(&self.own.clone(), role, roles).await?;
            if let Some(capability) = grant {
                let grant = json!({"capability": capability, "workspace": self.own});
                let ask = json!({"operation": "add-user-grant", "user_id": user, "grant": grant});
                self.admin.iam(ask).await?;
            }
            let key = self.key(&user).await?.1;
            askers.push(Asker::new(role, key, options, interrupt.clone())?);
            self.users.push(user);
        }
        Ok(askers)
    }

    async fn fill(&mut self) -> Result<()> {
        let user = self
            .user(&self.other.workspace.clone(), "user", &["writer"])
            .await?;
        self.other.user = user.clone();
        self.users.push(user.clone());
        self.other.key = self.key(&user).await?.0;
        let things = self.other.clone();
        let (id, name, marker) = (document(&things), &things.name, &self.marker);
        let row = json!([{"type": "isolation", "key": name, "value": format!("\"{marker}\"")}]);
        self.put("config", json!({"operation": "put", "values": row}))
            .await?;
        let collection = json!({"operation": "update-collection", "collection": name,
            "name": marker, "description": marker, "tags": []});
        self.put("collection-management", collection).await?;
        let metadata = json!({"id": id, "kind": "text/plain", "title": marker, "comments": marker,
            "metadata": [], "tags": [marker]});
        let content = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, marker);
        let add = json!({"operation": "add-document", "document-metadata": metadata,
            "content": content});
        self.put("librarian", add).await?;
        let later = json!({"id": format!("{id}:later"), "kind": "text/plain", "title": marker,
            "comments": "", "metadata": [], "tags": []});
        let begin = json!({"operation": "begin-upload", "document-metadata": later,
            "total-size": 5_000_000});
        self.other.upload = text(&self.put("librarian", begin).await?, "upload-id");
        let known = |text: &str| json!({"t": "l", "v": text});
        let triple = json!({"s": {"t": "i", "i": "urn:isolation:s"},
            "p": {"t": "i", "i": "urn:isolation:p"}, "o": known(marker)});
        let core = json!({"operation": "put-kg-core", "id": name, "triples":
            {"metadata": {"id": id, "root": "", "collection": name}, "triples": [triple]}});
        self.put("knowledge", core).await?;
        let mut record: Value = serde_json::from_str(&line("triples", &things)).unwrap_or_default();
        record["triples"] = json!([triple]);
        let path = format!("api/v1/flow/{name}/import/triples");
        let query = [("workspace", things.workspace.as_str())];
        let body = Some(("application/x-ndjson", record.to_string()));
        let (status, said) = self.admin.exchange("POST", &path, &query, body).await?;
        if status != 200 {
            return Err(Error::Check(format!(
                "a triple could not be written: {said}"
            )));
        }
        let end = Instant::now() + SETTLED;
        while !self.triples().await?.to_string().contains(&self.marker) {
            if Instant::now() > end {
                return Err(Error::Check(
                    "a triple does not come to be there".to_owned(),
                ));
            }
            // Until the store has what the bus has.
            tokio::time::sleep(AGAIN).await;
        }
        Ok(())
    }

    async fn user(&self, workspace: &str, name: &str, roles: &[&str]) -> Result<String> {
        let username = match workspace == self.other.workspace {
            true => self.other.username.clone(),
            false => format!("{workspace}-{name}"),
        };
        let user = json!({"username": username, "roles": roles, "name": self.marker,
            "email": "", "must_change_password": false});
        let user = match workspace == self.own {
            true => without(user, "name"),
            false => user,
        };
        let ask = json!({"operation": "create-user", "workspace": workspace, "user": user});
        Ok(text(&self.admin.iam(ask).await?["user"], "id"))
    }

    /// Id and text of a new key.
    async fn key(&self, user: &str) -> Result<(String, String)> {
        let key = json!({"user_id": user, "name": "isolation"});
        let ask = json!({"operation": "create-api-key", "key": key});
        let reply = self.admin.iam(ask).await?;
        let id = text(&reply["api_key"], "id");
        Ok((id, text(&reply, "api_key_plaintext")))
    }

    /// Something of the other workspace.
    async fn put(&self, service: &str, mut ask: Value) -> Result<Value> {
        ask["workspace"] = json!(self.other.workspace);
        self.admin.post(&format!("api/v1/{service}"), &ask).await
    }

    async fn triples(&self) -> Result<Value> {
        let path = format!("api/v1/flow/{}/service/triples", self.other.name);
        let ask = json!({"workspace": self.other.workspace, "collection": self.other.name,
            "g": "*", "limit": 10_000});
        self.admin.post(&path, &ask).await
    }

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
        seen.push(("graph", self.triples().await?));
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

    /// Removes what was made. The first fault is told after everything was tried.
    ///
    /// # Errors
    /// As [`Http::iam`].
    pub async fn remove(&self) -> Result<()> {
        let mut outcome = Ok(());
        for user in &self.users {
            let ask = json!({"operation": "delete-user", "user_id": user});
            outcome = outcome.and(self.admin.iam(ask).await.map(drop));
        }
        for workspace in [&self.own, &self.other.workspace] {
            let record = json!({ "id": workspace });
            let ask = json!({"operation": "delete-workspace", "workspace_record": record});
            outcome = outcome.and(self.admin.iam(ask).await.map(drop));
        }
        outcome
    }
}

fn without(mut value: Value, key: &str) -> Value {
    if let Some(map) = value.as_object_mut() {
        map.remove(key);
    }
    value
}
