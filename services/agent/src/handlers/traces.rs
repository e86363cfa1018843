//! A workspace's `traces`: which runs ended on a day, and the signed head over them. A head is over what the ledger noted
//! when a run ended, not over what the graph holds by now.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat};
use tg_jwt::{KeyError, PublicKeys, SigningKey};
use tg_mesh::{Cx, RequestHandler, Responder, clock};
use tg_provenance::{Ended, Head, Root};
use tg_schemas::msg::{EndedRun, TracesRequest, TracesResponse};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use super::day;
use crate::run::Agent;
use crate::run::execution::is_over;
use crate::store::{HeadKey, Ledger, SignedHead};

/// Days that are surely kept whole.
const KEPT: Duration = Duration::from_secs(34 * 24 * 3600);
/// Runs read from the ledger at once.
const STRIDE: usize = 512;
/// Times that a head is made again because another was kept meanwhile.
const TRIES: usize = 8;
/// Most earlier keys in an answer: a verifier gets all of them.
const MOST_KEYS: usize = 256;

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
        let day = day::read("day", &ask.day)?;
        let ledger = self.0.ledger().await?;
        let answer = match ask.operation.as_str() {
            "sign-traces" => sign(&ledger, &cx, &day).await?,
            "list-ended-runs" => list(&ledger, &cx, &day, &ask).await?,
            "get-signing-key" => keys(&ledger).await?.told(),
            "rotate-signing-key" => rotate(&ledger).await?.told(),
            "revoke-signing-key" => revoke(&ledger, &ask).await?.told(),
            _ => {
                let text = "operation: must be sign-traces, list-ended-runs, get-signing-key, rotate-signing-key or revoke-signing-key";
                return Err(Error::new(ErrorCode::BadRequest, text));
            }
        };
        out.send(answer).await
    }
}

/// Whether a day is so long ago that its runs are not all kept.
fn is_past(day: &str) -> bool {
    let first = clock::now() - KEPT;
    day < first.format("%Y-%m-%d").to_string().as_str()
}

/// The installation's keys.
struct Keys {
    signs: SigningKey,
    /// Those that signed before, the newest first.
    before: Vec<HeadKey>,
}

impl Keys {
    /// What verifies a head: the key that it names.
    fn of(&self, head: &SignedHead) -> String {
        let Ok(said) = Head::read(&head.text) else {
            return String::new();
        };
        let now = self.signs.public();
        if now.kid() == said.key {
            return now.to_pem();
        }
        self.before(&said.key).map(said_of).unwrap_or_default()
    }

    /// One that signed before, by its id.
    fn before(&self, id: &str) -> Option<&HeadKey> {
        let named = |key: &&HeadKey| PublicKeys::from_pem(&key.pem).has(id);
        self.before.iter().find(named)
    }

    /// A head with what verifies it.
    fn signed(&self, head: SignedHead) -> TracesResponse {
        TracesResponse {
            key: self.of(&head),
            head: head.text,
            signature: head.signature,
            ..TracesResponse::default()
        }
    }

    /// All that verify.
    fn told(&self) -> TracesResponse {
        let now = self.signs.public().to_pem();
        let all = std::iter::once(now).chain(self.before.iter().map(said_of));
        TracesResponse {
            key: all.collect(),
            ..TracesResponse::default()
        }
    }
}

/// A key as PEM. Readers of PEM pass over what is said before it.
fn said_of(key: &HeadKey) -> String {
    let HeadKey { pem, revoked_from } = key;
    match revoked_from.is_empty() {
        true => pem.clone(),
        false => {
            let known = PublicKeys::from_pem(pem);
            let ids = known
                .ids()
                .map(|id| format!("revoked-from: {id} {revoked_from}\n"));
            ids.collect::<String>() + pem
        }
    }
}

fn unusable(_: KeyError) -> Error {
    Error::new(ErrorCode::Internal, "a signing key cannot be used")
}

/// The installation's keys; the first that asks for them has one made.
async fn keys(ledger: &Ledger) -> Result<Keys, Error> {
    let new = SigningKey::generate().map_err(unusable)?;
    let kept = ledger.head_key(new.pkcs8().to_vec()).await?;
    Ok(Keys {
        signs: SigningKey::read(&kept).map_err(unusable)?,
        before: ledger.head_keys_before().await?,
    })
}

/// Another key signs from now on. Of the one before only what verifies is kept: nobody signs by it any more.
async fn rotate(ledger: &Ledger) -> Result<Keys, Error> {
    let known = keys(ledger).await?;
    if known.before.len() >= MOST_KEYS {
        let text = "there are as many signing keys as may be kept";
        return Err(Error::new(ErrorCode::TooLarge, text));
    }
    replaced(ledger, known).await
}

/// Another key signs than the one that is known to.
async fn replaced(ledger: &Ledger, known: Keys) -> Result<Keys, Error> {
    let (old, new) = (known.signs, SigningKey::generate().map_err(unusable)?);
    let rotated = ledger.rotate_head_key(
        old.pkcs8().to_vec(),
        old.public().to_pem(),
        new.pkcs8().to_vec(),
    );
    match rotated.await? {
        true => keys(ledger).await,
        false => Err(Error::new(
            ErrorCode::Conflict,
            "another rotated the key meanwhile",
        )),
    }
}

