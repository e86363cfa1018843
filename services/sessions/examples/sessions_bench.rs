//! Prints what a turn and a page of messages take in a session of 10 turns and in one of 10,000, and what 100,000 sessions add to
//! the start and to the memory of a process. Three rounds; the turns of both kinds of session alternate.
//!
//! `cargo run --release -p tg-sessions --example sessions_bench`

use std::future::Future;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tg_schemas::operations::{CompactStrategy, Usage};
use tg_sessions::store::{
    Answer, Asked, NewSession, Owner, SessionStore, Span, SqliteSessions, Surface,
};
use tg_storage::Durability;
use tg_testkit::bench::{ROUNDS, Rounds, headline};

/// Turns of a short session and of a long one.
const SHORT: usize = 10;
const LONG: usize = 10_000;
/// Turns and pages of each kind in a round.
const MEASURED: usize = 500;
/// Messages of a page: the newest.
const PAGE: usize = 50;
/// Sessions of the large store.
const SESSIONS: usize = 100_000;
const WORKSPACE: &str = "w";
const KIB: f64 = 1_024.0;
/// Bytes of a page of memory, as `/proc` counts.
const MEMORY_PAGE: f64 = 4_096.0;

/// A figure, its unit, and what it is to be at most.
type Target = (&'static str, &'static str, f64);
const WRITTEN: Target = ("a turn after 10,000 turns, to one after 10, p95", "x", 1.5);
const READ: Target = ("a page after 10,000 turns, to one after 10, p95", "x", 1.5);
const START: Target = ("the start with 100,000 sessions, to one without", "x", 1.1);
const MEMORY: Target = ("100,000 sessions add", "MiB", 20.0);

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    if let Some(dir) = std::env::args().nth(1) {
        return started(Path::new(&dir)).await;
    }
    println!("{}", headline(1));
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        turns(&mut rounds).await?;
    }
    sessions(&mut rounds).await?;
    rounds.print();
    for (name, unit, most) in [WRITTEN, READ, START, MEMORY] {
        let median = rounds.median(name).ok_or("a figure is missing")?;
        let verdict = if median <= most { "met" } else { "MISSED" };
        println!("  {name}: at most {most} {unit}: {verdict}");
    }
    Ok(())
}

fn open(dir: &Path) -> Result<SqliteSessions, Failure> {
    let (index, root) = (dir.join("index.sqlite"), dir.join("all"));
    Ok(SqliteSessions::open(&index, &root, Durability::Process)?)
}

async fn begin(store: &SqliteSessions, id: &str) -> Result<(), Failure> {
    let new = NewSession {
        id: id.to_owned(),
        owner: Owner {
            surface: Surface::Named,
            agent: "a".to_owned(),
            user: "ann".to_owned(),
        },
        title: None,
        knowledge: Vec::new(),
        strategy: CompactStrategy::Off,
        keep: 0,
        mask: true,
        request: format!("r-{id}"),
        at: 10,
    };
    store.create(WORKSPACE, new).await?;
    Ok(())
}

/// A turn without an agent: the message of the user, and the answer.
async fn turn(store: &SqliteSessions, session: &str, at: usize) -> Result<(), Failure> {
    let asked = Asked {
        request: format!("q{at}"),
        id: format!("{session}-u{at}"),
        content: format!("How far is it from the lamp to the bridge, walk {at}?"),
        at: 1_000,
    };
    let begun = store.begin(WORKSPACE, session, asked).await?;
    let turn = begun.ok_or("there is no such session")?.turn;
    let answer = Answer {
        id: format!("{session}-a{at}"),
        steps: Vec::new(),
        content: format!("It is {at} steps along the river, and some more over the hill."),
        usage: Usage::default(),
        result: "{}".to_owned(),
        loop_window: "[]".to_owned(),
        to_search: false,
        at: 1_000,
    };
    let finished = store.finish(WORKSPACE, session, turn, answer).await?;
    finished.ok_or("the answer was not kept")?;
    Ok(())
}

/// The newest messages of a session of so many turns.
async fn page(store: &SqliteSessions, session: &str, turns: usize) -> Result<(), Failure> {
    let messages = 2 * turns;
    let span = Span {
        after: i64::try_from(messages.saturating_sub(PAGE))?,
        live: false,
        plain: false,
        most: PAGE,
        bytes: usize::MAX,
    };
    let found = store.messages(WORKSPACE, session, span).await?.items.len();
    match found == messages.min(PAGE) {
        true => Ok(()),
        false => Err(format!("{found} messages of {session}").into()),
    }
}

