//! Each service has a user of its own at the broker, with the permissions that `threadgraph permissions` prints: the system
//! answers with them, and the broker refuses twenty ways to act for another service and each way to hear its answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_bus::rabbitmq::{RabbitBus, RabbitOptions};
use tg_bus::{Bus, Consume, Delete, Delivery, Envelope, Mode, PublishMode, Routed, Sink, Target};
use tg_schemas::topic::Class;
use tg_schemas::{FlowId, Subscription, Topic, WorkspaceId};
use tg_testkit::process::{Launch, Server, bin_dir, client, root, tg};
use tg_testkit::rabbitmq::RabbitNode;
use tokio::process::Command;

use crate::listeners_talk::{listening, register};
use crate::world::post;

/// What a file with a broker's password would hold.
const PASSWORD: &str = "own";
const SESSIONS: &str = "a1/agents/concise-de/sessions";

/// Takes nothing and says nothing.
struct Deaf;

impl Sink for Deaf {
    fn deliver(&self, delivery: Delivery) {
        drop(delivery);
    }
}

/// The permissions of all services, as the program prints them.
async fn permissions() -> Result<Vec<Value>> {
    let mut command = Command::new(bin_dir()?.join("threadgraph"));
    let printed = command.arg("permissions").output().await?;
    ensure!(printed.status.success(), "{printed:?}");
    Ok(serde_json::from_slice(&printed.stdout)?)
}

/// Makes all users at once: the node's own command takes a second for each.
async fn make_users(node: &RabbitNode, permissions: &[Value]) -> Result<Vec<String>> {
    let (mut names, mut lines) = (Vec::new(), Vec::new());
    for one in permissions {
        let text = |at: &str| -> Result<String> {
            let text = one.pointer(at).and_then(Value::as_str);
            let text = text.with_context(|| format!("{at} of {one}"))?;
            Ok(format!("<<{}>>", Value::from(text)))
        };
        let (user, configure, write, read) = (
            text("/user")?,
            text("/configure")?,
            text("/write")?,
            text("/read")?,
        );
        let (exchange, says, hears) = (
            text("/topics/exchange")?,
            text("/topics/write")?,
            text("/topics/read")?,
        );
        lines.push(format!(
            "ok = rabbit_auth_backend_internal:add_user({user}, <<\"{PASSWORD}\">>, <<\"test\">>), \
             ok = rabbit_auth_backend_internal:set_topic_permissions({user}, <<\"/\">>, {exchange}, {says}, {hears}, <<\"test\">>), \
             ok = rabbit_auth_backend_internal:set_permissions({user}, <<\"/\">>, {configure}, {write}, {read}, <<\"test\">>)"
        ));
        names.push(one["user"].as_str().unwrap_or_default().to_owned());
    }
    node.ctl(&["eval", &format!("{}.", lines.join(", "))])
        .await?;
    Ok(names)
}

fn address(node: &RabbitNode, user: &str) -> String {
    format!("amqp://{user}:{PASSWORD}@127.0.0.1:{}/", node.port())
}

/// A process for each service, each with its own user.
async fn start(
    node: &RabbitNode,
    users: &[String],
    folder: &Path,
) -> Result<(Server, BTreeMap<String, Server>)> {
    let launch = |user: &str| {
        Launch::serve(&[user], &address(node, user))
            .env("THREADGRAPH_BROKER__OWN_USERS", "true")
            .data(&folder.join(user))
    };
    let mut others = BTreeMap::new();
    for user in users.iter().filter(|user| *user != "gateway") {
        others.insert(user.clone(), launch(user).spawn().await?);
    }
    Ok((launch("gateway").ready().await?, others))
}

fn flow_topic(class: Class, base: &str) -> Result<Topic> {
    let (workspace, flow) = (WorkspaceId::new("default")?, FlowId::new("default")?);
    Ok(Topic::flow(class, base, &workspace, &flow))
}

/// The reader of a flow's topic.
fn queue(class: Class, base: &str, processor: &str, spec: &str) -> Result<Subscription> {
    let topic = flow_topic(class, base)?;
    Ok(Subscription::flow(
        topic, processor, "default", "default", spec,
    ))
}

