//! Waiting for documents on their way: one line that says how far they are, and goes on when the server comes back.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use serde_json::Value;
use tg_schemas::ErrorCode;
use tokio::time::Instant;

use super::again::Again;
use super::listing;
use super::standing::is_open;
use crate::client::{Error, Http, Result};
use crate::fields::{text, texts};
use crate::layout::cut;
use crate::session::Session;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(300);
/// Between two looks at what is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Flows of which that is looked at.
const FLOWS: usize = 4;
/// Characters of the line: with the sign of life before it, it fits a terminal of 80.
const WIDTH: usize = 77;
/// The name of a document takes at most so many of them.
const NAME: usize = 30;
/// The same where there is a reason to be told.
const SHORT_NAME: usize = 16;
/// Nothing is said of the time left before so much was seen.
const SEEN: Duration = Duration::from_secs(1);

/// A processing that somebody waits for.
#[derive(Debug, Clone)]
pub(super) struct Awaited {
    /// Its id.
    pub(super) id: String,
    /// What people call its document.
    pub(super) name: String,
}

impl Awaited {
    /// One of which only the id is known.
    pub(super) fn by_id(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: id.to_owned(),
        }
    }
}

/// The records of processings once all have come to their end, in the order of what is awaited. A server that goes
/// away is waited for, as long as the session waits for anything.
pub(super) async fn wait(session: &mut Session, awaited: &[Awaited]) -> Result<Vec<Value>> {
    let http = session.http()?;
    let mut line = session.out.living();
    let mut pace = Pace::default();
    let (mut away, mut shown) = (None, String::new());
    let (mut again, mut looked) = (None, Instant::now());
    let mut still = Still::new(Instant::now());
    let outcome = loop {
        match listing::processings(&http).await {
            Ok(all) => {
                away = None;
                let records = match pick(all, awaited) {
                    Ok(records) => records,
                    Err(error) => break Err(error),
                };
                let far = Far::of(&records);
                if looked.elapsed() >= RETRY_DELAY {
                    (again, looked) = (tried_again(&http, &records).await, Instant::now());
                    // What goes on needs no look at the system.
                    if still.since(&far, Instant::now()) >= RETRY_DELAY {
                        still.why = unready(&http).await;
                    }
                }
                let since = still.since(&far, Instant::now());
                if since > session.options.timeout
                    && records.iter().any(is_open)
                    && let Some(why) = &still.why
                {
                    break Err(given_up(since, why));
                }
                let left = pace.left(&far, Instant::now());
                let name = name(awaited, &records);
                shown = match &still.why {
                    Some(why) => cut(
                        &format!("{} stands still: {why}", cut(&name, SHORT_NAME)),
                        WIDTH,
                    ),
                    None => told(&name, &far, left, again.as_ref()),
                };
                line.tell(&mut session.out, &shown);
                if records.iter().all(|record| !is_open(record)) {
                    break Ok(records);
                }
            }
            Err(error) if passes(&error) => {
                let since = *away.get_or_insert_with(Instant::now);
                if since.elapsed() > session.options.timeout {
                    break Err(error);
                }
                let text = format!("the server is away, waiting for it; {shown}");
                line.tell(&mut session.out, &cut(&text, WIDTH));
            }
            Err(error) => break Err(error),
        }
        if let Err(interrupted) = session.pause(PAUSE).await {
            break Err(interrupted);
        }
    };
    line.end();
    outcome
}

/// Since when nothing moved, and why, as far as the system knows.
struct Still {
    far: Option<Far>,
    begun: Instant,
    why: Option<String>,
}

impl Still {
    fn new(now: Instant) -> Self {
        Self {
            far: None,
            begun: now,
            why: None,
        }
    }

    /// How long it has been as far as this.
    fn since(&mut self, far: &Far, now: Instant) -> Duration {
        if self.far.as_ref() != Some(far) {
            *self = Self {
                far: Some(far.clone()),
                ..Self::new(now)
            };
        }
        now.saturating_duration_since(self.begun)
    }
}

/// Why nothing can go on, if the system says that it is not ready.
async fn unready(http: &Http) -> Option<String> {
    match http.get_text("health/ready", &[]).await {
        Ok((503, body)) => lacks(&body),
        _ => None,
    }
}

/// What a system that is not ready says that it lacks.
fn lacks(body: &str) -> Option<String> {
    let body: Value = serde_json::from_slice(body.as_bytes()).ok()?;
    let missing = texts(&body, "missing");
    (!missing.is_empty()).then(|| missing.join(", "))
}

fn given_up(since: Duration, why: &str) -> Error {
    let seconds = since.as_secs();
    Error::Check(format!(
        "Nothing moved for {seconds} s: {why}. What was added goes on by itself once that is over; `tg doctor` says more."
    ))
}

/// Whether the same question will be answered later.
pub(in crate::commands) fn passes(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        Error::Service { .. } => error
            .code()
            .is_some_and(|code| code.is_transient() || code == ErrorCode::Interrupted),
        _ => false,
    }
}

