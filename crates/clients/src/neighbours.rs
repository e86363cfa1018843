//! What may be counted on of whoever stands at the other ends of the queues: among processors of our own all of it, on
//! a broker that is shared with foreign ones (interop mode) nothing. Who asks says what for, so that this is the one
//! place to change when a foreign processor learns something.

use tg_mesh::Peer;

/// The processors at the other ends of the queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours {
    ours: bool,
    tombstones: bool,
}

impl Neighbours {
    /// Those of this process.
    pub fn of(peer: &Peer) -> Self {
        Self {
            ours: peer.rules().all_ours,
            tombstones: peer.rules().tombstones,
        }
    }

    /// Whether the config service says of a deletion what was deleted; a foreign one only has no row any more.
    pub fn keep_tombstones(self) -> bool {
        self.tombstones
    }

    /// Whether they report the records that they are done with, so that a run is known to be complete.
    pub fn report_runs(self) -> bool {
        self.ours
    }

    /// Whether the library takes texts as records.
    pub fn take_library_records(self) -> bool {
        self.ours
    }

    /// Whether a listing can be had in pages. Who knows none answers as a whole.
    pub fn have_pages(self) -> bool {
        self.ours
    }

    /// Whether a service says how it stands with its provider, and which model it asks.
    pub fn say_how_they_are(self) -> bool {
        self.ours
    }

    /// Whether the iam service keeps what happened.
    pub fn keep_audit(self) -> bool {
        self.ours
    }

    /// Whether an agent keeps a ledger of runs that go on without their caller.
    pub fn keep_runs(self) -> bool {
        self.ours
    }

    /// Whether gateways ask each other for streams. Where the queue of a question outlives its consumer, each process would leave
    /// one behind.
    pub fn ask_gateways(self) -> bool {
        self.ours
    }

    /// Whether they take back what a retraction names.
    pub fn take_retractions(self) -> bool {
        self.ours
    }

    /// Whether each says which processors it serves. Then the queue of a question also vanishes with its last
    /// consumer; else it stays, and only its consumers tell.
    pub fn say_what_they_serve(self) -> bool {
        self.ours
    }

    /// Whether answers go to the inbox of who asks, so that no exchange stands for them.
    pub fn answer_to_inboxes(self) -> bool {
        self.ours
    }

    /// Whether a store reports to the writer of a record, if asked to, what became of it.
    pub fn give_receipts(self) -> bool {
        self.ours
    }

    /// Whether an answer can be resumed by another process where it stands.
    pub fn resume_answers(self) -> bool {
        self.ours
    }

    /// Whether they take a field that is missing in a term for empty. So does the reference, but it has never been sent such a term.
    pub fn read_lean_terms(self) -> bool {
        self.ours
    }

    /// Whether a notice of a change may name the keys that changed.
    pub fn read_keyed_notices(self) -> bool {
        self.ours
    }

    /// Whether a record of vectors names the chunk of each; else a store takes it from the record's metadata.
    pub fn name_chunks_by_vector(self) -> bool {
        self.ours
    }
}
