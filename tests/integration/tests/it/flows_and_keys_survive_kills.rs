//! `kill -9` of whoever starts and stops flows, and of whoever makes and revokes keys, at any moment of it: asked again until
//! it is confirmed, in the end the configuration, the listings, what serves and what the broker holds say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::services::{ANSWERING, without};
use tg_testkit::shared_node::VirtualHost;
use tokio::time::sleep;

use crate::edge::first_key;
use crate::revocation_is_immediate::status;
use crate::world::Bus;

/// How many milliseconds after the question the process is killed, round after round; over a broker all takes longer.
const DELAYS: [u64; 10] = [4, 30, 0, 70, 15, 120, 45, 180, 8, 90];
const DELAYS_INSIDE: [u64; 10] = [3, 12, 1, 9, 5, 15, 2, 20, 7, 30];
/// Whoever was killed serves again, and what it owes is done, by then.
const BOUND: Duration = Duration::from_secs(60);
/// A flow that was never killed over; what it has is what each of the others is to have.
const MODEL: &str = "turn-model";

/// A system, and the process of it that is killed: one service over a broker, else all of it.
struct System {
    /// The gateway is here, unless all is killed.
    rest: Option<Server>,
    killed: Option<Server>,
    again: Launch,
    node: Option<VirtualHost>,
    /// What one that is killed as a whole keeps.
    _data: Option<TempDir>,
}

impl System {
    async fn new(bus: Bus, victim: &str, args: &[&str]) -> Result<Self> {
        let with = |launch: Launch| args.iter().fold(launch, |launch, arg| launch.arg(*arg));
        if bus == Bus::Embedded {
            let data = TempDir::new()?;
            let again = with(Launch::up()).data(data.path());
            let killed = Some(again.clone().ready().await?);
            return Ok(Self {
                rest: None,
                killed,
                again,
                node: None,
                _data: Some(data),
            });
        }
        let node = VirtualHost::new().await?;
        let others = without(&ANSWERING, &[victim]);
        let mut rest = with(Launch::serve(&others, &node.url())).spawn().await?;
        let again = with(Launch::serve(&[victim], &node.url())).data(&rest.data().join(victim));
        let killed = Some(again.clone().spawn().await?);
        rest.wait_ready().await?;
        Ok(Self {
            rest: Some(rest),
            killed,
            again,
            node: Some(node),
            _data: None,
        })
    }

    fn delays(&self) -> [u64; 10] {
        match self.node {
            Some(_) => DELAYS,
            None => DELAYS_INSIDE,
        }
    }

    /// The process with the gateway.
    fn door(&self) -> Result<&Server> {
        self.rest.as_ref().or(self.killed.as_ref()).context("gone")
    }

    /// Asks a service; `Err` holds why there is no answer, or the error that is one.
    async fn ask(&self, path: &str, key: &str, body: &Value) -> Result<Value, String> {
        let url = self.door().map_err(|error| error.to_string())?.url();
        asked(&url, path, key, body).await
    }

    /// Asks, kills in the middle of it, starts again, and asks until it is so.
    async fn turn(&mut self, turn: &Turn<'_>, delay: u64) -> Result<Value> {
        let (url, path) = (self.door()?.url(), turn.path.to_owned());
        let (key, body) = (turn.key.to_owned(), turn.body.clone());
        let first = tokio::spawn(async move { asked(&url, &path, &key, &body).await });
        sleep(Duration::from_millis(delay)).await;
        let killed = self.killed.take().context("gone")?;
        killed.kill9().await?;
        let mut next = self.again.clone().spawn().await?;
        if self.rest.is_none() {
            next.wait_ready().await?;
        }
        self.killed = Some(next);
        if let Ok(Ok(reply)) = first.await
            && turn.kept
        {
            return Ok(reply);
        }
        self.again(turn).await
    }

