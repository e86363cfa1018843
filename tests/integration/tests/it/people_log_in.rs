//! People log in by password and work by a token, with the official commands as they are and with ours; what ends a
//! session ends it within a second, on requests, sockets and streams.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::official::official_as;
use tg_testkit::process::{Output, Server, client, tg_as};
use tg_testkit::socket::Socket;

use crate::edge::{first_key, iam, with_keys};
use crate::revocation_is_immediate::{export, status};
use crate::terminal::at_a_terminal;
use crate::world::{Bus, on_both_buses};

/// From the answer of what ends a session on.
const BOUND: Duration = Duration::from_secs(1);

/// A command that must work, and its only line.
fn told(ran: &Output) -> Result<String> {
    ensure!(ran.code == Some(0), "{ran:?}");
    Ok(ran.stdout.trim().to_owned())
}

/// A command that must not.
fn refused(ran: &Output, why: &str) -> Result<()> {
    ensure!(ran.code != Some(0), "{ran:?}");
    ensure!(ran.stderr.contains(why), "{why}: {ran:?}");
    Ok(())
}

async fn the_official_commands_do_all_of_it(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let url = server.url();
    let run = async |token: &str, command: &str, args: &[&str]| {
        official_as(&url, token, command, args).await
    };
    let admin = told(&run("", "tg-bootstrap-iam", &[]).await?)?;
    let create = [
        "--username",
        "größe",
        "--password",
        "one",
        "--roles",
        "writer",
    ];
    let id = told(&run(&admin, "tg-create-user", &create).await?)?;
    refused(&run(&admin, "tg-create-user", &create).await?, "duplicate")?;
    run(&admin, "tg-list-users", &[]).await?.expect("größe")?;
    let login = async |password: &str| {
        let args = ["--username", "größe", "--password", password];
        run("", "tg-login", &args).await
    };
    let wrong = login("two").await?;
    refused(&wrong, "HTTP 401: auth failure")?;
    let nobody = ["--username", "nobody", "--password", "one"];
    let nobody = run("", "tg-login", &nobody).await?;
    assert_eq!((nobody.code, &nobody.stderr), (wrong.code, &wrong.stderr));
    let jwt = told(&login("one").await?)?;
    assert_eq!(jwt.matches('.').count(), 2, "{jwt}");
    run(&jwt, "tg-whoami", &[])
        .await?
        .expect("größe")?
        .expect("writer")?;
    run(&jwt, "tg-list-my-workspaces", &[])
        .await?
        .expect("default")?;
    run(&jwt, "tg-show-flows", &[]).await?.refuse("Exception")?;
    refused(&run(&jwt, "tg-list-users", &[]).await?, "HTTP 403")?;

    let change = ["--current", "one", "--new", "two"];
    run(&jwt, "tg-change-password", &change)
        .await?
        .expect("Password changed.")?;
    refused(&run(&jwt, "tg-whoami", &[]).await?, "HTTP 401")?;
    refused(&login("one").await?, "HTTP 401")?;
    let jwt = told(&login("two").await?)?;
    refused(&run(&jwt, "tg-change-password", &change).await?, "HTTP 401")?;
    let temporary = told(&run(&admin, "tg-reset-password", &["--user-id", &id]).await?)?;
    assert_eq!(temporary.len(), 16);
    refused(&run(&jwt, "tg-whoami", &[]).await?, "HTTP 401")?;
    let jwt = told(&login(&temporary).await?)?;
    run(&jwt, "tg-whoami", &[])
        .await?
        .expect("must change password  yes")?;
    run(
        &admin,
        "tg-update-user",
        &["--user-id", &id, "--must-change-password", "no"],
    )
    .await?
    .expect("must-change-pw: no")?
    .expect("enabled   : yes")?;

    let context = [
        "-w",
        "default",
        "--user-context",
        "{\"team\": \"red\"}",
        "--username",
        "größe",
    ];
    let minted = told(&run(&admin, "tg-mint-token", &context).await?)?;
    run(&minted, "tg-whoami", &[]).await?.expect("größe")?;
    refused(&run(&jwt, "tg-mint-token", &context).await?, "HTTP 403")?;
    keys(&url, &admin, &id).await?;

    told(&run(&admin, "tg-disable-user", &["--user-id", &id]).await?)?;
    for token in [&jwt, &minted] {
        refused(&run(token, "tg-whoami", &[]).await?, "HTTP 401")?;
    }
    refused(&login(&temporary).await?, "HTTP 401")?;
    told(&run(&admin, "tg-enable-user", &["--user-id", &id]).await?)?;
    let jwt = told(&login(&temporary).await?)?;
    told(&run(&admin, "tg-delete-user", &["--user-id", &id, "--yes"]).await?)?;
    refused(&run(&jwt, "tg-whoami", &[]).await?, "HTTP 401")?;
    refused(&login(&temporary).await?, "HTTP 401")?;
    run(&admin, "tg-list-users", &[]).await?.refuse("größe")?;
    nothing_secret_is_left(&server, &["one", &temporary, &jwt, &minted])
}

