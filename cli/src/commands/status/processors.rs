//! `tg show-processor-state`: the processors that run.

use clap::Args;
use serde_json::json;

use super::samples::name;
use crate::args::{Gateway, Options};
use crate::client::Result;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-processor-state`.
#[derive(Debug, Args)]
pub struct ShowProcessorState {
    #[command(flatten)]
    gateway: Gateway,
    /// Address of the metrics [default: /api/metrics of the gateway]
    #[arg(short = 'm', long, value_name = "URL")]
    metrics_url: Option<String>,
}

impl Command for ShowProcessorState {
    const NAME: &'static str = "show-processor-state";
    const ABOUT: &'static str = "Show the processors that run";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let samples = http
            .metrics(self.metrics_url.as_deref(), "processor_info")
            .await?;
        let names: Vec<String> = samples.iter().map(name).collect();
        session.out.show(&json!(names), || {
            names
                .iter()
                .map(|name| format!("  {name:30} \u{1f49a}\n"))
                .collect()
        })
    }
}
