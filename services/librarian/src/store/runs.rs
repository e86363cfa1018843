//! Runs: documents being processed, the books of what became of their records, and retractions to be published.

use async_trait::async_trait;
use tg_schemas::Triple;
use tg_schemas::msg::{ProcessingError, ProcessingMetadata, RunTallyEntry, Superseded};
use tg_storage::StorageError;

use crate::engine::asker::Asker;
use crate::engine::fingerprints::Fingerprints;
use crate::engine::flow::Flow;
use crate::engine::ids::RecordKey;
use crate::engine::progress::{Effect, Reading};
use crate::engine::readers::Wiring;
use crate::engine::start::Record;
use crate::engine::state::{Counts, State, Swept};

/// What a document is processed into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) workspace: String,
    pub(crate) document: String,
    pub(crate) flow: String,
    pub(crate) collection: String,
    pub(crate) generation: i64,
}

/// A run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) number: i64,
    /// Header of its records.
    pub(crate) thread: String,
    pub(crate) processing: String,
    pub(crate) target: Target,
    /// As the client gave it, seconds.
    pub(crate) time: i64,
    pub(crate) tags: Vec<String>,
    pub(crate) state: State,
    pub(crate) why: String,
    pub(crate) epoch: u64,
    /// What its flow does, as a number; 0 before it has begun.
    pub(crate) fingerprints: i64,
    /// What its document says, as a number.
    pub(crate) content: i64,
    pub(crate) swept: Swept,
    pub(crate) counts: Counts,
    /// Progress of a complete run, as JSON.
    pub(crate) summary: String,
    /// When something was last told of it, milliseconds since the Unix epoch.
    pub(crate) touched: i64,
}

impl Run {
    /// Whether it is what a repeated request asks for, and neither failed nor ended otherwise meanwhile. The time is in
    /// seconds, so requests of the same second look alike.
    pub(crate) fn is_for(&self, wanted: &Wanted) -> bool {
        let asked = &wanted.processing;
        (self.state.is_open() || matches!(self.state, State::Complete | State::Submitted))
            && self.target.document == asked.document_id
            && self.target.flow == asked.flow
            && self.target.collection == asked.collection
            && self.target.generation == wanted.generation
            && self.time == asked.time
            && self.tags == asked.tags
    }
}

/// What a client asks for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) workspace: String,
    pub(crate) processing: ProcessingMetadata,
    pub(crate) generation: i64,
}

/// A run with what its books say.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) run: Run,
    pub(crate) readings: Vec<Reading>,
    pub(crate) effects: Vec<Effect>,
    /// Chunks that need nothing done.
    pub(crate) unchanged: i64,
    /// What went wrong or was remarked, as much of it as was asked for.
    pub(crate) faults: Vec<ProcessingError>,
    /// How many of them are kept.
    pub(crate) faults_kept: i64,
    /// Of these: what the document lacks.
    pub(crate) of_content: i64,
}

/// What a run needs to start.
#[derive(Debug)]
pub(crate) enum Plan {
    /// These records are to be published.
    Publish(Box<Run>, Vec<Record>),
    /// Nothing: it waits, or it is over.
    Nothing,
}

/// The start of a flow under which a run is to begin.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) flow: Flow,
    pub(crate) wiring: Wiring,
    /// What it does with documents.
    pub(crate) fingerprints: Fingerprints,
    /// Whether anybody will tell how far the run is.
    pub(crate) tracked: bool,
    /// Milliseconds since the Unix epoch.
    pub(crate) now: i64,
}

/// A record at one of its readers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pair {
    pub(crate) record: RecordKey,
    pub(crate) subscription: String,
}

/// Ids in one retraction.
pub(crate) const RETRACTED: usize = 500;

/// A retraction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retraction {
    pub(crate) number: i64,
    pub(crate) target: Target,
    /// Run it is part of; empty outside runs.
    pub(crate) thread: String,
    /// Id of the record.
    pub(crate) record: String,
    pub(crate) chunks: Vec<String>,
    /// Triples that go whatever they came from.
    pub(crate) triples: Vec<Triple>,
    /// What was made anew of chunks that stay.
    pub(crate) superseded: Vec<Superseded>,
}

/// Which documents that were processed are asked for; empty fields: all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) document: String,
    pub(crate) flow: String,
    pub(crate) collection: String,
}

/// Chunks of a document that were made under the same fingerprints.
#[derive(Debug, Clone)]
pub(crate) struct ChunksMade {
    /// `None`: nobody noted them.
    pub(crate) under: Option<Fingerprints>,
    /// Whether every store has them.
    pub(crate) done: bool,
    pub(crate) number: i64,
}

