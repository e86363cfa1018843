//! The start of the threads of a workspace, as the log shows it.

use std::fmt::Debug;
use std::sync::OnceLock;

use parking_lot::Mutex;
use tg_clients::listeners::listen;
use tg_mesh::{Ask, Deadline, Responder};
use tg_schemas::msg::{ListenerRequest, ListenerResponse, ThreadsRequest, ThreadsResponse};
use tg_schemas::{Class, FlowId, Topic, WorkspaceId};
use tg_testkit::config::Config;
use tg_testkit::flow::{SOON, TestFlow};
use tg_testkit::place::Place;
use tg_threads_service::{Options, processors};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::world::{respond, send, text, tool};

/// Messages from outside that come at once.
const AT_ONCE: usize = 32;

/// Workspaces whose threads started, in this process.
static STARTED: OnceLock<Mutex<Vec<String>>> = OnceLock::new();

#[derive(Default)]
struct Said {
    message: String,
    workspace: String,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "workspace" => self.workspace = format!("{value:?}"),
            _ => {}
        }
    }
}

struct Starts;

impl Subscriber for Starts {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        *about.level() == Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut said = Said::default();
        event.record(&mut said);
        if said.message == "the mesh of listeners has started"
            && let Some(started) = STARTED.get()
        {
            started.lock().push(said.workspace);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn started() -> &'static Mutex<Vec<String>> {
    STARTED.get_or_init(|| {
        // Nobody else in this process sets one.
        tracing::subscriber::set_global_default(Starts).expect("the first");
        Mutex::default()
    })
}

/// 133: of first messages that come at once one starts the threads, and all of them are known afterwards.
async fn line_133_a_workspace_starts_once(place: Place) {
    started();
    let name = match &place {
        Place::Embedded(_) => "early-embedded",
        Place::RabbitMq(_) => "early-rabbitmq",
    };
    let config = Config::new();
    config.register(name);
    config.set(name, "flow", "default", "{}");
    config.set(name, "listener", "echo", &tool("Echoes."));
    let host = |mesh: &_| processors(mesh, Options::default());
    let flow = TestFlow::start(&place, config, &[], host).await;
    let workspace = WorkspaceId::new(name).unwrap();
    let of = FlowId::new("default").unwrap();
    let echo = |got: ListenerRequest, mut out: Responder<ListenerResponse>| async move {
        out.send(respond(&text(&got.payload))).await
    };
    let listening = listen(&flow.mesh, (&workspace, &of), "echo", echo).await;
    let _listening = listening.unwrap();
    let topic = Topic::workspace(Class::Request, "threads", &workspace);
    let ask = |request: &ThreadsRequest| {
        let ask = Ask {
            deadline: Some(Deadline::after(SOON)),
            user_id: Some("ann".to_owned()),
            ..Ask::default()
        };
        let answer = flow.mesh.ask::<_, ThreadsResponse>(&topic, request, ask);
        answer.last()
    };
    let first = send("echo", "x");
    let answers = (0..AT_ONCE).map(|_| ask(&first));
    for answer in futures::future::join_all(answers).await {
        let show = ThreadsRequest {
            operation: "show-thread".to_owned(),
            thread: answer.unwrap().thread,
            ..send("", "")
        };
        let shown = ask(&show).await.unwrap();
        assert_eq!(shown.chain, ["system", "mesh", "gateway", "echo"]);
    }
    let started = started().lock();
    assert_eq!(started.iter().filter(|one| *one == name).count(), 1);
}

tg_testkit::on_both_buses!(line_133_a_workspace_starts_once);
