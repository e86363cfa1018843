//! `threadgraph up` with one thread for all async work, and with an allocator that counts: what `what_a_run_takes` of the
//! integration suite measures, by itself and under valgrind. At its end it writes to standard error how often it asked for
//! memory, and for how many bytes.
//!
//! `counted_server up --listen ADDRESS --data-dir DIRECTORY`

use std::time::Duration;

use anyhow::{Result, bail};
use tg_counted_alloc::{Counted, Tallied, tally};
use tg_server::compose::Services;
use tg_server::settings::{Flags, Settings};
use tg_server::{machine, process};

#[global_allocator]
static ALLOCATOR: Counted<Tallied<mimalloc::MiMalloc>> = Counted(Tallied(mimalloc::MiMalloc));

/// How long blocking work may take to end after everything else has.
const LAST: Duration = Duration::from_secs(5);

fn flags() -> Result<Flags> {
    let mut words = std::env::args().skip(1);
    let command = words.next();
    if command.as_deref() != Some("up") {
        bail!("usage: counted_server up --listen ADDRESS --data-dir DIRECTORY");
    }
    let mut flags = Flags::default();
    while let Some(name) = words.next() {
        match name.as_str() {
            "--listen" => flags.listen = words.next(),
            "--data-dir" => flags.data_dir = words.next(),
            _ => bail!("unknown option {name}"),
        }
    }
    Ok(flags)
}

fn main() -> Result<()> {
    let flags = flags()?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    machine::keep_to_itself();
    let settings = match Settings::load(&flags, std::env::vars().collect()) {
        Ok(settings) => settings,
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            bail!("{}", errors.join("\n"));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(process::run(settings, Services::all()));
    runtime.shutdown_timeout(LAST);
    let tally = tally();
    eprintln!("allocations {} bytes {}", tally.times, tally.bytes);
    outcome
}
