//! `tg doctor`: what is wrong, and what to do about each thing.

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};
use tg_schemas::ErrorCode;

use crate::args::{Common, Options};
use crate::client::{Error, Http, Result};
use crate::fields::{embedded, list, text};
use crate::layout::fold;
use crate::registry::Command;
use crate::session::Session;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// A certificate that ends within so many days is told.
const SOON: i64 = 14;

/// Arguments of `tg doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    common: Common,
}

impl Command for Doctor {
    const NAME: &'static str = "doctor";
    const ABOUT: &'static str = "Diagnose problems and suggest remedies";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let checks = examine(&session.http()?).await?;
        let failed = checks.iter().filter(|check| !passed(check)).count();
        let shown = json!({"healthy": failed == 0, "checks": checks});
        let text = session.out.as_called(&render(&checks));
        session.out.show(&shown, || text)?;
        match failed {
            0 => Ok(()),
            failed => Err(Error::Check(format!(
                "{failed} of {} checks failed",
                checks.len()
            ))),
        }
    }
}

/// Our own checks first, each only if the one before makes sense of it, then the server's.
async fn examine(http: &Http) -> Result<Vec<Value>> {
    let mut checks = Vec::new();
    let reached = http.get_text("", &[]).await;
    let up = reached.is_ok();
    checks.push(check(
        "gateway reachable",
        reached.map(|_| http.base().to_string()),
        "start one with `threadgraph up`, or name it with --url",
    )?);
    if !up {
        return Ok(checks);
    }
    let whoami = http.iam(json!({"operation": "whoami"})).await;
    let known = whoami.is_ok();
    checks.push(check(
        "token accepted",
        whoami.map(|reply| caller(&reply)),
        "pass a valid key with --token; `tg bootstrap-iam` gives the first one",
    )?);
    checks.push(check(
        "default flow ready",
        ready(http).await,
        "`tg show-flows`, then `tg why` for the flow",
    )?);
    checks.extend(certificate(http).await?);
    checks.extend(embeddings(http).await?);
    if known {
        match http.service("flow", json!({"operation": "doctor"})).await {
            Ok(reply) => checks.extend_from_slice(list(&embedded(&reply, "doctor"), "checks")),
            outcome @ Err(_) => checks.push(check(
                "flow service answers",
                outcome.map(|_| String::new()),
                "`tg show-processor-state` shows what runs",
            )?),
        }
    }
    Ok(checks)
}

async fn ready(http: &Http) -> Result<String> {
    match http.get_text("health/ready", &[]).await? {
        (200, _) => Ok("GET /health/ready is 200".to_owned()),
        (status, body) => {
            let detail: String = body.trim().chars().take(300).collect();
            Err(Error::Check(format!("status {status} {detail}")))
        }
    }
}

/// How long the gateway's certificate is good. Nothing where it has none, or does not tell this caller.
async fn certificate(http: &Http) -> Result<Option<Value>> {
    let ends = match gauge(http, "tg_gateway_certificate_expiry_timestamp_seconds").await? {
        Some(ends) => ends as i64,
        None => return Ok(None),
    };
    let refused = gauge(http, "tg_gateway_certificate_refused").await?;
    let outcome = match refused == Some(1.0) {
        true => Err(Error::Check(
            "its files hold none that can be used; the one before is shown".to_owned(),
        )),
        false => until(ends, Utc::now().timestamp()),
    };
    let advice = "put a new certificate and its key where gateway.tls_cert and gateway.tls_key say; they are read by \
                  themselves, and the gateway's log says what is wrong with them";
    check("certificate", outcome, advice).map(Some)
}

/// The value of a gauge of the gateway; `None`: it has none, or does not tell this caller.
async fn gauge(http: &Http, name: &str) -> Result<Option<f64>> {
    let samples = match http.metrics(None, name).await {
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        samples => samples.unwrap_or_default(),
    };
    let value = samples
        .first()
        .and_then(|sample| sample.pointer("/value/1"));
    Ok(value
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok()))
}

