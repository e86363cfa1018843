//! How a bus speaks: every habit of the wire as data, made here and nowhere else. Whoever has to do one thing among
//! processors of ours and another among foreign ones reads the rule that it needs, never which mode it is.

use tg_schemas::codec::ContentType;

/// How the mesh speaks on a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Our own exchange prefix; shares nothing with foreign processors.
    #[default]
    Native,
    /// The reference's names, declarations and JSON; replies on response topics.
    Interop,
}

/// What holds on a wire.
#[derive(Debug, PartialEq, Eq)]
pub struct WireRules {
    /// Its name in texts for people; nothing is decided by it.
    pub name: &'static str,
    /// What replaces the topic space in names, if anything.
    pub prefix: Option<&'static str>,
    /// How records are written; one that is read may be written either way.
    pub records: ContentType,
    /// Every message carries our headers: frame and number of a part, asker's inbox, deadline, epoch. Else the id is all
    /// that is sent and read, and answers come on the response topic, without numbers.
    pub framed: bool,
    /// The queue of a question vanishes with its last consumer, so that the question comes back at once; else it waits
    /// there for a server.
    pub questions_come_back: bool,
    /// Only processes of ours declare queues of questions, so these may have properties of our own. Foreign processors declare
    /// theirs neither durable nor exclusive, and without arguments.
    pub own_question_queues: bool,
    /// The exchanges of questions, answers and notices outlive the broker, as those of records do.
    pub exchanges_last: bool,
    /// Each inbox has a queue that lives exactly as long as its process's connection.
    pub deaths_show: bool,
    /// Seconds without a sign of life after which a connection to a broker is given up.
    pub heartbeat: u16,
    /// Deletions are announced by tombstones. Where they are not, nothing is purged and no record is refused for the
    /// generation that it lacks.
    pub tombstones: bool,
    /// The lease of a store says which store served last under its name.
    pub leases: bool,
    /// Who reads a record reports that it is done with it.
    pub reports: bool,
    /// Whoever serves the whole system reads records as well as questions; else it is asked only, and of records there
    /// are only those that could not be handled.
    pub system_records: bool,
    /// All processors on the wire are of this project. The typed clients go by it, for what they ask of services.
    pub all_ours: bool,
}

/// Among processors of ours. The prefix is as long as the reference's `tg`, so that name lengths agree.
static NATIVE: WireRules = WireRules {
    name: "native",
    prefix: Some("nt"),
    records: ContentType::Avro,
    framed: true,
    questions_come_back: true,
    own_question_queues: true,
    exchanges_last: false,
    deaths_show: true,
    heartbeat: 15,
    tombstones: true,
    leases: true,
    reports: true,
    system_records: true,
    all_ours: true,
};

/// Among foreign ones, who send, declare and say what the reference does.
static INTEROP: WireRules = WireRules {
    name: "interop",
    prefix: None,
    records: ContentType::Json,
    framed: false,
    questions_come_back: false,
    own_question_queues: false,
    exchanges_last: true,
    deaths_show: false,
    heartbeat: 60,
    tombstones: false,
    leases: false,
    reports: false,
    system_records: false,
    all_ours: false,
};

impl Mode {
    /// What holds on a wire of this mode.
    pub fn rules(self) -> &'static WireRules {
        match self {
            Self::Native => &NATIVE,
            Self::Interop => &INTEROP,
        }
    }
}

impl From<Mode> for &'static WireRules {
    fn from(mode: Mode) -> Self {
        mode.rules()
    }
}

impl Default for &'static WireRules {
    fn default() -> Self {
        Mode::default().rules()
    }
}
