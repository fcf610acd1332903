//! Claims that share a call fail or succeed each for itself.

use queen_storage::pop::{ClaimedSegment, CursorHint, Tid};
use queen_types::PartitionId;

use crate::support::{Fixture, claim};

/// One claim goes by the address of its cursor, the other makes its cursor, which the database refuses. Broken by an error
/// that takes the other claim along, and by one that passes for "nothing there".
#[tokio::test]
async fn a_claim_that_fails_fails_alone_and_says_so() -> anyhow::Result<()> {
    let f = Fixture::new().await?;
    let Fixture { storage, client, .. } = &f;
    let (known, fresh) = (f.partition("known", 1).await?, f.partition("fresh", 1).await?);
    let first = storage.claim(&[claim(known, CursorHint::Unknown)]).await.remove(0)?;
    let release = "UPDATE queen.log_consumers SET worker_id = NULL, batch_end = NULL, lease_expires_at = NULL
                   RETURNING ctid";
    let row: Tid = client.query_one(release, &[]).await?.get(0);
    assert_ne!(row, first.segments[0].row, "the release moved the cursor");
    client
        .batch_execute(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON queen.log_consumers
             FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        )
        .await?;
    let results =
        storage.claim(&[claim(fresh, CursorHint::Unknown), claim(known, CursorHint::At(row))]).await;
    let refused = results[0].as_ref().expect_err("its cursor cannot be made");
    assert!(refused.to_string().contains("refused"), "{refused}");
    let taken: Vec<PartitionId> = match &results[1] {
        Ok(claimed) => claimed.segments.iter().map(|s: &ClaimedSegment| s.partition).collect(),
        Err(error) => anyhow::bail!("{error}"),
    };
    assert_eq!(taken, [known]);
    Ok(())
}
