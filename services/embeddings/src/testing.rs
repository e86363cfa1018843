//! For tests: a tiny static model and a scripted endpoint, both made on the spot.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Writes a model of four known words with vectors of two numbers below `inner`.
pub(crate) fn write_model(directory: &Path, inner: &str, plain: bool) {
    let directory = directory.join(inner);
    fs::create_dir_all(&directory).unwrap();
    let rows: [f32; 10] = [9.0, 9.0, 1.0, 0.0, 0.9, 0.1, 0.0, 1.0, 0.1, 0.9];
    let bytes: Vec<u8> = rows.iter().flat_map(|part| part.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![5, 2], &bytes).unwrap();
    let name = if plain {
        "embedding.weight"
    } else {
        "embeddings"
    };
    let content = safetensors::serialize([(name, view)], None).unwrap();
    fs::write(directory.join("model.safetensors"), content).unwrap();
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null, "decoder": null,
        "model": {
            "type": "WordLevel", "unk_token": "[UNK]",
            "vocab": {"[UNK]": 0, "pump": 1, "boiler": 2, "treaty": 3, "vienna": 4},
        },
    });
    fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

/// What a scripted server answers: status, headers, body.
pub(crate) type Answer = (u16, String, serde_json::Value);

/// A server on a loopback port that answers each JSON question by a rule.
pub(crate) struct Server {
    /// Its base address.
    pub(crate) url: String,
    /// Path, key and body of each question so far.
    pub(crate) asked: Arc<Mutex<Vec<(String, String, serde_json::Value)>>>,
}

impl Server {
    pub(crate) async fn start(
        rule: impl Fn(usize, &serde_json::Value) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
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

    pub(crate) fn texts(&self) -> usize {
        let asked = self.asked.lock();
        let inputs = asked
            .iter()
            .filter_map(|(_, _, body)| body["input"].as_array());
        inputs.map(Vec::len).sum()
    }
}

async fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<(String, String, serde_json::Value)>>,
    rule: &(dyn Fn(usize, &serde_json::Value) -> Answer + Send + Sync),
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
        let body: serde_json::Value = serde_json::from_slice(&body).ok()?;
        let number = {
            let mut seen = seen.lock();
            seen.push((path, key, body.clone()));
            seen.len()
        };
        let (status, headers, answer) = rule(number, &body);
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n",
            answer.len()
        );
        stream.write_all((head + &answer).as_bytes()).await.ok()?;
    }
}

/// An answer in OpenAI's dialect, in reverse order: a vector of a text is its length and one.
pub(crate) fn openai(body: &serde_json::Value) -> Answer {
    let texts = body["input"].as_array().unwrap().iter().enumerate();
    let mut data: Vec<_> = texts
        .map(|(at, text)| {
            let length = text.as_str().unwrap().len();
            serde_json::json!({"index": at, "embedding": [length, 1.0]})
        })
        .collect();
    data.reverse();
    (200, String::new(), serde_json::json!({ "data": data }))
}
