//! However access is taken away, whatever streams to whom had it ends within a second, at each gateway: a key is revoked,
//! a user disabled or deleted, a role lost, a workspace disabled.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{End as Ending, Reply, Rule, ScriptedModel};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Frames, Socket};
use tokio::time::{Instant, timeout_at};

use crate::bulk_streams::{End, Reader, Stream};
use crate::edge::{first_key, iam};
use crate::world::{Bus, launch};

/// From the answer of the revocation on.
const BOUND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(60);
/// Between two records.
const PACE: Duration = Duration::from_millis(2);
/// Pieces of what no buffer on the way holds.
const CHUNKS: usize = 8;
const WHOLE: usize = CHUNKS * (4 << 20);
/// Asked this, the model says something and no more.
const PONDER: &str = "say one word and stay";
const WORD: &str = "pondering";
/// What an agent's part is called that has it.
const THOUGHT: &str = "\"thought\"";
/// What somebody is told whose access ended.
const TOLD: [&str; 3] = [
    "revoked or has expired",
    "access was revoked while the request was in progress",
    "the workspace was closed while the request was in progress",
];

/// How access ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Key,
    Disabled,
    Deleted,
    Role,
    /// Somebody whose own workspace it is.
    Home,
    /// Somebody from another workspace.
    Visited,
}

const WAYS: [Way; 6] = [
    Way::Key,
    Way::Disabled,
    Way::Deleted,
    Way::Role,
    Way::Home,
    Way::Visited,
];

/// Somebody with two keys, of which one may be revoked.
struct Person {
    user: String,
    key: String,
    key_id: String,
    other_key: String,
}

/// A run of the agent that stays. It is cancelled when dropped.
struct Run {
    id: String,
    _asked: (Socket, Frames),
}

struct System {
    model: ScriptedModel,
    server: Server,
    /// A gateway of its own.
    other: Option<Server>,
    _node: Option<VirtualHost>,
    admin: String,
}

impl System {
    async fn start(bus: Bus) -> Result<Self> {
        let stays = Reply::pieces([format!("Thought: {WORD}")]).ending(Ending::Hang);
        let rules = vec![Rule::contains(PONDER, stays), Rule::always(Reply::Silence)];
        let model = ScriptedModel::start(rules).await?;
        let node = bus.broker().await?;
        let server = launch(&model, node.as_ref()).arg("--auth").arg("iam");
        let server = server.ready().await?;
        let other = match &node {
            None => None,
            Some(node) => {
                let gateway = Launch::serve(&["gateway"], &node.url());
                Some(gateway.arg("--auth").arg("iam").ready().await?)
            }
        };
        let admin = first_key(&server).await?;
        Ok(Self {
            model,
            server,
            other,
            _node: node,
            admin,
        })
    }

