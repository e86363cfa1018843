//! A program that runs, in a process group of its own: dropping it ends the whole group.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, prlimit};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::listed::CliAgent;

/// Variables of this process that each program has. None of the others: keys of providers are among them.
const INHERITED: &[&str] = &["PATH", "HOME", "LANG"];
/// How long a program may take to go after its input ended.
const LEAVE: Duration = Duration::from_secs(5);

/// Bounds what a program takes, and each process that it starts. None writes its memory to a file when it crashes: what the
/// program was asked stands in it.
fn bound(program: Pid, agent: &CliAgent) -> Result<(), Errno> {
    let memory = agent.memory_mb.map(|most| most << 20);
    for (resource, most) in [
        (Resource::Data, memory),
        (Resource::Cpu, agent.cpu_seconds),
        (Resource::Core, Some(0)),
    ] {
        let Some(most) = most else {
            continue;
        };
        // Nobody may raise what bounds this process.
        let most = Some(
            getrlimit(resource)
                .maximum
                .map_or(most, |own| own.min(most)),
        );
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        let set = prlimit(Some(program), resource, limit);
        if let Err(fault) = set
            && prevents(resource, fault)
        {
            return Err(fault);
        }
    }
    Ok(())
}

/// Whether a program must not go on where a bound could not be set.
fn prevents(resource: Resource, fault: Errno) -> bool {
    let is_gone = fault == Errno::SRCH;
    // It runs as another user, as `sudo` does. The kernel writes no memory of such a program, unless `fs.suid_dumpable` says so.
    let is_another_user = resource == Resource::Core && fault == Errno::PERM;
    !is_gone && !is_another_user
}

/// A running program.
pub(super) struct Process {
    pub(super) child: Child,
    group: Option<Pid>,
}

impl Process {
    /// Starts the program of an agent with these arguments. There is no shell between.
    pub(super) fn start(
        agent: &CliAgent,
        args: &[&str],
        [input, output, errors]: [Stdio; 3],
    ) -> io::Result<Self> {
        let mut command = Command::new(agent.command());
        command.args(args).env_clear();
        let own = agent.env.iter().map(String::as_str);
        for name in INHERITED.iter().copied().chain(own) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .stdin(input)
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true);
        let child = command.spawn()?;
        let group = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let process = Self { child, group };
        if let Some(program) = process.group {
            bound(program, agent)?;
        }
        Ok(process)
    }

    /// Waits for its end, and ends what it left behind.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.kill();
        status
    }

    /// Ends its input, and has it go.
    pub(super) async fn leave(mut self, input: ChildStdin) {
        drop(input);
        // Whoever does not go is ended by what follows.
        let _ = timeout(LEAVE, self.child.wait()).await;
        self.kill();
    }

    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // It may be gone already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_another_user_goes_on_unless_a_bound_is_wanted() {
        assert!(!prevents(Resource::Core, Errno::PERM));
        for wanted in [Resource::Data, Resource::Cpu] {
            assert!(prevents(wanted, Errno::PERM));
            assert!(!prevents(wanted, Errno::SRCH));
        }
        assert!(prevents(Resource::Core, Errno::INVAL));
    }
}
