//! The model and the prompts.

pub mod describe_image;
pub mod invoke_llm;
pub mod invoke_prompt;
pub mod list_models;
pub mod prompts;
pub mod route;
pub mod token_costs;
pub mod usage;

use serde_json::{Value, json};

use crate::client::{Call, Result};
use crate::fields::text;
use crate::session::Session;

/// What a text service said in the end.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// All text together.
    pub(crate) text: String,
    /// The JSON a prompt gave instead of text.
    pub(crate) object: Option<String>,
    /// The last reply, which holds the usage.
    pub(crate) last: Value,
}

/// Runs a text service. Text is printed as it comes when the request is streamed and the output
/// is not JSON; `field` is where a reply holds its text.
pub(crate) async fn speak(session: &mut Session, call: &Call, field: &str) -> Result<Said> {
    let streamed = call.request["streaming"] == json!(true);
    let live = streamed && !session.out.is_json();
    let mut socket = session.socket().await?;
    let mut replies = socket.start(call).await?;
    let mut said = Said::default();
    loop {
        let reply = match replies.next().await {
            Ok(Some(reply)) => reply,
            Ok(None) => break,
            Err(error) => {
                if live && !said.text.is_empty() {
                    session.out.line("")?;
                }
                return Err(error);
            }
        };
        let piece = text(&reply, field);
        if live {
            session.out.piece(&piece)?;
        }
        said.text.push_str(&piece);
        if let Some(Value::String(object)) = reply.get("object") {
            said.object = Some(object.clone());
        }
        said.last = reply;
    }
    socket.close().await;
    if live && !said.text.is_empty() {
        session.out.line("")?;
    } else if !session.out.is_json() && said.object.is_none() {
        session.out.line(&said.text)?;
    }
    Ok(said)
}

/// The line that `--show-usage` says.
pub(crate) fn usage(last: &Value) -> String {
    let shown = |key: &str| match text(last, key) {
        value if value.is_empty() => "unknown".to_owned(),
        value => value,
    };
    format!(
        "Input tokens: {}  Output tokens: {}  Model: {}",
        shown("in_token"),
        shown("out_token"),
        shown("model"),
    )
}
