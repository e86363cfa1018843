//! Who changed what, who was let do what and who was refused is told to administrators, survives a kill, and holds nothing
//! secret; who floods pushes nobody else's out.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Server, client, tg_as};

use crate::edge::{first_key, iam, with_keys};
use crate::world::{Bus, on_both_buses};

/// Patience only.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What the audit answers; status and body.
async fn asked(server: &Server, key: &str, mut ask: Value) -> Result<(u16, Value)> {
    ask["operation"] = json!("list-events");
    let url = format!("{}api/v1/audit", server.url());
    let response = client()?.post(url).bearer_auth(key).json(&ask).send();
    let response = response.await?;
    Ok((response.status().as_u16(), response.json().await?))
}

/// All entries, page by page.
async fn events(server: &Server, key: &str, mut ask: Value) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    loop {
        let (status, page) = asked(server, key, ask.clone()).await?;
        ensure!(
            status == 200 && page.get("error").is_none(),
            "{status} {page}"
        );
        all.extend(page["entries"].as_array().context("no entries")?.clone());
        match page["next"].as_str() {
            Some(next) => ask["after"] = json!(next),
            None => return Ok(all),
        }
    }
}

/// Waits until something is told.
async fn until_told(
    server: &Server,
    key: &str,
    ask: Value,
    is: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let looked = async {
        loop {
            let all = events(server, key, ask.clone()).await?;
            if let Some(found) = all.iter().find(|one| is(one)) {
                return anyhow::Ok(found.clone());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let found = tokio::time::timeout(TIMEOUT, looked).await;
    found.with_context(|| format!("never told: {ask}"))?
}

/// Status of a request.
async fn post(server: &Server, token: Option<&str>, path: &str, body: Value) -> Result<u16> {
    let request = client()?.post(format!("{}api/v1/{path}", server.url()));
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    Ok(request.json(&body).send().await?.status().as_u16())
}

/// Nothing of these is in any file of the directory of data, nor in a text.
fn holds_none(server: &Server, secrets: &[&str], text: &str) -> Result<()> {
    let mut files = 0;
    for entry in std::fs::read_dir(server.data())? {
        let path = entry?.path();
        let named = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !named.starts_with("iam.sqlite") {
            continue;
        }
        files += 1;
        let kept = std::fs::read(&path)?;
        let kept = String::from_utf8_lossy(&kept);
        for secret in secrets {
            ensure!(!kept.contains(secret), "{secret} is in {named}");
        }
    }
    ensure!(files > 0, "nothing was looked at");
    let log = server.log();
    for secret in secrets {
        ensure!(!text.contains(secret), "{secret} is told");
        ensure!(!log.contains(secret), "{secret} is logged");
    }
    Ok(())
}

/// A user with a key; both ids, and the key.
async fn user(
    server: &Server,
    admin: &str,
    name: &str,
    home: &str,
) -> Result<(String, String, String)> {
    let user = json!({"username": name, "password": "Geheim-77-right", "roles": ["reader"]});
    let made = iam(
        server,
        admin,
        json!({"operation": "create-user", "workspace": home, "user": user}),
    );
    let id = made.await?["user"]["id"]
        .as_str()
        .context("no user")?
        .to_owned();
    let key = json!({"user_id": id, "name": "laptop"});
    let made = iam(
        server,
        admin,
        json!({"operation": "create-api-key", "key": key}),
    )
    .await?;
    let text = |value: &Value| value.as_str().map(str::to_owned).context("no key");
    let (key_id, key) = (
        text(&made["api_key"]["id"])?,
        text(&made["api_key_plaintext"])?,
    );
    Ok((id, key_id, key))
}

async fn every_change_is_told_and_survives_a_kill(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let launch = || with_keys().data(data.path()).over(broker.as_ref());
    let server = launch().ready().await?;
    let admin = first_key(&server).await?;
    let acme = json!({"operation": "create-workspace", "workspace_record": {"id": "acme"}});
    iam(&server, &admin, acme).await?;
    let (id, key_id, _) = user(&server, &admin, "ada", "acme").await?;
    let roles = json!({"operation": "update-user", "user_id": id, "user": {"roles": ["writer"]}});
    iam(&server, &admin, roles).await?;
    // At once after the answer.
    server.kill9().await?;
    let server = launch().ready().await?;
    let ask = json!({"workspace": "acme", "kind": "change"});
    let all = events(&server, &admin, ask).await?;
    let told: Vec<(&str, &str)> = all
        .iter()
        .map(|one| {
            (
                one["operation"].as_str().unwrap_or(""),
                one["target"].as_str().unwrap_or(""),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("iam/create-workspace", "acme"),
            ("iam/create-user", id.as_str()),
            ("iam/create-api-key", key_id.as_str()),
            ("iam/update-user", id.as_str()),
        ]
    );
    assert_eq!(
        all[3]["changes"],
        json!({"roles": {"before": ["reader"], "after": ["writer"]}})
    );
    assert_eq!(all[1]["changes"]["password"], json!({"after": "new"}));
    ensure!(all.iter().all(|one| one["actor"].is_string()), "{all:?}");
    let credential = all[3]["credential"].as_str().context("no credential")?;
    ensure!(credential.starts_with("key:"), "{credential}");
    // By what the gateway says of the same request.
    let request = all[3]["request-id"].clone();
    let first = events(&server, &admin, json!({"kind": "change"})).await?;
    assert_eq!(first[0]["operation"], "iam/bootstrap");
    ensure!(request.is_string(), "{request}");
    Ok(())
}

async fn every_decision_is_told_and_nothing_secret(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let admin = first_key(&server).await?;
    let (id, key_id, key) = user(&server, &admin, "ada", "default").await?;
    let login = async |name: &str, password: &str| {
        let ask = json!({"username": name, "password": password});
        post(&server, None, "auth/login", ask).await
    };
    assert_eq!(login("ada", "Geheim-77-wrong").await?, 401);
    // A password where the name belongs.
    assert_eq!(login("Geheim-77-slipped", "x").await?, 401);
    assert_eq!(login("ada", "Geheim-77-right").await?, 200);
    let listing = json!({"operation": "list", "type": "prompt"});
    let unknown = "tg_Geheim77unknownkey00000000000000";
    assert_eq!(
        post(&server, Some(unknown), "config", listing.clone()).await?,
        401
    );
    assert_eq!(
        post(
            &server,
            Some("no.Geheim-77.token"),
            "config",
            listing.clone()
        )
        .await?,
        401
    );
    assert_eq!(post(&server, None, "config", listing.clone()).await?, 401);
    for _ in 0..3 {
        assert_eq!(
            post(&server, Some(&key), "config", listing.clone()).await?,
            200
        );
    }
    let put = json!({"operation": "put", "values": [{"type": "x", "key": "k", "value": "Geheim-77-value"}]});
    assert_eq!(post(&server, Some(&key), "config", put.clone()).await?, 403);
    assert_eq!(post(&server, Some(&admin), "config", put).await?, 200);

    let is = |key: &'static str, value: &str| {
        let value = value.to_owned();
        move |one: &Value| one[key] == value.as_str()
    };
    let by = json!({"actor": id});
    let read = until_told(&server, &admin, by.clone(), is("operation", "config/list")).await?;
    assert_eq!(
        (&read["kind"], &read["workspace"]),
        (&json!("read"), &json!("default"))
    );
    assert_eq!(read["credential"], format!("key:{key_id}"));
    let counted = async {
        let all = events(&server, &admin, by.clone()).await?;
        let reads = all.iter().filter(|one| one["operation"] == "config/list");
        anyhow::Ok(reads.filter_map(|one| one["count"].as_i64()).sum::<i64>())
    };
    assert_eq!(counted.await?, 3);
    let refused = until_told(&server, &admin, by, is("kind", "refused")).await?;
    assert_eq!(
        (&refused["operation"], &refused["reason"]),
        (&json!("config/put"), &json!("no-capability"))
    );
    let allowed = json!({"kind": "allowed"});
    let allowed = until_told(&server, &admin, allowed, is("operation", "config/put")).await?;
    assert_eq!(
        (&allowed["target-kind"], &allowed["target"]),
        (&json!("config"), &json!("x/k"))
    );
    let strangers = json!({"kind": "stranger"});
    for reason in ["bad-credential", "no-credential"] {
        until_told(&server, &admin, strangers.clone(), is("reason", reason)).await?;
    }
    let failed = until_told(&server, &admin, strangers.clone(), is("target", &id)).await?;
    assert_eq!(
        (&failed["operation"], &failed["address"]),
        (&json!("iam/login"), &json!("127.0.0.1"))
    );
    let came = until_told(&server, &admin, json!({"kind": "login"}), is("actor", &id)).await?;
    assert_eq!(came["operation"], "iam/login");
    let all = events(&server, &admin, json!({})).await?;
    // The hash of a key is no key; the start of one is no more than listings show.
    holds_none(
        &server,
        &["Geheim-77", "Geheim77", &key, &admin],
        &json!(all).to_string(),
    )
}

/// What is granted counts within a second, not with the answer.
async fn once_granted(server: &Server, key: &str, ask: Value) -> Result<Vec<Value>> {
    let end = Instant::now() + TIMEOUT;
    while asked(server, key, ask.clone()).await?.0 == 403 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    events(server, key, ask).await
}

async fn who_may_not_sees_nothing_and_who_may_sees_their_own(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let admin = first_key(&server).await?;
    let acme = json!({"operation": "create-workspace", "workspace_record": {"id": "acme"}});
    iam(&server, &admin, acme.clone()).await?;
    let (id, _, key) = user(&server, &admin, "ada", "acme").await?;
    let own = json!({"workspace": "acme"});
    for ask in [json!({}), own.clone(), json!({"workspace": "default"})] {
        assert_eq!(asked(&server, &key, ask).await?.0, 403);
    }
    let grant = json!({"capability": "audit:read", "workspace": "acme"});
    let grant = json!({"operation": "add-user-grant", "user_id": id, "grant": grant});
    iam(&server, &admin, grant).await?;
    let seen = once_granted(&server, &key, own.clone()).await?;
    ensure!(!seen.is_empty(), "nothing is seen");
    ensure!(
        seen.iter().all(|one| one["workspace"] == "acme"),
        "{seen:?}"
    );
    for ask in [json!({}), json!({"workspace": "default"})] {
        assert_eq!(asked(&server, &key, ask).await?.0, 403);
    }
    // Of a workspace that had the name before, only who sees everything sees something.
    let delete = json!({"operation": "delete-workspace", "workspace_record": {"id": "acme"}});
    iam(&server, &admin, delete).await?;
    iam(&server, &admin, acme).await?;
    let (id, _, key) = user(&server, &admin, "eve", "acme").await?;
    let grant = json!({"capability": "admin", "workspace": "acme"});
    let grant = json!({"operation": "add-user-grant", "user_id": id, "grant": grant});
    iam(&server, &admin, grant).await?;
    let seen = once_granted(&server, &key, own.clone()).await?;
    // With its quotes: ids have such letters, too.
    let names = json!(seen).to_string();
    ensure!(!seen.is_empty() && !names.contains("\"ada\""), "{names}");
    let whole = json!(events(&server, &admin, own).await?).to_string();
    ensure!(whole.contains("\"ada\""), "{whole}");
    Ok(())
}

async fn the_command_shows_it(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let (url, admin) = (server.url(), first_key(&server).await?);
    let (id, _, key) = user(&server, &admin, "ada", "default").await?;
    let args = [
        "show-audit",
        "-w",
        "default",
        "--kind",
        "change",
        "--since",
        "1h",
    ];
    let shown = tg_as(&url, &admin, "", &args).await?;
    shown
        .expect("iam/create-user")?
        .expect(&id)?
        .refuse("Geheim")?;
    let json = tg_as(&url, &admin, "", &[&args[..], &["--json"]].concat()).await?;
    let entries: Value = serde_json::from_str(&json.stdout)?;
    ensure!(
        entries.as_array().is_some_and(|all| all.len() >= 3),
        "{entries}"
    );
    let none = ["show-audit", "--since", "2090-01-01"];
    tg_as(&url, &admin, "", &none)
        .await?
        .expect("Nothing happened.")?;
    let bad = ["show-audit", "--since", "soon"];
    let bad = tg_as(&url, &admin, "", &bad).await?;
    ensure!(
        bad.code == Some(2) && bad.stderr.contains("since"),
        "{bad:?}"
    );
    let refused = tg_as(&url, &key, "", &["show-audit"]).await?;
    assert_eq!(refused.code, Some(5), "{refused:?}");
    Ok(())
}

async fn a_flood_pushes_nobody_elses_out(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let launch = with_keys().env("THREADGRAPH_IAM__AUDIT_REFUSED_MB", "1");
    let server = launch.over(broker.as_ref()).ready().await?;
    let admin = first_key(&server).await?;
    user(&server, &admin, "ada", "default").await?;
    let before = events(&server, &admin, json!({"kind": "change"})).await?;
    let size = |server: &Server| -> Result<u64> {
        let file = server.data().join("iam.sqlite");
        Ok(std::fs::metadata(file)?.len())
    };
    let (begun, quiet) = (Instant::now(), server.log().lines().count());
    for _ in 0..2_000 {
        assert_eq!(
            post(
                &server,
                Some("tg_nobody"),
                "config",
                json!({"operation": "list"})
            )
            .await?,
            401
        );
    }
    let strangers = json!({"kind": "stranger"});
    until_told(&server, &admin, strangers.clone(), |one| {
        one["count"].as_i64() > Some(1)
    })
    .await?;
    let told = events(&server, &admin, strangers).await?;
    ensure!(told.len() < 100, "{} entries for one stranger", told.len());
    assert_eq!(
        events(&server, &admin, json!({"kind": "change"})).await?,
        before
    );
    ensure!(size(&server)? < 4 << 20, "{} bytes", size(&server)?);
    // Nor do they flood the log: a line in ten seconds, which says how many were left out.
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("iam refused"));
    let (lines, most) = (lines.count(), 2 + begun.elapsed().as_secs() as usize / 10);
    ensure!(
        (1..=most).contains(&lines),
        "{lines} lines of {most}\n{log}"
    );
    let more = log.lines().count() - quiet;
    ensure!(more < 100, "{more} lines for 2,000 refusals\n{log}");
    Ok(())
}

/// What iam refuses is told within a second; a stop does not lose what was refused since.
async fn what_was_refused_last_survives_a_stop(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let launch = || with_keys().data(data.path()).over(broker.as_ref());
    let server = launch().ready().await?;
    let admin = first_key(&server).await?;
    let login = json!({"username": "nobody-of-that-name", "password": "wrong"});
    let status = post(&server, None, "auth/login", login).await?;
    ensure!(status == 401, "{status}");
    // At once after the answer.
    server.terminate().await?;
    let server = launch().ready().await?;
    let all = events(&server, &admin, json!({})).await?;
    let refused = |one: &&Value| one["operation"] == "iam/login" && one["kind"] != "login";
    let told = all.iter().filter(refused).count();
    ensure!(told == 1, "{told}: {all:#?}");
    Ok(())
}

on_both_buses!(
    every_change_is_told_and_survives_a_kill,
    what_was_refused_last_survives_a_stop,
    every_decision_is_told_and_nothing_secret,
    who_may_not_sees_nothing_and_who_may_sees_their_own,
    the_command_shows_it,
    a_flood_pushes_nobody_elses_out,
);
