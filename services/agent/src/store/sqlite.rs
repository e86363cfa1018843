//! The ledger in one SQLite file. Here is each transaction; its statements are in the files below, by table.

mod call_store;
mod calls;
mod confirmations;
mod detached;
mod findings;
mod head_store;
mod heads;
mod json;
mod observed;
mod one_workspace;
mod open_calls;
mod records;
mod runs;
mod said;
mod schema;
mod standing;
mod steps;
mod summaries;
mod summary_store;
mod task_store;
mod tasks;
mod told;
mod totals;
mod usage;

use std::path::Path;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_schemas::msg::DetachedRun;
use tg_storage::{Database, Durability, StorageError};

use self::observed::Observed;
pub use self::one_workspace::ONE_WORKSPACE;
use self::schema::MIGRATIONS;
use super::{
    Added, Asked, Asking, Began, Call, CallAt, Confirmation, Counted, Days, Decided, Happened,
    KnownRun, LedgerStore, Piece, Record, Replied, Reservation, RunEnd, RunKey, RunProgress,
    StepRow, Told, Used, Whose,
};
use crate::engine::confirmation::Answer;
use crate::engine::decision::{Decision, Ending, Finding, Observation};
use crate::engine::guards::Exhausted;
use crate::engine::router::Route;
use crate::engine::usage::{Amount, Scope};

/// The ledger's file.
#[derive(Debug, Clone)]
pub(super) struct SqliteLedger {
    db: Database,
}

impl SqliteLedger {
    /// Opens or creates the file and takes its lock. Blocks.
    pub(super) fn open(file: &Path, durability: Durability) -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::open(file, MIGRATIONS, durability)?,
        })
    }

    /// A ledger that ends with the process.
    pub(super) fn in_memory() -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::in_memory(MIGRATIONS)?,
        })
    }
}

#[async_trait]
impl LedgerStore for SqliteLedger {
    async fn begin(
        &self,
        asked: Asked,
        new: Began,
        now_ms: i64,
    ) -> Result<Option<Began>, StorageError> {
        let bytes = runs::bytes_to_begin(&asked, now_ms);
        let write = self
            .db
            .write_short(bytes, move |tx| runs::begin(tx, &asked, new, now_ms));
        write.await
    }

