//! `tg show-flow-state`: which processors serve a flow and its blueprint.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Common, Options};
use crate::client::{Http, Result};
use crate::commands::status::samples::{by_processor, render};
use crate::fields::{embedded, text};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-flow-state`.
#[derive(Debug, Args)]
pub struct ShowFlowState {
    #[command(flatten)]
    common: Common,
    /// Flow to look at
    #[arg(short = 'f', long, default_value = "default", value_name = "ID")]
    flow_id: String,
    /// Address of the metrics [default: /api/metrics of the gateway]
    #[arg(short = 'm', long, value_name = "URL")]
    metrics_url: Option<String>,
}

impl Command for ShowFlowState {
    const NAME: &'static str = "show-flow-state";
    const ABOUT: &'static str = "Show which processors serve a flow";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let request = json!({"operation": "get-flow", "flow-id": self.flow_id});
        let reply = http.service("flow", request).await?;
        let blueprint = text(&embedded(&reply, "flow"), "blueprint-name");
        let metrics = self.metrics_url.as_deref();
        let of_flow = states(&http, metrics, &self.flow_id).await?;
        let of_blueprint = states(&http, metrics, &blueprint).await?;
        let shown = json!({
            "flow": {"id": self.flow_id, "processors": of_flow},
            "blueprint": {"name": blueprint, "processors": of_blueprint},
        });
        session.out.show(&shown, || {
            format!(
                "\nFlow {}\n{}\nBlueprint {blueprint}\n{}",
                self.flow_id,
                render(&of_flow, "- "),
                render(&of_blueprint, "- "),
            )
        })
    }
}

async fn states(http: &Http, metrics: Option<&str>, label: &str) -> Result<BTreeMap<String, bool>> {
    let label = label.replace('\\', "\\\\").replace('"', "\\\"");
    let query = format!("consumer_state{{consumer_state=\"running\",flow=\"{label}\"}}");
    let samples: Vec<Value> = http.metrics(metrics, &query).await?;
    Ok(by_processor(&samples))
}