async fn keys(url: &str, admin: &str, user: &str) -> Result<()> {
    let make = [
        "--user-id",
        user,
        "--name",
        "laptop",
        "--expires",
        "2090-01-01",
    ];
    let key = told(&official_as(url, admin, "tg-create-api-key", &make).await?)?;
    official_as(url, &key, "tg-whoami", &[])
        .await?
        .expect("größe")?;
    let bad = [
        "--user-id",
        user,
        "--name",
        "never",
        "--expires",
        "some day",
    ];
    let bad = official_as(url, admin, "tg-create-api-key", &bad).await?;
    refused(&bad, "invalid-argument: key.expires")?;
    let list = official_as(url, admin, "tg-list-api-keys", &["--user-id", user]).await?;
    list.expect("laptop")?.refuse("never")?.refuse(&key)?;
    let reply: Value = client()?
        .post(format!("{url}api/v1/iam"))
        .bearer_auth(admin)
        .json(&json!({"operation": "list-api-keys", "user_id": user}))
        .send()
        .await?
        .json()
        .await?;
    let id = reply["api_keys"][0]["id"].as_str().context("no key")?;
    told(&official_as(url, admin, "tg-revoke-api-key", &["--key-id", id]).await?)?;
    refused(&official_as(url, &key, "tg-whoami", &[]).await?, "HTTP 401")
}

/// Neither in the log nor in any file.
fn nothing_secret_is_left(server: &Server, secrets: &[&str]) -> Result<()> {
    let log = server.log();
    let kept = std::fs::read(server.data().join("iam.sqlite"))?;
    let kept = String::from_utf8_lossy(&kept);
    for secret in secrets.iter().filter(|secret| secret.len() > 8) {
        ensure!(!log.contains(secret), "in the log: {secret}");
        ensure!(!kept.contains(secret), "in the store: {secret}");
    }
    ensure!(!log.contains("pbkdf2"), "a hash is in the log");
    Ok(())
}

/// What is granted counts at once, and what is taken back does not.
async fn granted(url: &str, admin: &str, jwt: &str, id: &str) -> Result<()> {
    let run = async |input: &str, args: &[&str]| tg_as(url, admin, input, args).await;
    let mine = async |args: &[&str]| tg_as(url, jwt, "", args).await;
    let listed = ["list-config-items", "--type", "flow", "-w", "default"];
    assert_eq!(mine(&listed).await?.code, Some(5));
    let group = told(&run("", &["create-group", "readers"]).await?)?;
    let group = group.rsplit(' ').next().context("no id")?.to_owned();
    let grant = [
        "--group-id",
        &group,
        "--capability",
        "config:read",
        "-w",
        "default",
    ];
    told(&run("", &[&["add-grant"][..], &grant].concat()).await?)?;
    let member = ["--group-id", &group, "--user-id", id];
    told(&run("", &[&["add-group-member"][..], &member].concat()).await?)?;
    assert_eq!(mine(&listed).await?.code, Some(0));
    run("", &["list-groups"]).await?.expect("readers")?;
    run("", &["list-group-members", &group])
        .await?
        .expect("ada")?;
    run("", &["list-grants", "--group-id", &group])
        .await?
        .expect("config:read")?;
    run("", &["show-permissions", id])
        .await?
        .expect("config:read")?
        .expect(&group)?;
    mine(&["list-my-workspaces"])
        .await?
        .expect("default")?
        .expect("acme")?;
    told(&run("", &["update-group", &group, "--enabled", "no"]).await?)?;
    assert_eq!(mine(&listed).await?.code, Some(5));
    told(&run("", &["update-group", &group, "--enabled"]).await?)?;
    assert_eq!(mine(&listed).await?.code, Some(0));
    told(&run("", &[&["remove-group-member"][..], &member].concat()).await?)?;
    assert_eq!(mine(&listed).await?.code, Some(5));
    let grant = ["--user-id", id, "--capability", "reader", "-w", "default"];
    told(&run("", &[&["add-grant"][..], &grant].concat()).await?)?;
    assert_eq!(mine(&listed).await?.code, Some(0));
    told(&run("", &[&["remove-grant"][..], &grant].concat()).await?)?;
    assert_eq!(mine(&listed).await?.code, Some(5));
    told(&run("", &["delete-group", &group, "--yes"]).await?)?;
    Ok(())
}

