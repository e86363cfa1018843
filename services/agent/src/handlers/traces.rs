//! A workspace's `traces`: which runs ended on a day, and the signed head over them. A head is over what the ledger noted
//! when a run ended, not over what the graph holds by now.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_jwt::{KeyError, SigningKey};
use tg_mesh::{Cx, RequestHandler, Responder, clock};
use tg_provenance::{Ended, Head, Root};
use tg_schemas::msg::{EndedRun, TracesRequest, TracesResponse};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use crate::run::Agent;
use crate::run::execution::{is_over, today};
use crate::store::{Ledger, SignedHead};

/// Days that are surely kept whole.
const KEPT: Duration = Duration::from_secs(34 * 24 * 3600);
/// Runs read from the ledger at once.
const STRIDE: usize = 512;
/// Times that a head is made again because another was kept meanwhile.
const TRIES: usize = 8;

/// Serves `traces` of `agent-manager`.
pub(crate) struct Traces(pub(crate) Arc<Agent>);

#[async_trait]
impl RequestHandler<TracesRequest, TracesResponse> for Traces {
    async fn serve(
        &self,
        cx: Cx,
        ask: TracesRequest,
        mut out: Responder<TracesResponse>,
    ) -> Result<(), Error> {
        let day = day(&ask.day)?;
        let ledger = self.0.ledger().await?;
        let answer = match ask.operation.as_str() {
            "sign-traces" => sign(&ledger, &cx, &day).await?,
            "list-ended-runs" => list(&ledger, &cx, &day, &ask).await?,
            "get-signing-key" => TracesResponse {
                key: key(&ledger).await?.public().to_pem(),
                ..TracesResponse::default()
            },
            _ => {
                let text = "operation: must be sign-traces, list-ended-runs or get-signing-key";
                return Err(Error::new(ErrorCode::BadRequest, text));
            }
        };
        out.send(answer).await
    }
}

/// A day that is over, or today.
fn day(asked: &str) -> Result<String, Error> {
    let today = today();
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    match asked {
        "" => Ok(today),
        day if day.len() == today.len() && day.bytes().enumerate().all(shape) => {
            match day <= today.as_str() {
                true => Ok(day.to_owned()),
                false => Err(Error::new(
                    ErrorCode::BadRequest,
                    "day: has not begun yet (days are those of UTC)",
                )),
            }
        }
        _ => Err(Error::new(
            ErrorCode::BadRequest,
            "day: must be a date, YYYY-MM-DD",
        )),
    }
}

/// Whether a day is so long ago that its runs are not all kept.
fn is_past(day: &str) -> bool {
    let first = clock::now() - KEPT;
    day < first.format("%Y-%m-%d").to_string().as_str()
}

/// The installation's key; the first that asks for it has it made.
async fn key(ledger: &Ledger) -> Result<SigningKey, Error> {
    let fault = |_: KeyError| Error::new(ErrorCode::Internal, "a signing key cannot be used");
    let new = SigningKey::generate().map_err(fault)?;
    let kept = ledger.head_key(new.pkcs8().to_vec()).await?;
    SigningKey::read(&kept).map_err(fault)
}

/// The head of a day; the same again unless more runs have ended since.
async fn sign(ledger: &Ledger, cx: &Cx, day: &str) -> Result<TracesResponse, Error> {
    let workspace = cx.workspace_key().to_string();
    let key = key(ledger).await?;
    if is_past(day) {
        // Its runs may be forgotten by now; a head over those that are left would be wrong.
        let known = ledger.heads(&workspace, day).await?.of_day;
        let text = "day: is too long ago; a day is signed within five weeks";
        let none = || Error::new(ErrorCode::BadRequest, text);
        return Ok(signed(known.ok_or_else(none)?, &key));
    }
    let (runs, root) = root(ledger, cx, &workspace, day).await?;
    for _ in 0..TRIES {
        let known = ledger.heads(&workspace, day).await?;
        if let Some(head) = known.of_day
            && Head::read(&head.text)
                .is_ok_and(|said| said.root == root && said.key == key.public().kid())
        {
            return Ok(signed(head, &key));
        }
        let (number, previous) = match &known.last {
            Some(last) => (last.number + 1, tg_provenance::text_hash(&last.text)),
            None => (1, String::new()),
        };
        let text = Head {
            workspace: cx.workspace().to_owned(),
            day: day.to_owned(),
            runs,
            root: root.clone(),
            previous,
            signed_at: clock::rfc3339(),
            key: key.public().kid(),
        }
        .text();
        let signature = key.sign_text(&text).map_err(|_| {
            let text = "a head could not be signed";
            Error::new(ErrorCode::Internal, text)
        })?;
        let head = SignedHead {
            number,
            day: day.to_owned(),
            text,
            signature,
        };
        if ledger.keep_head(&workspace, &is_over(cx), &head).await? {
            return Ok(signed(head, &key));
        }
    }
    Err(Error::new(
        ErrorCode::Conflict,
        "other heads of this workspace are being signed; try again",
    ))
}

fn signed(head: SignedHead, key: &SigningKey) -> TracesResponse {
    TracesResponse {
        head: head.text,
        signature: head.signature,
        key: key.public().to_pem(),
        ..TracesResponse::default()
    }
}

/// How many runs ended on a day, and the hash over them.
async fn root(
    ledger: &Ledger,
    cx: &Cx,
    workspace: &str,
    day: &str,
) -> Result<(u64, String), Error> {
    let mut root = Root::default();
    let mut count = 0;
    loop {
        let some = ledger.ended(workspace, day, count, STRIDE).await?;
        some.iter().for_each(|run| root.add(run));
        count += i64::try_from(some.len()).unwrap_or(i64::MAX);
        if some.len() < STRIDE {
            return Ok((u64::try_from(count).unwrap_or(0), root.finish()));
        }
        if cx.cancel.is_cancelled() {
            return Err(Error::new(ErrorCode::Cancelled, "cancelled"));
        }
    }
}

async fn list(
    ledger: &Ledger,
    cx: &Cx,
    day: &str,
    ask: &TracesRequest,
) -> Result<TracesResponse, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let workspace = cx.workspace_key().to_string();
    let mut after: i64 = match asked.after() {
        Some(number) => number.parse().unwrap_or(0),
        None => 0,
    };
    let mut page = Page::new(asked);
    loop {
        let some = ledger.ended(&workspace, day, after, STRIDE).await?;
        let last = some.len() < STRIDE;
        for run in some {
            if page.is_full() {
                break;
            }
            after += 1;
            page.add(after.to_string(), told(run))?;
        }
        if last || page.is_full() {
            break;
        }
    }
    Ok(TracesResponse {
        runs: page.entries,
        next: page.next,
        ..TracesResponse::default()
    })
}

fn told(run: Ended) -> EndedRun {
    EndedRun {
        run: run.run,
        collection: run.collection,
        hash: run.hash,
    }
}
