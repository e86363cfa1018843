//! `tg completions`: what a shell needs to complete `tg` and, on request, the `tg-*` names.

use clap::Args;
use clap_complete::{Shell, generate};

use crate::args::Options;
use crate::client::Result;
use crate::commands::ALL;
use crate::registry::{self, Command};
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
    const ABOUT: &'static str = "Print completions for a shell";

    fn options(&self) -> Options {
        Options::local()
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        session.out.bytes(&self.script())
    }
}

impl Completions {
    fn script(&self) -> Vec<u8> {
        let mut script = Vec::new();
        generate(self.shell, &mut registry::tg(), "tg", &mut script);
        if self.links {
            for row in ALL {
                let name = format!("tg-{}", row.name);
                generate(self.shell, &mut row.standalone(), name, &mut script);
            }
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_completed() {
        let shell = Shell::Bash;
        let script = Completions { shell, links: true }.script();
        let script = String::from_utf8(script).expect("text");
        for row in ALL {
            assert!(script.contains(&format!("tg-{}", row.name)), "{}", row.name);
        }
    }
}
