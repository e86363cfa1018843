//! Streams that are joined again, from a part on: runs of the agent, whichever gateway they came through, and what gateways
//! keep of others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use serde_json::json;
use tg_clients::agent_runs::AgentRuns;
use tg_mesh::{Answer, Mesh};
use tg_schemas::msg::{AgentResponse, AgentRunsRequest, AgentRunsResponse, DetachedRun};
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use crate::ask::{self, Part, Parts};
use crate::engine::scrub::scrub_for;
use crate::engine::translate::agent::{Agent, gap};
use crate::engine::translate::{About, Body, Fields};
use crate::kept::Follower;
use crate::kept_elsewhere::{self, KeptElsewhere};
use crate::registry;

/// Notes something that was done.
pub(crate) type Noted = Box<dyn FnOnce() + Send>;

/// An agent that is away, and a stream that is silent, is asked again so often, each time after this long.
const TRIES: u32 = 60;
/// A gateway that keeps a stream does so only while its process lives: it may only have lost its connection.
const TRIES_OF_GATEWAY: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// The request that a run is joined with; `offset` is of the last part that the client has.
pub(crate) fn request(run: &str, offset: Option<u64>) -> Body {
    let mut body = Body::new();
    body.insert("operation".to_owned(), json!("read-run"));
    body.insert("run".to_owned(), json!(run));
    if let Some(offset) = offset {
        body.insert("offset".to_owned(), json!(offset));
    }
    body
}

/// The run with an id, of a user or of a workspace; `None`: there is none. An agent that is away is waited for.
pub(crate) async fn find(
    mesh: &Mesh,
    (user, workspace): (&str, &str),
    run: &str,
) -> Result<Option<DetachedRun>, Error> {
    let mut tries = 0;
    loop {
        // Anew: each time it has as long as one question may take.
        let runs = AgentRuns::of(mesh, user).of_workspace(workspace);
        match runs.find(run).await {
            Err(error) if is_away(&error) && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            found => return found,
        }
    }
}

/// A run that is not there, or not for who asks.
pub(crate) fn unknown() -> Error {
    Error::new(ErrorCode::NotFound, "run not found")
}

/// A stream that is read, and from where.
pub(crate) struct Joined {
    source: Source,
    /// Number of the next part.
    from: u64,
    /// Ends it, and the run with it: the client's own word.
    cancel: CancellationToken,
    /// Notes that they said it.
    noted: Option<Noted>,
    about: About,
    waiting: VecDeque<Sent>,
    tries: u32,
    over: bool,
}

/// Where a stream comes from.
pub(crate) enum Source {
    /// The agent, which has a ledger of its runs.
    Agent(Box<Ledger>),
    /// This gateway.
    Kept(Follower),
    /// Another gateway.
    Elsewhere(Box<KeptElsewhere>),
}

/// A part as it comes from there.
enum Sent {
    Agent(String),
    Kept(Arc<Part>),
}

/// Some parts, and the number of the first of them.
type More = (u64, Vec<Sent>);

/// The run that a request names, and the first part that its client lacks.
pub(crate) fn place(fields: &Fields<'_>) -> Result<(Arc<str>, u64), Error> {
    let run = fields.required_text("run")?;
    let first = match fields.value("offset") {
        None => 0,
        Some(_) => match u64::try_from(fields.integer_or("offset", 0)?) {
            Ok(offset) => offset.saturating_add(1),
            Err(_) => return Err(fields.fault("offset", "must not be negative")),
        },
    };
    Ok((run.into(), first))
}

impl Joined {
    /// The run of a user, or of a workspace, from a part on.
    pub(crate) fn new(
        mesh: &Mesh,
        (user, workspace): (&str, &str),
        (run, first): (&str, u64),
        operator: bool,
        word: (CancellationToken, Noted),
    ) -> Self {
        let ledger = Ledger {
            mesh: mesh.clone(),
            request: AgentRunsRequest {
                operation: "read-run".to_owned(),
                user: user.to_owned(),
                workspace: workspace.to_owned(),
                id: run.to_owned(),
                ..AgentRunsRequest::default()
            },
            answer: None,
        };
        Self::of(Source::Agent(Box::new(ledger)), first, operator, word)
    }

    /// What a gateway keeps of a stream, from a part on: as its caller was to read it.
    pub(crate) fn kept(source: Source, first: u64, word: (CancellationToken, Noted)) -> Self {
        Self::of(source, first, false, word)
    }

    fn of(
        source: Source,
        from: u64,
        operator: bool,
        (cancel, noted): (CancellationToken, Noted),
    ) -> Self {
        Self {
            source,
            from,
            cancel,
            noted: Some(noted),
            about: About {
                operator,
                ..About::default()
            },
            waiting: VecDeque::new(),
            tries: 0,
            over: false,
        }
    }

    /// It is replayed from its record instead: who ends that ends no run.
    pub(crate) fn again(mut self) -> Self {
        if let Source::Agent(ledger) = &mut self.source {
            ledger.request.operation = registry::REPLAY.to_owned();
        }
        self.noted = None;
        self
    }