/// Milliseconds that it took.
async fn timed(work: impl Future<Output = Result<(), Failure>>) -> Result<f64, Failure> {
    let since = Instant::now();
    work.await?;
    Ok(since.elapsed().as_secs_f64() * 1_000.0)
}

fn p95(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * 95 / 100]
}

/// Turns and pages, each in a short session and then in the long one.
async fn turns(rounds: &mut Rounds) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let store = open(dir.path())?;
    begin(&store, "long").await?;
    for at in 0..LONG {
        turn(&store, "long", at).await?;
    }
    let short: Vec<String> = (0..MEASURED).map(|n| format!("short-{n}")).collect();
    for session in &short {
        begin(&store, session).await?;
        for at in 0..SHORT {
            turn(&store, session, at).await?;
        }
    }
    let mut taken: [Vec<f64>; 4] = Default::default();
    for (n, session) in short.iter().enumerate() {
        let long = LONG + n;
        taken[0].push(timed(turn(&store, session, SHORT)).await?);
        taken[1].push(timed(turn(&store, "long", long)).await?);
        taken[2].push(timed(page(&store, session, SHORT + 1)).await?);
        taken[3].push(timed(page(&store, "long", long + 1)).await?);
    }
    let [early, late, first, last] = taken.map(p95);
    rounds.add("a turn after 10 turns, p95", "ms", early);
    rounds.add("a turn after 10,000 turns, p95", "ms", late);
    rounds.add(WRITTEN.0, WRITTEN.1, late / early);
    rounds.add("a page after 10 turns, p95", "ms", first);
    rounds.add("a page after 10,000 turns, p95", "ms", last);
    rounds.add(READ.0, READ.1, last / first);
    Ok(())
}

/// A process that opens a store without sessions, and one that opens a store that has many. Both stores have the file of the
/// workspace, or the difference would be that of one more file.
async fn sessions(rounds: &mut Rounds) -> Result<(), Failure> {
    let (empty, full) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let store = open(empty.path())?;
    begin(&store, "s-0").await?;
    if !store.delete(WORKSPACE, "s-0", "delete").await? {
        return Err("the session was not deleted".into());
    }
    drop(store);
    let store = open(full.path())?;
    for n in 0..SESSIONS {
        begin(&store, &format!("s-{n}")).await?;
    }
    drop(store);
    for _ in 0..ROUNDS {
        let (nothing, small) = process(empty.path())?;
        let (all, large) = process(full.path())?;
        rounds.add("start without sessions", "ms", nothing);
        rounds.add("start with 100,000 sessions", "ms", all);
        rounds.add(START.0, START.1, all / nothing);
        rounds.add(MEMORY.0, MEMORY.1, large - small);
    }
    Ok(())
}

/// Starts this program again with a directory: the milliseconds and the MiB that it reports.
fn process(dir: &Path) -> Result<(f64, f64), Failure> {
    let output = Command::new(std::env::current_exe()?).arg(dir).output()?;
    if !output.status.success() {
        let fault = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the process failed ({}): {fault}", output.status).into());
    }
    let told = String::from_utf8(output.stdout)?;
    let mut numbers = told.split_whitespace().map(str::parse::<f64>);
    let took = numbers.next().ok_or("no time was reported")??;
    let memory = numbers.next().ok_or("no memory was reported")??;
    Ok((took, memory))
}

/// Opens a store, looks a session up and lists some, and reports how long the first answer took and what the process holds then.
async fn started(dir: &Path) -> Result<(), Failure> {
    let since = Instant::now();
    let store = open(dir)?;
    store.session(WORKSPACE, "s-0").await?;
    let took = since.elapsed().as_secs_f64() * 1_000.0;
    let owner = Owner {
        surface: Surface::Named,
        agent: "a".to_owned(),
        user: "ann".to_owned(),
    };
    store.sessions(WORKSPACE, owner, None, PAGE).await?;
    let counts = std::fs::read_to_string("/proc/self/statm")?;
    let resident = counts.split(' ').nth(1).ok_or("no resident memory")?;
    let memory = resident.parse::<f64>()? * MEMORY_PAGE / KIB / KIB;
    println!("{took} {memory}");
    Ok(())
}
