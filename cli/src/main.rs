//! Entry point of `tg` and of every `tg-*` name that links to it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tg_cli::main(std::env::args_os().collect())
}
