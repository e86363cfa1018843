//! `tg completions`: what a shell needs to complete `tg` and, on request, the `tg-*` names.

use clap::Args;
use clap_complete::Shell;

use crate::args::Options;
use crate::client::Result;
use crate::commands::ALL;
use crate::completing::script;
use crate::registry::{Command, Row};
use crate::session::Session;

/// Arguments of `tg completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell to write for
    shell: Shell,
    /// Complete the tg-* names too
    #[arg(long)]
    links: bool,
}

impl Command for Completions {
    const NAME: &'static str = "completions";
    const ABOUT: &'static str = "Print a shell completion script for commands, flags and ids";

    fn options(&self) -> Options {
        Options::local()
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let program = std::env::current_exe();
        let program = program.map_or_else(|_| "tg".to_owned(), |path| path.display().to_string());
        session.out.bytes(&self.script(&program)?)
    }
}

impl Completions {
    fn script(&self, program: &str) -> Result<Vec<u8>> {
        let mut names = vec!["tg".to_owned()];
        if self.links {
            let all = ALL.iter().flat_map(Row::names);
            names.extend(all.map(|name| format!("tg-{name}")));
        }
        script(&self.shell.to_string(), program, &names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_command_is_completed_in_every_shell() {
        for shell in Shell::value_variants() {
            let script = Completions {
                shell: *shell,
                links: true,
            };
            let script = script.script("/opt/tg").expect("a script");
            let script = String::from_utf8(script).expect("text");
            assert!(script.contains("/opt/tg"), "{shell}");
            for name in ALL.iter().flat_map(Row::names) {
                assert!(script.contains(&format!("tg-{name}")), "{name}");
            }
        }
    }
}
