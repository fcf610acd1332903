//! Which operation comes next.

use rand::Rng;

use super::Scene;

impl Scene<'_> {
    pub(super) async fn operate(&mut self) -> anyhow::Result<()> {
        match self.rng.random_range(0..100) {
            0..28 => self.push().await,
            28..58 => self.pop().await,
            58..80 => self.ack().await,
            80..88 => self.transact().await,
            88..91 => self.extend().await,
            91..95 => self.expire().await,
            95..97 => self.end_waits().await,
            97..98 => self.age().await,
            _ => self.trim().await,
        }
    }
}
