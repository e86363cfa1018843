//! A scripted model: a real HTTP server on a loopback port that speaks the wire dialects of model
//! providers (OpenAI chat completions and embeddings, Anthropic messages, Ollama chat) and answers by rules.
//!
//! Deterministic, needs no key and no network. It records what it was asked and whether the caller
//! hung up before the answer was complete. It never looks at credentials beyond recording them. It may refuse
//! everything, its list of models included.

mod dialect;
mod obedient;
mod script;
mod serve;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use obedient::{Directive, directives, obedient, obedient_natively};
pub use script::{cut, final_answer, native_call, nonce_of, tool_call, two_step_react};

/// Calls kept for inspection; later ones are only counted.
const KEPT_CALLS: usize = 10_000;

/// In a streamed piece: stands for the moment at which the piece is sent, see [`clock`].
pub const CLOCK: &str = "{clock}";

/// What a text begins with that is a call of a tool by the means of the API, in OpenAI's dialect: a JSON object with `name` and
/// `arguments` follows, in one piece. A model may so call what it was not offered.
pub const CALL: &str = "{call}";

/// Microseconds since the Unix epoch.
pub fn clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}

/// How an answer ends after its last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Usage and the dialect's end mark.
    Complete,
    /// The connection breaks.
    Disconnect,
    /// Nothing more comes, the connection stays open.
    Hang,
}

/// What the model does with a call.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Text in pieces.
    Text {
        /// The pieces, sent one by one when streamed, joined otherwise.
        pieces: Vec<String>,
        /// Pause before each piece.
        delay: Duration,
        /// What happens afterwards.
        end: End,
    },
    /// An HTTP error.
    Status {
        /// Status code.
        code: u16,
        /// Value of the `Retry-After` header in seconds.
        retry_after: Option<u64>,
        /// Body, sent as it is.
        body: String,
    },
    /// The request is read and nothing is ever answered, not even headers.
    Silence,
}

impl Reply {
    /// One complete text in one piece.
    pub fn text(text: impl Into<String>) -> Self {
        Self::pieces([text.into()])
    }

    /// A complete text in the given pieces, without pauses.
    pub fn pieces<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        Self::Text {
            pieces: pieces.into_iter().map(Into::into).collect(),
            delay: Duration::ZERO,
            end: End::Complete,
        }
    }

    /// An HTTP error with a body.
    pub fn status(code: u16, body: impl Into<String>) -> Self {
        Self::Status {
            code,
            retry_after: None,
            body: body.into(),
        }
    }

    /// Too many requests, come back after some seconds.
    pub fn rate_limited(retry_after: u64) -> Self {
        Self::Status {
            code: 429,
            retry_after: Some(retry_after),
            body: r#"{"error":{"message":"slow down","type":"requests"}}"#.to_owned(),
        }
    }

    /// The same text with a pause before each piece.
    pub fn delayed(mut self, pause: Duration) -> Self {
        if let Self::Text { delay, .. } = &mut self {
            *delay = pause;
        }
        self
    }

    /// The same text with another end.
    pub fn ending(mut self, with: End) -> Self {
        if let Self::Text { end, .. } = &mut self {
            *end = with;
        }
        self
    }
}

type Matcher = Arc<dyn Fn(&str) -> bool + Send + Sync>;
type Answerer = Arc<dyn Fn(&str) -> Reply + Send + Sync>;

/// When the prompt text (system and user messages joined) matches, this is the reply.
#[derive(Clone)]
pub struct Rule {
    matches: Matcher,
    reply: Answerer,
    left: Arc<AtomicUsize>,
}

impl Rule {
    /// Applies to every prompt.
    pub fn always(reply: Reply) -> Self {
        Self::computed(|_| true, move |_| reply.clone())
    }

    /// Applies to prompts that contain the text.
    pub fn contains(needle: impl Into<String>, reply: Reply) -> Self {
        let needle = needle.into();
        Self::computed(
            move |prompt| prompt.contains(&needle),
            move |_| reply.clone(),
        )
    }

