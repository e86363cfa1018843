//! `tg audit-isolation`: tries every operation of every endpoint from one workspace on another, in four roles, and says
//! what of the other was shown, changed, or told by an answer or its time.
//!
//! What there is to try comes from the description that the gateway itself gives, so nothing that it serves is left out.
//! Each operation is tried twice: about a workspace that is there and about one that is not, which must look the same.

mod body;
mod doors;
mod probe;
mod report;
mod scratch;
mod verdict;

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use self::body::{Request, Things, request};
use self::doors::{Gate, Trial, Way};
use self::probe::{Answer, Asker};
use self::report::Report;
use self::scratch::{OWN_FLOW, Scratch};
use self::verdict::{Fault, gap, is_told, judge};
use crate::args::{Gateway, Options};
use crate::client::{Error, Http, Result};
use crate::registry::Command;
use crate::session::Session;

/// Pairs of requests where times looked different.
const AGAIN: usize = 25;
/// How often a difference of times must show before it is one.
const TWICE: usize = 2;

/// Arguments of `tg audit-isolation`.
#[derive(Debug, Args)]
pub struct AuditIsolation {
    #[command(flatten)]
    gateway: Gateway,
    /// Blueprint of the flows that are started for it
    #[arg(long, default_value = "everything", value_name = "NAME")]
    blueprint: String,
    /// Leave the two workspaces and their users
    #[arg(long)]
    keep: bool,
}

impl Command for AuditIsolation {
    const NAME: &'static str = "audit-isolation";
    const ABOUT: &'static str =
        "Try every operation from one workspace on another, and say what got through";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let me = http.iam(json!({"operation": "whoami"})).await;
        let me = me.map_err(|error| Error::Check(format!("not an administrator: {error}")))?;
        let anybody = Options {
            token: None,
            ..session.options.clone()
        };
        let anybody = Http::new(&anybody, session.interrupt())?;
        if anybody.iam(json!({"operation": "whoami"})).await.is_ok() {
            let why = "this gateway asks for no key: everybody is an administrator of everything";
            return Err(Error::Check(why.to_owned()));
        }
        let description = http.get_text("openapi.yaml", &[]).await?;
        let trials = doors::of(&description.1)?;
        session.out.talk(format!(
            "{} operations, tried as {}.",
            trials.len(),
            me.pointer("/user/username")
                .and_then(Value::as_str)
                .unwrap_or("administrator")
        ));
        let mut scratch = Scratch::named(http);
        let audited = audit(&self.blueprint, &mut scratch, &trials, session).await;
        if !self.keep {
            let removed = scratch.remove().await;
            if let Err(error) = removed {
                session
                    .out
                    .talk(format!("Not all that was made for it is removed: {error}"));
            }
        }
        let report = audited?;
        let shown = serde_json::to_value(&report).unwrap_or_default();
        session.out.lay(&shown, |width| report.text(width))?;
        match report.faults() {
            0 => Ok(()),
            many => Err(Error::Check(format!(
                "{many} faults in {} tries",
                report.cells.len()
            ))),
        }
    }
}

async fn audit(
    blueprint: &str,
    scratch: &mut Scratch,
    trials: &[Trial],
    session: &mut Session,
) -> Result<Report> {
    let interrupt = session.interrupt();
    let mut askers = scratch
        .make(blueprint, &session.options, &interrupt)
        .await?;
    let before = scratch.state().await?;
    let mut report = Report::default();
    let bar = session.out.progress("Trying", Some(trials.len() as u64));
    for trial in trials {
        bar.inc(1);
        let mut times = (Vec::new(), Vec::new());
        // What anybody may is the same for each role, and guesses at passwords are counted.
        let roles = if trial.gate == Gate::Public {
            1
        } else {
            askers.len()
        };
        for asker in askers.iter_mut().take(roles) {
            for named in [true, false] {
                if !is_tried(trial, named) {
                    continue;
                }
                one(trial, named, scratch, asker, &mut times, &mut report).await?;
            }
        }
        by_time(trial, scratch, &askers, times, &mut report).await?;
    }
    bar.finish_and_clear();
    for asker in askers {
        asker.close().await;
    }
    for (before, after) in before.into_iter().zip(scratch.state().await?) {
        if let Some(what) = difference(&before.1, &after.1) {
            report.changed.push(format!("{}{what}", after.0));
        }
    }
    Ok(report)
}

