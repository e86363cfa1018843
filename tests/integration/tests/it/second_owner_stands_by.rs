//! A second process of whatever keeps something stands by and says so; it serves when the first is killed, with the same
//! data, and refuses to with an empty store of its own.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::machine::keeps;
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Launch, Server};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::Socket;

use crate::a_late_retraction_changes_nothing::{Seen, WorkspaceCollection};
use crate::workspaces::add;
use crate::world::{launch, serving};

/// Services with a store of which a second process stands by here.
pub const OWNERS: [&str; 10] = [
    "config",
    "iam",
    "flow",
    "graph",
    "librarian",
    "vectors",
    "rows",
    "knowledge",
    "agent",
    "extract",
];
/// Their processors; those of a service share its store, each says so.
const PROCESSORS: usize = 24;
/// Their stores; words have one beside that of vectors.
const STORES: usize = OWNERS.len() + 1;
/// Where everything is that they keep here.
const PLACE: WorkspaceCollection = WorkspaceCollection("default", "default");
/// The second owner serves within this; on a slower machine more by as much.
const TAKE_OVER: Duration = Duration::from_secs(3);
/// A question to a killed process ends within this; on a slower machine more by as much.
const ENDS: Duration = Duration::from_secs(1);
/// What these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(60);

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Result<()> {
    let end = Instant::now() + BOUND;
    while !holds().await {
        ensure!(Instant::now() < end, "not within {BOUND:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn stands_by(second: &Server) -> Result<()> {
    let all = async || second.log().matches("waiting as standby").count() >= PROCESSORS;
    let all = until("each processor says that it stands by", all).await;
    all.with_context(|| second.log())
}

#[tokio::test]
async fn and_one_config_service_answers() -> Result<()> {
    let node = VirtualHost::new().await?;
    let model = ScriptedModel::start(Vec::new()).await?;
    let server = launch(&model, Some(&node)).ready().await?;
    let second = Launch::serve(&OWNERS, &node.url())
        .data(server.data())
        .spawn()
        .await?;
    stands_by(&second).await?;
    // One config service answers, not two: a version goes up by one per put.
    let socket = Socket::connect(&server.url(), "").await?;
    let put = json!({"operation": "put", "values": [{"type": "notes", "key": "a", "value": "1"}]});
    let version = json!({"operation": "config"});
    let before =
        socket.ask_service("config", version.clone()).await?["response"]["version"].clone();
    socket.ask_service("config", put).await?;
    let after = socket.ask_service("config", version).await?["response"]["version"].clone();
    assert_eq!(before.as_i64().map(|v| v + 1), after.as_i64());
    Ok(())
}

/// The owners in a process of their own, everything else in another.
struct Apart {
    node: VirtualHost,
    rest: Server,
    owners: Server,
}

impl Apart {
    async fn start() -> Result<Self> {
        let node = VirtualHost::new().await?;
        let mut rest = Launch::serve(
            &["llm", "prompt", "tool", "embeddings", "gateway"],
            &node.url(),
        )
        .spawn()
        .await?;
        let owners = Launch::serve(&OWNERS, &node.url())
            .data(&rest.data().join("owners"))
            .spawn()
            .await?;
        rest.wait_ready().await?;
        Ok(Self { node, rest, owners })
    }

    async fn second(&self, data: &str) -> Result<Server> {
        Launch::serve(&OWNERS, &self.node.url())
            .data(&self.rest.data().join(data))
            .spawn()
            .await
    }
}

/// Puts something into every store that clients read, and waits until it is there.
async fn put(rest: &Server) -> Result<(Seen, Vec<Value>)> {
    let url = rest.url();
    PLACE.prepare(&url).await?;
    for number in 1..=3 {
        PLACE.fill(&url, number).await?;
    }
    add(&url, "default", "urn:d").await?;
    PLACE.until(rest, &Seen::of(&[1, 2, 3], &[1, 2, 3])).await?;
    held(rest).await
}

/// All that clients read of it.
async fn held(rest: &Server) -> Result<(Seen, Vec<Value>)> {
    Ok((PLACE.seen(&rest.url()).await?, served(rest).await?))
}

/// Questions to the owners that serve no flow.
fn questions() -> [(&'static str, Value); 5] {
    [
        ("config", json!({"operation": "list", "type": "flow"})),
        ("iam", json!({"operation": "list-workspaces"})),
        ("flow", json!({"operation": "list-flows"})),
        ("librarian", json!({"operation": "list-documents"})),
        ("knowledge", json!({"operation": "list-kg-cores"})),
    ]
}

/// What those answer.
async fn served(rest: &Server) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (service, ask) in questions() {
        let path = format!("api/v1/{service}");
        let (status, body) = crate::world::post(&rest.url(), &path, ask).await?;
        ensure!(status == 200 && body["error"].is_null(), "{status} {body}");
        all.push(body);
    }
    Ok(all)
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn and_takes_over_with_the_same_data_when_the_first_is_killed() -> Result<()> {
        keeps("another takes over", TAKE_OVER, taken_over).await
    }

    /// From the death of the first until the second answers with all of its data.
    async fn taken_over() -> Result<Duration> {
        let Apart { node, rest, owners } = Apart::start().await?;
        let second = Launch::serve(&OWNERS, &node.url())
            .data(owners.data())
            .spawn()
            .await?;
        stands_by(&second).await?;
        let all = put(&rest).await?;

        owners.kill9().await?;
        let killed = Instant::now();
        loop {
            let again = held(&rest).await;
            let took = killed.elapsed();
            ensure!(took < BOUND, "{took:?} {again:?}\n{}", second.log());
            if again.is_ok_and(|again| again == all) {
                return Ok(took);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn and_refuses_with_an_empty_store_of_its_own() -> Result<()> {
        let apart = Apart::start().await?;
        let all = put(&apart.rest).await?;
        let data = apart.owners.data().to_owned();
        let empty = apart.second("empty").await?;
        stands_by(&empty).await?;
        let (node, rest) = (apart.node, apart.rest);
        apart.owners.kill9().await?;
        let refuses = async || empty.log().matches("another store of this name").count() >= STORES;
        until("each store is refused", refuses).await?;
        for (service, ask) in questions() {
            let path = format!("api/v1/{service}");
            let (status, body) = crate::world::post(&rest.url(), &path, ask).await?;
            ensure!(
                status != 200 || !body["error"].is_null(),
                "{service}: {body}"
            );
        }

        // The store that had the data takes over at once.
        let first = Launch::serve(&OWNERS, &node.url())
            .data(&data)
            .spawn()
            .await?;
        // A process that starts may write to the configuration: its version is no smaller.
        let data = |(seen, mut told): (Seen, Vec<Value>)| {
            let version = told[0]["version"].take().as_i64();
            (version, (seen, told))
        };
        let (before, all) = data(all);
        let mut last = None;
        let again = until("the data is there again", async || {
            let again = held(&rest).await.map(data);
            let same = |(version, again): &(_, _)| *version >= before && *again == all;
            let same = again.as_ref().is_ok_and(same);
            last = Some(again);
            same
        });
        let again = again.await;
        again.with_context(|| format!("{last:?} instead of {all:?}\n{}", first.log()))
    }

    /// What is killed, what it is asked, and whether a question that is under way ends with it: what prompt was asked is
    /// llm's to answer, and what the graph is asked takes no time.
    const ASKED: [(&str, &str, &str, bool); 4] = [
        (
            "llm",
            "text-completion",
            r#"{"system": "s", "prompt": "p"}"#,
            true,
        ),
        ("agent", "agent", r#"{"question": "q"}"#, true),
        (
            "prompt",
            "prompt",
            r#"{"id": "extract-concepts", "variables": {"query": "q"}}"#,
            false,
        ),
        ("graph", "triples", r#"{"limit": 1}"#, false),
    ];

    #[tokio::test]
    async fn and_a_question_to_a_killed_process_ends_within_a_second() -> Result<()> {
        for asked in ASKED {
            let what = format!("a question to {}", asked.0);
            keeps(&what, ENDS, async || ended(asked).await).await?;
        }
        Ok(())
    }

    /// The longer one of a question under way when the process is killed, and of one that is asked afterwards.
    async fn ended(
        (victim, service, question, ends): (&str, &str, &str, bool),
    ) -> Result<Duration> {
        let node = VirtualHost::new().await?;
        // A model that is silent for long: the question is under way when its process is killed.
        let model = ScriptedModel::start(vec![Rule::always(
            Reply::text("late").delayed(Duration::from_secs(20)),
        )])
        .await?;
        let all = [
            "config",
            "iam",
            "flow",
            "prompt",
            "llm",
            "tool",
            "agent",
            "librarian",
            "graph",
            "gateway",
        ];
        let others: Vec<&str> = all.into_iter().filter(|one| *one != victim).collect();
        let launch = |services: &[&str]| serving(services, &model, &node);
        let mut rest = launch(&others).spawn().await?;
        let data = rest.data().join(victim);
        let killed = launch(&[victim]).data(&data).spawn().await?;
        rest.wait_ready().await?;
        let url = rest.url();
        let path = format!("api/v1/flow/default/service/{service}");
        let question: Value = serde_json::from_str(question)?;
        let ask = async || {
            let answer = crate::world::post(&url, &path, question.clone()).await;
            (answer, Instant::now())
        };
        let calls = model.count();
        let under_way = async {
            match ends {
                true => Some(ask().await),
                false => None,
            }
        };
        let kill = async {
            if ends {
                let is_asked = model.wait_calls(calls + 1, BOUND).await;
                ensure!(is_asked, "the model is asked");
            }
            // Long silent: heartbeats have grown apart.
            tokio::time::sleep(Duration::from_secs(3)).await;
            killed.kill9().await?;
            Ok(Instant::now())
        };
        let (under_way, killed) = tokio::join!(under_way, kill);
        let killed = killed?;
        // The question under way, then one that is asked afterwards.
        let afterwards = Instant::now();
        let new = ask().await;
        let mut longest = Duration::ZERO;
        let under_way = under_way.map(|told| (told, killed));
        for ((answer, at), since) in under_way.into_iter().chain([(new, afterwards)]) {
            let (_, body) = answer?;
            let told = body["error"]["type"] == "nobody-serves";
            ensure!(
                told || body.to_string().contains("no process serves"),
                "{victim}: {body}"
            );
            longest = longest.max(at.saturating_duration_since(since));
        }
        Ok(longest)
    }
}
