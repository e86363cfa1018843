//! Options that many commands share. It never parses what belongs to one command only.

use std::time::Duration;

use clap::Args;

/// Where the gateway is, who asks, and how to print.
#[derive(Debug, Clone, Args)]
pub struct Gateway {
    /// Address of the gateway
    #[arg(
        short = 'u',
        long = "api-url",
        visible_alias = "url",
        env = "TRUSTGRAPH_URL",
        default_value = "http://localhost:8888/",
        value_name = "URL"
    )]
    pub url: String,
    /// API key or other token
    #[arg(
        short = 't',
        long,
        env = "TRUSTGRAPH_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub token: Option<String>,
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
    /// Workspace [default: the caller's own, usually `default`]
    #[arg(short = 'w', long, env = "TRUSTGRAPH_WORKSPACE", value_name = "ID")]
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

/// What a session needs to know from the arguments.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address of the gateway.
    pub url: String,
    /// Token, if any.
    pub token: Option<String>,
    /// Workspace, if the user named one.
    pub workspace: Option<String>,
    /// Print JSON.
    pub json: bool,
    /// Longest silence of the gateway.
    pub timeout: Duration,
}

impl Options {
    /// Options of a command that never calls the gateway.
    pub fn local() -> Self {
        Self {
            url: String::new(),
            token: None,
            workspace: None,
            json: false,
            timeout: Duration::from_secs(60),
        }
    }
}

impl From<&Gateway> for Options {
    fn from(gateway: &Gateway) -> Self {
        Self {
            url: gateway.url.clone(),
            token: gateway.token.clone().filter(|token| !token.is_empty()),
            workspace: None,
            json: gateway.json,
            timeout: Duration::from_secs(gateway.timeout),
        }
    }
}

impl From<&Common> for Options {
    fn from(common: &Common) -> Self {
        Self {
            workspace: common.workspace.clone().filter(|id| !id.is_empty()),
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