    /// Applies when `matches` says so; `reply` computes the reply from the prompt.
    pub fn computed(
        matches: impl Fn(&str) -> bool + Send + Sync + 'static,
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self {
            matches: Arc::new(matches),
            reply: Arc::new(reply),
            left: Arc::new(AtomicUsize::new(usize::MAX)),
        }
    }

    /// Applies to that many calls only, then the next rules count.
    pub fn times(self, times: usize) -> Self {
        self.left.store(times, Ordering::SeqCst);
        self
    }

    /// The same rule with a pause before each piece of its replies.
    pub fn delayed(mut self, pause: Duration) -> Self {
        let reply = self.reply;
        self.reply = Arc::new(move |prompt| reply(prompt).delayed(pause));
        self
    }

    fn take(&self, prompt: &str) -> Option<Reply> {
        if !(self.matches)(prompt) {
            return None;
        }
        self.left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                if left == usize::MAX {
                    Some(left)
                } else {
                    left.checked_sub(1)
                }
            })
            .ok()
            .map(|_| (self.reply)(prompt))
    }
}

/// One recorded call.
#[derive(Debug, Clone)]
pub struct Call {
    /// Path of the endpoint, e.g. `/v1/chat/completions`.
    pub path: String,
    /// Request body.
    pub body: Value,
    /// Value of the header that carries the key, if any.
    pub authorization: Option<String>,
    /// Trace context that came with it, if any.
    pub traceparent: Option<String>,
    /// Whether the caller hung up before the answer was complete.
    pub closed_early: bool,
    /// Whether the answer was sent whole.
    pub finished: bool,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    calls: usize,
    closed: usize,
    finished: usize,
}

pub(crate) struct Shared {
    rules: Mutex<Vec<Rule>>,
    refusal: Mutex<Option<Reply>>,
    models: Vec<String>,
    window: u64,
    calls: Mutex<Vec<Call>>,
    counts: watch::Sender<Counts>,
    keep_bodies: bool,
    counts_tokens: bool,
    hurried: CancellationToken,
    /// How many more questions for vectors of several texts are answered at once; `None`: all.
    batches: Mutex<Option<usize>>,
}

impl Shared {
    /// Waits where vectors of several texts are held back.
    async fn batch(&self, texts: usize) {
        let held = {
            let mut left = self.batches.lock();
            match &mut *left {
                Some(0) => texts > 1,
                Some(more) if texts > 1 => {
                    *more -= 1;
                    false
                }
                _ => false,
            }
        };
        if held {
            self.hurried.cancelled().await;
        }
    }

    async fn pause(&self, delay: Duration) {
        if !delay.is_zero() {
            let sleep = tokio::time::sleep(delay);
            self.hurried.run_until_cancelled(sleep).await;
        }
    }

    fn begin(&self, call: Call) -> usize {
        let mut calls = self.calls.lock();
        let mut at = usize::MAX;
        if self.keep_bodies && calls.len() < KEPT_CALLS {
            at = calls.len();
            calls.push(call);
        }
        self.counts.send_modify(|counts| counts.calls += 1);
        at
    }

    fn end(&self, at: usize, whole: bool) {
        if let Some(call) = self.calls.lock().get_mut(at) {
            call.finished = whole;
            call.closed_early = !whole;
        }
        self.counts.send_modify(|counts| {
            if whole {
                counts.finished += 1;
            } else {
                counts.closed += 1;
            }
        });
    }

    fn refusal(&self) -> Option<Reply> {
        self.refusal.lock().clone()
    }

    fn reply(&self, prompt: &str) -> Reply {
        if let Some(refusal) = self.refusal() {
            return refusal;
        }
        let rules = self.rules.lock().clone();
        rules
            .iter()
            .find_map(|rule| rule.take(prompt))
            // A refusal of this prompt alone: a failure of the server would have the model rest.
            .unwrap_or_else(|| Reply::status(400, "no rule matches this prompt"))
    }
}

