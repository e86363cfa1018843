//! One address for the scripted models of many tests: each call goes to the port that the name of its model ends with.
//!
//! The address of the model is a setting of a process, and the name of the model a parameter of a flow. So a shared system is
//! started with the address of a router, and each test starts its flow with the name of its own model. The router copies bytes
//! as they come: pauses, broken connections and callers that hang up stay what they are.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// What the names of all these models begin with.
const PREFIX: &str = "scripted-";
/// The answer to a question for the list of models: the router knows none.
const NO_MODELS: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\
    Content-Length: 27\r\n\r\n{\"object\":\"list\",\"data\":[]}";
/// The answer to a call of any other model.
const UNKNOWN: &str = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Type: application/json\r\n\
    Content-Length: 54\r\n\r\n{\"error\":{\"message\":\"no scripted model of this name\"}}";

/// The name with which a flow reaches the scripted model at a port.
pub fn name_of(port: u16) -> String {
    format!("{PREFIX}{port}")
}

fn port_of(model: &str) -> Option<u16> {
    model.strip_prefix(PREFIX)?.parse().ok()
}

/// Starts a router as a process that ends when `owner` has ended. Returns its address, for `OPENAI_BASE_URL`.
pub(crate) fn start(program: PathBuf, owner: u32) -> Result<String> {
    // In a group of its own: a runner that ends a test ends its process group.
    let mut router = Command::new(program)
        .args(["--route", &owner.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot start scripted-model: build it first")?;
    let told = router.stdout.take().context("a pipe")?;
    let mut line = String::new();
    BufReader::new(told).read_line(&mut line)?;
    ensure!(line.ends_with('\n'), "the router of models ended");
    Ok(line.trim().to_owned())
}

/// Serves until the process `owner` has ended.
///
/// # Errors
/// The listener fails.
pub async fn route(listener: TcpListener, owner: u32) -> Result<()> {
    let process = PathBuf::from(format!("/proc/{owner}"));
    let ended = async {
        while process.exists() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        served = serve(listener) => served,
        () = ended => Ok(()),
    }
}

async fn serve(listener: TcpListener) -> Result<()> {
    loop {
        let (caller, _) = listener.accept().await?;
        tokio::spawn(async move {
            // The caller or the model broke off: both connections are closed.
            let _ = pass_on(caller).await;
        });
    }
}

/// Reads one request, and copies it and all that follows between its caller and its model.
async fn pass_on(mut caller: TcpStream) -> Result<()> {
    caller.set_nodelay(true)?;
    let (head, body) = read(&mut caller).await?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(port) = asked["model"].as_str().and_then(port_of) else {
        let answer = if head.starts_with("GET ") {
            NO_MODELS
        } else {
            UNKNOWN
        };
        return Ok(caller.write_all(answer.as_bytes()).await?);
    };
    let mut model = TcpStream::connect(("127.0.0.1", port)).await?;
    model.set_nodelay(true)?;
    model.write_all(once(&head).as_bytes()).await?;
    model.write_all(&body).await?;
    copy_bidirectional(&mut caller, &mut model).await?;
    Ok(())
}

/// Head and body of a request.
async fn read(caller: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let end = loop {
        ensure!(caller.read_buf(&mut head).await? > 0, "the caller hung up");
        if let Some(at) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let mut body = head.split_off(end);
    let head = String::from_utf8(head)?;
    let length = length_of(&head);
    while body.len() < length {
        ensure!(caller.read_buf(&mut body).await? > 0, "the caller hung up");
    }
    Ok((head, body))
}

/// Bytes of the body, by the head.
fn length_of(head: &str) -> usize {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.map_or(0, |(_, length)| length.trim().parse().unwrap_or(0))
}

/// The same head for a connection that ends with the answer: the next request of the caller may be for another model.
fn once(head: &str) -> String {
    head.replacen("\r\n", "\r\nConnection: close\r\n", 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reply, Rule, ScriptedModel};

    #[test]
    fn fixed_answers_tell_their_length() {
        for answer in [NO_MODELS, UNKNOWN] {
            let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
            assert_eq!(length_of(head), body.len(), "{answer}");
        }
    }

    #[tokio::test]
    async fn each_call_reaches_the_model_of_its_name() -> Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        tokio::spawn(route(listener, std::process::id()));
        let models = [
            ScriptedModel::start(vec![Rule::always(Reply::text("near"))]).await?,
            ScriptedModel::start(vec![Rule::always(Reply::text("far"))]).await?,
        ];
        let client = crate::process::client()?;
        let ask = async |model: String| {
            let body =
                serde_json::json!({"model": model, "messages": [{"role": "user", "content": "q"}]});
            let asked = client.post(format!("{url}/chat/completions"));
            let answer = asked
                .header("Content-Type", "application/json")
                .body(body.to_string())
                .send()
                .await?;
            anyhow::Ok((answer.status().as_u16(), answer.text().await?))
        };
        for (model, text) in models.iter().zip(["near", "far"]) {
            let (status, answer) = ask(name_of(model.port())).await?;
            assert!(status == 200 && answer.contains(text), "{status} {answer}");
            assert_eq!(model.count(), 1);
        }
        assert_eq!(ask("another".to_owned()).await?.0, 404);
        let listed = client.get(format!("{url}/models")).send().await?;
        assert_eq!(listed.text().await?, r#"{"object":"list","data":[]}"#);
        Ok(())
    }
}