    /// Its parts.
    pub(crate) fn parts(self) -> Parts {
        stream::unfold(self, |mut joined| async move {
            let part = joined.next().await?;
            Some((part, joined))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Part> {
        if self.over {
            return None;
        }
        let cancel = self.cancel.clone();
        let part = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                if let Some(noted) = self.noted.take() {
                    // What it had told before is told all the same where it is joined once more.
                    self.source.cancel().await;
                    noted();
                }
                Part::Error(Error::new(ErrorCode::Cancelled, "the request was cancelled"))
            }
            part = self.read() => part,
        };
        self.over = !matches!(part, Part::Body { last: false, .. });
        Some(part)
    }

    async fn read(&mut self) -> Part {
        loop {
            if let Some(sent) = self.waiting.pop_front() {
                self.from += 1;
                return match sent {
                    Sent::Agent(part) => self.translated(&part),
                    Sent::Kept(part) => Part::clone(&part),
                };
            }
            match self.source.more(self.from).await {
                Ok(Some((first, parts))) => {
                    self.tries = 0;
                    self.waiting = parts.into();
                    if first > self.from {
                        let missing = std::mem::replace(&mut self.from, first);
                        return Part::Body {
                            body: gap(missing, first).into(),
                            last: false,
                            failed: false,
                        };
                    }
                }
                // The client has it all.
                Ok(None) => {
                    return Part::Body {
                        body: Body::new().into(),
                        last: true,
                        failed: false,
                    };
                }
                Err(error) if self.tries < self.source.tries(&error) => {
                    self.tries += 1;
                    self.source.let_go();
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    let error = self.source.said(error);
                    return Part::Error(scrub_for(error, self.about.operator));
                }
            }
        }
    }

    /// A part of a run as its client reads it.
    fn translated(&self, part: &str) -> Part {
        match serde_json::from_slice::<AgentResponse>(part.as_bytes()) {
            Ok(part) => ask::translated::<Agent>(part, &self.about),
            Err(_) => Part::Error(Error::new(
                ErrorCode::Internal,
                "a part of the run cannot be read",
            )),
        }
    }
}

impl Source {
    /// Ends what it comes from.
    async fn cancel(&mut self) {
        match self {
            Self::Agent(ledger) => ledger.cancel().await,
            Self::Kept(follower) => follower.cancel(),
            Self::Elsewhere(there) => _ = there.cancel().await,
        }
    }

    /// It is asked anew for what comes next.
    fn let_go(&mut self) {
        match self {
            Self::Agent(ledger) => ledger.answer = None,
            Self::Kept(_) => {}
            Self::Elsewhere(there) => there.let_go(),
        }
    }

    /// How often it is asked again after an error.
    fn tries(&self, error: &Error) -> u32 {
        match self {
            // The bus ends a question after ten minutes of silence, and an answer after an hour: the stream goes on.
            _ if error.code() == ErrorCode::Timeout => TRIES,
            _ if !is_away(error) => 0,
            Self::Agent(_) | Self::Kept(_) => TRIES,
            Self::Elsewhere(_) => TRIES_OF_GATEWAY,
        }
    }

    /// Why nothing more comes, as a client reads it.
    fn said(&self, error: Error) -> Error {
        match self {
            Self::Agent(_) | Self::Kept(_) => error,
            Self::Elsewhere(_) => kept_elsewhere::of_gateway(error),
        }
    }

    /// What comes next. `None`: nothing does any more.
    async fn more(&mut self, from: u64) -> Result<Option<More>, Error> {
        match self {
            Self::Agent(ledger) => ledger.more(from).await,
            Self::Kept(follower) => {
                let more = follower.more(from).await?;
                Ok(more.map(|(first, parts)| {
                    let parts = parts.into_iter().map(Sent::Kept);
                    (first, parts.collect())
                }))
            }
            Self::Elsewhere(there) => {
                let more = there.more(from).await?;
                Ok(more.map(|(first, parts)| {
                    let parts = parts.into_iter().map(Arc::new).map(Sent::Kept);
                    (first, parts.collect())
                }))
            }
        }
    }
}

/// A run in the ledger of the agent.
pub(crate) struct Ledger {
    mesh: Mesh,
    request: AgentRunsRequest,
    answer: Option<Answer<AgentRunsResponse>>,
}

impl Ledger {
    async fn cancel(&mut self) {
        let runs = AgentRuns::of(&self.mesh, &self.request.user);
        let runs = runs.of_workspace(&self.request.workspace);
        let _ = runs.cancel(&self.request.id).await;
    }

    async fn more(&mut self, from: u64) -> Result<Option<More>, Error> {
        let answer = match &mut self.answer {
            Some(answer) => answer,
            none => {
                self.request.from = i64::try_from(from).unwrap_or(i64::MAX);
                none.insert(AgentRuns::read(&self.mesh, &self.request)?)
            }
        };
        match answer.next().await {
            Some(Ok(some)) => match some.error {
                Some(error) => Err(error),
                None if some.more => {
                    let first = u64::try_from(some.first).unwrap_or(0);
                    let parts = some.parts.into_iter().map(Sent::Agent);
                    Ok(Some((first, parts.collect())))
                }
                None => Ok(None),
            },
            Some(Err(error)) => Err(error),
            None => Ok(None),
        }
    }
}

/// Whether it may go on elsewhere, or soon.
fn is_away(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::Interrupted | ErrorCode::Unavailable | ErrorCode::NobodyServes
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_joined_behind_the_part_that_the_client_has() {
        let place_of = |body: &Body| place(&Fields::new(body));
        for (offset, first) in [(None, 0), (Some(0), 1), (Some(7), 8)] {
            let (run, from) = place_of(&request("r", offset)).unwrap();
            assert_eq!((&*run, from), ("r", first));
        }
        let mut wrong = request("r", None);
        wrong.insert("offset".to_owned(), json!(-1));
        assert_eq!(
            place_of(&wrong).unwrap_err().message,
            "offset: must not be negative"
        );
        assert!(place_of(&Body::new()).is_err());
    }
}