/// What the flows of open records try again: the first that does.
pub(super) async fn tried_again(http: &Http, records: &[Value]) -> Option<Again> {
    let open = records.iter().filter(|record| is_open(record));
    let flows: BTreeSet<String> = open.map(|record| text(record, "flow")).collect();
    for flow in flows.into_iter().take(FLOWS) {
        // Of a gateway that does not tell nothing is said.
        if let Ok(Some(again)) = Again::of(http, &flow).await {
            return Some(again);
        }
    }
    None
}

/// The error of a processing that is not there.
pub(super) fn missing(id: &str) -> Error {
    Error::Missing(format!("there is no processing record '{id}'"))
}

fn pick(all: Vec<Value>, awaited: &[Awaited]) -> Result<Vec<Value>> {
    let mut all: HashMap<String, Value> = all
        .into_iter()
        .map(|record| (text(&record, "id"), record))
        .collect();
    let one = |one: &Awaited| all.remove(&one.id).ok_or_else(|| missing(&one.id));
    awaited.iter().map(one).collect()
}

/// The one document that is open, or how many are.
fn name(awaited: &[Awaited], records: &[Value]) -> String {
    let mut open = awaited
        .iter()
        .zip(records)
        .filter(|(_, record)| is_open(record));
    match (open.next(), open.count(), awaited) {
        (None, _, [one]) | (Some((one, _)), 0, _) => cut(&one.name, NAME),
        (None, ..) => format!("{} documents", awaited.len()),
        (Some(_), more, _) => format!("{} of {} documents", more + 1, awaited.len()),
    }
}

/// How far documents are, all together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Far {
    done: u64,
    total: u64,
    unit: &'static str,
    failed: u64,
    calls: u64,
    /// What part of the whole is done, as far as the whole can be guessed.
    part: f64,
}

impl Far {
    /// Adds up what records tell.
    pub(super) fn of(records: &[Value]) -> Self {
        let sum = |key: &str| -> u64 {
            let told = |record: &Value| {
                let progress = record.get("progress")?;
                progress.get(key).and_then(Value::as_u64)
            };
            records.iter().filter_map(told).sum()
        };
        let units = ["chunks", "pages", "records"].map(|unit| {
            let total = sum(&format!("{unit}-total"));
            (unit, sum(unit).min(total), total)
        });
        let [_, (_, pages, all_pages), _] = units;
        let found = units.into_iter().find(|(_, _, total)| *total > 0);
        let (unit, done, total) = found.unwrap_or_default();
        let share = |done: u64, total: u64| match total {
            0 => 1.0,
            total => done as f64 / total as f64,
        };
        // Pages that are not cut yet will be chunks, too.
        let cut = match unit {
            "chunks" => share(pages, all_pages),
            _ => 1.0,
        };
        Self {
            done,
            total,
            unit,
            failed: sum("records-failed"),
            calls: sum("model-calls"),
            part: match total {
                0 => 0.0,
                total => share(done, total) * cut,
            },
        }
    }
}

