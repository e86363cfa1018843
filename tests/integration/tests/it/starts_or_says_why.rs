//! What keeps a process from starting is told once, in words that say what to do: a port or a data directory that another
//! one has, a mistake in the settings.

use std::os::unix::fs::PermissionsExt;

use anyhow::{Result, ensure};
use tg_testkit::process::{Launch, Server};
use tg_testkit::services::SERVICES;
use tg_testkit::shared_node::VirtualHost;

use crate::world::Bus;

/// Starts one that must not come up; what it said.
async fn refused(launch: Launch, code: i32) -> Result<String> {
    let (ended, log) = launch.spawn().await?.ended().await?;
    ensure!(ended == Some(code), "{ended:?}\n{log}");
    let last = log.lines().last().unwrap_or_default().to_owned();
    Ok(last)
}

/// The process that runs is not disturbed.
async fn goes_on(mut server: Server) -> Result<()> {
    server.wait_ready().await?;
    let code = server.terminate().await?;
    ensure!(code == Some(0), "{code:?}");
    Ok(())
}

async fn port_taken(bus: Bus) -> Result<()> {
    let (server, _node) = crate::world::up(bus).await?;
    let port = server.port();
    // A bus of its own: it is the port that is tried.
    let another = bus.broker().await?;
    let second = Launch::up().port(port).over(another.as_ref());
    let told = refused(second, 1).await?;
    let wanted = format!(
        "threadgraph: gateway: another program listens on 127.0.0.1:{port} already; is another threadgraph running? \
         Another address is chosen with --listen"
    );
    ensure!(told == wanted, "{told}");
    goes_on(server).await
}

#[tokio::test]
async fn a_taken_port_is_told_on_the_embedded_bus() -> Result<()> {
    port_taken(Bus::Embedded).await
}

#[tokio::test]
async fn a_taken_port_is_told_over_a_broker() -> Result<()> {
    port_taken(Bus::Rabbit).await
}

#[tokio::test]
async fn a_taken_directory_is_told_with_who_has_it() -> Result<()> {
    let server = Launch::up().ready().await?;
    let told = refused(Launch::up().data(server.data()), 1).await?;
    let wanted = format!(
        "threadgraph: data_dir: {} is in use by another threadgraph (process {}); stop that one, or choose another \
         directory with --data-dir",
        server.data().display(),
        server.pid().unwrap_or_default()
    );
    ensure!(told == wanted, "{told}");
    goes_on(server).await
}

/// What was served under access control is not open to everybody because a flag was left out.
async fn guarded_data(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let path = data.path().display().to_string();
    let launch = || Launch::up().data(data.path()).over(node.as_ref());
    let guarded = || launch().env("THREADGRAPH_AUTH", "iam");
    goes_on(launch().ready().await?).await?;
    goes_on(guarded().ready().await?).await?;
    let wanted = format!(
        "threadgraph: data_dir: {path} was served under access control, and everybody on this machine could do everything \
         with it now; start it with --auth iam, or name it: --open-data {path}"
    );
    let another = tempfile::tempdir()?;
    let named = |path: &str| launch().arg("--open-data").arg(path);
    for open in [launch(), named(&another.path().display().to_string())] {
        let told = refused(open, 1).await?;
        ensure!(told == wanted, "{told}");
    }
    goes_on(guarded().ready().await?).await?;
    goes_on(named(&path).ready().await?).await?;
    let told = refused(launch(), 1).await?;
    ensure!(told == wanted, "naming it once is not for ever: {told}");
    Ok(())
}

#[tokio::test]
async fn guarded_data_is_opened_by_its_name_alone_on_the_embedded_bus() -> Result<()> {
    guarded_data(Bus::Embedded).await
}

#[tokio::test]
async fn guarded_data_is_opened_by_its_name_alone_over_a_broker() -> Result<()> {
    guarded_data(Bus::Rabbit).await
}

/// One service on a bus that nobody else can reach would wait for the others for ever.
#[tokio::test]
async fn some_services_without_a_broker_are_refused_at_once() -> Result<()> {
    let wanted = "setting bus: `serve` needs a broker that processes share (--bus amqp://user:password@host/); \
                  `threadgraph up` runs everything in one process";
    for services in [&["config"][..], &["gateway", "flow", "iam"]] {
        let told = refused(Launch::serve(services, "embedded"), 2).await?;
        ensure!(told == wanted, "{told}");
    }
    let mut whole = Launch::serve(&SERVICES, "embedded").spawn().await?;
    whole.wait_ready().await?;
    let code = whole.terminate().await?;
    ensure!(code == Some(0), "{code:?}");
    Ok(())
}

