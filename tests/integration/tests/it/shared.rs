//! A workspace of a test's own, with a running flow `default`, in a system that other tests use at the same time: for tests that change
//! no setting, kill nothing, and count nothing of the whole system.

use std::io::{Write, copy, sink};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Rule, ScriptedModel};
use tg_testkit::model_router::name_of;
use tg_testkit::official::official;
use tg_testkit::process::{Output, Server, tg_with};
use tg_testkit::shared_system::{Deployment, SharedSystem};
use tg_testkit::socket::Socket;

use crate::workspaces::{make_with, patiently};
use crate::world::{Bus, post};

/// The services of a new workspace answer within this, also on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
/// What a workspace is asked until it answers: each is another service, and none changes anything.
const QUESTIONS: [(&str, &str); 5] = [
    ("api/v1/config", r#"{"operation": "list", "type": "flow"}"#),
    ("api/v1/librarian", r#"{"operation": "list-documents"}"#),
    ("api/v1/knowledge", r#"{"operation": "list-kg-cores"}"#),
    (
        "api/v1/collection-management",
        r#"{"operation": "list-collections"}"#,
    ),
    ("api/v1/flow/default/service/triples", r#"{"limit": 1}"#),
];

/// A workspace, asked through its gateway. A new one is deleted when it is dropped.
pub struct Workspace {
    pub url: String,
    pub id: String,
    system: Option<SharedSystem>,
}

impl Workspace {
    /// A new one in the system that runs for all tests.
    pub async fn shared(bus: Bus) -> Result<Self> {
        Self::made(system(bus).await?, json!({})).await
    }

    /// A new one in a system that runs for all tests with scripted models, and the model of its flow, which nobody else asks.
    pub async fn scripted(bus: Bus, rules: Vec<Rule>) -> Result<(Self, ScriptedModel)> {
        let model = ScriptedModel::start(rules).await?;
        let system = SharedSystem::of(match bus {
            Bus::Embedded => Deployment::EmbeddedScripted,
            Bus::Rabbit => Deployment::RabbitMqScripted,
        });
        let parameters = json!({"llm-model": name_of(model.port())});
        let workspace = Self::made(system.await?, parameters).await?;
        Ok((workspace, model))
    }

    async fn made(system: SharedSystem, parameters: Value) -> Result<Self> {
        let workspace = Self {
            url: system.url(),
            id: another_id(),
            system: Some(system),
        };
        let served = workspace.begin(parameters).await;
        served.with_context(|| workspace.log())?;
        Ok(workspace)
    }

    /// The one that a server of the test's own begins with.
    pub fn first_of(server: &Server) -> Self {
        Self {
            url: server.url(),
            id: "default".to_owned(),
            system: None,
        }
    }

    /// Makes it, and waits until its services answer.
    async fn begin(&self, parameters: Value) -> Result<()> {
        make_with(&self.url, &self.id, parameters).await?;
        for (path, ask) in QUESTIONS {
            let mut ask: Value = serde_json::from_str(ask)?;
            ask["workspace"] = json!(self.id);
            self.answers(path, &ask).await?;
        }
        Ok(())
    }

    /// Asks until there is an answer. An error comes with status 200, too.
    async fn answers(&self, path: &str, ask: &Value) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let told = patiently(&self.url, path, ask.clone()).await?;
            if told["error"].is_null() {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{path} {ask}: {told}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Deletes it, and waits for the answer: a request whose client is gone may be cancelled.
    fn delete(&self) -> Result<()> {
        let record = json!({"id": self.id, "enabled": true});
        let ask = json!({"operation": "delete-workspace", "workspace_record": record}).to_string();
        let host = self.url.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(BOUND))?;
        let head = format!(
            "POST /api/v1/iam HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            ask.len()
        );
        stream.write_all((head + &ask).as_bytes())?;
        copy(&mut stream, &mut sink())?;
        Ok(())
    }

    /// The end of the log of the system that is shared.
    pub fn log(&self) -> String {
        let system = self.system.as_ref();
        system.map(SharedSystem::log).unwrap_or_default()
    }

    /// A path that has no body, with the workspace in its query.
    pub fn path(&self, path: &str) -> String {
        let mark = if path.contains('?') { '&' } else { '?' };
        format!("{}{path}{mark}workspace={}", self.url, self.id)
    }

    /// Sends a request about it over REST and returns status and body.
    pub async fn post(&self, path: &str, mut body: Value) -> Result<(u16, Value)> {
        body["workspace"] = json!(self.id);
        post(&self.url, path, body).await
    }

    /// Runs a command of our own in it.
    pub async fn tg(&self, args: &[&str]) -> Result<Output> {
        let variables = [("THREADGRAPH_WORKSPACE", self.id.as_str())];
        tg_with(&self.url, &variables, args).await
    }

    /// Runs a command of the official clients in it.
    pub async fn official(&self, command: &str, args: &[&str]) -> Result<Output> {
        let args = [args, &["-w", self.id.as_str()][..]].concat();
        official(&self.url, command, &args).await
    }

    /// A socket of an anonymous client, each of whose requests is about it.
    pub async fn socket(&self) -> Result<Socket> {
        let socket = Socket::connect(&self.url, "").await?;
        Ok(socket.within(&self.id))
    }
}

impl Drop for Workspace {
    /// The node of all tests slows down with each queue, and a flow has many. Whatever cannot be deleted ends with the system.
    fn drop(&mut self) {
        if self.system.is_some() {
            let _ = self.delete();
        }
    }
}

/// The system that runs for all tests, for one that makes its workspaces itself or needs none.
pub async fn system(bus: Bus) -> Result<SharedSystem> {
    SharedSystem::of(match bus {
        Bus::Embedded => Deployment::Embedded,
        Bus::Rabbit => Deployment::RabbitMq,
    })
    .await
}

/// An id that no other workspace has.
pub fn another_id() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("w{}", &id[..12])
}