/// What a leaked key signed opens nothing any more, as soon as it is revoked.
async fn revoked(url: &str, admin: &str, id: &str) -> Result<()> {
    let run = async |args: &[&str]| tg_as(url, admin, "", args).await;
    let mint = ["mint-token", "--user-id", id, "-w", "default"];
    let minted = told(&run(&mint).await?)?;
    let who = async |token: &str| tg_as(url, token, "", &["whoami"]).await;
    who(&minted).await?.expect("ada")?;
    let other = run(&["revoke-signing-key", "--key-id", "0123456789abcdef"]).await?;
    refused(&other, "signing key not found")?;
    who(&minted).await?.expect("ada")?;
    run(&["revoke-signing-key", "--all"])
        .await?
        .expect("BEGIN PUBLIC KEY")?;
    assert_eq!(who(&minted).await?.code, Some(5));
    let minted = told(&run(&mint).await?)?;
    who(&minted).await?.expect("ada")?;
    Ok(())
}

async fn our_commands_do_all_of_it(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let url = server.url();
    let admin = first_key(&server).await?;
    let run = async |input: &str, args: &[&str]| tg_as(&url, &admin, input, args).await;
    told(&run("", &["create-workspace", "acme"]).await?)?;
    let id = told(&run("secret word\n", &["create-user", "ada", "-w", "acme"]).await?)?;
    let ran = run("", &["list-users", "--json"]).await?;
    ran.expect(&id)?.refuse("secret word")?;
    let login = async |password: &str| {
        let args = ["login", "--username", "ada"];
        tg_as(&url, "", password, &args).await
    };
    let jwt = told(&login("secret word\n").await?)?;
    let mine = async |args: &[&str]| tg_as(&url, &jwt, "", args).await;
    mine(&["whoami"]).await?.expect("ada")?.expect("acme")?;
    let refused = login("wrong word\n").await?;
    assert_eq!(refused.code, Some(5), "{refused:?}");

    granted(&url, &admin, &jwt, &id).await?;
    let key = [
        "create-api-key",
        "--user-id",
        &id,
        "--name",
        "k",
        "--scopes",
        "config:read",
    ];
    let key = told(&run("", &key).await?)?;
    let scoped = async |args: &[&str]| tg_as(&url, &key, "", args).await;
    let listed = ["list-config-items", "--type", "flow", "-w", "acme"];
    assert_eq!(scoped(&listed).await?.code, Some(0));
    assert_eq!(
        scoped(&["show-library-documents", "-w", "acme"])
            .await?
            .code,
        Some(5)
    );
    assert_eq!(mine(&["show-library-documents"]).await?.code, Some(0));

    let old = run("", &["rotate-signing-key"]).await?;
    old.expect("BEGIN PUBLIC KEY")?;
    mine(&["whoami"]).await?.expect("ada")?;
    let minted = told(&run("", &["mint-token", "--user-id", &id, "-w", "default"]).await?)?;
    tg_as(&url, &minted, "", &["whoami"]).await?.expect("ada")?;
    let changed = tg_as(
        &url,
        &jwt,
        "secret word\nother word\n",
        &["change-password"],
    )
    .await?;
    changed.expect("Password changed.")?.refuse("other word")?;
    for token in [&jwt, &minted] {
        assert_eq!(tg_as(&url, token, "", &["whoami"]).await?.code, Some(5));
    }
    let temporary = told(&run("", &["reset-password", &id]).await?)?;
    told(&login(&format!("{temporary}\n")).await?)?;
    revoked(&url, &admin, &id).await?;
    for command in ["disable-user", "enable-user"] {
        told(&run("", &[command, &id]).await?)?;
    }
    told(
        &run(
            "",
            &["update-user", &id, "--name", "Ada L.", "--enabled", "yes"],
        )
        .await?,
    )?;
    run("", &["list-users", "--json"]).await?.expect("Ada L.")?;
    assert_eq!(run("", &["delete-user", &id]).await?.code, Some(2));
    told(&run("", &["delete-user", &id, "--yes"]).await?)?;
    nothing_secret_is_left(&server, &["secret word", "other word", &temporary, &jwt])
}

async fn what_is_typed_is_not_shown(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let admin = first_key(&server).await?;
    let url = server.url();
    let create = ["create-user", "ada", "-t", &admin];
    let typed = [("Password of ada: ", "Geheimnis 77\r")];
    let made = at_a_terminal(&url, &typed, &create).await?;
    let login = ["login", "--username", "ada"];
    let entered = at_a_terminal(&url, &typed, &login).await?;
    for shown in [&made, &entered] {
        assert_eq!(shown.code, Some(0), "{shown:?}");
        // With what stands before it: ids and tokens have every two digits in them.
        for part in ["Geheimnis", "heim", " 77"] {
            ensure!(!shown.shown.contains(part), "{part}: {shown:?}");
        }
    }
    ensure!(entered.shown.contains("eyJ"), "{entered:?}");
    Ok(())
}