/// Where two values differ first, and in what.
fn difference(before: &Value, after: &Value) -> Option<String> {
    match (before, after) {
        _ if before == after => None,
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys());
            keys.into_iter().find_map(|key| {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned();
                let inner =
                    difference(&of(one).unwrap_or_default(), &of(other).unwrap_or_default());
                inner.map(|rest| format!(".{key}{rest}"))
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(at, (one, other))| {
                difference(one, other).map(|rest| format!("[{at}]{rest}"))
            })
        }
        _ => {
            let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            Some(format!(": {} before, {} now", short(before), short(after)))
        }
    }
}

/// Whether a trial has such a form: pages are about nothing, and paths of a flow are about the one that they name.
fn is_tried(trial: &Trial, named: bool) -> bool {
    match &trial.way {
        Way::Page(_) | Way::Auth(_) => named,
        // What passes by in one's own workspace has no end.
        Way::Get(path, query) if path.contains("/export/") => named || !query.is_empty(),
        _ => named || trial.gate != Gate::Public,
    }
}

/// The flow of a path: of the other workspace where that is named, else the asker's own.
fn ask(trial: &Trial, named: bool, things: &Things) -> Request {
    let flow = if named {
        things.name.as_str()
    } else {
        OWN_FLOW
    };
    request(trial, things, named, flow)
}

/// One role at one operation, over REST and over a socket.
async fn one(
    trial: &Trial,
    named: bool,
    scratch: &Scratch,
    asker: &mut Asker,
    times: &mut (Vec<Duration>, Vec<Duration>),
    report: &mut Report,
) -> Result<()> {
    let (other, absent) = (&scratch.other, &scratch.absent);
    let there = asker.rest(&ask(trial, named, other)).await?;
    let never = asker.rest(&ask(trial, named, absent)).await?;
    if named {
        times.0.push(there.took);
        times.1.push(never.took);
    }
    note(
        trial,
        (asker.role, "rest", named),
        scratch,
        (&there, &never),
        report,
    );
    let workspace = |things: &Things| named.then(|| things.workspace.clone());
    let (of_other, of_absent) = (workspace(other), workspace(absent));
    let there = asker
        .frame(&ask(trial, named, other), of_other.as_deref())
        .await?;
    let never = asker
        .frame(&ask(trial, named, absent), of_absent.as_deref())
        .await?;
    if let (Some(there), Some(never)) = (there, never) {
        note(
            trial,
            (asker.role, "socket", named),
            scratch,
            (&there, &never),
            report,
        );
    }
    Ok(())
}

fn note(
    trial: &Trial,
    who: (&'static str, &'static str, bool),
    scratch: &Scratch,
    (there, never): (&Answer, &Answer),
    report: &mut Report,
) {
    let fault = judge(
        trial,
        who.2,
        &scratch.marker,
        (&scratch.other, there),
        (&scratch.absent, never),
    );
    report.add(trial, who, there.status, fault);
}

/// Looks again, and more closely, where times differ.
async fn by_time(
    trial: &Trial,
    scratch: &Scratch,
    askers: &[Asker],
    (mut there, mut never): (Vec<Duration>, Vec<Duration>),
    report: &mut Report,
) -> Result<()> {
    let name = format!("{} {}", trial.door, trial.operation);
    // Guesses at passwords are counted: many would be refused, each with its own time to wait.
    let may_repeat = !there.is_empty() && trial.gate != Gate::Public;
    let Some(asker) = askers.last().filter(|_| may_repeat) else {
        return Ok(());
    };
    let mut told = 0;
    while told < TWICE && is_told(&mut there, &mut never) {
        told += 1;
        (there, never) = (Vec::new(), Vec::new());
        for _ in 0..AGAIN {
            there.push(asker.rest(&ask(trial, true, &scratch.other)).await?.took);
            never.push(asker.rest(&ask(trial, true, &scratch.absent)).await?.took);
        }
    }
    let far = gap(&mut there, &mut never).as_secs_f64() * 1000.0;
    report
        .gaps_ms
        .insert(name.trim_end().to_owned(), (far * 10.0).round() / 10.0);
    if is_told(&mut there, &mut never) {
        report.add(
            trial,
            (asker.role, "rest", true),
            0,
            Some(Fault::ExistenceTimed),
        );
    }
    Ok(())
}
