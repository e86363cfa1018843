//! `tg console` at a terminal: Ctrl-C stops what runs, down to the model, and the next line goes on in the same thread.

use std::time::Duration;

use anyhow::{Result, ensure};
use tg_testkit::model::{Reply, Rule, cut, final_answer};

use crate::terminal::at_a_terminal;
use crate::world::{Bus, World, on_both_buses};

/// Whatever is waited for comes within this.
const BOUND: Duration = Duration::from_secs(60);
/// Pieces of the answer that is stopped, and the pause before each.
const PIECES: usize = 300;
const PAUSE: Duration = Duration::from_millis(100);
/// What `/status` writes before the id of the thread.
const ID: &str = "its whole id: ";

async fn ctrl_c_stops_what_runs_and_the_thread_stays(bus: Bus) -> Result<()> {
    let long = format!("first-piece {}", "and more ".repeat(PIECES));
    let slow = Reply::pieces(cut(&final_answer("slowly.", &long), PIECES)).delayed(PAUSE);
    let rules = vec![
        Rule::contains("Tell me slowly", slow),
        Rule::contains(
            "Who built the lamp?",
            Reply::text(final_answer("it is known.", "Ada Brisk built it.")),
        ),
    ];
    let world = World::with(bus, rules).await?;
    let steps = [
        ("> ", "@agent Tell me slowly\r"),
        ("first-piece", "\u{3}"),
        ("stopped", ""),
        ("> ", "/status\r"),
        (ID, ""),
        ("> ", "@agent Who built the lamp?\r"),
        ("Ada Brisk built it.", ""),
        ("> ", "/status\r"),
        (ID, ""),
        ("> ", "\u{4}"),
    ];
    let shown = at_a_terminal(&world.server.url(), &steps, &["console"]).await?;
    ensure!(shown.code == Some(0), "{shown:?}");
    let lines = shown.lines();
    let ids: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix(ID))
        .collect();
    let [before, after] = ids.as_slice() else {
        anyhow::bail!("{lines:?}");
    };
    ensure!(before == after && before.len() == 36, "{lines:?}");
    // The provider's connection is closed: what was stopped costs nothing more.
    ensure!(world.model.wait_closed(1, BOUND).await, "{shown:?}");
    Ok(())
}

on_both_buses!(ctrl_c_stops_what_runs_and_the_thread_stays);
