//! The scripted model as a process: a deterministic two-step ReAct model for benchmarks and black-box
//! tests. Prints its base address on standard output once it listens.
//!
//! `scripted-model [--port N] [--pieces N] [--delay-ms N] [--tool NAME] [--args JSON] [--text TEXT]`
//!
//! `--text` replaces the dialog: every call is answered with this text.

use std::time::Duration;

use tg_testkit::model::{Options, Reply, Rule, ScriptedModel, cut, two_step_react};

struct Settings {
    port: u16,
    pieces: usize,
    delay: Duration,
    tool: String,
    args: serde_json::Value,
    text: Option<String>,
}

fn settings() -> anyhow::Result<Settings> {
    let mut settings = Settings {
        port: 0,
        pieces: 8,
        delay: Duration::ZERO,
        tool: "calculator".to_owned(),
        args: serde_json::json!({"expression": "6*7"}),
        text: None,
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
            _ => anyhow::bail!("unknown option {name}"),
        }
    }
    Ok(settings)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let settings = settings()?;
    let pieces = settings.pieces;
    let rules = match settings.text {
        Some(text) => {
            let reply = Reply::pieces(cut(&text, pieces)).delayed(settings.delay);
            vec![Rule::always(reply)]
        }
        None => two_step_react(&settings.tool, settings.args, pieces)
            .into_iter()
            .map(|rule| rule.delayed(settings.delay))
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
