//! Why a request, a run of the agent or a thread of listeners does not move: what it waits for, since when, and the command that helps.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tg_threads::ThreadId;

use super::runs::confirm_command;
use crate::client::{Call, Error, Result};
use crate::fields::{embedded, in_shell, list, text, texts};
use crate::session::Session;

/// What gives a line of the console to its listener.
const ROUTER: &str = "console-router";
/// Names in the chain of a thread on which whoever wrote from outside is answered: the system, the mesh, and that one.
const OUTSIDE: usize = 3;

/// A line for the run and each of its subagents, and those for what they wait for.
pub(in crate::commands) async fn run(session: &Session, id: &str, all: bool) -> Result<Vec<Value>> {
    let request = json!({"operation": "why-run", "run": id, "all": all});
    let told = session.http()?.service("requests", request).await?;
    let flow = text(&told, "flow");
    let waits = |on: &str| {
        let mut standing = list(&told, "standing").iter();
        standing.any(|one| text(one, "waits-for") == on)
    };
    let route = match waits("model") {
        true => route(session, &flow).await,
        false => Value::Null,
    };
    let model = text(&route, "model");
    let mut lines = of_run(&told, &model, Utc::now().timestamp_millis());
    lines.extend(left_alone(&route, &flow));
    if waits("model") || waits("tool") || waits("process") {
        lines.extend(of_flow(session, &flow).await?);
    }
    Ok(lines)
}

/// A line for each request of the caller that is called so, and those for what it waits for.
pub(in crate::commands) async fn request(session: &Session, id: &str) -> Result<Vec<Value>> {
    let request = json!({"operation": "why-request", "request-id": id});
    let told = session.http()?.service("requests", request).await?;
    let mut lines = Vec::new();
    for row in list(&told, "requests") {
        let is_run = !text(row, "run").is_empty();
        // What the agent has not begun has no run yet.
        match is_run {
            true => lines.extend(run(session, &text(row, "run"), false).await?),
            false => {
                lines.push(of_request(row));
                lines.extend(of_flow(session, &text(row, "flow")).await?);
            }
        }
    }
    Ok(lines)
}

/// A line for the thread, and those for what its flow waits for.
pub(in crate::commands) async fn thread(
    session: &Session,
    flow: &str,
    id: &str,
) -> Result<Vec<Value>> {
    if ThreadId::parse(id).is_err() {
        let text =
            "--thread: must be a whole id, as the second line of `/status` in `tg console` is";
        return Err(Error::Usage(text.to_owned()));
    }
    let http = session.http()?;
    let request = json!({"operation": "show-thread", "flow": flow, "thread": id});
    let told = http.service("threads", request).await?;
    let request = json!({"operation": "list-listeners", "flow": flow});
    let known = match http.all("threads", request).await {
        Ok(reply) => {
            let all = list(&reply, "listeners").iter();
            Some(all.map(|one| text(one, "name")).collect::<Vec<_>>())
        }
        // Whoever may look into threads need not be one who may write to listeners.
        Err(Error::Service { .. }) => None,
        Err(error) => return Err(error),
    };
    let now_ms = Utc::now().timestamp_millis();
    let mut lines = of_thread(&told, (id, flow), known.as_deref(), now_ms);
    lines.extend(of_flow(session, flow).await?);
    Ok(lines)
}