impl Far {
    /// `71/363 chunks, 3 failed`; empty where nothing is known.
    pub(super) fn text(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!("{failed} failed"),
        };
        let far = match self.total {
            0 => String::new(),
            total => format!("{}/{total} {}", self.done, self.unit),
        };
        let parts = [far, failed].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// How fast it goes.
#[derive(Debug, Default)]
struct Pace {
    begun: Option<(Instant, f64)>,
}

impl Pace {
    /// The time left, once something can be said of it.
    fn left(&mut self, far: &Far, now: Instant) -> Option<Duration> {
        let (mut begun, mut before) = *self.begun.get_or_insert((now, far.part));
        if far.part < before {
            // There is more to do than was known: all pages were read, and only now are there chunks.
            (begun, before) = *self.begun.insert((now, far.part));
        }
        let (passed, gained) = (now - begun, far.part - before);
        let tells = passed >= SEEN && gained > 0.01 && far.part < 1.0;
        tells.then(|| passed.mul_f64(((1.0 - far.part) / gained).min(1e6)))
    }
}

/// `Policy 71/363 chunks, 20 %, 3 failed, 142 model calls, ~25 s`.
fn told(name: &str, far: &Far, left: Option<Duration>, again: Option<&Again>) -> String {
    let mut parts = Vec::new();
    if far.total > 0 {
        parts.push(format!("{}/{} {}", far.done, far.total, far.unit));
        parts.push(format!("{} %", (far.part * 100.0).floor()));
    } else {
        parts.push("begins".to_owned());
    }
    if far.failed > 0 {
        parts.push(format!("{} failed", far.failed));
    }
    if let Some(again) = again {
        // The reason is worth more than what stands still.
        let again = again.short(chrono::Utc::now().timestamp_millis());
        let text = format!("{} {}; {again}", cut(name, SHORT_NAME), parts[0]);
        return cut(&text, WIDTH);
    }
    match far.calls {
        0 => {}
        1 => parts.push("1 model call".to_owned()),
        calls => parts.push(format!("{calls} model calls")),
    }
    if let Some(left) = left {
        parts.push(rough(left));
    }
    cut(&format!("{name} {}", parts.join(", ")), WIDTH)
}

/// `~25 s`, `~4 min`, `~2 h`.
fn rough(time: Duration) -> String {
    match time.as_secs_f64().ceil() as u64 {
        seconds @ 0..=99 => format!("~{seconds} s"),
        seconds @ 100..=5999 => format!("~{} min", seconds.div_ceil(60)),
        seconds => format!("~{} h", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn far(progress: Value) -> Far {
        Far::of(&[json!({"progress": progress})])
    }

    #[test]
    fn the_line_says_how_far_it_is_and_fits() {
        let policy = far(
            json!({"chunks": 71, "chunks-total": 363, "records-failed": 3, "records": 9,
            "records-total": 10, "model-calls": 142, "pages": 5, "pages-total": 5}),
        );
        let line = told("Policy", &policy, Some(Duration::from_secs(25)), None);
        assert_eq!(
            line,
            "Policy 71/363 chunks, 19 %, 3 failed, 142 model calls, ~25 s"
        );
        assert_eq!(told("p", &far(json!({})), None, None), "p begins");
        let pages = far(json!({"pages": 1, "pages-total": 4}));
        assert_eq!(told("p", &pages, None, None), "p 1/4 pages, 25 %");
        // Half of the pages are cut, and all of their chunks are done.
        let half = far(json!({"pages": 2, "pages-total": 4, "chunks": 9, "chunks-total": 9}));
        assert_eq!(told("p", &half, None, None), "p 9/9 chunks, 50 %");
        let name = name(
            &[awaited("p", &"long ".repeat(30))],
            &[json!({"status": "processing"})],
        );
        let huge = far(
            json!({"chunks": 1_000_000, "chunks-total": 9_999_999, "records-failed": 100_000,
            "model-calls": 9_999_999}),
        );
        let line = told(&name, &huge, Some(Duration::from_secs(86_400)), None);
        assert!(line.chars().count() <= WIDTH, "{line}");
    }

    fn awaited(id: &str, name: &str) -> Awaited {
        Awaited {
            id: id.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn several_documents_are_one_line() {
        let both = [awaited("a", "A"), awaited("b", "B")];
        let record = |id: &str, status: &str| json!({"id": id, "status": status});
        let (done, open) = (record("a", "complete"), record("b", "processing"));
        assert_eq!(name(&both, &[done.clone(), open.clone()]), "B");
        assert_eq!(
            name(&both, &[open.clone(), open.clone()]),
            "2 of 2 documents"
        );
        assert_eq!(name(&both, &[done.clone(), done.clone()]), "2 documents");
        assert_eq!(name(&both[..1], std::slice::from_ref(&done)), "A");
        let picked = pick(vec![open.clone(), done.clone()], &both).expect("both");
        assert_eq!(picked, [done, open]);
        assert!(pick(Vec::new(), &both).is_err());
    }

    #[tokio::test]
    async fn the_time_left_follows_from_what_was_seen() {
        let at = |part: f64| Far {
            part,
            ..Far::default()
        };
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert_eq!(pace.left(&at(0.5), now), None);
        let later = now + Duration::from_secs(10);
        assert_eq!(pace.left(&at(0.5), later), None, "it stands still");
        let left = pace.left(&at(0.75), later).expect("it goes on");
        assert_eq!(left.as_secs(), 10);
        assert_eq!(pace.left(&at(1.0), later), None);
        // More turns up than was known: it is reckoned from there.
        assert_eq!(pace.left(&at(0.1), later), None);
        let left = pace.left(&at(0.55), later + Duration::from_secs(10));
        assert_eq!(left.expect("it goes on").as_secs(), 10);
        assert_eq!(rough(Duration::from_millis(24_400)), "~25 s");
        assert_eq!(rough(Duration::from_secs(200)), "~4 min");
        assert_eq!(rough(Duration::from_secs(7000)), "~2 h");
    }

    #[test]
    fn what_stands_still_is_told_from_what_moves() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let at = |chunks: u64| far(json!({"chunks": chunks, "chunks-total": 9}));
        let mut still = Still::new(now);
        assert_eq!(still.since(&at(1), now + second), Duration::ZERO);
        assert_eq!(still.since(&at(1), now + 5 * second), 4 * second);
        still.why = Some("the disk is full".to_owned());
        assert_eq!(still.since(&at(2), now + 6 * second), Duration::ZERO);
        assert_eq!(still.why, None, "it moved");
        assert_eq!(
            lacks(r#"{"ready": false, "missing": ["the disk is full", "b"]}"#).as_deref(),
            Some("the disk is full, b")
        );
        for other in ["", "busy", r#"{"ready": true, "missing": []}"#] {
            assert_eq!(lacks(other), None, "{other}");
        }
    }

    #[test]
    fn what_passes_is_waited_for() {
        let service = |kind: &str| Error::Service {
            kind: kind.to_owned(),
            message: String::new(),
        };
        assert!(passes(&service(ErrorCode::NobodyServes.as_str())));
        assert!(!passes(&service(ErrorCode::Forbidden.as_str())));
        assert!(!passes(&Error::Interrupted));
    }
}
