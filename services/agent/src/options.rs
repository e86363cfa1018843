//! What whoever starts the service decides: bounds of a run.

use std::path::PathBuf;
use std::time::Duration;

use tg_storage::Durability;

use crate::engine::compacting::Compacting;
use crate::engine::guards::budget::{Budgets, Share};
use crate::engine::guards::{Budget, Thresholds};
use crate::programs::CliAgents;

tg_settings::options! {
    /// Options of the agent.
    pub struct Options {
        /// Steps with a tool that a run may take.
        max_iterations: u32 = 10, Whole(1..=100);
        /// Times that the model is asked again after a reply that cannot be read.
        repairs: u32 = 2, Whole(0..=10);
        /// Whether steps of ReAct runs offer their tools by the API of the model instead of in words alone; an answer then comes in
        /// one piece. For models that were trained on calling tools so.
        native_tools: bool = false;
        /// Longest that one tool call may take, in seconds.
        tool_timeout_seconds: u64 = 600, Whole(1..=86_400);
        /// How many agents deep work may be given on (tools `delegate` and `dispatch`).
        delegate_depth: u32 = 5, Whole(0..=20);
        /// Tasks (work that is given to another agent and not waited for) that go on at the same time in each process; others wait.
        delegate_tasks: usize = 5, Whole(1..=1000);
        /// Longest that one may take, in seconds.
        task_seconds: u64 = 3600, Whole(1..=86_400);
        /// Agents that are programs on this machine: a JSON object of objects with `engine` (`cli` or `cli-stream`), `command` and more by
        /// the id of the agent, or `file:PATH` of one (see [agent.md](agent.md#agents-that-are-programs)). Runs give them work with
        /// the tools `delegate` and `dispatch`. Empty: none.
        cli_agents: Option<CliAgents> = None;
        /// Processes of such programs at once.
        cli_processes: usize = 8, Whole(1..=1_000);
        /// How often the announcement of a task's result to the main agent of a session is repeated if it fails; then the session
        /// gets the result itself.
        announce_retries: u32 = 3, Whole(0..=20);
        /// Seconds after the first time until the second; each later one is twice as long after the first.
        announce_seconds: u64 = 2, Whole(1..=600);
        /// Tasks of graphs (tool `dispatch`) that go on at the same time in a workspace, in each process; others wait.
        dispatch_tasks: usize = 5, Whole(1..=1000);
        /// Longest that a run waits for its user to allow a tool that asks first, in seconds; never longer than its question may take.
        confirm_seconds: u64 = 300, Whole(1..=86_400);
        /// Longest that a hook of the flow may take before or after a tool call, in seconds; then it denies.
        hook_seconds: u64 = 10, Whole(1..=3600);
        /// Whether it is looked for loops of tool calls. A workspace may say otherwise, here and below: in its
        /// configuration, type `agent`, key `loop_detection`.
        loop_detection: bool = true;
        /// Calls that are remembered of a session; never fewer than `loop_breaker`.
        loop_history: usize = 30, Whole(1..=1000);
        /// From so many calls in a loop on, the model is warned, and then the call is blocked.
        loop_warning: usize = 10, Whole(1..=1000);
        /// From so many on, the run is stopped with the best that it has.
        loop_critical: usize = 20, Whole(1..=1000);
        /// From so many of any one call on, it is stopped whatever else is looked for.
        loop_breaker: usize = 30, Whole(1..=1000);
        /// Whether earlier steps are summed up when a run takes more than four fifths of its model's window. A workspace may say otherwise,
        /// here and below: in its configuration, type `agent`, key `compaction`.
        compaction: bool = true;
        /// Whether a summary is made without what tools returned.
        compaction_mask: bool = true;
        /// Turns of the model that stay as they are.
        compaction_keep: usize = 2, Whole(1..=100);
        /// Tokens that the model reads at once, where a workspace says nothing of it (configuration of type `llm-model`, by the
        /// model's name). 0: 128000.
        context_window: u64 = 0, Whole(0..=1 << 40);
        /// Tokens, in and out, that a run may take; 0: any number. A workspace may say otherwise, here and below: in its
        /// configuration, type `agent`, key `budget`.
        run_tokens: u64 = 0, Whole(0..=1 << 40);
        /// Dollars that a run may take, by the prices of its model (`tg set-token-costs`); 0: any number.
        run_dollars: f64 = 0.0, Number(0.0..=1e9);
        /// Seconds that a run may take; 0: as many as its question has.
        run_seconds: u64 = 0, Whole(0..=86_400);
        /// Calls of tools that a run may take; 0: as many as it has steps.
        run_tool_calls: u64 = 0, Whole(0..=1000);
        /// Tokens that all runs of a conversation may take together; 0: any number.
        session_tokens: u64 = 0, Whole(0..=1 << 40);
        /// Dollars that they may take; 0: any number.
        session_dollars: f64 = 0.0, Number(0.0..=1e9);
        /// Tokens that an API key, or a user who has none, may take in a workspace and day of UTC, by runs and other calls of
        /// models; 0: any number.
        key_tokens_a_day: u64 = 0, Whole(0..=1 << 40);
        /// Dollars that they may take; 0: any number.
        key_dollars_a_day: f64 = 0.0, Number(0.0..=1e9);
        /// Tokens that a workspace may take in a day of UTC, by runs and other calls of models; 0: any number.
        workspace_tokens_a_day: u64 = 0, Whole(0..=1 << 40);
        /// Dollars that they may take; 0: any number.
        workspace_dollars_a_day: f64 = 0.0, Number(0.0..=1e9);
        /// What runs of a workspace have streamed that is kept to be read again, in MiB; the oldest goes, and all of it after two
        /// days. 0: nothing is kept.
        replay_mb: u64 = 64, Whole(0..=1 << 20);
        /// What recorded runs of a workspace have heard that is kept to replay them, in MiB; the oldest record goes, and each
        /// after two days. 0: none is kept.
        records_mb: u64 = 64, Whole(0..=1 << 20);
        /// Memory, in MiB, for what runs in progress have streamed since their last step, to be read by who joins them: half of
        /// it for one workspace. The oldest goes.
        transcripts_mb: u64 = 64, Whole(1..=1 << 20);
    }
    given {
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
        /// Euros for a dollar; 0: not set.
        usd_eur_rate: f64,
    }
}