    /// A workspace with a flow, and with what is too large to be sent at once.
    async fn workspace(&self) -> Result<()> {
        let record = json!({"id": "acme", "enabled": true});
        let create = json!({"operation": "create-workspace", "workspace_record": record});
        iam(&self.server, &self.admin, create).await?;
        let acme = self.reader(&self.server, &self.admin);
        let start = json!({"operation": "start-flow", "flow-id": "default",
            "blueprint-name": "everything", "description": "d"});
        let end = Instant::now() + SOON;
        while let Err(told) = acme.done("flow", start.clone()).await {
            ensure!(Instant::now() < end, "{told}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        acme.keep_big(CHUNKS).await
    }

    fn reader<'a>(&self, server: &'a Server, key: &'a str) -> Reader<'a> {
        Reader {
            server,
            key,
            workspace: "acme",
        }
    }

    async fn person(&self, way: Way) -> Result<Person> {
        let home = match way {
            Way::Home => "acme",
            _ => "default",
        };
        let user = json!({"operation": "create-user", "workspace": home,
            "user": {"username": format!("{way:?}"), "roles": ["admin"]}});
        let made = iam(&self.server, &self.admin, user).await?;
        let user = made["user"]["id"].as_str().context("no user")?.to_owned();
        let (key, key_id) = self.key(home, &user).await?;
        let (other_key, _) = self.key(home, &user).await?;
        Ok(Person {
            user,
            key,
            key_id,
            other_key,
        })
    }

    /// A new key of somebody, and its id.
    async fn key(&self, home: &str, user: &str) -> Result<(String, String)> {
        let ask = json!({"operation": "create-api-key", "workspace": home,
            "key": {"user_id": user, "name": "k"}});
        let made = iam(&self.server, &self.admin, ask).await?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no key");
        let key = text(&made["api_key_plaintext"])?;
        Ok((key, text(&made["api_key"]["id"])?))
    }

    /// A run that somebody asks for, whose access does not end as its readers' does.
    async fn run(&self, key: &str) -> Result<Run> {
        let socket = Socket::connect(&self.server.url(), key).await?;
        let ask = json!({"service": "agent", "flow": "default", "workspace": "acme",
            "on-disconnect": "cancel", "request": {"question": PONDER, "streaming": true}});
        let mut frames = socket.send(ask).await?;
        let first = frames.next().await.context("no part")?;
        let id = first["run"].as_str();
        let id = id.with_context(|| first.to_string())?.to_owned();
        Ok(Run {
            id,
            _asked: (socket, frames),
        })
    }

    async fn revoke(&self, way: Way, whose: &Person) -> Result<()> {
        let of_user = |operation: &str| {
            json!({"operation": operation, "workspace": "default",
            "user_id": whose.user})
        };
        let ask = match way {
            Way::Key => json!({"operation": "revoke-api-key", "workspace": "default",
                "key_id": whose.key_id}),
            Way::Disabled => of_user("disable-user"),
            Way::Deleted => of_user("delete-user"),
            Way::Role => json!({"operation": "update-user", "workspace": "default",
                "user_id": whose.user, "user": {"roles": ["reader"], "enabled": true}}),
            Way::Home | Way::Visited => json!({"operation": "disable-workspace",
                "workspace_record": {"id": "acme"}}),
        };
        iam(&self.server, &self.admin, ask).await.map(|_: Value| ())
    }

    /// Records that pass all the while: one may be under way to whoever is turned away.
    async fn write(&self) -> Result<Infallible> {
        let iri = |text: &str| json!({"t": "i", "i": text});
        let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": iri("urn:c")});
        let metadata = json!({"id": "x", "collection": "default"});
        let record = json!({"metadata": metadata, "triples": [triple]});
        let path = "api/v1/flow/default/import/triples?workspace=acme";
        let url = format!("{}{path}", self.server.url());
        loop {
            // Refused while the workspace is closed.
            let post = client()?.post(&url).bearer_auth(&self.admin);
            post.body(format!("{record}\n")).send().await?;
            tokio::time::sleep(PACE).await;
        }
    }

    /// Streams of every kind, begun and read no further; `twice`: on every endpoint that has it. Where there is a gateway
    /// of its own, that has the large ones.
    async fn streams(&self, person: &Person, twice: bool) -> Result<Streams> {
        let key = &*person.key;
        let mut all = Streams::default();
        for server in [Some(&self.server), self.other.as_ref()]
            .into_iter()
            .flatten()
        {
            let reader = self.reader(server, key);
            let asked = self.model.count() + 1 + usize::from(twice);
            all.at_once.push(reader.agent_events().await?);
            all.at_once.push(reader.live_socket().await?);
            if twice {
                all.at_once.push(reader.agent_socket().await?);
                all.at_once.push(reader.live_lines().await?);
            }
            let asks = self.model.wait_calls(asked, SOON).await;
            ensure!(asks, "nobody asks the model");
            all.at_once.push(reader.chat_events(PONDER, WORD).await?);
            let run = self.run(&self.admin).await?;
            all.at_once
                .push(reader.run_events(&run.id, true, THOUGHT).await?);
            all.at_once
                .push(reader.run_socket(&run.id, true, THOUGHT).await?);
            all.runs.push(run);
            if twice {
                // One of their own.
                let run = self.run(&person.other_key).await?;
                all.at_once
                    .push(reader.run_events(&run.id, false, THOUGHT).await?);
                all.at_once
                    .push(reader.run_socket(&run.id, false, THOUGHT).await?);
                all.runs.push(run);
            }
        }
        let reader = self.reader(self.other.as_ref().unwrap_or(&self.server), key);
        all.large.push(reader.document().await?);
        all.large.push(reader.core().await?);
        all.large.push(reader.query_events().await?);
        if twice {
            all.large.push(reader.core_socket().await?);
            all.large.push(reader.query_socket().await?);
        }
        Ok(all)
    }
}

#[derive(Default)]
struct Streams {
    /// Which say what there is to say when it is.
    at_once: Vec<Stream>,
    /// Which have more on the way than is read.
    large: Vec<Stream>,
    /// Which are joined.
    runs: Vec<Run>,
}

impl Streams {
    /// All end within the bound. Who is slow still gets what was on the way then, and not the rest.
    async fn end(self) -> Result<()> {
        let until = Instant::now() + BOUND;
        let all = self.at_once.into_iter().map(|one| ends(one, until));
        futures::future::try_join_all(all).await?;
        tokio::time::sleep_until(until).await;
        let drained = until + SOON;
        let all = self.large.into_iter().map(|one| ends(one, drained));
        futures::future::try_join_all(all).await.map(|_| ())
    }
}

/// Reads on until it ends, or is told so.
async fn ends(mut stream: Stream, until: Instant) -> Result<()> {
    loop {
        let read = timeout_at(until, stream.read()).await;
        let (what, taken) = (stream.what, stream.taken);
        ensure!(taken < WHOLE, "{what}: nothing was left out");
        if stream.says(&TOLD) {
            return Ok(());
        }
        let read = read.with_context(|| format!("{what} goes on after {taken} bytes"))?;
        if read == 0 {
            // A file has no place for words: it is cut off.
            let file = matches!(what, "a document" | "a core");
            ensure!(
                file && stream.end() == End::Cut,
                "{what} ends without a word after {taken} bytes: {}",
                stream.shown()
            );
            return Ok(());
        }
    }
}

async fn by_every_way(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    system.workspace().await?;
    for way in WAYS {
        let person = system.person(way).await?;
        let streams = system.streams(&person, way == Way::Key).await?;
        let ended = async {
            system.revoke(way, &person).await?;
            streams.end().await.with_context(|| format!("{way:?}"))
        };
        tokio::select! {
            ended = ended => ended?,
            never = system.write() => match never? {},
        }
        if way == Way::Home {
            let enable = json!({"operation": "enable-workspace",
                "workspace_record": {"id": "acme", "enabled": true}});
            iam(&system.server, &system.admin, enable).await?;
        }
    }
    Ok(())
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn embedded() -> Result<()> {
        by_every_way(Bus::Embedded).await
    }

    #[tokio::test]
    async fn over_rabbitmq_at_two_gateways() -> Result<()> {
        by_every_way(Bus::Rabbit).await
    }
}
