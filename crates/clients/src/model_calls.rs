//! Calls of models that no run of the agent makes: the agent's ledger reserves them where a budget of the key or the workspace
//! is set, and counts all of them. While no agent of ours is hosted, calls are refused where a budget is known to be set, and
//! otherwise neither reserved nor counted. Calls of a run are left alone: the run counts them itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tg_mesh::{Cx, Mesh, TaskKind, warn_of};
use tg_schemas::msg::{UsageCall, UsageRequest, UsageResponse};
use tg_schemas::processors::agent_manager::{PROCESSOR, USAGE_TOTALS};
use tg_schemas::{CountedBy, Error, ErrorCode, Headers, WorkspaceId, WorkspaceKey, limits};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::caller::Caller;
use crate::neighbours::Neighbours;

/// Operation of the agent's `usage`: reserves a call.
pub const RESERVE: &str = "reserve-call";
/// Operation of the agent's `usage`: counts calls.
pub const SETTLE: &str = "settle-call";
/// What calls are summed up under that are made for a question.
pub const DIRECT: &str = "direct";
/// What calls are summed up under that are made for a record.
pub const DOCUMENTS: &str = "documents";

/// Config type that a process which counts calls has to watch.
pub const WATCHED: &str = "agent";
/// Key of the row in which a workspace says what its budgets are, and the parts of it that bind calls outside of runs.
const OWN: &str = "budget";
const PARTS: [&str; 2] = ["key", "workspace"];
/// How long the agent may take to reserve a call or to count some.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long it is taken for true that the settings of the agent bound nothing; and where the agent could not say so.
const FRESH: Duration = Duration::from_secs(30);
const UNSURE: Duration = Duration::from_secs(2);
/// The error of a call that nobody can reserve, and seconds after which the agent may be there.
const AWAY: &str = "a budget is set, and the agent that would reserve the call is not there";
const SOON: u64 = 5;
/// Workspaces, and models, that are remembered; one more, and all are forgotten.
const KEEP: usize = 1024;
/// Calls that wait to be counted. Those beyond are not counted, and the log says so.
const WAITING: usize = 4096;
/// How long a call waits for others to be counted with it.
const TOGETHER: Duration = Duration::from_millis(250);
/// Pauses after which calls are counted once more that could not be; then they are given up.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];
/// How long a call, and the last of all, may take when the process stops.
const LAST: Duration = Duration::from_secs(1);

/// As whom the ledger knows the sender of a message: its API key, else its user; empty: nobody who is known.
pub fn key_of(headers: &Headers) -> String {
    let user = headers.user_id.as_deref().unwrap_or_default();
    match headers.credential.as_deref() {
        Some(known) if known.starts_with("key:") => known.to_owned(),
        _ if user.is_empty() => String::new(),
        _ => format!("user:{user}"),
    }
}

/// What a call takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Took {
    /// The model; empty: not known.
    pub model: String,
    /// Tokens that go in.
    pub in_token: i64,
    /// Tokens that come out.
    pub out_token: i64,
    /// Of those that go in, what the provider had kept.
    pub cache_read: i64,
    /// Tokens that the provider keeps from then on.
    pub cache_write: i64,
    /// Billionths of a dollar that the provider says it cost.
    pub nanodollars: Option<u64>,
}

/// Counts the calls of models that a process makes. Cheap to clone.
#[derive(Clone)]
pub struct ModelCalls(Arc<Inner>);

struct Inner {
    /// Whether calls are bounded in a workspace, as the agent said last, and until when that is believed; by the key of the workspace.
    said: Mutex<BTreeMap<String, (Instant, bool)>>,
    /// Which model answered where one was asked for.
    answered: Mutex<BTreeMap<String, String>>,
    waiting: mpsc::Sender<Waiting>,
}

/// A call that is to be counted.
struct Waiting {
    workspace: WorkspaceId,
    generation: i64,
    call: UsageCall,
}

/// Remembers something within the bound.
fn put<T>(all: &Mutex<BTreeMap<String, T>>, name: &str, what: T) {
    let mut all = all.lock();
    if all.len() >= KEEP && !all.contains_key(name) {
        all.clear();
    }
    all.insert(name.to_owned(), what);
}

impl ModelCalls {
    /// For the handlers of a process. Counts in the background until the process stops.
    pub fn start(mesh: &Mesh) -> Self {
        let (waiting, queue) = mpsc::channel(WAITING);
        let calls = Self(Arc::new(Inner {
            said: Mutex::default(),
            answered: Mutex::default(),
            waiting,
        }));
        let counting = calls.clone();
        let with = mesh.clone();
        mesh.spawn(TaskKind::Closing, async move {
            counting.count(&with, queue).await;
        });
        calls
    }

