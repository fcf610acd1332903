//! Random operations on two brokers, compared with the reference model answer by answer and row by row.

use std::time::Duration;

use queen_tests::scene::{Scene, World};
use queen_tests::seed::Runs;

const SHORT: Duration = Duration::from_secs(5);
const OPERATIONS: usize = 150;

/// Broken by any answer or row of push, pop, ack, extend or transaction that differs from the model: by a cursor that
/// goes back (I-9), a message that is lost, repeated or out of order (I-12 to I-15), a lease, budget or dead letter that
/// table 5.2 does not ask for (I-22, I-23, I-26, I-27), a lease that gets shorter (I-28), and by tables that break
/// their rules (I-1 to I-4, I-7, I-8, I-10).
#[tokio::test]
async fn the_broker_and_the_model_agree() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut runs = Runs::of(SHORT)?;
    while let Some(run) = runs.next_run() {
        let outcome = Scene::run(&world, &run, OPERATIONS).await;
        run.explain(outcome)?;
    }
    println!("{} runs of {OPERATIONS} operations", runs.made());
    world.stop().await;
    Ok(())
}