async fn who_guesses_is_slowed_down_whoever_it_is(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let admin = first_key(&server).await?;
    let user = json!({"operation": "create-user", "workspace": "default",
        "user": {"username": "ada", "password": "right"}});
    iam(&server, &admin, user).await?;
    let login = async |name: &str, password: &str| {
        let url = format!("{}api/v1/auth/login", server.url());
        let ask = json!({"username": name, "password": password});
        anyhow::Ok(client()?.post(url).json(&ask).send().await?)
    };
    for name in ["ada", "nobody"] {
        for _ in 0..10 {
            assert_eq!(login(name, "wrong").await?.status(), 401, "{name}");
        }
        let slowed = login(name, "wrong").await?;
        assert_eq!(slowed.status(), 429, "{name}");
        let wait = slowed
            .headers()
            .get("retry-after")
            .context("no Retry-After")?;
        let wait: u64 = wait.to_str()?.parse()?;
        ensure!((1..=31).contains(&wait), "{wait}");
        let told: Value = slowed.json().await?;
        ensure!(
            told["error"]
                .as_str()
                .is_some_and(|text| text.contains("too many")),
            "{told}"
        );
    }
    assert_eq!(
        login("ada", "right").await?.status(),
        429,
        "nor is a right one looked at"
    );
    // Nor is anything computed for what is no password.
    let start = Instant::now();
    let huge = login("other", &"x".repeat(3000)).await?;
    assert_eq!(huge.status(), 401);
    ensure!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    Ok(())
}

async fn sessions_end_at_once(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let admin = first_key(&server).await?;
    let user = json!({"operation": "create-user", "workspace": "default",
        "user": {"username": "ada", "password": "one", "roles": ["writer"]}});
    let made = iam(&server, &admin, user).await?;
    let id = made["user"]["id"].clone();
    for ends in [
        json!({"operation": "reset-password", "user_id": id}),
        json!({"operation": "update-user", "user_id": id, "user": {"enabled": false}}),
        json!({"operation": "disable-user", "user_id": id}),
        json!({"operation": "delete-user", "user_id": id}),
    ] {
        let on = json!({"operation": "update-user", "user_id": id, "user": {"enabled": true}});
        iam(&server, &admin, on).await?;
        let mint = json!({"operation": "mint-token", "user_id": id, "workspace": "default"});
        let jwt = iam(&server, &admin, mint).await?["jwt"].clone();
        let jwt = jwt.as_str().context("no token")?;
        assert_eq!(status(&server, jwt).await?, 200);
        let stream = export(&server, jwt).await?;
        let socket = Socket::connect(&server.url(), jwt).await?;
        let me = socket
            .ask_service("iam", json!({"operation": "whoami"}))
            .await?;
        assert_eq!(me["response"]["user"]["username"], "ada");
        iam(&server, &admin, ends.clone()).await?;
        let ended = Instant::now();
        let last = tokio::time::timeout(BOUND, stream)
            .await
            .with_context(|| format!("the export goes on after {ends}"))??;
        ensure!(last.contains("revoked or has expired"), "{last}");
        while socket.open() {
            ensure!(ended.elapsed() < BOUND, "the socket is open after {ends}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(status(&server, jwt).await?, 401);
    }
    Ok(())
}

/// All that is below a directory and open to others.
fn open_to_others(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        // What comes and goes meanwhile is nobody's secret.
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        if meta.is_dir() {
            open.extend(open_to_others(&path)?);
        } else if meta.permissions().mode() & 0o077 != 0 {
            open.push(path);
        }
    }
    Ok(open)
}

async fn nobody_else_reads_what_is_kept(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let launch = || with_keys().data(data.path()).over(broker.as_ref());
    let mode = |mode: u32| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(data.path(), mode(0o755))?;
    let server = launch().ready().await?;
    let closed = || -> Result<()> {
        let own = data.path().metadata()?.permissions().mode() & 0o777;
        ensure!(own == 0o700, "{own:o}");
        let open = open_to_others(data.path())?;
        ensure!(open.is_empty(), "{open:?}");
        Ok(())
    };
    closed()?;
    server.terminate().await?;
    // As an earlier release left it.
    std::fs::set_permissions(data.path(), mode(0o755))?;
    std::fs::set_permissions(data.path().join("iam.sqlite"), mode(0o644))?;
    let _server = launch().ready().await?;
    closed()
}

on_both_buses!(
    the_official_commands_do_all_of_it,
    nobody_else_reads_what_is_kept,
    our_commands_do_all_of_it,
    what_is_typed_is_not_shown,
    who_guesses_is_slowed_down_whoever_it_is,
);

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    on_both_buses!(sessions_end_at_once);
}