/// Which listeners have messages of the thread, and whether a process has taken each. Where none has any: who gets those that
/// come, by its chain and the listeners that are `known`, where that can be said.
fn of_thread(
    told: &Value,
    (id, flow): (&str, &str),
    known: Option<&[String]>,
    now_ms: i64,
) -> Vec<Value> {
    let chain = texts(told, "chain");
    let by = chain.join(" > ");
    let door = match chain.get(OUTSIDE - 1).map(String::as_str) {
        Some("console") => " --console",
        _ => "",
    };
    let close = format!("tg close-thread {id} -f {}{door}", in_shell(flow));
    let turns = list(told, "turns").iter().map(|turn| {
        let (listener, since) = (text(turn, "listener"), since(turn, now_ms));
        let (state, detail) = match text(turn, "waits-for").as_str() {
            "process" => (
                "stuck",
                format!("no process has taken the message for '{listener}', {since}: nobody serves its queue"),
            ),
            "answer" => (
                "answering",
                format!("'{listener}' has a message, {since}; its process gave the last sign {:.1} s ago", silent(turn)),
            ),
            _ => ("answering", format!("'{listener}' has a message, {since}")),
        };
        line(id, state, &format!("{detail} ({by})"), &close)
    });
    let mut lines: Vec<_> = turns.collect();
    match text(told, "in-progress").as_str() {
        _ if !lines.is_empty() => {}
        "" | "0" => lines.push(of_quiet_thread(&chain, id, known)),
        count => {
            let detail = format!(
                "no listener has a message, and {count} are in progress: they are being checked, or whoever sent the first one \
                 reads the answer slowly ({by})"
            );
            lines.push(line(id, "stuck", &detail, &close));
        }
    }
    lines
}

/// A thread of whose tree nothing is in progress.
fn of_quiet_thread(chain: &[String], id: &str, known: Option<&[String]>) -> Value {
    let last = chain.last().map_or("", String::as_str);
    let by = chain.join(" > ");
    let is_known = known.is_none_or(|known| known.iter().any(|name| name == last));
    let (state, detail, command) = match last {
        _ if chain.len() <= OUTSIDE => (
            "open",
            format!("no listener has it: it leads back to '{last}', who wrote from outside ({by})"),
            None,
        ),
        ROUTER => (
            "open",
            format!("nothing is in progress, and '{last}' keeps no message ({by})"),
            None,
        ),
        _ if !is_known => (
            "left",
            format!("'{last}' gets no message, as no listener of that name is registered ({by})"),
            Some("tg list-config-items --type listener".to_owned()),
        ),
        _ => (
            "open",
            format!("nothing is in progress; its messages go to '{last}' ({by})"),
            Some(match last {
                "agent" => "tg list-runs --all".to_owned(),
                name => format!(
                    "tg get-config-item --type listener --key {}",
                    in_shell(name)
                ),
            }),
        ),
    };
    match command {
        Some(command) => line(id, state, &detail, &command),
        None => json!({"subject": id, "state": state, "detail": detail}),
    }
}