    /// A model is about to be asked for a message, which is likely to take this much; `likely.model` is the one that was asked
    /// for. Returns what the call is counted with afterwards; `None`: nobody counts it, or a run of the agent does.
    ///
    /// # Errors
    /// A budget refuses the call (`busy`, with a pause), or one is set and the agent cannot reserve the call now (`busy` as well
    /// where no process hosts it).
    pub async fn begin(&self, cx: &Cx, likely: Took) -> Result<Option<ModelCall>, Error> {
        let counted = cx.counted();
        let Some(workspace) = cx.scope.workspace.clone() else {
            return Ok(None);
        };
        let is_counted = Neighbours::of(&cx.mesh).keep_runs()
            && counted != Some(CountedBy::Run)
            && !cx.id.is_empty();
        if !is_counted {
            return Ok(None);
        }
        if !cx.mesh.presence().hosted(PROCESSOR.id) {
            return match counted.is_none() && self.is_bound(cx) {
                true => Err(Error::new(ErrorCode::Busy, AWAY).after(SOON)),
                false => Ok(None),
            };
        }
        let asked = likely.model.clone();
        let named = self.0.answered.lock().get(&asked).cloned();
        let (key, of) = match counted {
            Some(_) => (String::new(), DOCUMENTS),
            None => (key_of(&cx.headers), DIRECT),
        };
        let call = UsageCall {
            id: cx.id.to_string(),
            key,
            of: of.to_owned(),
            expires_ms: i64::try_from(cx.deadline.millis()).unwrap_or(i64::MAX),
            ..row(Took {
                model: named.unwrap_or_default(),
                ..likely
            })
        };
        let reserved = match counted.is_none() && self.may_bind(cx) {
            true => self.reserve(cx, (&workspace, &call)).await?,
            false => false,
        };
        Ok(Some(ModelCall {
            calls: self.clone(),
            mesh: cx.mesh.clone(),
            workspace,
            generation: cx.workspace_key().generation(),
            began: Instant::now(),
            asked,
            reserved,
            likely: Some(call),
        }))
    }

    /// Whether a budget of the key or the workspace may be set.
    fn may_bind(&self, cx: &Cx) -> bool {
        let said = self.said_of(cx.workspace_key().as_str());
        own_binds(cx) || said.is_none_or(|(until, bound)| bound || Instant::now() >= until)
    }

    /// Whether one is known to be set: by the workspace itself, or as the agent said last.
    fn is_bound(&self, cx: &Cx) -> bool {
        let said = self.said_of(cx.workspace_key().as_str());
        own_binds(cx) || said.is_some_and(|(_, bound)| bound)
    }

    fn said_of(&self, key: &str) -> Option<(Instant, bool)> {
        self.0.said.lock().get(key).copied()
    }

    /// Whether the ledger has reserved a call. One that could not say so is not waited for a second time when the call is counted.
    async fn reserve(
        &self,
        cx: &Cx,
        (workspace, call): (&WorkspaceId, &UsageCall),
    ) -> Result<bool, Error> {
        let topic = USAGE_TOTALS.of_workspace(workspace);
        let caller = Caller::<UsageRequest, UsageResponse>::within(cx, Ok(topic)).at_most(TIMEOUT);
        let request = UsageRequest {
            operation: RESERVE.to_owned(),
            calls: vec![call.clone()],
            ..UsageRequest::default()
        };
        let key = cx.workspace_key();
        let answer = match caller.last(&request).await {
            Ok(answer) => answer,
            Err(error) if cx.cancel.is_cancelled() || cx.deadline.passed() => return Err(error),
            Err(error) => {
                if self.is_bound(cx) && !is_of_before(&error) {
                    return Err(error);
                }
                // Where nothing is known to be bounded, models answer also while the agent cannot.
                warn_of!(cx, %error, "a call of a model is not reserved");
                self.believe(key.as_str(), false, UNSURE);
                return Ok(false);
            }
        };
        self.believe(key.as_str(), answer.bound, FRESH);
        match answer.refused.as_str() {
            "" => Ok(true),
            why => {
                let pause = u64::try_from(answer.retry_after).unwrap_or(0);
                Err(Error::new(ErrorCode::Busy, why).after(pause))
            }
        }
    }

    /// Remembers whether calls are bounded in a workspace.
    fn believe(&self, key: &str, bound: bool, span: Duration) {
        put(&self.0.said, key, (Instant::now() + span, bound));
    }

    fn later(&self, waiting: Waiting) {
        if self.0.waiting.try_send(waiting).is_err() {
            tracing::warn!("a call of a model is not counted: too many wait");
        }
    }

