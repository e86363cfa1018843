//! Two workspaces made for the audit: one of those who ask, one with everything that they must not see.

use std::time::Duration;

use serde_json::{Value, json};
use tg_schemas::ErrorCode;
use tokio::time::Instant;

use super::body::{ROUTED, ROUTER, Things, document, record};
use super::probe::Asker;
use crate::args::Options;
use crate::client::{Error, Http, Result};
use crate::fields::{list, text};
use crate::interrupt::Interrupt;

/// The flow of those who ask.
pub const OWN_FLOW: &str = "isolation-own";
/// Longest wait until what was written is there.
const SETTLED: Duration = Duration::from_secs(60);
/// Between two looks at whether it is.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The roles that ask, with what they are granted in their own workspace.
const ROLES: [(&str, &[&str], Option<&str>); 4] = [
    ("nobody", &[], None),
    ("reader", &["reader"], None),
    ("writer", &["writer"], None),
    ("manager", &[], Some("admin")),
];

/// What was made.
pub struct Scratch {
    pub(super) admin: Http,
    /// The workspace of those who ask.
    pub own: String,
    /// The other workspace.
    pub other: Things,
    /// One that is not there.
    pub absent: Things,
    /// What only the other workspace has.
    pub marker: String,
    pub(super) users: Vec<String>,
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
            run: uuid::Uuid::new_v4().to_string(),
            thread: uuid::Uuid::new_v4().to_string(),
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
        // A core is known by the id in its metadata.
        let core = json!({"operation": "put-kg-core", "id": name, "triples":
            {"metadata": {"id": name, "root": "", "collection": name}, "triples": [triple]}});
        self.put("knowledge", core).await?;
        let fields = json!([{"name": "id", "type": "string", "primary_key": true}]);
        let schema = json!({"name": name, "description": marker, "fields": fields}).to_string();
        let row = json!([{"type": "schema", "key": name, "value": schema}]);
        self.put("config", json!({"operation": "put", "values": row}))
            .await?;
        let contexts = json!({"operation": "update-collection", "tags": [],
            "collection": self.contexts().name, "name": marker, "description": marker});
        self.put("collection-management", contexts).await?;
        Ok(())
    }

    /// Has the agent of the other workspace asked something and a thread begun there, and keeps their ids. What the run
    /// writes down goes to a collection of which nothing is compared, as it comes when it comes.
    ///
    /// # Errors
    /// As [`Http::exchange`]; [`Error::Check`] where there is no run or no thread then.
    pub async fn converse(&mut self) -> Result<()> {
        let flow = &self.other.name;
        let ask = json!({"question": self.marker, "collection": self.contexts().name,
            "workspace": self.other.workspace});
        let path = format!("api/v1/flow/{flow}/service/agent");
        let body = Some(("application/json", ask.to_string()));
        let detached = [("X-Detach", "true")];
        let asked = self.admin.exchange("POST", &path, &[], &detached, body);
        // A run that fails is one, too; one that takes longer goes on.
        match asked.await {
            Ok((200, _)) | Err(Error::Timeout(_)) => {}
            Ok((_, said)) => {
                let why = format!("agent: a run could not be started: {said}");
                return Err(Error::Check(why));
            }
            Err(error) => return Err(error),
        }
        let run = self.ended_run().await?;
        let send = json!({"operation": "send-message", "flow": flow, "to": ROUTER, "type": ROUTED,
            "payload": {"text": self.marker, "target": "nobody"}, "console": true});
        let thread = text(&self.put("threads", send).await?, "thread");
        if thread.is_empty() {
            return Err(Error::Check("threads: none was begun".to_owned()));
        }
        // One that had ended already would tell nothing.
        let show = json!({"operation": "show-thread", "flow": flow, "thread": thread});
        self.put("threads", show).await?;
        self.other.run = run;
        self.other.thread = thread;
        Ok(())
    }

    /// Id of the run of the other workspace, once it is over: what is compared must not change by itself. One that goes on
    /// for too long is cancelled.
    async fn ended_run(&self) -> Result<String> {
        let end = Instant::now() + SETTLED;
        loop {
            let runs = json!({"operation": "list-runs", "all": true});
            let listed = self.put("requests", runs).await?;
            let run = list(&listed, "runs").first();
            let run = run.ok_or_else(|| Error::Check("agent: no run of it is known".to_owned()))?;
            let id = text(run, "id");
            if text(run, "state") != "running" {
                return Ok(id);
            }
            if Instant::now() > end {
                let cancel = json!({"operation": "cancel-run", "run": id, "all": true});
                return match self.put("requests", cancel).await {
                    // It has ended meanwhile.
                    Err(error) if error.code() != Some(ErrorCode::NotFound) => Err(error),
                    _ => Ok(id),
                };
            }
            // Until it has ended.
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// The other workspace's things with a collection for contexts: what is embedded of them has another length than the
    /// vectors that are written.
    fn contexts(&self) -> Things {
        Things {
            name: format!("{}-contexts", self.other.name),
            ..self.other.clone()
        }
    }

    /// Writes a record with the marker to the other workspace.
    ///
    /// # Errors
    /// As [`Http::exchange`]; [`Error::Check`] where it is not taken.
    pub async fn write_other(&self, kind: &str) -> Result<()> {
        let things = match kind {
            "entity-contexts" => self.contexts(),
            _ => self.other.clone(),
        };
        let flow = &self.other.name;
        self.write(flow, kind, &things, &self.marker).await
    }

    /// Writes a record with a word to the workspace of those who ask.
    ///
    /// # Errors
    /// As [`Scratch::write_other`].
    pub async fn write_own(&self, kind: &str, word: &str) -> Result<()> {
        let things = Things {
            workspace: self.own.clone(),
            ..self.absent.clone()
        };
        self.write(OWN_FLOW, kind, &things, word).await
    }

    async fn write(&self, flow: &str, kind: &str, things: &Things, word: &str) -> Result<()> {
        let path = format!("api/v1/flow/{flow}/import/{kind}");
        let query = [("workspace", things.workspace.as_str())];
        let line = record(kind, things, word).to_string();
        let body = Some(("application/x-ndjson", line));
        let (status, said) = self
            .admin
            .exchange("POST", &path, &query, &[], body)
            .await?;
        match status {
            200 => Ok(()),
            _ => Err(Error::Check(format!(
                "{kind}: a record could not be written: {said}"
            ))),
        }
    }

    /// Waits until each store of the other workspace has what was written to it.
    ///
    /// # Errors
    /// As [`Scratch::state`]; [`Error::Check`] where a store never has it.
    pub async fn settled(&self) -> Result<()> {
        let end = Instant::now() + SETTLED;
        loop {
            let stores = self.stores().await?;
            let mut empty = stores
                .iter()
                .filter(|(_, found)| !found.to_string().contains(&self.marker));
            let Some((what, _)) = empty.next() else {
                return Ok(());
            };
            if Instant::now() > end {
                return Err(Error::Check(format!(
                    "{what}: what was written does not come to be there"
                )));
            }
            // Until the stores have what the bus has.
            tokio::time::sleep(RETRY_DELAY).await;
        }
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
    pub(super) async fn put(&self, service: &str, mut ask: Value) -> Result<Value> {
        ask["workspace"] = json!(self.other.workspace);
        self.admin.post(&format!("api/v1/{service}"), &ask).await
    }

    /// Removes what was made. The first fault is reported after everything was tried.
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