/// 4: what is wrong with all files of agents is told at once.
async fn bad_agents(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let agents = data.path().join("agents");
    std::fs::create_dir(&agents)?;
    for (file, text) in [
        ("a.yaml", "name: zoe\nmodel: m1\n"),
        ("b.yaml", "name: zoe\nmodel: m1\n"),
        ("c.yaml", "name: a b\nmodel: m1\n"),
        ("d.yaml", "name: d\nmodel: m9\n"),
    ] {
        std::fs::write(agents.join(file), text)?;
    }
    let launch = Launch::up().data(data.path()).over(node.as_ref());
    let launch = launch.env("THREADGRAPH_SESSIONS__ALLOWED_MODELS", "m1");
    let (ended, log) = launch.spawn().await?.ended().await?;
    ensure!(ended.is_some_and(|code| code != 0), "{ended:?}\n{log}");
    for told in [
        "b.yaml: name: 'zoe' is the name of the agent in a.yaml",
        "c.yaml: name: must have at most",
        "d.yaml: model: 'm9' is not one of the allowed models",
    ] {
        ensure!(log.contains(told), "{told}: {log}");
    }
    Ok(())
}

#[tokio::test]
async fn line_004_bad_files_of_agents_are_told_at_once_on_the_embedded_bus() -> Result<()> {
    bad_agents(Bus::Embedded).await
}

#[tokio::test]
async fn line_004_bad_files_of_agents_are_told_at_once_over_a_broker() -> Result<()> {
    bad_agents(Bus::Rabbit).await
}

/// Also one that listens for metrics, and settings that say nothing.
#[tokio::test]
async fn mistakes_in_settings_are_told_alike() -> Result<()> {
    let server = Launch::up().ready().await?;
    let taken = format!("127.0.0.1:{}", server.port());
    let node = VirtualHost::new().await?;
    let second = Launch::serve(&["tool"], &node.url()).env("THREADGRAPH_METRICS__LISTEN", &taken);
    let told = refused(second, 1).await?;
    ensure!(
        told.starts_with("threadgraph: metrics.listen: another program listens on")
            && told.ends_with("metrics.listen"),
        "{told}"
    );
    for (variable, value, wanted) in [
        (
            "THREADGRAPH_LOG__FILTER",
            "blah=blub",
            "setting log.filter: must be levels (error, warn, info, debug, trace, off), also by module, e.g. \
             info,tg_mesh=debug",
        ),
        (
            "THREADGRAPH_METRICS__LISTEN",
            "0.0.0.0:9100",
            "setting metrics.listen: must be a loopback address and port, e.g. 127.0.0.1:9100",
        ),
    ] {
        let told = refused(Launch::up().env(variable, value), 2).await?;
        ensure!(told == wanted, "{told}");
    }
    for filter in ["debug", "warn,tg_mesh=trace", "info,lapin=off"] {
        let server = Launch::up()
            .env("THREADGRAPH_LOG__FILTER", filter)
            .ready()
            .await?;
        drop(server);
    }
    Ok(())
}

#[tokio::test]
async fn a_data_directory_is_its_owners_alone() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("deep/data");
    let server = Launch::up().data(&data).ready().await?;
    let mode = std::fs::metadata(&data)?.permissions().mode();
    ensure!(mode & 0o777 == 0o700, "{mode:o}");
    goes_on(server).await
}

/// One that speaks otherwise than the process that keeps the configuration finds nobody: it says where it looked.
#[tokio::test]
async fn another_mode_is_told() -> Result<()> {
    let node = VirtualHost::new().await?;
    let keeps = Launch::serve(&["config"], &node.url())
        .arg("--mode")
        .arg("interop");
    let _keeps = keeps.spawn().await?;
    let reads = Launch::serve(&["graph"], &node.url()).spawn().await?;
    let url = node.url();
    let address = url.replace("guest:guest@", "");
    let begun = std::time::Instant::now();
    loop {
        let log = reads.log();
        if let Some(line) = log.lines().find(|line| line.contains("cannot be read")) {
            for part in [address.as_str(), "native", "prefix=\"nt\""] {
                ensure!(line.contains(part), "{part}: {line}");
            }
            ensure!(!log.contains("guest:guest"), "{log}");
            return Ok(());
        }
        ensure!(begun.elapsed().as_secs() < 60, "nothing is told: {log}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
