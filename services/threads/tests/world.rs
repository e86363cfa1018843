//! A system with listeners of the test's own, on either bus, and what whoever is outside sends them.

use serde_json::{Map, Value, json};
use tg_bus::Consumer;
use tg_clients::listeners::listen;
use tg_mesh::{Ask, Deadline, Responder};
use tg_schemas::msg::{
    ListenerMessage, ListenerRequest, ListenerResponse, ThreadsRequest, ThreadsResponse,
};
use tg_schemas::{Class, Error, FlowId, Topic, WorkspaceId};
use tg_testkit::config::Config;
use tg_testkit::flow::{SOON, TestFlow};
use tg_testkit::place::Place;
use tg_threads_service::{Options, processors};

/// What the listeners of the tests take.
pub(crate) const ANY: &str =
    r#"{"textinput": {"type": "object", "properties": {"text": {"type": "string"}}}}"#;

/// A system with listeners that are registered, and those of them that listen.
pub(crate) struct World {
    pub(crate) flow: TestFlow,
    pub(crate) listening: Vec<Box<dyn Consumer>>,
}

pub(crate) fn ids() -> (WorkspaceId, FlowId) {
    (
        WorkspaceId::new("default").unwrap(),
        FlowId::new("default").unwrap(),
    )
}

pub(crate) fn says(to: &str, text: &str) -> ListenerMessage {
    ListenerMessage {
        to: to.to_owned(),
        r#type: "textinput".to_owned(),
        payload: [("text".to_owned(), json!(text))].into_iter().collect(),
    }
}

pub(crate) fn respond(text: &str) -> ListenerResponse {
    ListenerResponse {
        respond: Some(says("", text)),
        end_of_stream: true,
        ..ListenerResponse::default()
    }
}

pub(crate) fn forward(to: &str, text: &str) -> ListenerResponse {
    ListenerResponse {
        forwards: vec![says(to, text)],
        end_of_stream: true,
        ..ListenerResponse::default()
    }
}

pub(crate) fn text(payload: &Map<String, Value>) -> String {
    payload
        .get("text")
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned()
}

pub(crate) fn send(to: &str, said: &str) -> ThreadsRequest {
    ThreadsRequest {
        operation: "send-message".to_owned(),
        flow: "default".to_owned(),
        to: to.to_owned(),
        r#type: "textinput".to_owned(),
        payload: json!({ "text": said }).to_string(),
        ..ThreadsRequest::default()
    }
}

pub(crate) fn console(target: &str, said: &str, thread: &str) -> ThreadsRequest {
    ThreadsRequest {
        thread: thread.to_owned(),
        to: "console-router".to_owned(),
        r#type: "consoleinput".to_owned(),
        payload: json!({"text": said, "target": target}).to_string(),
        console: true,
        streaming: true,
        ..send("", "")
    }
}

impl World {
    pub(crate) async fn start(place: &Place, rows: &[(&str, String)]) -> Self {
        let config = Config::new();
        config.put("flow", "default", "{}");
        for (name, row) in rows {
            config.put("listener", name, row);
        }
        let host = |mesh: &_| processors(mesh, Options::default());
        let flow = TestFlow::start(place, config, &[], host).await;
        Self {
            flow,
            listening: Vec::new(),
        }
    }

    pub(crate) async fn listen(
        &mut self,
        name: &str,
        handle: impl Fn(ListenerRequest) -> ListenerResponse + Send + Sync + 'static,
    ) {
        let answer = move |got: ListenerRequest, mut out: Responder<ListenerResponse>| {
            let returned = handle(got);
            async move { out.send(returned).await }
        };
        self.answers(name, answer).await;
    }

    /// The same where it answers in parts of its own, or not at all.
    pub(crate) async fn answers<F>(
        &mut self,
        name: &str,
        answer: impl Fn(ListenerRequest, Responder<ListenerResponse>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (workspace, flow) = ids();
        let peer = &self.flow.mesh;
        let listening = listen(peer, (&workspace, &flow), name, answer).await;
        self.listening.push(listening.unwrap());
    }

    pub(crate) fn ask(
        &self,
        request: &ThreadsRequest,
        user: &str,
    ) -> tg_mesh::Answer<ThreadsResponse> {
        let (workspace, _) = ids();
        let topic = Topic::workspace(Class::Request, "threads", &workspace);
        let ask = Ask {
            deadline: Some(Deadline::after(SOON)),
            user_id: Some(user.to_owned()),
            ..Ask::default()
        };
        self.flow.mesh.ask(&topic, request, ask)
    }

    pub(crate) async fn whole(&self, request: &ThreadsRequest) -> Result<ThreadsResponse, Error> {
        self.ask(request, "ann").last().await
    }

    /// The texts that came back, and the thread.
    pub(crate) async fn texts(&self, request: &ThreadsRequest) -> (Vec<String>, String) {
        let whole = self.whole(request).await.unwrap();
        let texts = whole
            .messages
            .iter()
            .map(|one| text(&one.payload))
            .collect();
        (texts, whole.thread)
    }
}

pub(crate) fn tool(description: &str) -> String {
    format!(r#"{{"description": "{description}", "types": {ANY}}}"#)
}