/// What a key signed from an instant on does not count. If it is the one that signs, another does from now on.
async fn revoke(ledger: &Ledger, ask: &TracesRequest) -> Result<Keys, Error> {
    let bad = |text: &str| Error::new(ErrorCode::BadRequest, text);
    if ask.key_id.is_empty() {
        return Err(bad("key-id: is required"));
    }
    let now = clock::now();
    let from = match ask.revoked_from.as_str() {
        "" => now,
        text => DateTime::parse_from_rfc3339(text)
            .map_err(|_| bad("revoked-from: must be a time in RFC 3339"))?
            .to_utc(),
    };
    if from > now {
        return Err(bad("revoked-from: is in the future"));
    }
    let mut known = keys(ledger).await?;
    if known.signs.public().kid() == ask.key_id {
        // However many there are: one that leaked can always be taken away.
        known = replaced(ledger, known).await?;
    }
    let none = || {
        Error::new(
            ErrorCode::NotFound,
            "key-id: no key of this id signed heads",
        )
    };
    let pem = known.before(&ask.key_id).ok_or_else(none)?.pem.clone();
    let from = from.to_rfc3339_opts(SecondsFormat::Micros, true);
    match ledger.revoke_head_key(pem, from).await? {
        true => keys(ledger).await,
        false => Err(none()),
    }
}

/// The head of a day; the same again unless more runs have ended since.
async fn sign(ledger: &Ledger, cx: &Cx, day: &str) -> Result<TracesResponse, Error> {
    let workspace = cx.workspace_key().to_string();
    let keys = keys(ledger).await?;
    let key = &keys.signs;
    if is_past(day) {
        // Its runs may be forgotten by now; a head over those that are left would be wrong.
        let known = ledger.heads(&workspace, day).await?.of_day;
        let text = "day: is too long ago; a day is signed within five weeks";
        let none = || Error::new(ErrorCode::BadRequest, text);
        return Ok(keys.signed(known.ok_or_else(none)?));
    }
    let (runs, root) = root(ledger, cx, &workspace, day).await?;
    for _ in 0..TRIES {
        let known = ledger.heads(&workspace, day).await?;
        if let Some(head) = known.of_day
            && Head::read(&head.text)
                .is_ok_and(|said| said.root == root && said.key == key.public().kid())
        {
            return Ok(keys.signed(head));
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
            return Ok(keys.signed(head));
        }
    }
    Err(Error::new(
        ErrorCode::Conflict,
        "other heads of this workspace are being signed; try again",
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_head_stays_verifiable_after_other_keys_sign() {
        let ledger = Ledger::in_memory().unwrap();
        let first = keys(&ledger).await.unwrap().signs;
        let head = Head {
            workspace: "ws".into(),
            day: "2026-11-25".into(),
            root: "ab".into(),
            signed_at: "2026-11-26T00:10:00Z".into(),
            key: first.public().kid(),
            ..Head::default()
        };
        let head = SignedHead {
            number: 1,
            day: head.day.clone(),
            signature: first.sign_text(&head.text()).unwrap(),
            text: head.text(),
        };
        for _ in 0..2 {
            rotate(&ledger).await.unwrap();
        }
        let all = keys(&ledger).await.unwrap();
        assert_ne!(all.signs.public().kid(), first.public().kid());
        let told = all.signed(head.clone());
        assert_eq!(told.key, first.public().to_pem());
        let known = PublicKeys::from_pem(&all.told().key);
        for keys in [known, PublicKeys::from_pem(&told.key)] {
            let kid = first.public().kid();
            assert!(keys.verify_text(&kid, &told.head, &told.signature).is_ok());
        }
        // Whoever asks next signs by the newest, and nobody by those before.
        let now = ledger.head_key(b"x".to_vec()).await.unwrap();
        assert_eq!(now, all.signs.pkcs8());
        let late = (first.pkcs8().to_vec(), first.public().to_pem());
        assert!(
            !ledger
                .rotate_head_key(late.0, late.1, b"x".to_vec())
                .await
                .unwrap()
        );
        assert_eq!(ledger.head_keys_before().await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_key_is_revoked_from_an_instant_and_signs_no_more() {
        let ledger = Ledger::in_memory().unwrap();
        let first = keys(&ledger).await.unwrap().signs.public().kid();
        let ask = |key_id: &str, from: &str| TracesRequest {
            key_id: key_id.into(),
            revoked_from: from.into(),
            ..TracesRequest::default()
        };
        for (key, from, why) in [
            ("", "", "key-id: is required"),
            ("0", "", "key-id: no key of this id signed heads"),
            (&first, "soon", "revoked-from: must be a time in RFC 3339"),
            (
                &first,
                "3026-01-01T00:00:00Z",
                "revoked-from: is in the future",
            ),
        ] {
            let refused = revoke(&ledger, &ask(key, from)).await.err().unwrap();
            assert_eq!(refused.message, why);
        }
        let mut now = String::new();
        for from in ["2026-01-02T01:00:00+01:00", "2026-01-03T00:00:00Z", ""] {
            let left = revoke(&ledger, &ask(&first, from)).await.unwrap();
            let signs = left.signs.public().kid();
            assert_ne!(signs, first);
            assert!(now.is_empty() || now == signs, "done again it is done");
            now = signs;
            let told = left.told().key;
            let said = format!("revoked-from: {first} 2026-01-02T00:00:00.000000Z\n-----BEGIN");
            assert!(told.contains(&said), "{told}");
            let known = PublicKeys::from_pem(&told);
            assert!(known.has(&first) && known.has(&now));
        }
    }
}