/// What whoever holds the credentials of the model's service tries: each with whether it worked.
async fn forgeries(bus: &RabbitBus) -> Result<Vec<(String, bool)>> {
    let mut tried = Vec::new();
    let envelope = || Envelope {
        body: b"forged".to_vec().into(),
        ..Envelope::default()
    };
    let (flow, request, notify) = (Class::Flow, Class::Request, Class::Notify);
    let topics = [
        Topic::system(request, "iam"),
        Topic::system(request, "audit"),
        Topic::system(request, "flow"),
        Topic::system(request, "drop-graph"),
        Topic::system(notify, "config"),
        flow_topic(request, "agent")?,
        flow_topic(request, "mcp-tool")?,
        flow_topic(flow, "triples-store")?,
        flow_topic(flow, "document-load")?,
        flow_topic(flow, "agent-step")?,
        flow_topic(flow, "retract")?,
    ];
    for topic in topics {
        let sent = bus
            .publish(
                &Target::Topic(topic.clone()),
                envelope(),
                PublishMode::Confirmed,
            )
            .await;
        tried.push((format!("write to {topic}"), sent == Ok(Routed::Queued)));
    }
    let queues = [
        Subscription::service(Topic::system(request, "iam"), "iam-svc"),
        queue(flow, "triples-store", "triples-write", "input")?,
        queue(request, "agent", "agent-manager", "request")?,
    ];
    for queue in queues {
        // Around the exchange, by the broker's default one.
        let sent = bus
            .publish(
                &Target::Subscription(queue.clone()),
                envelope(),
                PublishMode::Confirmed,
            )
            .await;
        tried.push((format!("write into {queue:?}"), sent == Ok(Routed::Queued)));
        let heard = bus
            .consume(&queue, Consume::prefetch(1), Arc::new(Deaf))
            .await;
        tried.push((format!("read from {queue:?}"), heard.is_ok()));
        let gone = bus.delete_queue(&queue, Delete::Always).await;
        tried.push((format!("delete {queue:?}"), gone.is_ok()));
    }
    let topic = flow_topic(flow, "triples-store")?;
    let listened = bus.observe(&topic, Arc::new(Deaf)).await;
    tried.push((format!("look on at {topic}"), listened.is_ok()));
    let gone = bus.delete_topic(&flow_topic(request, "agent")?).await;
    tried.push(("delete the topic of the agent".to_owned(), gone == Ok(true)));
    let claimed = bus.claim("graph").await;
    tried.push(("claim the graph".to_owned(), matches!(claimed, Ok(Some(_)))));
    let lease = Topic::system(flow, "store-lease:graph");
    let noted = bus
        .publish(&Target::Topic(lease), envelope(), PublishMode::Confirmed)
        .await;
    tried.push((
        "write the lease of the graph".to_owned(),
        noted == Ok(Routed::Queued),
    ));
    let inbox = "nt.inbox.gateway.forged";
    let opened = bus.open_inbox(inbox, Arc::new(Deaf)).await;
    tried.push(("open an inbox of the gateway".to_owned(), opened.is_ok()));
    Ok(tried)
}

/// A listener is a program of whoever runs the system, with a user that is no service's.
async fn a_listener_answers(url: &str, broker: &str) -> Result<()> {
    register(url, "shouter", json!({"description": "Says it loud."})).await?;
    let _listens = listening("shouter", "examples/shouter.py", broker).await?;
    let send = json!({"operation": "send-message", "flow": "default", "to": "shouter",
        "type": "textinput", "payload": {"text": "hi"}});
    let (_, heard) = post(url, "api/v1/threads", send).await?;
    ensure!(heard["messages"][0]["payload"]["text"] == "HI", "{heard}");
    Ok(())
}

/// A turn of a session goes from the gateway over the sessions to the model, each with its own user.
async fn a_session_answers(url: &str) -> Result<()> {
    let ask = async |path: &str, body: Value| -> Result<Value> {
        let request = client()?.post(format!("{url}{path}"));
        let request = request.header("SPASS-User-Id", "ann").json(&body);
        let answer = request.send().await?;
        let status = answer.status();
        let told: Value = answer.json().await?;
        ensure!(status.is_success(), "{path}: {status} {told}");
        Ok(told)
    };
    let made = ask(SESSIONS, json!({})).await?;
    let session = made["id"].as_str().context("an id")?;
    let turn = json!({"message": "Was ist eine Laterne?"});
    ask(&format!("{SESSIONS}/{session}/messages"), turn).await?;
    Ok(())
}

/// What whoever holds the credentials of the model's service tries to hear answers to others: each with whether it worked.
async fn bindings(node: &RabbitNode) -> Result<Vec<(String, bool)>> {
    let mut command = Command::new(root().join(".cache/venv/bin/python3"));
    let program = root().join("tests/integration/clients/inbox_forger.py");
    let command = command.arg(program).arg(address(node, "llm")).arg("llm");
    let printed = command.output().await?;
    ensure!(printed.status.success(), "{printed:?}");
    Ok(serde_json::from_slice(&printed.stdout)?)
}

#[tokio::test]
async fn a_service_can_do_nothing_in_the_name_of_another() -> Result<()> {
    let node = RabbitNode::start().await?;
    let users = make_users(&node, &permissions().await?).await?;
    let folder = tempfile::tempdir()?;
    let (gateway, others) = start(&node, &users, folder.path()).await?;
    let url = gateway.url();
    let document = root().join("demo/documents/uncommon-clocks.pdf");
    let document = document.to_string_lossy();
    tg(&url, &["add", &*document, "--wait"])
        .await?
        .expect("1 added.")?;
    let question = "Which mountain is the meridian of Nepal Standard Time close to?";
    tg(&url, &["ask", question]).await?.expect("Gaurishankar")?;
    a_listener_answers(&url, &node.url()).await?;
    a_session_answers(&url).await?;
    let refused = node.refusals()?;
    ensure!(refused.is_empty(), "the system needs more: {refused:#?}");

    let options = RabbitOptions {
        inbox_exchange: true,
        ..RabbitOptions::of(Mode::Native)
    };
    let forger = RabbitBus::connect(&address(&node, "llm"), Mode::Native.rules(), options).await?;
    let tried = forgeries(&forger).await?;
    ensure!(tried.len() >= 20, "{}", tried.len());
    let worked: Vec<_> = tried.iter().filter(|(_, worked)| *worked).collect();
    ensure!(worked.is_empty(), "{worked:#?}");
    forger.close().await;
    let tried = bindings(&node).await?;
    let own = tried.first().is_some_and(|(_, worked)| *worked);
    ensure!(own && tried.len() > 10, "{tried:#?}");
    let worked: Vec<_> = tried.iter().skip(1).filter(|(_, worked)| *worked).collect();
    ensure!(worked.is_empty(), "{worked:#?}");
    // What is meant for it goes on.
    tg(&url, &["ask", question]).await?.expect("Gaurishankar")?;
    drop(others);
    Ok(())
}
