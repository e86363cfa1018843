//! A server that answers JSON questions by a rule: for clients of HTTP services.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What a scripted server answers: status, headers, body. `None`: it says nothing and holds the connection.
pub type Answer = Option<(u16, String, Value)>;

/// A server on a loopback port that answers each JSON question by a rule.
pub struct Server {
    /// Its base address.
    pub url: String,
    /// Path, key and body of each question so far.
    pub asked: Arc<Mutex<Vec<(String, String, Value)>>>,
}

impl Server {
    /// Starts it; the rule is given the number of the question, from one, and its body. Panics without a port.
    pub async fn start(rule: impl Fn(usize, &Value) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<_>>> = Arc::default();
        let (seen, rule) = (asked.clone(), Arc::new(rule));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, rule) = (seen.clone(), rule.clone());
                tokio::spawn(async move { serve(stream, &seen, &*rule).await });
            }
        });
        Self { url, asked }
    }

    /// Number of texts in all questions so far.
    pub fn texts(&self) -> usize {
        let asked = self.asked.lock();
        let inputs = asked
            .iter()
            .filter_map(|(_, _, body)| body["input"].as_array());
        inputs.map(Vec::len).sum()
    }
}

async fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<(String, String, Value)>>,
    rule: &(dyn Fn(usize, &Value) -> Answer + Send + Sync),
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        let (mut length, mut key) = (0, String::new());
        loop {
            let mut header = String::new();
            stream.read_line(&mut header).await.ok()?;
            let Some((name, value)) = header.trim().split_once(':') else {
                break;
            };
            match name.to_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "authorization" => key = value.trim().to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let body: Value = serde_json::from_slice(&body).ok()?;
        let number = {
            let mut seen = seen.lock();
            seen.push((path, key, body.clone()));
            seen.len()
        };
        let Some((status, headers, answer)) = rule(number, &body) else {
            return std::future::pending().await;
        };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n",
            answer.len()
        );
        stream.write_all((head + &answer).as_bytes()).await.ok()?;
    }
}

/// An answer in OpenAI's dialect, in reverse order: a vector of a text is its length and one.
pub fn openai(body: &Value) -> Answer {
    let texts = body["input"].as_array().unwrap().iter().enumerate();
    let mut data: Vec<_> = texts
        .map(|(at, text)| {
            let length = text.as_str().unwrap().len();
            json!({"index": at, "embedding": [length, 1.0]})
        })
        .collect();
    data.reverse();
    Some((200, String::new(), json!({ "data": data })))
}
