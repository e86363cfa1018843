//! Everything that can go wrong for a command, and the exit code of each.

use std::path::PathBuf;

use serde_json::Value;
use tg_schemas::ErrorCode;

/// Errors whose wire type says less than their text: type, start of the text, what it means.
const KNOWN: &[(&str, &str, ErrorCode)] = &[
    ("workspace-not-found", "", ErrorCode::NotFound),
    ("unknown-service", "", ErrorCode::BadOperation),
    ("error", "Invalid flow", ErrorCode::NotFound),
    ("flow-error", "Flow already exists", ErrorCode::Conflict),
    (
        "flow-error",
        "Blueprint does not exist",
        ErrorCode::NotFound,
    ),
    ("flow-error", "Flow ID invalid", ErrorCode::NotFound),
    (
        "request-error",
        "Document already exists",
        ErrorCode::Conflict,
    ),
];

/// How it is said that a workspace has no flow; what follows is where.
pub const NO_FLOW: &str = "No flow runs in ";

/// What a command returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments do not fit together.
    #[error("{0}")]
    Usage(String),
    /// No gateway answers.
    #[error("cannot reach the gateway at {url}: {reason}")]
    Unreachable {
        /// The address tried.
        url: String,
        /// What the connection said.
        reason: String,
    },
    /// A place that files are fetched from does not give them.
    #[error("cannot fetch from {place}: {reason}")]
    Source {
        /// Its scheme and host.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The gateway or a service refused or failed.
    #[error("{}", service_text(kind, message))]
    Service {
        /// Wire type.
        kind: String,
        /// Text for people.
        message: String,
    },
    /// The answer is not what the contract says.
    #[error("unexpected answer from the gateway: {0}")]
    Protocol(String),
    /// The gateway was silent for too long.
    #[error("the gateway was silent for {0} seconds")]
    Timeout(u64),
    /// What was asked for does not exist.
    #[error("{0}")]
    Missing(String),
    /// A check did not pass.
    #[error("{0}")]
    Check(String),
    /// A file cannot be read or written, or does not hold what it should.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Whoever reads our output went away.
    #[error("output closed")]
    OutputClosed,
    /// Output cannot be written.
    #[error("cannot write output: {0}")]
    Output(std::io::Error),
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

fn service_text(kind: &str, message: &str) -> String {
    match (kind, message) {
        ("error" | "", message) if !message.is_empty() => message.to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, message) => format!("{kind}: {message}"),
    }
}

impl Error {
    /// A failed file operation.
    pub fn file(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::File {
            path: path.into(),
            reason: reason.to_string(),
        }
    }

    /// An error body as services and endpoints write it: an object with type and message, or a text.
    pub fn from_body(error: &Value) -> Self {
        let field = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
        match error {
            Value::String(text) => Self::Service {
                kind: "error".to_owned(),
                message: text.clone(),
            },
            _ => Self::Service {
                kind: field("type")
                    .or_else(|| field("code"))
                    .unwrap_or_else(|| "error".to_owned()),
                message: field("message").unwrap_or_default(),
            },
        }
    }

    /// An HTTP status other than 200, with what its body says.
    pub fn from_status(status: u16, body: &str) -> Self {
        let error = serde_json::from_slice::<Value>(body.as_bytes())
            .ok()
            .and_then(|body| body.get("error").cloned());
        let (kind, message) = match error.as_ref().map(Self::from_body) {
            Some(Self::Service { kind, message }) => (kind, message),
            _ => ("error".to_owned(), format!("status {status}")),
        };
        if ErrorCode::from_wire(&kind) != ErrorCode::Internal {
            return Self::Service { kind, message };
        }
        let by_status = ErrorCode::all().find(|code| code.status() == status);
        Self::Service {
            kind: by_status.map_or(kind, |code| code.as_str().to_owned()),
            message,
        }
    }

    /// The code behind an error of a service; `None` for errors of our own.
    pub fn code(&self) -> Option<ErrorCode> {
        let Self::Service { kind, message } = self else {
            return None;
        };
        let known = KNOWN
            .iter()
            .find(|(of, text, _)| kind == of && message.starts_with(text));
        Some(known.map_or_else(|| ErrorCode::from_wire(kind), |(_, _, code)| *code))
    }

    /// The workspace and the flow of it that the gateway says does not run: `Invalid flow workspace/flow`.
    pub fn missing_flow(&self) -> Option<(String, String)> {
        let Self::Service { message, .. } = self else {
            return None;
        };
        let (workspace, flow) = message.strip_prefix("Invalid flow ")?.split_once('/')?;
        Some((workspace.to_owned(), flow.to_owned()))
    }

    /// Whether the gateway says that there is no such workspace. Over HTTP it says so by status and text alone.
    pub fn is_missing_workspace(&self) -> bool {
        let Self::Service { kind, message } = self else {
            return false;
        };
        kind == "workspace-not-found" || message == "workspace not found"
    }

    /// A flow that does not run, with those that do.
    pub fn not_running(flow: &str, workspace: Option<&str>, running: &[String]) -> Self {
        let place = match workspace {
            Some(workspace) => format!("workspace {workspace}"),
            None => "your workspace".to_owned(),
        };
        Self::Missing(match running.is_empty() {
            true => format!("{NO_FLOW}{place}"),
            false => format!(
                "flow {flow} does not run in {place}; running: {}",
                running.join(", ")
            ),
        })
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        let code = match self {
            Self::Usage(_) => ErrorCode::BadRequest,
            Self::Unreachable { .. } | Self::Source { .. } => ErrorCode::Unavailable,
            Self::Timeout(_) => ErrorCode::Timeout,
            Self::Missing(_) => ErrorCode::NotFound,
            Self::OutputClosed => return 0,
            Self::Interrupted => return 130,
            Self::Service { .. } => self.code().unwrap_or(ErrorCode::Internal),
            Self::Protocol(_) | Self::Check(_) | Self::File { .. } | Self::Output(_) => {
                ErrorCode::Internal
            }
        };
        u8::try_from(code.exit_code()).unwrap_or(1)
    }

    /// A short word for the kind of error, as `--json` prints it.
    pub fn kind(&self) -> &str {
        match self {
            Self::Service { kind, .. } => kind,
            Self::Usage(_) => "usage",
            Self::Unreachable { .. } | Self::Source { .. } => "unreachable",
            Self::Protocol(_) => "protocol",
            Self::Timeout(_) => "timeout",
            Self::Missing(_) => "not-found",
            Self::Check(_) => "check-failed",
            Self::File { .. } => "file",
            Self::OutputClosed | Self::Output(_) => "output",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Output(error),
        }
    }
}