/// What of the flow is not as it should be, where the caller may know it.
async fn of_flow(session: &Session, flow: &str) -> Result<Vec<Value>> {
    if flow.is_empty() {
        return Ok(Vec::new());
    }
    let request = json!({"operation": "why", "flow-id": flow});
    match session.http()?.service("flow", request).await {
        Ok(reply) => {
            let Value::Array(lines) = embedded(&reply, "why") else {
                return Ok(Vec::new());
            };
            Ok(lines.into_iter().filter(|line| !is_calm(line)).collect())
        }
        Err(Error::Service { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// What is as it should be, or is nobody's fault.
pub(in crate::commands) fn is_calm(line: &Value) -> bool {
    ["attached", "absent", "running"].contains(&text(line, "state").as_str())
}

/// Whom a question to the flow's model would go to now; nothing where nobody can say.
async fn route(session: &Session, flow: &str) -> Value {
    let asked = async {
        let call = Call::in_flow(flow, "chat-completion", json!({"operation": "route"}));
        let mut socket = session.socket().await?;
        let reply = socket.ask(&call).await;
        socket.close().await;
        reply
    };
    // A flow without that interface has no router.
    match asked.await {
        Ok(reply) => reply.get("route").cloned().unwrap_or_default(),
        Err(_) => Value::Null,
    }
}

/// The backends of the model that are left alone for a while, where none can be asked.
fn left_alone(route: &Value, flow: &str) -> Vec<Value> {
    if !text(route, "chosen").is_empty() {
        return Vec::new();
    }
    let command = format!("tg route --explain -f {}", in_shell(flow));
    let backends = list(route, "backends").iter();
    backends
        .map(|backend| {
            let name = text(backend, "backend");
            line(&name, "resting", &text(backend, "reason"), &command)
        })
        .collect()
}

fn of_run(told: &Value, model: &str, now_ms: i64) -> Vec<Value> {
    let (run, flow) = (in_shell(&text(told, "run")), in_shell(&text(told, "flow")));
    let id = text(told, "run");
    let standing = list(told, "standing");
    let model = match model {
        "" => "the model".to_owned(),
        name => format!("the model '{name}'"),
    };
    let state = text(told, "state");
    if state != "running" {
        let detail = match (state.as_str(), text(told, "reason")) {
            ("cancelled", ended) if ended.is_empty() => "it was cancelled".to_owned(),
            (_, ended) if ended.is_empty() => "it is over".to_owned(),
            (_, ended) => format!("it is over: {ended}"),
        };
        return vec![line(&id, &state, &detail, &format!("tg attach {run}"))];
    }
    standing
        .iter()
        .map(|one| {
            let subagent = text(one, "subagent");
            let subject = if subagent.is_empty() { &id } else { &subagent };
            let (step, tool) = (text(one, "step"), text(one, "tool"));
            let since = since(one, now_ms);
            let (state, detail, command) = match text(one, "waits-for").as_str() {
                "user" => (
                    "asks",
                    format!(
                        "step {step} asks its user, {since}, whether the tool '{tool}' may be used; until {}",
                        moment(one, "until-ms")
                    ),
                    confirm_command(&id, &text(one, "message_id"), "yes"),
                ),
                "model" => (
                    "thinking",
                    format!("step {step} waits for {model}, {since}"),
                    format!("tg route --explain -f {flow}"),
                ),
                "tool" => (
                    "acting",
                    format!("step {step} waits for the tool '{tool}', {since}"),
                    format!("tg cancel {run}"),
                ),
                "subagents" => (
                    "delegating",
                    format!("step {step} waits for its subagents, {since}"),
                    format!("tg attach {run} -v"),
                ),
                "process" => (
                    "stuck",
                    format!("no process has taken step {step}, {since}"),
                    format!("tg why {flow}"),
                ),
                _ => (
                    "ending",
                    format!("what is left of step {step} is done, {since}"),
                    format!("tg attach {run}"),
                ),
            };
            let ends = moment(told, "deadline-ms");
            let detail = match subagent.is_empty() && !ends.is_empty() {
                true => format!("{detail}; it ends at {ends} whatever comes"),
                false => detail,
            };
            line(subject, state, &detail, &command)
        })
        .collect()
}

fn of_request(row: &Value) -> Value {
    let (id, seconds) = (text(row, "id"), text(row, "seconds"));
    let what = ["service", "operation"].map(|key| text(row, key));
    let what = what.join(" ").trim_end().to_owned();
    let cancel = format!("tg cancel-request {}", in_shell(&id));
    let of_flow = match text(row, "flow").as_str() {
        "" => "tg doctor".to_owned(),
        flow => format!("tg why {}", in_shell(flow)),
    };
    let (state, detail, command) = match text(row, "waits-for").as_str() {
        "process" => (
            "stuck",
            format!("no process has taken it (to {what}) for {seconds} s"),
            of_flow,
        ),
        "answer" => {
            let silent = silent(row);
            let detail = format!(
                "{what} works on it for {seconds} s; its process gave the last sign {silent:.1} s ago"
            );
            ("answering", detail, cancel)
        }
        _ => ("open", format!("{what} has had it for {seconds} s"), cancel),
    };
    line(&id, state, &detail, &command)
}

/// How long ago its process gave the last sign, in seconds.
fn silent(row: &Value) -> f64 {
    let silent = row.get("silent-ms").and_then(Value::as_u64).unwrap_or(0);
    silent as f64 / 1000.0
}

/// Since when, in seconds.
fn since(row: &Value, now_ms: i64) -> String {
    let began = row
        .get("since-ms")
        .and_then(Value::as_i64)
        .unwrap_or(now_ms);
    format!("since {} s", now_ms.saturating_sub(began).max(0) / 1000)
}

/// A time of the clock, in UTC.
fn moment(row: &Value, key: &str) -> String {
    let millis = row.get(key).and_then(Value::as_i64);
    let time = millis.and_then(DateTime::from_timestamp_millis);
    time.map_or_else(String::new, |time| time.format("%H:%M:%S UTC").to_string())
}

fn line(subject: &str, state: &str, detail: &str, command: &str) -> Value {
    json!({"subject": subject, "state": state, "detail": detail, "command": command})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_says_which_listeners_have_its_messages() {
        let turns = json!([
            {"listener": "shouter", "since-ms": 20_000, "waits-for": "process"},
            {"listener": "agent", "since-ms": 50_000, "waits-for": "answer", "silent-ms": 1200},
            {"listener": "writer", "since-ms": 60_000},
        ]);
        let chain = ["system", "mesh", "console", "console-router"];
        let told = json!({"chain": chain, "turns": turns, "in-progress": 4});
        let lines = of_thread(&told, ("t", "f"), None, 60_000);
        let close = "tg close-thread t -f f --console";
        let by = "(system > mesh > console > console-router)";
        for (at, (state, detail)) in [
            (
                "stuck",
                "no process has taken the message for 'shouter', since 40 s: nobody serves its queue",
            ),
            (
                "answering",
                "'agent' has a message, since 10 s; its process gave the last sign 1.2 s ago",
            ),
            ("answering", "'writer' has a message, since 0 s"),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(lines[at], line("t", state, &format!("{detail} {by}"), close));
        }
        assert_eq!(lines.len(), 3);
        let told = json!({"chain": ["system", "mesh", "gateway", "writer"], "in-progress": 2});
        let lines = of_thread(&told, ("t", "f"), None, 0);
        assert_eq!(text(&lines[0], "command"), "tg close-thread t -f f");
        assert!(text(&lines[0], "detail").contains("2 are in progress"));
    }

    #[test]
    fn a_thread_without_messages_says_what_its_chain_and_the_listeners_do() {
        let known = ["agent", "shouter"].map(str::to_owned);
        for (below, state, detail, command) in [
            (
                &["gateway", "writer", "shouter"][..],
                "open",
                "nothing is in progress; its messages go to 'shouter' (system > mesh > gateway > writer > shouter)",
                "tg get-config-item --type listener --key shouter",
            ),
            (
                &["gateway", "agent"],
                "open",
                "nothing is in progress; its messages go to 'agent' (system > mesh > gateway > agent)",
                "tg list-runs --all",
            ),
            (
                &["gateway", "writer"],
                "left",
                "'writer' gets no message, as no listener of that name is registered (system > mesh > gateway > writer)",
                "tg list-config-items --type listener",
            ),
            (
                &["console", "console-router"],
                "open",
                "nothing is in progress, and 'console-router' keeps no message (system > mesh > console > console-router)",
                "",
            ),
            (
                &["gateway"],
                "open",
                "no listener has it: it leads back to 'gateway', who wrote from outside (system > mesh > gateway)",
                "",
            ),
        ] {
            let chain = [&["system", "mesh"], below].concat();
            let told = json!({"chain": chain, "in-progress": 0});
            let told = of_thread(&told, ("t", "f"), Some(&known), 0);
            let said = ["state", "detail", "command"].map(|key| text(&told[0], key));
            assert_eq!(said, [state, detail, command]);
        }
        // Where nobody says which listeners there are, none is missing.
        let told = json!({"chain": ["system", "mesh", "gateway", "writer"]});
        let told = of_thread(&told, ("t", "f"), None, 0);
        assert_eq!(text(&told[0], "state"), "open");
    }

    fn told(standing: Value) -> Vec<Value> {
        let told = json!({"run": "r", "state": "running", "flow": "f", "deadline-ms": 7_200_000,
            "standing": standing});
        of_run(&told, "m", 60_000)
    }

    #[test]
    fn what_a_run_waits_for_is_told_with_the_command_that_helps() {
        let stands = |waits: &str| json!([{"step": 2, "waits-for": waits, "tool": "mail", "since-ms": 20_000, "until-ms": 3_600_000}]);
        for (waits, state, detail, command) in [
            (
                "user",
                "asks",
                "step 2 asks its user, since 40 s, whether the tool 'mail' may be used; until 01:00:00 UTC",
                "tg confirm r yes",
            ),
            (
                "model",
                "thinking",
                "step 2 waits for the model 'm', since 40 s",
                "tg route --explain -f f",
            ),
            (
                "tool",
                "acting",
                "step 2 waits for the tool 'mail', since 40 s",
                "tg cancel r",
            ),
            (
                "subagents",
                "delegating",
                "step 2 waits for its subagents, since 40 s",
                "tg attach r -v",
            ),
            (
                "process",
                "stuck",
                "no process has taken step 2, since 40 s",
                "tg why f",
            ),
        ] {
            let detail = format!("{detail}; it ends at 02:00:00 UTC whatever comes");
            assert_eq!(told(stands(waits)), [line("r", state, &detail, command)]);
        }
    }

    #[test]
    fn each_question_is_named() {
        let asks = |subagent: &str, id: &str| json!({"subagent": subagent, "step": 1, "waits-for": "user", "message_id": id});
        let one = told(json!([asks("", "a")]));
        assert_eq!(text(&one[0], "command"), "tg confirm r yes --message-id a");
        let lines = told(json!([asks("", "a"), asks("s", "b")]));
        let commands: Vec<String> = lines.iter().map(|one| text(one, "command")).collect();
        assert_eq!(
            commands,
            [
                "tg confirm r yes --message-id a",
                "tg confirm r yes --message-id b"
            ]
        );
        assert_eq!(text(&lines[1], "subject"), "s");
    }

    #[test]
    fn a_run_that_is_over_says_why() {
        for (state, ended, detail) in [
            ("ended", "", "it is over"),
            (
                "ended",
                "out of its budget",
                "it is over: out of its budget",
            ),
            ("cancelled", "", "it was cancelled"),
        ] {
            let told = json!({"run": "r", "state": state, "reason": ended});
            assert_eq!(
                of_run(&told, "", 0),
                [line("r", state, detail, "tg attach r")]
            );
        }
    }

    #[test]
    fn what_a_request_waits_for_is_told() {
        let row = json!({"id": "i", "service": "graph-rag", "flow": "f", "seconds": 9, "waits-for": "process"});
        let stuck = "no process has taken it (to graph-rag) for 9 s";
        assert_eq!(of_request(&row), line("i", "stuck", stuck, "tg why f"));
        let row = json!({"id": "i", "service": "config", "operation": "put", "seconds": 9,
            "waits-for": "answer", "silent-ms": 1200});
        let works = "config put works on it for 9 s; its process gave the last sign 1.2 s ago";
        assert_eq!(
            of_request(&row),
            line("i", "answering", works, "tg cancel-request i")
        );
    }

    #[test]
    fn backends_that_rest_are_told_where_none_can_be_asked() {
        let route = json!({"backends": [{"backend": "near", "reason": "cooling, 40 s left"}]});
        let rests = line(
            "near",
            "resting",
            "cooling, 40 s left",
            "tg route --explain -f f",
        );
        assert_eq!(left_alone(&route, "f"), [rests]);
        let route = json!({"chosen": "far", "backends": [{"backend": "near"}]});
        assert_eq!(left_alone(&route, "f"), Vec::<Value>::new());
    }
}
