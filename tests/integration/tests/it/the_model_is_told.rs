//! Where the model is, who chose it, and what is wrong with it: in errors, the log, the doctor and the settings.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Launch, Server, bin_dir, free_port, tg};
use tg_testkit::shared_node::VirtualHost;

use crate::edge::first_key;
use crate::world::{Bus, post, wired};

const QUESTION: &str = "api/v1/flow/default/service/text-completion";

async fn on(bus: Bus, launch: Launch) -> Result<(Server, Option<VirtualHost>)> {
    let node = bus.broker().await?;
    let launch = launch.over(node.as_ref());
    Ok((launch.ready().await?, node))
}

/// Waits until the log has a line.
async fn logged(server: &Server, text: &str) -> Result<()> {
    for _ in 0..1_200 {
        if server.log().contains(text) {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    anyhow::bail!("{text:?} is not in the log:\n{}", server.log())
}

/// What the doctor says of the language model, and whether that is well.
async fn doctor(server: &Server) -> Result<(bool, String)> {
    doctor_on(server, "language model").await
}

async fn doctor_on(server: &Server, name: &str) -> Result<(bool, String)> {
    let told = tg(&server.url(), &["doctor", "--json"]).await?;
    let told: Value = serde_json::from_str(&told.stdout).with_context(|| told.stdout.clone())?;
    let checks = told["checks"].as_array().context("checks")?;
    let check = checks.iter().find(|check| check["name"] == name);
    let check = check.with_context(|| told.to_string())?;
    let detail = check["detail"].as_str().context("detail")?;
    Ok((check["ok"] == json!(true), detail.to_owned()))
}

/// What a question about a text is answered with, asked with a key if there is one.
async fn answered(server: &Server, key: &str) -> Result<String> {
    let url = format!("{}{QUESTION}", server.url());
    let mut asked = tg_testkit::process::client()?.post(url);
    if !key.is_empty() {
        asked = asked.bearer_auth(key);
    }
    let asked = asked.json(&json!({"system": "s", "prompt": "hi"}));
    Ok(asked.send().await?.text().await?)
}

/// Who runs the system is told where the provider is, whoever has a key only what is wrong with it.
async fn one_that_is_away(bus: Bus) -> Result<()> {
    let url = format!("http://127.0.0.1:{}/v1", free_port()?);
    let launch = || {
        Launch::up()
            .env("OPENAI_BASE_URL", &url)
            .env("OPENAI_API_KEY", "sk-test-secret-4711")
    };
    let (server, _node) = on(bus, launch()).await?;
    let failure = "the model provider cannot be reached or is failing";
    let about = "set by OPENAI_BASE_URL; model gpt-4.1-mini";
    let cause = "(connection refused); set by OPENAI_BASE_URL; model gpt-4.1-mini";
    let line = format!("cannot reach {url} {cause}");
    logged(&server, &line).await?;
    let reply = answered(&server, "").await?;
    let told = format!("{failure} (connection refused at {url}); {about}");
    assert!(reply.contains(&told), "{reply}");
    assert!(!reply.contains("sk-test"), "{reply}");
    assert_eq!(doctor(&server).await?, (false, line.clone()));
    let log = server.log();
    assert!(log.matches(&line).count() >= 2, "{log}");
    assert!(log.contains(&format!(
        "            {url}; set by OPENAI_BASE_URL; model gpt-4.1-mini"
    )));
    assert!(!log.contains("sk-test"), "{log}");
    drop(server);

    let (server, _node) = on(bus, launch().arg("--auth").arg("iam")).await?;
    let key = first_key(&server).await?;
    let reply = answered(&server, &key).await?;
    assert!(reply.contains(&format!("{failure} {cause}")), "{reply}");
    for hidden in ["127.0.0.1", "http", "sk-test"] {
        assert!(!reply.contains(hidden), "{reply}");
    }
    assert!(server.log().matches(&line).count() >= 2, "{}", server.log());
    Ok(())
}

/// One that nobody chose is offered where it answers, and asked nothing but which models it has.
async fn one_that_is_offered(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(vec![Rule::always(Reply::text("from the Ollama"))]).await?;
    let launch = || Launch::up().env("THREADGRAPH_LLM__LOCAL_URL", model.root());
    let (server, _node) = on(bus, launch()).await?;
    let address = model.root();
    let offer = format!(
        "an Ollama answers at {address}: OLLAMA_HOST={address} OLLAMA_MODEL=scripted threadgraph up   (2 models)"
    );
    logged(&server, &offer).await?;
    let log = server.log();
    assert!(log.contains("  model:    builtin"), "{log}");
    let reply = answered(&server, "").await?;
    assert!(!reply.contains("from the Ollama"), "{reply}");
    assert_eq!(model.count(), 0, "{:?}", model.calls());
    let (good, told) = doctor(&server).await?;
    assert!(good && told.contains("builtin"), "{told}");
    drop(server);

    // Where somebody was chosen nobody else is offered, and where nobody answers neither.
    let nobody = format!("http://127.0.0.1:{}", free_port()?);
    for (name, value) in [
        ("OLLAMA_HOST", model.root()),
        ("THREADGRAPH_LLM__LOCAL_URL", nobody),
    ] {
        let (server, _node) = on(bus, launch().env(name, value)).await?;
        logged(&server, "  vectors:  ").await?;
        let log = server.log();
        assert!(!log.contains("an Ollama answers"), "{log}");
    }
    Ok(())
}

#[tokio::test]
async fn offered_embedded() -> Result<()> {
    one_that_is_offered(Bus::Embedded).await
}

#[tokio::test]
async fn offered_over_rabbitmq() -> Result<()> {
    one_that_is_offered(Bus::Rabbit).await
}

async fn one_that_is_not_listed(bus: Bus) -> Result<()> {
    let rules = || vec![Rule::always(Reply::text("fine"))];
    let model = ScriptedModel::start(rules()).await?;
    let launch = |name: &str| {
        Launch::up()
            // A setting wins over the variables, which lead nowhere.
            .env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
            .env("THREADGRAPH_LLM__URL", model.url())
            .env("THREADGRAPH_LLM__MODEL", name)
    };
    let (server, _node) = on(bus, launch("absent")).await?;
    let about = |name: &str| format!("({}); set by llm.url; model {name}", model.url());
    let line = format!(
        "the model provider does not list the model; it has scripted, scripted-large {}",
        about("absent")
    );
    logged(&server, &line).await?;
    // It is a warning: whoever asks is answered.
    let (status, reply) = post(
        &server.url(),
        QUESTION,
        json!({"system": "s", "prompt": "hi"}),
    )
    .await?;
    assert_eq!(
        (status, &reply["response"]),
        (200, &json!("fine")),
        "{reply}"
    );
    assert_eq!(doctor(&server).await?, (false, line));
    drop(server);
    let (server, _node) = on(bus, launch("scripted")).await?;
    let line = format!(
        "the model provider answers and has the model {}",
        about("scripted")
    );
    assert_eq!(doctor(&server).await?, (true, line));
    assert!(!server.log().contains("does not list the model"));
    Ok(())
}

/// 95: a model that reads too little is not asked, by `/v1` either; one that reads little is warned of.
async fn one_that_reads_little(bus: Bus) -> Result<()> {
    const LITTLE: &str = "the model can read little at once";
    let model = ScriptedModel::start(vec![Rule::always(Reply::text("fine"))]).await?;
    let (server, _node) = on(bus, wired(Launch::up(), &model)).await?;
    let url = server.url();
    let reads = async |window: u64| -> Result<()> {
        let row = json!({"type": "llm-model", "key": "scripted",
            "value": json!({"context_window": window}).to_string()});
        let put = json!({"operation": "put", "values": [row]});
        let (status, reply) = post(&url, "api/v1/config", put).await?;
        anyhow::ensure!(status == 200, "{reply}");
        Ok(())
    };
    // Asks until the answer has a status: a row is seen a moment after it was put there.
    let asked = async |wanted: u16| -> Result<Value> {
        let turns = json!([{"role": "user", "content": "hi"}]);
        let ask = json!({"model": "scripted", "messages": turns});
        for _ in 0..1_200 {
            let (status, reply) = post(&url, "v1/chat/completions", ask.clone()).await?;
            if status == wanted {
                return Ok(reply);
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        anyhow::bail!("never {wanted}:\n{}", server.log())
    };
    reads(15_999).await?;
    let told = asked(422).await?;
    assert_eq!(told["error"]["code"], "context_window_too_small", "{told}");
    reads(32_000).await?;
    asked(200).await?;
    assert!(!server.log().contains(LITTLE), "{}", server.log());
    reads(16_000).await?;
    for _ in 0..1_200 {
        if server.log().contains(LITTLE) {
            return Ok(());
        }
        asked(200).await?;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    anyhow::bail!("no warning:\n{}", server.log())
}

#[tokio::test]
async fn reads_little_embedded() -> Result<()> {
    one_that_reads_little(Bus::Embedded).await
}

#[tokio::test]
async fn reads_little_over_rabbitmq() -> Result<()> {
    one_that_reads_little(Bus::Rabbit).await
}

/// The same of the server that makes vectors: at start in the log, and in the doctor.
async fn one_for_vectors(bus: Bus) -> Result<()> {
    const CHECK: &str = "embeddings provider";
    let model = ScriptedModel::start(vec![Rule::always(Reply::text("fine"))]).await?;
    let launch = |url: &str, name: &str| {
        Launch::up()
            .env("THREADGRAPH_EMBEDDINGS__PROVIDER", "openai")
            .env("THREADGRAPH_EMBEDDINGS__URL", url)
            .env("THREADGRAPH_EMBEDDINGS__KEY", "sk-test-secret-4711")
            .env("THREADGRAPH_EMBEDDINGS__MODEL", name)
    };
    let about = |name: &str| format!("({}); set by embeddings.url; model {name}", model.url());
    let (server, _node) = on(bus, launch(&model.url(), "absent")).await?;
    let line = format!(
        "the embeddings provider does not list the model; it has scripted, scripted-large {}",
        about("absent")
    );
    logged(&server, &line).await?;
    assert_eq!(doctor_on(&server, CHECK).await?, (false, line));
    drop(server);

    let (server, _node) = on(bus, launch(&model.url(), "scripted")).await?;
    let line = format!(
        "the embeddings provider answers and has the model {}",
        about("scripted")
    );
    assert_eq!(doctor_on(&server, CHECK).await?, (true, line));
    assert!(!server.log().contains("does not list the model"));
    drop(server);

    let url = format!("http://127.0.0.1:{}/v1", free_port()?);
    let (server, _node) = on(bus, launch(&url, "m")).await?;
    let line = format!("cannot reach {url} (connection refused); set by embeddings.url; model m");
    logged(&server, &line).await?;
    assert_eq!(doctor_on(&server, CHECK).await?, (false, line));
    assert!(!server.log().contains("sk-test"), "{}", server.log());
    Ok(())
}

#[tokio::test]
async fn for_vectors_embedded() -> Result<()> {
    one_for_vectors(Bus::Embedded).await
}

#[tokio::test]
async fn for_vectors_over_rabbitmq() -> Result<()> {
    one_for_vectors(Bus::Rabbit).await
}

#[tokio::test]
async fn away_embedded() -> Result<()> {
    one_that_is_away(Bus::Embedded).await
}

#[tokio::test]
async fn away_over_rabbitmq() -> Result<()> {
    one_that_is_away(Bus::Rabbit).await
}

#[tokio::test]
async fn not_listed_embedded() -> Result<()> {
    one_that_is_not_listed(Bus::Embedded).await
}

#[tokio::test]
async fn not_listed_over_rabbitmq() -> Result<()> {
    one_that_is_not_listed(Bus::Rabbit).await
}

#[tokio::test]
async fn settings_are_shown_with_where_they_come_from() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("own.toml");
    std::fs::write(&file, "[llm]\nmodel = \"m\"\nkey = \"sk-hidden\"\n")?;
    let run = async |words: &[&str]| -> Result<std::process::Output> {
        let mut command = tokio::process::Command::new(bin_dir()?.join("threadgraph"));
        command
            .args(["settings", "--config"])
            .arg(&file)
            .args(words);
        command.env("THREADGRAPH_LLM__PROVIDER", "openai");
        Ok(command.current_dir(dir.path()).output().await?)
    };
    let told = run(&["--json"]).await?;
    let rows: Vec<Value> = serde_json::from_slice(&told.stdout)?;
    let row = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.map(|row| (row["value"].clone(), row["from"].clone()))
    };
    assert_eq!(row("llm.model"), Some((json!("m"), json!("file"))));
    assert_eq!(row("llm.key"), Some((json!("***"), json!("file"))));
    let provider = Some((json!("openai"), json!("environment")));
    assert_eq!(row("llm.provider"), provider);
    assert_eq!(row("mode"), Some((json!("native"), json!("default"))));
    let text = String::from_utf8(run(&[]).await?.stdout)?;
    assert!(text.contains("\nllm.model = \"m\"   # from file; default \"\"\n"));
    assert!(!text.contains("hidden"));
    let wrong = run(&["--mode", "odd"]).await?;
    assert_eq!(wrong.status.code(), Some(2));
    // A mistake sends people here for the names that there are.
    assert!(String::from_utf8(wrong.stdout)?.contains("\nmode = \"native\""));
    let told = String::from_utf8(wrong.stderr)?;
    assert_eq!(told, "setting mode: must be one of native, interop\n");
    Ok(())
}
