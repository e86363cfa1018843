//! `tg audit-isolation`: tries every operation of every endpoint from one workspace on another, in four roles, and says
//! what of the other was shown, changed, or told by an answer or its time.
//!
//! What there is to try comes from the descriptions that the gateway itself gives, so nothing that it serves is left out.
//! Each operation is tried twice: about a workspace that is there and about one that is not, which must look the same.

mod body;
mod doors;
mod probe;
mod report;
mod scratch;
mod sockets;
mod state;
mod tap;
mod timed;
mod verdict;

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::body::{Request, Things, request};
use self::doors::{Gate, Trial, Way};
use self::probe::{Answer, Asker};
use self::report::Report;
use self::scratch::{OWN_FLOW, Scratch};
use self::sockets::Direction;
use self::timed::{Times, is_timed};
use self::verdict::{Leak, judge};
use crate::args::{Gateway, Options};
use crate::client::{Error, Http, Result};
use crate::registry::Command;
use crate::session::Session;

/// Pairs of requests where times looked different: each time that they do, until they do no more. A difference is one where
/// it shows every time, the same way. The first few are no more than a glance, as a pair alone tells little.
const RETRIES: [usize; 4] = [5, 25, 25, 25];
/// Pairs of each operation that are timed at least, of all roles together: naming the other workspace, and by ids. A few are
/// taken however long they last, the others within a time.
const PAIRS: usize = 15;
const LEAST_PAIRS: usize = 9;
const PAIRS_WITHIN: Duration = Duration::from_secs(3);

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
        let mut trials = doors::of(&description.1)?;
        let description = http.get_text("asyncapi.yaml", &[]).await?;
        trials.extend(sockets::of(&description.1)?);
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
    let mut report = Report::default();
    tap::listen(trials, scratch, &askers, &mut report).await?;
    scratch.settled().await?;
    scratch.converse().await?;
    let before = scratch.state().await?;
    let bar = session.out.progress("Trying", Some(trials.len() as u64));
    for trial in trials {
        bar.inc(1);
        // What anybody may is the same for each role, and guesses at passwords are counted.
        let roles = if trial.gate == Gate::Public {
            1
        } else {
            askers.len()
        };
        for named in [true, false] {
            if !is_tried(trial, named) {
                continue;
            }
            let mut timed = Timed::default();
            for (role, asker) in askers.iter_mut().enumerate().take(roles) {
                for over in overs(trial) {
                    let form = (*over, named);
                    let took = one(trial, form, scratch, asker, &mut report).await?;
                    timed.note(role, over, took);
                }
            }
            if let Some((role, over)) = timed.last {
                let (form, asker) = ((over, named), &mut askers[role]);
                more_pairs(trial, form, scratch, asker, (timed.times, &mut report)).await?;
            }
        }
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

/// Times of an operation, of all roles that it was timed for, and the last of these.
#[derive(Default)]
struct Timed {
    times: Times,
    last: Option<(usize, &'static str)>,
}

impl Timed {
    fn note(&mut self, role: usize, over: &'static str, took: Option<(Duration, Duration)>) {
        if let Some(took) = took {
            self.times.push(took);
            self.last = Some((role, over));
        }
    }
}

/// Times an operation as often as it takes for a median, and once more where that tells something.
async fn more_pairs(
    trial: &Trial,
    (over, named): (&'static str, bool),
    scratch: &Scratch,
    asker: &mut Asker,
    (mut times, report): (Times, &mut Report),
) -> Result<()> {
    if !timed_once(trial) {
        let pair = pair(trial, (over, named), scratch);
        let began = Instant::now();
        while times.len() < PAIRS && (times.len() < LEAST_PAIRS || began.elapsed() < PAIRS_WITHIN) {
            let turned = times.len() % 2 == 1;
            let Some((there, never)) = answers(asker, over, &pair, turned).await? else {
                break;
            };
            times.push((there.took, never.took));
            report.timed(over == FRAME, named, 1);
        }
    }
    report.timing(trial, (named, timed_once(trial)), &times);
    Ok(())
}

/// Whether an operation is not repeated for its times: guesses at passwords and codes are counted, and many would be refused,
/// each with its own time to wait.
fn timed_once(trial: &Trial) -> bool {
    trial.gate == Gate::Public && !matches!(trial.way, Way::Page(_))
}

/// What is asked about what is there, and about what is not.
fn pair(
    trial: &Trial,
    (over, named): (&str, bool),
    scratch: &Scratch,
) -> [(Request, Option<String>); 2] {
    [&scratch.other, &scratch.absent].map(|things| {
        let workspace = (named && over == FRAME).then(|| things.workspace.clone());
        (ask(trial, named, things), workspace)
    })
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
        Way::Upgrade(Direction::Live, _) => named,
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

/// As frames of the socket of many calls.
const FRAME: &str = "socket";

/// How a trial is asked for.
fn overs(trial: &Trial) -> &'static [&'static str] {
    match trial.way {
        Way::Upgrade(..) => &["upgrade"],
        Way::Resume => &[FRAME],
        _ => &["rest", FRAME],
    }
}

/// One role at one operation, over REST or as a frame; and again, and more closely, where times differ. The times of the pair, if
/// they may tell anything.
async fn one(
    trial: &Trial,
    (over, named): (&'static str, bool),
    scratch: &Scratch,
    asker: &mut Asker,
    report: &mut Report,
) -> Result<Option<(Duration, Duration)>> {
    let pair = pair(trial, (over, named), scratch);
    let Some((there, never)) = answers(asker, over, &pair, false).await? else {
        return Ok(None);
    };
    let took = (there.took, never.took);
    let fault = judge(
        trial,
        named,
        &scratch.marker,
        (&scratch.other, &there),
        (&scratch.absent, &never),
    );
    let who = (asker.role, over, named);
    report.add(trial, who, there.status, fault);
    if !is_timed(trial, named, (&pair[0].0, &pair[1].0), &there) {
        return Ok(None);
    }
    let mut times = Times::default();
    times.push(took);
    report.timed(over == FRAME, named, 1);
    if timed_once(trial) {
        return Ok(Some(took));
    }
    let mut told = times.told();
    for pairs in RETRIES {
        let Some(longer) = told else {
            break;
        };
        times = Times::default();
        for at in 0..pairs {
            if let Some((there, never)) = answers(asker, over, &pair, at % 2 == 1).await? {
                times.push((there.took, never.took));
            }
        }
        report.timed(over == FRAME, named, pairs);
        told = times.told().filter(|now| *now == longer);
    }
    report.gap(trial, (over, named), times.gap());
    if told.is_some() {
        report.add(trial, who, 0, Some(Leak::ExistenceTimed));
    }
    Ok(Some(took))
}

/// What is said about what is there, and about what is not; nothing where a trial has no such form. Which of both is asked about
/// first is turned round: the first may warm what the second finds warm.
async fn answers(
    asker: &mut Asker,
    over: &str,
    pair: &[(Request, Option<String>); 2],
    turned: bool,
) -> Result<Option<(Answer, Answer)>> {
    let (first, second) = match turned {
        true => (&pair[1], &pair[0]),
        false => (&pair[0], &pair[1]),
    };
    let first = answer(asker, over, first).await?;
    let second = answer(asker, over, second).await?;
    let both = first.zip(second);
    Ok(both.map(|(first, second)| match turned {
        true => (second, first),
        false => (first, second),
    }))
}

async fn answer(
    asker: &mut Asker,
    over: &str,
    (request, workspace): &(Request, Option<String>),
) -> Result<Option<Answer>> {
    if over != FRAME {
        return asker.rest(request).await.map(Some);
    }
    asker.frame(request, workspace.as_deref()).await
}
