//! Two workspaces of one system, whose threads are apart.

use tg_clients::listeners::listen;
use tg_mesh::{Ask, Deadline, Responder};
use tg_schemas::msg::{ListenerRequest, ListenerResponse, ThreadsRequest, ThreadsResponse};
use tg_schemas::{Class, FlowId, Topic, WorkspaceId};
use tg_testkit::config::Config;
use tg_testkit::flow::{SOON, TestFlow};
use tg_testkit::place::Place;
use tg_threads_service::{Options, processors};

use crate::world::{respond, send, tool};

const WORKSPACES: [&str; 2] = ["one", "other"];
/// A thread that the test names itself.
const THREAD: &str = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70";

async fn ask(flow: &TestFlow, workspace: &str, request: &ThreadsRequest) -> ThreadsResponse {
    let workspace = WorkspaceId::new(workspace).unwrap();
    let topic = Topic::workspace(Class::Request, "threads", &workspace);
    let ask = Ask {
        deadline: Some(Deadline::after(SOON)),
        user_id: Some("ann".to_owned()),
        ..Ask::default()
    };
    let answer = flow
        .mesh
        .ask::<_, ThreadsResponse>(&topic, request, ask)
        .last();
    answer.await.unwrap()
}

/// The thread that a message has which names one.
async fn thread(flow: &TestFlow, workspace: &str, named: &str) -> String {
    let message = ThreadsRequest {
        thread: named.to_owned(),
        ..send("echo", "x")
    };
    ask(flow, workspace, &message).await.thread
}

/// 134: an id that another workspace has, or had, is silently another one, and stays with whoever has it.
async fn line_134_an_id_of_another_workspace_is_taken(place: Place) {
    let config = Config::new();
    for workspace in WORKSPACES {
        config.register(workspace);
        config.set(workspace, "flow", "default", "{}");
        config.set(workspace, "listener", "echo", &tool("Echoes."));
    }
    let host = |mesh: &_| processors(mesh, Options::default());
    let flow = TestFlow::start(&place, config, &[], host).await;
    let mut listening = Vec::new();
    for workspace in WORKSPACES {
        let of = (
            &WorkspaceId::new(workspace).unwrap(),
            &FlowId::new("default").unwrap(),
        );
        let echo = |got: ListenerRequest, mut out: Responder<ListenerResponse>| async move {
            out.send(respond(&got.thread_id)).await
        };
        listening.push(listen(&flow.mesh, of, "echo", echo).await.unwrap());
    }
    assert_eq!(thread(&flow, "one", THREAD).await, THREAD);
    assert_ne!(thread(&flow, "other", THREAD).await, THREAD);
    assert_eq!(thread(&flow, "one", THREAD).await, THREAD);
    let close = ThreadsRequest {
        operation: "close-thread".to_owned(),
        thread: THREAD.to_owned(),
        ..send("", "")
    };
    assert!(ask(&flow, "one", &close).await.closed > 0);
    assert_ne!(thread(&flow, "other", THREAD).await, THREAD);
}

tg_testkit::on_both_buses!(line_134_an_id_of_another_workspace_is_taken);
