//! `tg doctor`: what is wrong, and what to do about each thing.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Common, Options};
use crate::client::{Error, Http, Result};
use crate::fields::{embedded, list, text};
use crate::layout::fold;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    common: Common,
}

impl Command for Doctor {
    const NAME: &'static str = "doctor";
    const ABOUT: &'static str = "Look for what is wrong and say what to do about it";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let checks = examine(&session.http()?).await?;
        let failed = checks.iter().filter(|check| !passed(check)).count();
        let shown = json!({"healthy": failed == 0, "checks": checks});
        session.out.show(&shown, || render(&checks))?;
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
