//! Options that many commands share. It never parses what belongs to one command only.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// Where a gateway is unless somebody says otherwise.
const USUAL_URL: &str = "http://localhost:8888/";

/// Where the gateway is, who asks, and how to print.
#[derive(Debug, Clone, Args)]
pub struct Gateway {
    /// Address of the gateway [env: THREADGRAPH_URL, TRUSTGRAPH_URL] [default: http://localhost:8888/]
    #[arg(
        short = 'u',
        long = "api-url",
        visible_alias = "url",
        value_name = "URL"
    )]
    pub url: Option<String>,
    /// API key or other token [env: THREADGRAPH_TOKEN, TRUSTGRAPH_TOKEN]
    #[arg(short = 't', long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Authorities that may sign the gateway's certificate, in PEM form, instead of this machine's [env: THREADGRAPH_CA_FILE]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Address, token and workspace that `tg login` keeps under a name [env: THREADGRAPH_PROFILE]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Seconds without any sign of life before giving up
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
}

/// [`Gateway`] and the workspace to work in.
#[derive(Debug, Clone, Args)]
pub struct Common {
    #[command(flatten)]
    #[allow(missing_docs, reason = "a flattened group has no help of its own")]
    pub gateway: Gateway,
    /// Workspace [env: THREADGRAPH_WORKSPACE, TRUSTGRAPH_WORKSPACE] [default: the caller's own, usually `default`]
    #[arg(short = 'w', long, value_name = "ID")]
    pub workspace: Option<String>,
}

/// [`Common`] and a flow.
#[derive(Debug, Clone, Args)]
pub struct InFlow {
    #[command(flatten)]
    #[allow(missing_docs, reason = "a flattened group has no help of its own")]
    pub common: Common,
    /// Flow to use
    #[arg(short = 'f', long, default_value = "default", value_name = "ID")]
    pub flow_id: String,
}

/// [`InFlow`] and a collection.
#[derive(Debug, Clone, Args)]
pub struct InCollection {
    #[command(flatten)]
    #[allow(missing_docs, reason = "a flattened group has no help of its own")]
    pub flow: InFlow,
    /// Collection to use
    #[arg(short = 'C', long, default_value = "default", value_name = "ID")]
    pub collection: String,
}

/// Where profiles come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// The named one, else the current one, if there is any.
    Use(Option<String>),
    /// Its address alone, if it is there: what else it has is about to be replaced.
    Address(Option<String>),
    /// Not at all.
    Ignore,
}

/// Arguments for the one thing that a command is about, bare or by its flag.
macro_rules! subject {
    (@of $kind:ty: $(#[$about:meta])* $name:ident, $of:literal as $value:literal, $($flag:tt)*) => {
        $(#[$about])*
        #[derive(Debug, clap::Args)]
        pub struct $name {
            #[doc = $of]
            #[arg(value_name = $value, required = true, conflicts_with = "named")]
            bare: Option<$kind>,
            #[arg($($flag)*, id = "named", value_name = $value, help = concat!("Same as <", $value, ">, given as a flag"))]
            named: Option<$kind>,
        }
    };
    (file $(#[$about:meta])* $name:ident, $of:literal, $($flag:tt)*) => {
        $crate::args::subject!(@of std::path::PathBuf: $(#[$about])* $name, $of as "FILE", $($flag)*);

        impl $name {
            /// It, however it was said.
            pub fn path(&self) -> &std::path::Path {
                let said = self.bare.as_deref().or(self.named.as_deref());
                said.unwrap_or(std::path::Path::new(""))
            }
        }
    };
    ($(#[$about:meta])* $name:ident, $of:literal as $value:literal, $($flag:tt)*) => {
        $crate::args::subject!(@of String: $(#[$about])* $name, $of as $value, $($flag)*);

        impl $name {
            /// It, however it was said.
            pub fn id(&self) -> &str {
                let said = self.bare.as_deref().or(self.named.as_deref());
                said.unwrap_or_default()
            }
        }
    };
    ($(#[$about:meta])* $name:ident, $of:literal, $($flag:tt)*) => {
        $crate::args::subject!($(#[$about])* $name, $of as "ID", $($flag)*);
    };
}

pub(crate) use subject;

subject!(
    file
    /// Where records go.
    TargetFile,
    "File to write",
    short = 'o',
    long = "output-file"
);

subject!(
    file
    /// Where records come from.
    SourceFile,
    "File to read",
    short = 'i',
    long = "input-file"
);

subject!(
    /// A question in words.
    Asked,
    "The question" as "QUESTION",
    short = 'q',
    long = "question",
    visible_alias = "query"
);

/// What a session needs to know from the arguments; what they leave open is filled in by [`crate::target::complete`].
#[derive(Debug, Clone)]
pub struct Options {
    /// Address of the gateway.
    pub url: Option<String>,
    /// Token, if any.
    pub token: Option<String>,
    /// Workspace, if the user named one.
    pub workspace: Option<String>,
    /// Whose signature makes a gateway's certificate good, if not that of one the machine trusts.
    pub ca_file: Option<PathBuf>,
    /// Which profile may fill in the four.
    pub stored: Stored,
    /// Print JSON.
    pub json: bool,
    /// Longest silence of the gateway.
    pub timeout: Duration,
}

impl Options {
    /// Options of a command that never calls the gateway.
    pub fn local() -> Self {
        Self {
            url: None,
            token: None,
            workspace: None,
            ca_file: None,
            stored: Stored::Ignore,
            json: false,
            timeout: Duration::from_secs(60),
        }
    }

    /// The address asked for, or the usual one.
    pub fn address(&self) -> &str {
        self.url.as_deref().unwrap_or(USUAL_URL)
    }
}

/// A text that says something.
fn some(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

impl From<&Gateway> for Options {
    fn from(gateway: &Gateway) -> Self {
        Self {
            url: some(gateway.url.as_ref()),
            token: some(gateway.token.as_ref()),
            workspace: None,
            ca_file: gateway.ca_file.clone(),
            stored: Stored::Use(some(gateway.profile.as_ref())),
            json: gateway.json,
            timeout: Duration::from_secs(gateway.timeout),
        }
    }
}

impl From<&Common> for Options {
    fn from(common: &Common) -> Self {
        Self {
            workspace: some(common.workspace.as_ref()),
            ..Self::from(&common.gateway)
        }
    }
}

impl From<&InFlow> for Options {
    fn from(flow: &InFlow) -> Self {
        Self::from(&flow.common)
    }
}

impl From<&InCollection> for Options {
    fn from(args: &InCollection) -> Self {
        Self::from(&args.flow)
    }
}
