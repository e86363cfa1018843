//! Programs, each played by a script for the shell.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use tg_mesh::Host;
use tg_testkit::place::Place;

use super::listed::tests::read;
use super::{Asked, CliAgents, Key, Pool, Reply};

/// Longest wait for what must come.
const SOON: Duration = Duration::from_secs(60);
/// Between two looks at a process, which tells nobody of its end.
const LOOK: Duration = Duration::from_millis(20);
/// Speaks as programs that stay do; see there.
const STAYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/programs/stays.sh");

struct World {
    host: Host,
    agents: CliAgents,
    pool: Arc<Pool>,
}

impl World {
    async fn new(listed: &Value, most: usize) -> Self {
        let bus = Place::embedded().connect().await;
        Self {
            host: tg_testkit::place::host(bus).await,
            agents: read(listed).unwrap(),
            pool: Pool::new(most),
        }
    }

    /// With one agent, `a`.
    async fn of(agent: Value) -> Self {
        Self::new(&json!({"a": agent}), 4).await
    }

    async fn ask(&self, session: &str, message: &str) -> Result<Reply, String> {
        let agent = self.agents.of("a", "w").unwrap();
        let asked = Asked {
            agent,
            key: Key {
                workspace: "w".into(),
                user: "u".into(),
                agent: "a".into(),
                session: session.into(),
            },
            message,
            lasts: !session.is_empty(),
        };
        let answer = self.pool.ask(&self.host, &asked);
        tokio::time::timeout(SOON, answer).await.expect("in time")
    }

    async fn text(&self, session: &str, message: &str) -> String {
        self.ask(session, message).await.unwrap().text
    }
}

/// An agent that is a script for the shell; the message is its first argument.
fn once(script: &str) -> Value {
    json!({"engine": "cli", "command": "sh", "args": ["-c", script, "sh"]})
}

fn stays() -> Value {
    json!({"engine": "cli-stream", "command": STAYS})
}

/// The id of the process that answered, and the number of its turn.
fn turn_of(text: &str) -> (Pid, u32) {
    let (pid, turn) = text.split_once(' ').expect(text);
    let pid = pid.parse().ok().and_then(Pid::from_raw);
    (pid.expect(text), turn.parse().expect(text))
}