    /// Counts calls until the process stops, and then those that wait.
    async fn count(&self, mesh: &Mesh, mut queue: mpsc::Receiver<Waiting>) {
        let stopping = mesh.stopping().clone();
        // Those that are being counted stay here until they are: counted twice, a call counts once.
        let mut held = Vec::new();
        let counts = async {
            while let Some(first) = queue.recv().await {
                held.push(first);
                gather(&mut held, &mut queue).await;
                self.settle(mesh, &held, &PAUSES).await;
                held.clear();
            }
        };
        stopping.run_until_cancelled(counts).await;
        // Calls that are under way then are counted until the process leaves the mesh.
        let under_way = async {
            loop {
                fill(&mut held, &mut queue);
                self.settle(mesh, &held, &[]).await;
                held.clear();
                match queue.recv().await {
                    Some(next) => held.push(next),
                    None => break,
                }
            }
        };
        mesh.shutdown().run_until_cancelled(under_way).await;
        fill(&mut held, &mut queue);
        let rest = self.settle(mesh, &held, &[]);
        let _ = tokio::time::timeout(LAST, rest).await;
    }

    async fn settle(&self, mesh: &Mesh, all: &[Waiting], pauses: &[Duration]) {
        let mut by: BTreeMap<(WorkspaceId, i64), Vec<UsageCall>> = BTreeMap::new();
        for one in all {
            let of = (one.workspace.clone(), one.generation);
            by.entry(of).or_default().push(one.call.clone());
        }
        for (of, calls) in by {
            let mut pauses = pauses.iter();
            while let Err(error) = self.tell(mesh, (&of.0, of.1), calls.clone()).await {
                let pause = pauses.next().filter(|_| error.code().is_transient());
                let Some(pause) = pause else {
                    let (workspace, calls) = (of.0.as_str(), calls.len());
                    tracing::warn!(workspace, calls, %error, "calls of models are not counted");
                    break;
                };
                tokio::time::sleep(*pause).await;
            }
        }
    }

    async fn tell(
        &self,
        mesh: &Mesh,
        (workspace, generation): (&WorkspaceId, i64),
        calls: Vec<UsageCall>,
    ) -> Result<(), Error> {
        let caller = Caller::of_workspace(mesh, USAGE_TOTALS, workspace)
            .at_most(TIMEOUT)
            .in_generation(workspace, generation);
        let request = UsageRequest {
            operation: SETTLE.to_owned(),
            calls,
            ..UsageRequest::default()
        };
        let answer = caller.last(&request).await?;
        let key = WorkspaceKey::new(workspace.as_str(), generation);
        self.believe(key.as_str(), answer.bound, FRESH);
        Ok(())
    }
}

/// Whether it was an agent of an earlier release that was asked, whose ledger knows runs only.
fn is_of_before(error: &Error) -> bool {
    error.code() == ErrorCode::BadRequest && error.message.starts_with("operation: ")
}

/// Whether the workspace itself says of keys or all that they are bounded. A row that cannot be read may say so.
fn own_binds(cx: &Cx) -> bool {
    let own = cx.config().get(cx.workspace(), WATCHED, OWN);
    own.is_some_and(|row| says_bounds(&row))
}

fn says_bounds(row: &str) -> bool {
    let Ok(row) = serde_json::from_slice::<Value>(row.as_bytes()) else {
        return true;
    };
    let bounds = |bound: &Value| bound.as_f64().is_some_and(|most| most > 0.0);
    PARTS.iter().any(|part| match row.get(part) {
        Some(Value::Object(part)) => part.values().any(bounds),
        _ => false,
    })
}

/// Adds those that wait, as many as are counted at once.
fn fill(held: &mut Vec<Waiting>, queue: &mut mpsc::Receiver<Waiting>) {
    while held.len() < limits::USAGE_CALLS {
        match queue.try_recv() {
            Ok(next) => held.push(next),
            Err(_) => break,
        }
    }
}

/// Adds those that are counted with the first. They are waited for, unless as many as are counted at once wait already: else more calls
/// could come than are counted.
async fn gather(held: &mut Vec<Waiting>, queue: &mut mpsc::Receiver<Waiting>) {
    fill(held, queue);
    if held.len() < limits::USAGE_CALLS {
        tokio::time::sleep(TOGETHER).await;
        fill(held, queue);
    }
}

fn row(took: Took) -> UsageCall {
    UsageCall {
        model: took.model,
        in_token: took.in_token,
        out_token: took.out_token,
        cache_read: took.cache_read,
        cache_write: took.cache_write,
        nanodollars: took.nanodollars.and_then(|nano| i64::try_from(nano).ok()),
        ..UsageCall::default()
    }
}

