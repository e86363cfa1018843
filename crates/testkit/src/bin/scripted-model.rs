//! The scripted model as a process: a deterministic two-step ReAct model for benchmarks and black-box
//! tests. Prints its base address on standard output once it listens.
//!
//! `scripted-model [--port N] [--pieces N] [--delay-ms N] [--tool NAME] [--args JSON] [--text TEXT] [--when PARTS --say TEXT]…`
//!
//! `--text` replaces the dialog: every call is answered with this text. `--when` and `--say` replace it, too: the first pair counts whose
//! parts, between `&&`, are all in the prompt.
//!
//! `scripted-model --route PID` is no model: until the process PID has ended, it passes each call on to the scripted model at the port
//! that the name of the model ends with.

use std::time::Duration;

use tg_testkit::model::{Options, Reply, Rule, ScriptedModel, cut, two_step_react};
use tg_testkit::model_router::route;
use tokio::net::TcpListener;

struct Settings {
    port: u16,
    pieces: usize,
    delay: Duration,
    tool: String,
    args: serde_json::Value,
    text: Option<String>,
    said: Vec<(String, String)>,
    route: Option<u32>,
}

fn settings() -> anyhow::Result<Settings> {
    let mut settings = Settings {
        port: 0,
        pieces: 8,
        delay: Duration::ZERO,
        tool: "calculator".to_owned(),
        args: serde_json::json!({"expression": "6*7"}),
        text: None,
        said: Vec::new(),
        route: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let Some(value) = args.next() else {
            anyhow::bail!("{name} needs a value");
        };
        match name.as_str() {
            "--port" => settings.port = value.parse()?,
            "--pieces" => settings.pieces = value.parse()?,
            "--delay-ms" => settings.delay = Duration::from_millis(value.parse()?),
            "--tool" => settings.tool = value,
            "--args" => settings.args = serde_json::from_str(&value)?,
            "--text" => settings.text = Some(value),
            "--route" => settings.route = Some(value.parse()?),
            "--when" => settings.said.push((value, String::new())),
            "--say" => match settings.said.last_mut() {
                Some((_, text)) => *text = value,
                None => anyhow::bail!("--say needs a --when before it"),
            },
            _ => anyhow::bail!("unknown option {name}"),
        }
    }
    Ok(settings)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let settings = settings()?;
    if let Some(owner) = settings.route {
        let listener = TcpListener::bind(("127.0.0.1", settings.port)).await?;
        println!("http://{}/v1", listener.local_addr()?);
        return route(listener, owner).await;
    }
    let (pieces, delay) = (settings.pieces, settings.delay);
    let reply = |text: &str| Reply::pieces(cut(text, pieces)).delayed(delay);
    let rules = match settings.text {
        Some(text) => vec![Rule::always(reply(&text))],
        None if !settings.said.is_empty() => settings
            .said
            .into_iter()
            .map(|(when, text)| {
                let reply = reply(&text);
                let fits = move |prompt: &str| when.split("&&").all(|part| prompt.contains(part));
                Rule::computed(fits, move |_| reply.clone())
            })
            .collect(),
        None => two_step_react(&settings.tool, settings.args, pieces)
            .into_iter()
            .map(|rule| rule.delayed(delay))
            .collect(),
    };
    let options = Options {
        port: settings.port,
        keep_calls: false,
        ..Options::default()
    };
    let model = ScriptedModel::start_with(options, rules).await?;
    println!("{}", model.url());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