async fn until_gone(pid: Pid) {
    let gone = async {
        while test_kill_process(pid).is_ok() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(SOON, gone).await.expect("it goes");
}

/// Line 124: what it writes is the answer, without what stands around it.
#[tokio::test]
async fn line_124_the_answer_is_what_a_program_writes() {
    let world = World::of(once(r#"printf '\n  got: %s \n\n' "$1""#)).await;
    assert_eq!(world.text("", "a 'b' $HOME").await, "got: a 'b' $HOME");
    assert_eq!(world.text("", "--help").await, "got:  --help");
    let world = World::of(once("echo beside >&2")).await;
    assert_eq!(world.text("", "m").await, "beside");
    let world = World::of(once("seq 1 400000")).await;
    assert!(world.text("", "m").await.len() <= 1 << 20);
}

/// Line 124: of a failure the caller learns that it is one.
#[tokio::test]
async fn line_124_a_program_that_fails_tells_the_caller_nothing_of_it() {
    let world = World::of(once("echo s3cret >&2; echo s3cret; exit 1")).await;
    assert_eq!(world.ask("", "m").await, Err("the program failed".into()));
    let world = World::of(json!({"engine": "cli", "command": "no-such-program-here"})).await;
    assert_eq!(world.ask("", "m").await, Err("the program failed".into()));
}

/// Line 124: a program that takes too long ends with all that it has started.
#[tokio::test]
async fn line_124_a_program_that_takes_too_long_ends_with_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let mut agent = once(r#"sleep 1000 & echo $! > "$1"; wait"#);
    agent["timeout_seconds"] = json!(5);
    let world = World::of(agent).await;
    let answer = world.ask("", file.to_str().unwrap()).await;
    assert_eq!(answer, Err("timeout after 5s".into()));
    let pid = std::fs::read_to_string(&file).unwrap();
    let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
    until_gone(pid.unwrap()).await;
}

/// What the settings bound binds a program, and what it starts. The bounds come once it runs: it waits for them.
#[tokio::test]
async fn a_program_takes_no_more_than_the_settings_let_it() {
    let bounds = r#"until [ "$(ulimit -d) $(ulimit -t) $(ulimit -c)" = "32768 600 0" ]; do sleep 0.01; done; "#;
    let script =
        format!("{bounds} dd if=/dev/zero of=/dev/null bs=$1 count=1 2>/dev/null && echo fits");
    let mut agent = once(&script);
    agent["memory_mb"] = json!(32);
    agent["cpu_seconds"] = json!(600);
    let world = World::of(agent).await;
    assert_eq!(world.text("", "1M").await, "fits");
    assert_eq!(world.ask("", "64M").await, Err("the program failed".into()));
}

/// Only what the operator names comes from this process.
#[tokio::test]
async fn a_program_has_the_variables_that_are_named() {
    let script = "echo ${CARGO_PKG_NAME:-none} ${PATH:+path}";
    let world = World::of(once(script)).await;
    assert_eq!(world.text("", "m").await, "none path");
    let mut agent = once(script);
    agent["env"] = json!(["CARGO_PKG_NAME"]);
    let world = World::of(agent).await;
    // Set where cargo runs the test; else it is nobody's.
    let own = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "none".into());
    assert_eq!(world.text("", "m").await, format!("{own} path"));
}

/// Line 125: two turns of a session are of one process, and another session has its own.
#[tokio::test]
async fn line_125_a_session_has_one_process() {
    let world = World::of(stays()).await;
    let (first, one) = turn_of(&world.text("s", "m").await);
    let reply = world.ask("s", "m").await.unwrap();
    let (second, two) = turn_of(&reply.text);
    assert_eq!((first, one, two), (second, 1, 2));
    let used = &reply.usage;
    assert_eq!((used.in_token, used.out_token), (7, 3));
    assert_eq!(used.cost.nanodollars, 500_000_000);
    let (other, turn) = turn_of(&world.text("t", "m").await);
    assert!(other != first && turn == 1);
    // Nobody comes back to this one.
    let (alone, _) = turn_of(&world.text("", "m").await);
    until_gone(alone).await;
    // What fails is of no more use; the next turn has another process.
    assert_eq!(
        world.ask("s", "fail").await,
        Err("the program failed".into())
    );
    until_gone(first).await;
    let (third, turn) = turn_of(&world.text("s", "m").await);
    assert!(third != first && turn == 1);
}

/// Line 125: one that was killed is started anew, once.
#[tokio::test]
async fn line_125_a_killed_program_is_started_once_more() {
    let world = World::of(stays()).await;
    let (first, _) = turn_of(&world.text("s", "m").await);
    kill_process(first, Signal::KILL).unwrap();
    let (second, turn) = turn_of(&world.text("s", "m").await);
    assert!(second != first && turn == 1);
    // One that ends at each message fails after the second time.
    assert_eq!(
        world.ask("s", "leave").await,
        Err("the program failed".into())
    );
}

/// One that is new and ends without a word may have done what it was asked: it is not asked twice.
#[tokio::test]
async fn a_new_program_that_ends_without_a_word_is_not_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("left");
    std::fs::write(&file, "").unwrap();
    let program = dir.path().join("program");
    let script = format!("#!/bin/sh\nexec {STAYS} {}\n", file.display());
    std::fs::write(&program, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&program, mode).unwrap();
    let mut agent = stays();
    agent["command"] = json!(program);
    let world = World::of(agent).await;
    let failed = Err("the program failed".into());
    assert_eq!(world.ask("s", "leave").await, failed);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "left\n");
    // One that answered before and then left is followed by one other, which is asked once.
    let _ = turn_of(&world.text("s", "m").await);
    assert_eq!(world.ask("s", "leave").await, failed);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "left\n".repeat(3));
}

/// Line 125: one that nobody asks goes, and nothing stays of its session.
#[tokio::test]
async fn line_125_a_program_that_nobody_asks_goes() {
    let mut agent = stays();
    agent["idle_ttl_seconds"] = json!(1);
    let world = World::of(agent).await;
    let (first, _) = turn_of(&world.text("s", "m").await);
    until_gone(first).await;
    let (second, turn) = turn_of(&world.text("s", "m").await);
    assert!(second != first && turn == 1);
    until_gone(second).await;
}

/// Line 125: where no other may be started, the one goes that nobody has asked for longest.
#[tokio::test]
async fn line_125_the_oldest_program_makes_room() {
    let world = World::new(&json!({"a": stays()}), 2).await;
    let (first, _) = turn_of(&world.text("1", "m").await);
    let (second, _) = turn_of(&world.text("2", "m").await);
    let (third, _) = turn_of(&world.text("3", "m").await);
    until_gone(first).await;
    assert!(test_kill_process(second).is_ok() && test_kill_process(third).is_ok());
}

/// Line 125: the flags that such a program is started with; permissions are skipped where the operator says so alone.
#[tokio::test]
async fn line_125_a_program_is_started_as_the_settings_say() {
    let all = "-p --input-format stream-json --output-format stream-json --verbose --include-partial-messages";
    let world = World::of(stays()).await;
    assert_eq!(world.text("s", "arguments").await, all);
    let mut agent = stays();
    let more = json!({"model": "m", "mcp_config": "f", "args": ["--x"], "system_prompt": "be", "skip_permissions": true});
    agent
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let world = World::of(agent).await;
    let more = "--dangerously-skip-permissions --model m --mcp-config f --x --system-prompt be";
    assert_eq!(world.text("s", "arguments").await, format!("{all} {more}"));
}
