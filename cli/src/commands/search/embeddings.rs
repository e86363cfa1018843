//! `tg invoke-embeddings`: texts as vectors.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{InFlow, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::fields::list;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg invoke-embeddings`.
#[derive(Debug, Args)]
pub struct InvokeEmbeddings {
    #[command(flatten)]
    flow: InFlow,
    /// Texts
    #[arg(required = true, value_name = "TEXT")]
    texts: Vec<String>,
}

impl Command for InvokeEmbeddings {
    const NAME: &'static str = "invoke-embeddings";
    const ABOUT: &'static str = "Turn texts into vectors";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut socket = session.socket().await?;
        let vectors = vectors(&mut socket, &self.flow.flow_id, &self.texts).await?;
        socket.close().await;
        let all = Value::from(vectors.clone());
        session.out.show(&all, || {
            let lines = self.texts.iter().zip(&vectors);
            let lines = lines.map(|(text, vector)| format!("{text}: {vector}"));
            lines.collect::<Vec<_>>().join("\n")
        })
    }
}

/// The vector of each text.
pub(super) async fn vectors(
    socket: &mut Socket,
    flow: &str,
    texts: &[String],
) -> Result<Vec<Value>> {
    let reply = socket
        .ask(&Call::in_flow(flow, "embeddings", json!({"texts": texts})))
        .await?;
    let vectors = list(&reply, "vectors").to_vec();
    if vectors.len() == texts.len() {
        Ok(vectors)
    } else {
        Err(Error::Protocol("not one vector a text".to_owned()))
    }
}
