//! A listener: it greets in pieces, has `shouter` say it loud, and answers with what came back.
//!
//! `greeter amqp://guest:guest@localhost:5672 default default`: the broker, the workspace and the flow.

use std::sync::Arc;

use serde_json::json;
use tg_clients::listeners::listen;
use tg_mesh::rabbitmq::{RabbitBus, RabbitOptions};
use tg_mesh::{MeshOptions, Mode, Peer, Responder};
use tg_schemas::msg::{ListenerMessage, ListenerRequest, ListenerResponse};
use tg_schemas::{Error, FlowId, WorkspaceId};

async fn greet(got: ListenerRequest, mut out: Responder<ListenerResponse>) -> Result<(), Error> {
    let text = got.payload.get("text").and_then(|text| text.as_str());
    let text = text.unwrap_or("you");
    let say = |to: &str, text: &str| ListenerMessage {
        to: to.to_owned(),
        r#type: "textinput".to_owned(),
        payload: [("text".to_owned(), json!(text))].into_iter().collect(),
    };
    let mut last = ListenerResponse {
        end_of_stream: true,
        ..ListenerResponse::default()
    };
    if got.from_id == "shouter" || got.from_id == "system" {
        last.respond = Some(say("", text));
    } else {
        for piece in ["Hello, ", text] {
            let chunk = ListenerResponse {
                chunk: piece.to_owned(),
                ..ListenerResponse::default()
            };
            out.send(chunk).await?;
        }
        last.forwards = vec![say("shouter", &format!("Hello, {text}"))];
    }
    out.send(last).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [broker, workspace, flow] = args.as_slice() else {
        return Err("give the broker, the workspace and the flow".into());
    };
    let mode = Mode::Native;
    let bus = RabbitBus::connect(broker, mode, RabbitOptions::of(mode)).await?;
    let (peer, _inbox) = Peer::join(Arc::new(bus), MeshOptions::default()).await?;
    let (workspace, flow) = (WorkspaceId::new(workspace)?, FlowId::new(flow)?);
    let _listens = listen(&peer, (&workspace, &flow), "greeter", greet).await?;
    println!("greeter listens");
    tokio::signal::ctrl_c().await?;
    Ok(())
}