    async fn route(
        &self,
        question: &str,
        run: &RunKey,
        route: &Route,
    ) -> Result<Option<Route>, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let (question, text) = (question.to_owned(), steps::write_json(route)?);
        let write = self.db.write(move |tx| match is_over.holds() {
            true => Ok(None),
            false => runs::route(tx, &question, &run, &text),
        });
        write.await
    }

    async fn detached(
        &self,
        user: &str,
        after: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<DetachedRun>, StorageError> {
        let (user, after) = (user.to_owned(), after.to_owned());
        let read = self
            .db
            .read(move |conn| detached::list(conn, &user, &after, most, now_ms));
        read.await
    }

    async fn known(
        &self,
        whose: &Whose,
        after: &str,
        most: usize,
    ) -> Result<Vec<KnownRun>, StorageError> {
        let (whose, after) = (whose.clone(), after.to_owned());
        let read = self
            .db
            .read(move |conn| detached::known(conn, &whose, &after, most));
        read.await
    }

    async fn of_question(
        &self,
        whose: &Whose,
        question: &str,
    ) -> Result<Option<KnownRun>, StorageError> {
        let (whose, question) = (whose.clone(), question.to_owned());
        let read = self
            .db
            .read(move |conn| detached::of_question(conn, &whose, &question));
        read.await
    }

    async fn asker(&self, run: &str) -> Result<Option<KnownRun>, StorageError> {
        let run = run.to_owned();
        let read = self.db.read(move |conn| detached::asker(conn, &run));
        read.await
    }

    async fn cancel(
        &self,
        whose: &Whose,
        question: &str,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let (whose, question) = (whose.clone(), question.to_owned());
        let write = self
            .db
            .write(move |tx| detached::cancel(tx, &whose, &question, now_ms));
        write.await
    }

    async fn left(
        &self,
        run: &str,
        since_ms: Option<i64>,
        asker: bool,
    ) -> Result<(), StorageError> {
        let run = run.to_owned();
        let write = self
            .db
            .write(move |tx| detached::left(tx, &run, since_ms, asker));
        write.await
    }

    async fn cancel_left(
        &self,
        run: &str,
        since_ms: i64,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let run = run.to_owned();
        let write = self
            .db
            .write(move |tx| detached::cancel_left(tx, &run, since_ms, now_ms));
        write.await
    }

    async fn told(
        &self,
        run: &str,
        from: u64,
        bytes: usize,
    ) -> Result<Option<(u64, Vec<String>)>, StorageError> {
        let run = run.to_owned();
        let read = self
            .db
            .read(move |conn| told::read(conn, &run, from, bytes));
        read.await
    }

    async fn happened(&self, run: &str) -> Result<Happened, StorageError> {
        let run = run.to_owned();
        let read = self.db.read(move |conn| steps::happened(conn, &run));
        read.await
    }

    async fn standing(&self, run: &str, started_ms: i64) -> Result<Vec<RunProgress>, StorageError> {
        let run = run.to_owned();
        let read = self
            .db
            .read(move |conn| standing::of(conn, &run, started_ms));
        read.await
    }

    async fn ask_user(
        &self,
        run: &RunKey,
        at: CallAt,
        asking: &Asking,
        now_ms: i64,
    ) -> Result<Option<Confirmation>, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let asking = asking.clone();
        let write = self.db.write(move |tx| match is_over.holds() {
            true => Ok(None),
            false => confirmations::ask(tx, (&run, at), &asking, now_ms),
        });
        write.await
    }

    async fn confirmation(
        &self,
        run: &str,
        at: CallAt,
    ) -> Result<Option<Confirmation>, StorageError> {
        let run = run.to_owned();
        let read = self.db.read(move |conn| confirmations::of(conn, &run, at));
        read.await
    }

    async fn answer_user(
        &self,
        whose: &Whose,
        (question, asked): (&str, &str),
        (answer, by): (Answer, &str),
        now_ms: i64,
    ) -> Result<Replied, StorageError> {
        let (whose, by) = (whose.clone(), by.to_owned());
        let (question, asked) = (question.to_owned(), asked.to_owned());
        let write = self.db.write(
            move |tx| match confirmations::run_of(tx, &whose, &question)? {
                None => Ok(Replied::NoRun),
                Some(run) => confirmations::reply(tx, &run, &asked, (answer, &by), now_ms),
            },
        );
        write.await
    }

    async fn close_question(&self, run: &str, at: CallAt) -> Result<(), StorageError> {
        let run = run.to_owned();
        let write = self.db.write(move |tx| confirmations::close(tx, &run, at));
        write.await
    }

    async fn begin_use(&self, run: &str, at: CallAt) -> Result<(), StorageError> {
        let run = run.to_owned();
        let write = self.db.write(move |tx| confirmations::used(tx, &run, at));
        write.await
    }

    async fn keep_record(
        &self,
        run: &RunKey,
        added: Added,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let is_over = run.is_over.clone();
        let write = self.db.write(move |tx| match is_over.holds() {
            true => Ok(false),
            false => records::add(tx, &added, now_ms),
        });
        write.await
    }

    async fn record(&self, run: &str) -> Result<Option<Record>, StorageError> {
        let run = run.to_owned();
        self.db.read(move |conn| records::read(conn, &run)).await
    }

    async fn is_open(&self, question: String) -> Result<bool, StorageError> {
        let read = self.db.read(move |conn| runs::is_open(conn, &question));
        read.await
    }

    async fn load(&self, run: String, step: u32) -> Result<StepRow, StorageError> {
        let read = self.db.read(move |conn| steps::load(conn, &run, step));
        read.await
    }

    async fn say(
        &self,
        run: &RunKey,
        step: u32,
        seq: u64,
        pieces: Vec<Piece>,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let write = self.db.write(move |tx| {
            if is_over.holds() {
                return Ok(false);
            }
            said::say(tx, &run, step, seq, &pieces, now_ms)?;
            Ok(true)
        });
        write.await
    }

    async fn said(&self, run: &str, step: u32) -> Result<Vec<Piece>, StorageError> {
        let run = run.to_owned();
        let read = self.db.read(move |conn| said::all(conn, &run, step));
        read.await
    }

    async fn found(
        &self,
        run: &RunKey,
        finding: &Finding,
        now_ms: i64,
    ) -> Result<Option<u32>, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let (subagent, text) = (finding.subagent, steps::write_json(finding)?);
        let write = self.db.write(move |tx| match is_over.holds() {
            true => Ok(None),
            false => findings::enter(tx, &run, subagent, &text, now_ms).map(Some),
        });
        write.await
    }

    async fn findings(&self, run: &str) -> Result<Vec<Finding>, StorageError> {
        let run = run.to_owned();
        let read = self.db.read(move |conn| findings::of(conn, &run));
        read.await
    }

    async fn decide(
        &self,
        run: &RunKey,
        step: u32,
        decision: &Decision,
        counted: &[Counted],
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let (text, counted) = (steps::write_json(decision)?, counted.to_vec());
        let write = self.db.write_short(text.len(), move |tx| {
            if is_over.holds() {
                return Ok(false);
            }
            steps::decide(tx, &run, step, &text, now_ms)?;
            said::forget(tx, &run, step)?;
            usage::settle_all(tx, &counted, now_ms)?;
            Ok(true)
        });
        write.await
    }

    async fn decide_and_reserve(
        &self,
        run: &RunKey,
        step: u32,
        decision: &Decision,
        counted: &[Counted],
        next: &(Call, Reservation),
        now_ms: i64,
    ) -> Result<Decided, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let (text, counted) = (steps::write_json(decision)?, counted.to_vec());
        let (call, next) = next.clone();
        let write = self.db.write_short(text.len(), move |tx| {
            if is_over.holds() {
                return Ok(Decided::WorkspaceEnded);
            }
            steps::decide(tx, &run, step, &text, now_ms)?;
            said::forget(tx, &run, step)?;
            usage::settle_all(tx, &counted, now_ms)?;
            let over = usage::reserve(tx, &call, &next, now_ms)?;
            Ok(over.map_or(Decided::Fits, Decided::Refused))
        });
        write.await
    }

    async fn observe(
        &self,
        run: &RunKey,
        step: u32,
        observation: &Observation,
        told: Told,
        counted: &[Counted],
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let seen = Observed::new(run, step, observation, told, counted)?;
        let (bytes, keeps) = (seen.bytes(), seen.keeps());
        let write = self.db.write_short(bytes, move |tx| seen.keep(tx, now_ms));
        let too_many = write.await?.unwrap_or(false);
        told::trim(&self.db, too_many, keeps).await
    }

    async fn observe_and_reserve(
        &self,
        run: &RunKey,
        step: u32,
        observation: &Observation,
        told: Told,
        (counted, next): (&[Counted], &(Call, Reservation)),
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let seen = Observed::new(run, step, observation, told, counted)?;
        let (bytes, keeps, (call, next)) = (seen.bytes(), seen.keeps(), next.clone());
        let write = self.db.write_short(bytes, move |tx| {
            let Some(too_many) = seen.keep(tx, now_ms)? else {
                return Ok((false, false));
            };
            let over = usage::reserve(tx, &call, &next, now_ms)?;
            Ok((too_many, over.is_none()))
        });
        let (too_many, fits) = write.await?;
        told::trim(&self.db, too_many, keeps).await?;
        Ok(fits)
    }

    async fn end(
        &self,
        run: &RunKey,
        step: u32,
        ending: &Ending,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let text = steps::write_json(ending)?;
        let write = self.db.write(move |tx| {
            if is_over.holds() {
                return Ok(false);
            }
            steps::end(tx, &run, step, &text, now_ms)?;
            Ok(true)
        });
        write.await
    }

    async fn finish_step(&self, run: &str, step: u32) -> Result<(), StorageError> {
        let run = run.to_owned();
        let write = self.db.write(move |tx| {
            said::forget(tx, &run, step)?;
            steps::finish(tx, &run, step)
        });
        write.await
    }

    async fn finish_run(
        &self,
        run: &RunKey,
        step: u32,
        end: &RunEnd,
        told: Told,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let (RunKey { run, is_over }, end) = (run.clone(), end.clone());
        let of = (told.workspace.clone(), told.keep);
        let write = self.db.write_short(told::bytes(&told), move |tx| {
            said::forget(tx, &run, step)?;
            steps::finish_run(tx, &run, (step, end.earlier_done), now_ms)?;
            usage::release(tx, &run, step, now_ms)?;
            // What is told without a workspace is not kept, and not counted.
            if !told.workspace.is_empty() {
                detached::ended(tx, &run, told.first + told.parts.len() as u64)?;
            }
            if is_over.holds() {
                return Ok(false);
            }
            if !end.ended.hash.is_empty() {
                heads::note(tx, &end, now_ms)?;
            }
            told::keep(tx, &run, &told, now_ms)
        });
        told::trim(&self.db, write.await?, of).await
    }

    async fn reserve(
        &self,
        call: &Call,
        next: &Reservation,
        now_ms: i64,
    ) -> Result<Option<Exhausted>, StorageError> {
        let (call, next) = (call.clone(), next.clone());
        let bytes = call.run.len();
        let write = self
            .db
            .write_short(bytes, move |tx| usage::reserve(tx, &call, &next, now_ms));
        write.await
    }

    async fn renew(&self, call: &Call, expires_ms: i64) -> Result<(), StorageError> {
        let call = call.clone();
        let write = self.db.write(move |tx| usage::renew(tx, &call, expires_ms));
        write.await
    }

    async fn free(&self, call: &Call) -> Result<(), StorageError> {
        let call = call.clone();
        self.db.write(move |tx| usage::free(tx, &call)).await
    }

    async fn settle(
        &self,
        run: &RunKey,
        call: &Call,
        used: &Used,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let (is_over, call, used) = (run.is_over.clone(), call.clone(), used.clone());
        let write = self.db.write(move |tx| match is_over.holds() {
            true => Ok(()),
            false => usage::settle(tx, &call, &used, now_ms),
        });
        write.await
    }

    async fn settle_all(
        &self,
        run: &RunKey,
        counted: &[Counted],
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let (is_over, counted) = (run.is_over.clone(), counted.to_vec());
        let write = self.db.write(move |tx| match is_over.holds() {
            true => Ok(()),
            false => usage::settle_all(tx, &counted, now_ms),
        });
        write.await
    }

    async fn clear_usage(
        &self,
        workspace: &str,
        (scope, name): (Scope, &str),
    ) -> Result<Option<Amount>, StorageError> {
        let (workspace, name) = (workspace.to_owned(), name.to_owned());
        let write = self
            .db
            .write(move |tx| usage::clear(tx, &workspace, (scope, &name)));
        write.await
    }

    async fn usage(
        &self,
        workspace: &str,
        days: &Days,
        after: &str,
        most: usize,
    ) -> Result<Vec<(String, Amount)>, StorageError> {
        let (workspace, days, after) = (workspace.to_owned(), days.clone(), after.to_owned());
        let read = self
            .db
            .read(move |conn| usage::list(conn, &workspace, &days, &after, most));
        read.await
    }

    async fn workspaces(&self) -> Result<Vec<String>, StorageError> {
        self.db.read(runs::workspaces).await
    }

    async fn purge_some(&self, workspace: &str) -> Result<bool, StorageError> {
        let workspace = workspace.to_owned();
        let write = self.db.write(move |tx| runs::purge_some(tx, &workspace));
        write.await
    }

    async fn forget(&self, now_ms: i64) -> Result<bool, StorageError> {
        self.db.write(move |tx| runs::forget(tx, now_ms)).await
    }

    fn known_config(&self) -> &dyn KnownConfig {
        &self.db
    }
}