/// A call under way. One that is dropped before it was counted counts as much as it was likely to take: else whoever leaves early
/// would pay nothing.
pub struct ModelCall {
    calls: ModelCalls,
    mesh: Mesh,
    workspace: WorkspaceId,
    generation: i64,
    began: Instant,
    /// The model that was asked for.
    asked: String,
    reserved: bool,
    /// `None` once it was counted.
    likely: Option<UsageCall>,
}

impl ModelCall {
    /// Counts what it took. What was reserved for it is free when this returns; else it is counted in the background.
    pub async fn settle(&mut self, took: Took) {
        let Some(likely) = self.likely.take() else {
            return;
        };
        if !took.model.is_empty() {
            put(&self.calls.0.answered, &self.asked, took.model.clone());
        }
        self.count(UsageCall {
            id: likely.id,
            key: likely.key,
            of: likely.of,
            ..row(took)
        })
        .await;
    }

    async fn count(&self, call: UsageCall) {
        let counted = self.counted(call);
        let of = (&counted.workspace, counted.generation);
        // The process leaves the mesh once its handlers have ended: what is left to the background then may come too late.
        let stops = self.mesh.stopping().is_cancelled();
        if self.reserved || stops {
            let told = self.calls.tell(&self.mesh, of, vec![counted.call.clone()]);
            let most = match stops {
                true => LAST,
                false => TIMEOUT,
            };
            if let Ok(Ok(())) = tokio::time::timeout(most, told).await {
                return;
            }
        }
        self.calls.later(counted);
    }

    /// The model has written so much by now: the call takes this where it is left from here on. Until it says which model answers,
    /// it is taken for the one that was asked for.
    pub fn wrote(&mut self, out_token: i64) {
        let Some(likely) = &mut self.likely else {
            return;
        };
        likely.out_token = out_token;
        if likely.model.is_empty() {
            likely.model.clone_from(&self.asked);
        }
    }

    /// Counts as much as it was likely to take.
    pub async fn settle_as_likely(&mut self) {
        if let Some(likely) = self.likely.take() {
            self.count(likely).await;
        }
    }

    fn counted(&self, call: UsageCall) -> Waiting {
        Waiting {
            workspace: self.workspace.clone(),
            generation: self.generation,
            call: UsageCall {
                duration_ms: i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX),
                ..call
            },
        }
    }
}

impl Drop for ModelCall {
    fn drop(&mut self) {
        if let Some(likely) = self.likely.take() {
            self.calls.later(self.counted(likely));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_bounds_calls_outside_of_runs_by_key_and_workspace_only() {
        for (row, bounds) in [
            ("{", true),
            ("{}", false),
            (r#"{"tokens": 5, "session": {"tokens": 5}}"#, false),
            (r#"{"key": {}, "workspace": {"per": "month"}}"#, false),
            (r#"{"key": {"tokens": 0}}"#, false),
            (r#"{"key": {"tokens": 1}}"#, true),
            (r#"{"workspace": {"per": "month", "dollars": 0.5}}"#, true),
        ] {
            assert_eq!(says_bounds(row), bounds, "{row}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_wait_for_others_unless_there_are_enough() {
        let (waiting, mut queue) = mpsc::channel(WAITING);
        let push = |many: usize| {
            for _ in 0..many {
                let sent = waiting.try_send(Waiting {
                    workspace: WorkspaceId::new("w").unwrap(),
                    generation: 0,
                    call: UsageCall::default(),
                });
                assert!(sent.is_ok());
            }
        };
        let began = Instant::now();
        let (mut held, most) = (Vec::new(), limits::USAGE_CALLS);
        push(2 * most + 1);
        for _ in 0..2 {
            held.clear();
            gather(&mut held, &mut queue).await;
            assert_eq!((held.len(), began.elapsed()), (most, Duration::ZERO));
        }
        held.clear();
        gather(&mut held, &mut queue).await;
        assert_eq!(held.len(), 1);
        // The clock stands still but for what is waited for.
        assert_ne!(began.elapsed(), Duration::ZERO);
    }

    #[test]
    fn a_key_comes_before_its_user() {
        let of = |user: &str, credential: &str| {
            key_of(&Headers {
                user_id: Some(user.to_owned()),
                credential: Some(credential.to_owned()),
                ..Headers::default()
            })
        };
        assert_eq!(of("rita", "key:k"), "key:k");
        assert_eq!(of("rita", "token"), "user:rita");
        assert_eq!(of("", "token"), "");
    }
}
