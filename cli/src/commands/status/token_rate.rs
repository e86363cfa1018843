//! `tg show-token-rate`: tokens a second, in, out and together, averaged since the command began.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::args::{Gateway, Options};
use crate::client::{Error, Http, Result};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-token-rate`.
#[derive(Debug, Args)]
pub struct ShowTokenRate {
    #[command(flatten)]
    gateway: Gateway,
    /// Address of the metrics [default: /api/metrics of the gateway]
    #[arg(short = 'm', long, value_name = "URL")]
    metrics_url: Option<String>,
    /// Seconds between two lines
    #[arg(short = 'p', long, default_value_t = 1, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    period: u64,
    /// Lines
    #[arg(short = 'n', long, default_value_t = 100, value_name = "COUNT")]
    number_samples: u64,
}

impl Command for ShowTokenRate {
    const NAME: &'static str = "show-token-rate";
    const ABOUT: &'static str = "Show how many tokens a second the models read and write";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let metrics = self.metrics_url.as_deref();
        let began = Instant::now();
        let mut input = Rate::from(tokens(&http, metrics, "input_tokens_total").await?);
        let mut output = Rate::from(tokens(&http, metrics, "output_tokens_total").await?);
        if !session.out.is_json() {
            session.out.line(row(["Input", "Output", "Total"]))?;
            session.out.line(row(["-----", "------", "-----"]))?;
        }
        for _ in 0..self.number_samples {
            session.out.flush()?;
            session.pause(Duration::from_secs(self.period)).await?;
            input.see(tokens(&http, metrics, "input_tokens_total").await?);
            output.see(tokens(&http, metrics, "output_tokens_total").await?);
            let seconds = began.elapsed().as_secs_f64();
            let (input, output) = (input.total / seconds, output.total / seconds);
            if session.out.is_json() {
                let line = json!({"input": input, "output": output, "total": input + output});
                session.out.json_line(&line)?;
                continue;
            }
            let shown = [input, output, input + output].map(|rate| format!("{rate:.1}"));
            session.out.line(row(shown))?;
        }
        Ok(())
    }
}

fn row(cells: [impl std::fmt::Display; 3]) -> String {
    let [input, output, total] = cells;
    format!("{input:>10} {output:>10} {total:>10}")
}

async fn tokens(http: &Http, metrics: Option<&str>, counter: &str) -> Result<f64> {
    sum(&http.metrics(metrics, counter).await?)
}

/// All series of a counter together; one that nothing has counted yet has none.
fn sum(samples: &[Value]) -> Result<f64> {
    let mut sum = 0.0;
    for sample in samples {
        let value = sample.pointer("/value/1");
        let number = value
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<f64>().ok());
        sum += number.ok_or_else(|| Error::Protocol("a sample without a number".to_owned()))?;
    }
    Ok(sum)
}

/// What a counter has grown by.
#[derive(Debug)]
struct Rate {
    last: f64,
    total: f64,
}

impl Rate {
    fn from(first: f64) -> Self {
        Self {
            last: first,
            total: 0.0,
        }
    }

    /// A counter that is smaller than before began anew with its process.
    fn see(&mut self, value: f64) {
        self.total += match value < self.last {
            true => value,
            false => value - self.last,
        };
        self.last = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed_up_and_survive_a_restart() {
        let samples = [json!({"value": [0, "40"]}), json!({"value": [0, "2"]})];
        assert_eq!(sum(&samples).expect("a number"), 42.0);
        assert_eq!(sum(&[]).expect("nothing yet"), 0.0);
        assert!(sum(&[json!({"value": [0, "x"]})]).is_err());
        let mut rate = Rate::from(100.0);
        for value in [110.0, 5.0, 6.0] {
            rate.see(value);
        }
        assert_eq!(rate.total, 16.0);
        assert_eq!(
            row(["Input", "1.0", "x"]),
            "     Input        1.0          x"
        );
    }
}
