//! What a run of the agent takes of a machine, on the embedded bus: how often it asks for memory, for how many bytes, and how
//! many instructions it takes. The numbers are those of `run_costs.json` within a few in a hundred: a change that alters them
//! alters the file, too. Client and model are another process, and are not counted.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_integration_tests::taken::{By, of_one_run};

const COSTS: &str = include_str!("run_costs.json");

/// Numbers may differ by this part of what the file says, either way: threads of stores take turns with the runtime's, and
/// bytes of a socket come in as many pieces as they do. Instructions differ by 7 in a hundred between a build of a clean clone and one
/// that grew by changes, as the compiler cuts crates into other parts; the file has what lies between them.
const NEAR: f64 = 0.05;

/// Holds numbers against the file.
fn held(numbers: &[(&str, f64)]) -> Result<()> {
    let costs: Value = serde_json::from_str(COSTS)?;
    let costs = &costs["taken, embedded"];
    for (of, found) in numbers {
        println!("{of} of a run: {found:.0}");
    }
    for (of, found) in numbers {
        let expected = costs[of].as_f64().with_context(|| format!("no {of}"))?;
        let near = (found - expected).abs() <= expected * NEAR;
        ensure!(
            near,
            "{of} of a run: {found:.0}, run_costs.json says {expected}; of all: {numbers:.0?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_run_asks_for_memory_as_the_file_says() -> Result<()> {
    let taken = of_one_run(By::Itself).await?;
    held(&[
        ("allocations", taken.allocations),
        ("allocated bytes", taken.bytes),
    ])
}

#[tokio::test]
async fn a_run_takes_the_instructions_of_the_file() -> Result<()> {
    let taken = of_one_run(By::Valgrind).await?;
    held(&[("instructions", taken.instructions)])
}