/// Options of the server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Port on the loopback interface, 0 for any.
    pub port: u16,
    /// Ids that the model list shows.
    pub models: Vec<String>,
    /// Tokens that it says its models read at once.
    pub window: u64,
    /// Whether calls are kept for inspection (off for long benchmarks).
    pub keep_calls: bool,
    /// Whether it counts the tokens of a call as the product does. That takes processor time for each byte of a prompt, so it is off
    /// where time is measured: it then reports an estimate.
    pub counts_tokens: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            models: vec!["scripted".to_owned(), "scripted-large".to_owned()],
            window: 128_000,
            keep_calls: true,
            counts_tokens: true,
        }
    }
}

/// The running server. Dropping it stops it.
pub struct ScriptedModel {
    shared: Arc<Shared>,
    port: u16,
    stop: CancellationToken,
}

impl ScriptedModel {
    /// Starts on a free port with rules.
    ///
    /// # Errors
    /// No port can be listened on.
    pub async fn start(rules: Vec<Rule>) -> std::io::Result<Self> {
        Self::start_with(Options::default(), rules).await
    }

    /// Starts with options.
    ///
    /// # Errors
    /// No port can be listened on.
    pub async fn start_with(options: Options, rules: Vec<Rule>) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", options.port)).await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            rules: Mutex::new(rules),
            refusal: Mutex::new(None),
            models: options.models,
            window: options.window,
            calls: Mutex::new(Vec::new()),
            counts: watch::Sender::new(Counts::default()),
            keep_bodies: options.keep_calls,
            counts_tokens: options.counts_tokens,
            hurried: CancellationToken::new(),
            batches: Mutex::new(None),
        });
        let stop = CancellationToken::new();
        tokio::spawn(serve::run(listener, shared.clone(), stop.clone()));
        Ok(Self { shared, port, stop })
    }

    /// Base address without a path: the Ollama and Anthropic dialects.
    pub fn root(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Base address of the OpenAI dialect, for `OPENAI_BASE_URL`.
    pub fn url(&self) -> String {
        format!("{}/v1", self.root())
    }

    /// Port on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Replaces the rules.
    pub fn set_rules(&self, rules: Vec<Rule>) {
        *self.shared.rules.lock() = rules;
    }

    /// Ends every pause before a reply, those under way and all to come.
    pub fn hurry(&self) {
        self.shared.hurried.cancel();
    }

    /// From now on everything is answered so, also the question which models there are.
    pub fn refuse(&self, with: Reply) {
        *self.shared.refusal.lock() = Some(with);
    }

    /// So many more questions for vectors of several texts are answered; further ones wait until [`Self::hurry`]. Those of one
    /// text are answered.
    pub fn hold_batches_after(&self, more: usize) {
        *self.shared.batches.lock() = Some(more);
    }

    /// How many questions for vectors of several texts came.
    pub fn batches(&self) -> usize {
        let calls = self.calls();
        let inputs = calls
            .iter()
            .filter_map(|call| call.body["input"].as_array());
        inputs.filter(|texts| texts.len() > 1).count()
    }

    /// Texts that vectors were asked for, oldest first.
    pub fn embedded(&self) -> Vec<String> {
        let calls = self.calls();
        let texts = calls
            .iter()
            .filter_map(|call| call.body["input"].as_array());
        let texts = texts.flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    /// Recorded calls, oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.calls.lock().clone()
    }

    /// How many calls came.
    pub fn count(&self) -> usize {
        self.shared.counts.borrow().calls
    }

    /// Waits until that many calls came; `false` when the bound passes first.
    pub async fn wait_calls(&self, calls: usize, bound: Duration) -> bool {
        self.wait(bound, |counts| counts.calls >= calls).await
    }

    /// Waits until that many callers hung up early; `false` when the bound passes first.
    pub async fn wait_closed(&self, closed: usize, bound: Duration) -> bool {
        self.wait(bound, |counts| counts.closed >= closed).await
    }

    async fn wait(&self, bound: Duration, done: impl Fn(&Counts) -> bool) -> bool {
        let mut counts = self.shared.counts.subscribe();
        let waiting = counts.wait_for(done);
        matches!(tokio::time::timeout(bound, waiting).await, Ok(Ok(_)))
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