impl Options {
    /// What runs may take.
    pub(crate) fn budgets(&self) -> Budgets {
        let of = |tokens, dollars| Budget {
            tokens,
            dollars,
            ..Budget::default()
        };
        let a_day = |budget| Share {
            budget,
            ..Share::default()
        };
        Budgets {
            run: Budget {
                seconds: self.run_seconds,
                tool_calls: self.run_tool_calls,
                ..of(self.run_tokens, self.run_dollars)
            },
            session: of(self.session_tokens, self.session_dollars),
            key: a_day(of(self.key_tokens_a_day, self.key_dollars_a_day)),
            workspace: a_day(of(
                self.workspace_tokens_a_day,
                self.workspace_dollars_a_day,
            )),
        }
    }

    /// When there is too much of a loop.
    pub(crate) fn loops(&self) -> Thresholds {
        Thresholds {
            enabled: self.loop_detection,
            history: self.loop_history,
            warning: self.loop_warning,
            critical: self.loop_critical,
            breaker: self.loop_breaker,
            ..Thresholds::default()
        }
    }

    /// How earlier steps are summed up.
    pub(crate) fn compacting(&self) -> Compacting {
        Compacting {
            enabled: self.compaction,
            mask: self.compaction_mask,
            keep: self.compaction_keep,
        }
    }

    /// Longest that one tool call may take.
    pub(crate) fn tool_timeout(&self) -> Duration {
        Duration::from_secs(self.tool_timeout_seconds)
    }
}
