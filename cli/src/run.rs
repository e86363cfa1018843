//! From the argument vector to the exit code.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;

use crate::about::About;
use crate::advice::advice;
use crate::client::{Error, Result};
use crate::completing::{self, ASKED_BY};
use crate::fields::texts;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::profiles::Profiles;
use crate::registry::{self, Prepared};
use crate::session::Session;
use crate::target::{complete, variable};

/// The exit code of each error of some commands.
const FAILED: u8 = 1;
/// How long a command may tidy up after Ctrl-C.
const GRACE: Duration = Duration::from_secs(2);

/// Runs the command that the arguments name.
pub fn main(argv: Vec<OsString>) -> ExitCode {
    if let Some(shell) = std::env::var_os(ASKED_BY).filter(|shell| !shell.is_empty()) {
        return completing::answer(&shell, &argv);
    }
    let by_link = registry::by_link(&argv);
    let prepared = match registry::parse(&argv) {
        Ok(prepared) => prepared,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("tg: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(execute(prepared, by_link));
    // A blocking read of a file or of stdin must not hold up the exit.
    runtime.shutdown_background();
    ExitCode::from(code)
}

async fn execute(prepared: Prepared, by_link: bool) -> u8 {
    let (name, options) = (prepared.name, prepared.options.clone());
    let fails_with_one = prepared.fails_with_one;
    let mut out = Output::standard(options.json, by_link);
    let options = match complete(options, variable, Profiles::load) {
        Ok(options) => options,
        Err(error) => {
            report(&mut out, name, &error);
            return exit_code(&error, fails_with_one);
        }
    };
    let interrupt = match prepared.outlives_ctrl_c {
        true => Interrupt::never(),
        false => Interrupt::on_ctrl_c(),
    };
    let mut session = Session::new(options, out, interrupt.clone());
    let about = prepared.about.clone();
    let outcome = until_interrupted(prepared.run(&mut session), &interrupt).await;
    let outcome = match outcome {
        Err(error) => Err(with_what_there_is(&session, &about, error).await),
        Ok(()) => session.out.flush(),
    };
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            report(&mut session.out, name, &error);
            exit_code(&error, fails_with_one)
        }
    }
}

/// The exit code of an error. Ctrl-C and a reader that has gone are none.
fn exit_code(error: &Error, fails_with_one: bool) -> u8 {
    let is_one = !matches!(error, Error::OutputClosed | Error::Interrupted);
    match fails_with_one && is_one {
        true => FAILED,
        false => error.exit_code(),
    }
}

/// Lets the command end by itself, but not for long once the user wants it to stop.
async fn until_interrupted(
    work: impl Future<Output = Result<()>>,
    interrupt: &Interrupt,
) -> Result<()> {
    tokio::pin!(work);
    tokio::select! {
        outcome = &mut work => return outcome,
        () = interrupt.wait() => {}
    }
    match tokio::time::timeout(GRACE, work).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Error::Interrupted),
    }
}

/// A flow that does not run is told with those that do, where that can be asked; what else is not there by its name.
async fn with_what_there_is(session: &Session, about: &About, error: Error) -> Error {
    let Some((workspace, flow)) = error.missing_flow() else {
        // Programs read what the gateway says.
        return match session.out.is_json() {
            true => error,
            false => about.named(session.options.workspace.as_deref(), error),
        };
    };
    let request = json!({"operation": "list-flows"});
    let Ok(http) = session.http() else {
        return error;
    };
    match tokio::time::timeout(GRACE, http.service("flow", request)).await {
        Ok(Ok(reply)) if reply.get("flow-ids").is_some() => {
            Error::not_running(&flow, Some(&workspace), &texts(&reply, "flow-ids"))
        }
        _ => error,
    }
}

fn report(out: &mut Output, command: &str, error: &Error) {
    if matches!(error, Error::OutputClosed) {
        return;
    }
    let advice = advice(error, command).map(|text| out.as_called(&text));
    if out.is_json() {
        let body = json!({"error": {
            "type": error.kind(), "message": error.to_string(), "advice": advice,
        }});
        out.talk(body.to_string());
        return;
    }
    out.talk(format!("tg-{command}: {error}"));
    if let Some(advice) = advice {
        out.talk(format!("  try: {advice}"));
    }
}