    /// Asks until it is answered, or until an error says that it was done before.
    async fn again(&self, turn: &Turn<'_>) -> Result<Value> {
        let begun = Instant::now();
        loop {
            let failure = match self.ask(turn.path, turn.key, &turn.body).await {
                Ok(reply) => return Ok(reply),
                Err(failure) if turn.done.is_some_and(|done| failure.contains(done)) => {
                    return Ok(Value::Null);
                }
                Err(failure) => failure,
            };
            ensure!(begun.elapsed() < BOUND, "{}: {failure}", turn.body);
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// What is asked in a round.
struct Turn<'a> {
    path: &'a str,
    key: &'a str,
    body: Value,
    /// The error that says that it was done before.
    done: Option<&'a str>,
    /// It is not asked again if it was answered: that would do it twice.
    kept: bool,
}

async fn asked(url: &str, path: &str, key: &str, body: &Value) -> Result<Value, String> {
    let ask = async {
        let request = client()?.post(format!("{url}api/v1/{path}"));
        let mut request = request.bearer_auth(key).json(body).timeout(BOUND);
        // Asked again under the same name, a key takes the place of one that nobody was told of.
        if let Some(name) = body["key"]["name"].as_str() {
            request = request.header("x-request-id", name);
        }
        anyhow::Ok(request.send().await?.json::<Value>().await?)
    };
    match ask.await {
        Ok(reply) if reply.get("error").is_none() => Ok(reply),
        Ok(reply) => Err(reply.to_string()),
        Err(error) => Err(format!("{error:#}")),
    }
}

fn texts(list: &Value) -> BTreeSet<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(|one| one.as_str().map(str::to_owned))
        .collect()
}

/// What config says: names of rows that hold a flow's name, with that left out.
async fn rows(system: &System, flow: &str) -> Result<BTreeSet<String>> {
    let ask = json!({"operation": "config"});
    let whole = system.ask("config", "", &ask).await;
    let whole = whole.map_err(anyhow::Error::msg)?;
    let mut found = BTreeSet::new();
    for (kind, rows) in whole["config"].as_object().context("no config")? {
        for (key, value) in rows.as_object().into_iter().flatten() {
            if key.contains(flow) || value.to_string().contains(flow) {
                found.insert(format!("{kind}/{}", key.replace(flow, "FLOW")));
            }
        }
    }
    Ok(found)
}

/// Queues and exchanges of the broker, if there is one.
async fn broker(system: &System) -> Result<Vec<String>> {
    match &system.node {
        Some(node) => node.names().await,
        None => Ok(Vec::new()),
    }
}

/// Names that hold a flow's, with that left out.
fn of(names: &[String], flow: &str) -> BTreeSet<String> {
    let of = names.iter().filter(|name| name.contains(flow));
    of.map(|name| name.replace(flow, "FLOW")).collect()
}

/// Whether the flow answers a question.
async fn answers(system: &System, flow: &str) -> bool {
    let path = format!("flow/{flow}/service/triples");
    system.ask(&path, "", &json!({"limit": 1})).await.is_ok()
}

/// Fails with what differs, unless all that can be seen of flows agrees.
async fn flows_agree(system: &System, running: &[&str], stopped: &[&str]) -> Result<()> {
    let ask = json!({"operation": "list-flows"});
    let listed = system.ask("flow", "", &ask).await;
    let listed = texts(&listed.map_err(anyhow::Error::msg)?["flow-ids"]);
    let ask = json!({"operation": "list", "type": "flow"});
    let kept = system.ask("config", "", &ask).await;
    let kept = texts(&kept.map_err(anyhow::Error::msg)?["directory"]);
    let all = ["default", MODEL].iter().chain(running);
    let wanted: BTreeSet<String> = all.map(|flow| (*flow).to_owned()).collect();
    ensure!(listed == wanted, "list-flows: {listed:?}");
    ensure!(kept == wanted, "config: {kept:?}");
    let names = broker(system).await?;
    let model = (rows(system, MODEL).await?, of(&names, MODEL));
    ensure!(!model.0.is_empty());
    ensure!(system.node.is_none() || !model.1.is_empty());
    for flow in running {
        let has = (rows(system, flow).await?, of(&names, flow));
        ensure!(has == model, "{flow}: {has:?}, a flow has {model:?}");
        ensure!(answers(system, flow).await, "{flow} does not answer");
    }
    for flow in stopped {
        let left = (rows(system, flow).await?, of(&names, flow));
        let nothing = left.0.is_empty() && left.1.is_empty();
        ensure!(nothing, "left of {flow}: {left:?}");
        ensure!(!answers(system, flow).await, "{flow} answers");
    }
    Ok(())
}

async fn flows(bus: Bus) -> Result<()> {
    let mut system = System::new(bus, "flow", &[]).await?;
    let start = |flow: &str| {
        json!({"operation": "start-flow", "flow-id": flow, "blueprint-name": "everything",
            "description": "soon over", "parameters": {}})
    };
    let first = start(MODEL);
    let model = system.ask("flow", "", &first).await;
    model.map_err(anyhow::Error::msg)?;
    let turns = [
        (true, "turn-a"),
        (false, "turn-a"),
        (true, "turn-b"),
        (true, "turn-a"),
        (false, "turn-b"),
        (true, "turn-c"),
        (false, "turn-c"),
        (true, "turn-b"),
        (false, "turn-a"),
        (true, "turn-d"),
    ];
    for ((starts, flow), delay) in turns.into_iter().zip(system.delays()) {
        let body = match starts {
            true => start(flow),
            false => json!({"operation": "stop-flow", "flow-id": flow}),
        };
        let done = (!starts).then_some("Flow ID invalid");
        let turn = Turn {
            path: "flow",
            key: "",
            body,
            done,
            kept: false,
        };
        let told = system.turn(&turn, delay).await;
        told.with_context(|| format!("{flow}, killed after {delay} ms"))?;
    }
    let begun = Instant::now();
    loop {
        let agree = flows_agree(&system, &["turn-b", "turn-d"], &["turn-a", "turn-c"]).await;
        match agree {
            Ok(()) => return Ok(()),
            Err(error) if begun.elapsed() > BOUND => return Err(error),
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Users and keys that rounds made, as whoever asked knows them.
#[derive(Default)]
struct Made {
    users: BTreeMap<&'static str, String>,
    /// Key and id.
    keys: BTreeMap<&'static str, (String, String)>,
}

/// The question of a round about users and keys: what is done, under which name, and to whose.
fn directory(made: &Made, does: &str, name: &str, of: &str) -> Result<(Value, &'static str)> {
    let user = |name: &str| made.users.get(name).context("no such user");
    Ok(match does {
        "create-user" => (
            json!({"operation": does, "user": {"username": name, "roles": ["writer"]}}),
            "taken",
        ),
        "delete-user" => (
            json!({"operation": does, "user_id": user(name)?}),
            "not found",
        ),
        "create-api-key" => (
            json!({"operation": does, "key": {"user_id": user(of)?, "name": name}}),
            "",
        ),
        "revoke-api-key" => {
            let (_, id) = made.keys.get(name).context("no such key")?;
            (json!({"operation": does, "key_id": id}), "not found")
        }
        _ => bail!("{does}"),
    })
}

/// Users by name, and the names of the keys of each, as iam lists them.
async fn listed(system: &System, admin: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let users = json!({"operation": "list-users", "workspace": "default"});
    let users = system.ask("iam", admin, &users).await;
    let users = users.map_err(anyhow::Error::msg)?;
    let mut all = BTreeMap::new();
    for user in users["users"].as_array().context("no users")? {
        let keys =
            json!({"operation": "list-api-keys", "workspace": "default", "user_id": user["id"]});
        let keys = system.ask("iam", admin, &keys).await;
        let keys = keys.map_err(anyhow::Error::msg)?;
        let keys = keys["api_keys"].as_array().into_iter().flatten();
        let mut names: Vec<String> = keys
            .map(|key| key["name"].as_str().unwrap_or_default().to_owned())
            .collect();
        names.sort();
        let name = user["username"].as_str().unwrap_or_default();
        all.insert(name.to_owned(), names);
    }
    Ok(all)
}

const ROUNDS: [(&str, &str, &str); 10] = [
    ("create-user", "bob", ""),
    ("create-api-key", "b1", "bob"),
    ("create-user", "eve", ""),
    ("create-api-key", "e1", "eve"),
    ("revoke-api-key", "b1", ""),
    ("create-api-key", "b2", "bob"),
    ("delete-user", "eve", ""),
    ("create-user", "eve", ""),
    ("create-api-key", "e2", "eve"),
    ("create-api-key", "b3", "bob"),
];

async fn keys(bus: Bus) -> Result<()> {
    let mut system = System::new(bus, "iam", &["--auth", "iam"]).await?;
    let admin = first_key(system.door()?).await?;
    let mut made = Made::default();
    for ((does, name, of), delay) in ROUNDS.into_iter().zip(system.delays()) {
        let (mut body, done) = directory(&made, does, name, of)?;
        body["workspace"] = json!("default");
        let turn = Turn {
            path: "iam",
            key: &admin,
            body,
            done: (!done.is_empty()).then_some(done),
            kept: true,
        };
        let reply = system.turn(&turn, delay).await;
        let reply = reply.with_context(|| format!("{does} {name}, killed after {delay} ms"))?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        match does {
            "create-user" => {
                // What was answered before the kill is read while the successor starts.
                let listing = Turn {
                    path: "iam",
                    key: &admin,
                    body: json!({"operation": "list-users", "workspace": "default"}),
                    done: None,
                    kept: false,
                };
                let users = system.again(&listing).await?;
                let all = users["users"].as_array().into_iter().flatten();
                let mut of_name = all.filter(|user| user["username"] == name);
                let one = of_name.next().with_context(|| format!("no {name}"))?;
                ensure!(of_name.next().is_none(), "{name} is there twice");
                made.users.insert(name, text(&one["id"])?);
            }
            "create-api-key" => {
                let key = (
                    text(&reply["api_key_plaintext"])?,
                    text(&reply["api_key"]["id"])?,
                );
                made.keys.insert(name, key);
            }
            _ => {}
        }
    }
    for (name, wanted) in [
        ("b1", 401),
        ("e1", 401),
        ("b2", 200),
        ("e2", 200),
        ("b3", 200),
    ] {
        let (key, _) = made.keys.get(name).context(name)?;
        let begun = Instant::now();
        while status(system.door()?, key).await? != wanted {
            ensure!(begun.elapsed() < BOUND, "{name} is not answered {wanted}");
            sleep(Duration::from_millis(50)).await;
        }
    }
    let all = listed(&system, &admin).await?;
    let of = |name: &str| all.get(name).cloned().unwrap_or_default();
    ensure!(of("bob") == ["b2", "b3"], "{all:?}");
    ensure!(of("eve") == ["e2"], "{all:?}");
    Ok(())
}

#[tokio::test]
async fn of_the_flow_service() -> Result<()> {
    flows(Bus::Rabbit).await
}

#[tokio::test]
async fn of_the_iam_service() -> Result<()> {
    keys(Bus::Rabbit).await
}

#[tokio::test]
async fn of_all_with_flows() -> Result<()> {
    flows(Bus::Embedded).await
}

#[tokio::test]
async fn of_all_with_keys() -> Result<()> {
    keys(Bus::Embedded).await
}
