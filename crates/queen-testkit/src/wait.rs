//! Waiting for facts instead of sleeping.

use std::time::{Duration, Instant};

use anyhow::bail;

const INTERVAL: Duration = Duration::from_millis(10);

/// Polls every ten milliseconds until `probe` answers `Some`, and returns that.
///
/// # Errors
/// When `limit` has passed; the error names `what`.
pub async fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = probe().await {
            return Ok(value);
        }
        if start.elapsed() >= limit {
            bail!("waited {limit:?} in vain for {what}");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Polls every ten milliseconds until `holds` answers true.
///
/// # Errors
/// When `limit` has passed; the error names `what`.
pub async fn wait_until(
    what: &str,
    limit: Duration,
    mut holds: impl AsyncFnMut() -> bool,
) -> anyhow::Result<()> {
    wait_for(what, limit, async || holds().await.then_some(())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_returns_as_soon_as_the_fact_holds() {
        let mut polls = 0;
        let value = wait_for("the third poll", Duration::from_secs(10), async || {
            polls += 1;
            (polls == 3).then_some("there")
        });
        assert_eq!(value.await.unwrap(), "there");
        assert_eq!(polls, 3);
    }

    #[tokio::test]
    async fn it_gives_up_and_says_what_it_waited_for() {
        let error = wait_until("rain", Duration::from_millis(30), async || false).await.unwrap_err();
        assert_eq!(error.to_string(), "waited 30ms in vain for rain");
    }
}