/// A document that was processed.
#[derive(Debug, Clone)]
pub(crate) struct Processed {
    pub(crate) number: i64,
    pub(crate) target: Target,
    /// What its flow did when it was processed to its end last; `None`: nobody noted it.
    pub(crate) fingerprints: Option<Fingerprints>,
    /// Its kind; `None`: it is not in the library any more.
    pub(crate) document: Option<String>,
    /// Whether it says what it said then, as far as is known.
    pub(crate) same_content: bool,
    pub(crate) chunks: Vec<ChunksMade>,
    /// Its latest run that clients see.
    pub(crate) latest: Option<Run>,
}

/// Runs of all workspaces.
#[async_trait]
pub(crate) trait RunStore: Send + Sync + 'static {
    /// Notes a run, or finds the one that the same question noted. Refuses (conflict) a processing id that is in
    /// use, and (not found) a document that is not there.
    async fn note_run(&self, asker: &Asker, wanted: Wanted) -> Result<Run, StorageError>;

    /// A run begins anew: another takes its place and its processing id. Done before: finds that one.
    async fn replace_run(&self, number: i64, wanted: Wanted, now: i64)
    -> Result<Run, StorageError>;

    /// A run by its number.
    async fn run(&self, number: i64) -> Result<Option<Run>, StorageError>;

    /// At most `most` runs after a number in which something may still happen.
    async fn live_runs(&self, after: i64, most: u32) -> Result<Vec<Run>, StorageError>;

    /// The run behind a processing id, with at most `faults` of what went wrong.
    async fn shown(
        &self,
        workspace: &str,
        processing: &str,
        faults: u32,
    ) -> Result<Option<Shown>, StorageError>;

    /// At most `most` runs that clients see after a number, in the order they came.
    async fn shown_after(
        &self,
        workspace: &str,
        after: i64,
        most: u32,
        faults: u32,
    ) -> Result<Vec<Shown>, StorageError>;

    /// The last `most` runs of a flow that clients see, the latest first, without their faults.
    async fn shown_last(
        &self,
        workspace: &str,
        flow: &str,
        most: u32,
    ) -> Result<Vec<Shown>, StorageError>;

    /// At most `most` records of a run that were not handled well yet.
    async fn open_pairs(&self, number: i64, most: u32) -> Result<Vec<Pair>, StorageError>;

    /// Plans a run that is queued or was starting, and notes whom it waits for or why it ends.
    async fn plan(&self, number: i64, start: Start) -> Result<Plan, StorageError>;

    /// The first records are published: a run that is starting is in a state from now on. Its collection has the names of
    /// the vocabulary once they are stored; where nobody tells of that, from now on.
    async fn started(&self, run: &Run, state: State) -> Result<(), StorageError>;

    /// A run that is in one state is in another from now on; one in a third stays.
    async fn change_state(
        &self,
        number: i64,
        from: State,
        to: State,
        why: &str,
    ) -> Result<(), StorageError>;

    /// A run goes on under another start of its flow.
    async fn revive(&self, number: i64, epoch: u64) -> Result<(), StorageError>;

    /// Takes a processing back, so that the next run does everything again; one under way is cancelled. Returns how
    /// it stood, and how many records are under way if any; `None`: the same question took it back before. Refuses
    /// (not found) one that is not there.
    async fn take_back(
        &self,
        asker: &Asker,
        processing: &str,
    ) -> Result<Option<(Shown, Option<i64>)>, StorageError>;

    /// At most `most` documents that were processed, after a number, into collections that are there.
    async fn processed(
        &self,
        workspace: &str,
        of: &Selector,
        after: i64,
        most: u32,
    ) -> Result<Vec<Processed>, StorageError>;

    /// The next run into a target is to do everything again.
    async fn do_again(&self, target: &Target) -> Result<(), StorageError>;

    /// Forgets a run.
    async fn delete_run(&self, number: i64) -> Result<(), StorageError>;

    /// Enters what was told of records; runs that are over end. Nothing counts twice. `true`: there is something to
    /// do now.
    async fn hear(&self, entries: Vec<RunTallyEntry>, now: i64) -> Result<bool, StorageError>;

    /// Ends a run whose records were all handled. `true`: there is something to do now.
    async fn settle(&self, number: i64, now: i64) -> Result<bool, StorageError>;

    /// A failed record was sent again: it is on its way.
    async fn reopen_record(&self, number: i64, pair: &Pair) -> Result<(), StorageError>;

    /// A record that was to be sent again was not: it failed, as before.
    async fn close_record(&self, number: i64, pair: &Pair, why: &str) -> Result<(), StorageError>;

    /// At most `most` retractions after a number that wait for nothing.
    async fn due_retractions(&self, after: i64, most: u32)
    -> Result<Vec<Retraction>, StorageError>;

    /// A retraction was published.
    async fn remove_retraction(&self, number: i64) -> Result<(), StorageError>;
}