/// Until when a certificate is good; an error where that is soon. Times are seconds since 1970.
fn until(ends: i64, now: i64) -> Result<String> {
    let day = DateTime::from_timestamp(ends, 0);
    let day = day.map_or_else(String::new, |at| at.format("%Y-%m-%d").to_string());
    match (ends - now) / DAY {
        _ if ends <= now => Err(Error::Check(format!("it ended on {day}"))),
        left if left < SOON => Err(Error::Check(format!("it ends on {day}, in {left} days"))),
        _ => Ok(format!("good until {day}")),
    }
}

/// Who makes the vectors of the default flow. Nothing where that flow makes none.
async fn embeddings(http: &Http) -> Result<Option<Value>> {
    let outcome = http
        .flow_service("default", "embeddings", json!({"texts": []}))
        .await;
    match outcome {
        Err(error) if error.code().is_some_and(absent) => Ok(None),
        outcome => {
            let detail = outcome.map(|reply| vectors_by(&text(&reply, "model")));
            let advice = "`tg show-processor-state` shows whether embeddings run";
            check("embeddings", detail, advice).map(Some)
        }
    }
}

fn absent(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NotFound
            | ErrorCode::BadOperation
            | ErrorCode::NotImplemented
            | ErrorCode::NobodyServes
    )
}

/// The model in words. The lexical default works, but its user should know what it does not do.
fn vectors_by(model: &str) -> String {
    match model {
        "" => "answers, but does not name its model".to_owned(),
        model if is_lexical(model) => format!(
            "{model}, the default: it finds shared words, not meaning. `tg models pull` fetches a model \
             that does; set embeddings.provider = \"static\" and embeddings.model = \"NAME\" before documents are \
             processed"
        ),
        model => model.to_owned(),
    }
}

/// Whether vectors of this model come from letters alone.
fn is_lexical(model: &str) -> bool {
    model.split('/').next() == Some("lexical")
}

fn caller(reply: &Value) -> String {
    let user = reply.get("user").unwrap_or(&Value::Null);
    match text(user, "username") {
        name if name.is_empty() => "anonymous".to_owned(),
        name => name,
    }
}

/// A check in the server's own form. Only the user's interrupt is an error here.
fn check(name: &str, outcome: Result<String>, advice: &str) -> Result<Value> {
    match outcome {
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Ok(detail) => Ok(json!({"name": name, "ok": true, "detail": detail, "advice": ""})),
        Err(error) => Ok(json!({
            "name": name, "ok": false, "detail": error.to_string(), "advice": advice,
        })),
    }
}

fn passed(check: &Value) -> bool {
    check.get("ok").and_then(Value::as_bool) == Some(true)
}

fn render(checks: &[Value]) -> String {
    let mut lines = Vec::new();
    for check in checks {
        let icon = if passed(check) { "✓" } else { "✗" };
        let detail = fold(&text(check, "detail"), 76).replace('\n', "\n    ");
        lines.push(format!("{icon} {}: {detail}", text(check, "name")));
        let advice = text(check, "advice");
        if !passed(check) && !advice.is_empty() {
            lines.push(format!("    try: {advice}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_ends_soon_is_told() {
        let now = 1_800_000_000;
        let told = |days: i64| until(now + days * DAY, now).map_err(|error| error.to_string());
        assert_eq!(told(14).as_deref(), Ok("good until 2027-01-29"));
        assert_eq!(
            told(13),
            Err("it ends on 2027-01-28, in 13 days".to_owned())
        );
        assert_eq!(told(0), Err("it ended on 2027-01-15".to_owned()));
    }

    #[test]
    fn the_lexical_default_is_told_as_what_it_is() {
        assert!(vectors_by("lexical/1024").contains("not meaning"));
        assert_eq!(
            vectors_by("static/potion-base-8M/256"),
            "static/potion-base-8M/256"
        );
        assert!(!is_lexical("openai/lexical/8"));
    }

    #[test]
    fn advice_is_given_only_where_something_is_wrong() {
        let checks = [
            json!({"name": "a", "ok": true, "detail": "fine", "advice": "never mind"}),
            json!({"name": "b", "ok": false, "detail": "broken", "advice": "mend it"}),
        ];
        let shown = render(&checks);
        assert!(shown.contains("✓ a: fine"));
        assert!(shown.contains("✗ b: broken\n    try: mend it"));
        assert!(!shown.contains("never mind"));
    }
}
