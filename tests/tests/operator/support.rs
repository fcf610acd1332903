use queen_core::api::{AckResult, ConfigureRequest, PopAnswer, PopRequest};
use queen_core::{Broker, BrokerOptions};
use queen_testkit::TestDb;
use queen_tests::build::{acks, queue};
use queen_types::{AckStatus, Group, OptionsEdit, TenantId};
use tokio_postgres::Client;

pub(crate) const T: TenantId = TenantId::DEFAULT;

/// One broker on a database of its own.
pub(crate) struct One {
    pub(crate) broker: Broker,
    pub(crate) client: Client,
    _db: TestDb,
}

impl One {
    pub(crate) async fn start() -> anyhow::Result<One> {
        let db = queen_testkit::db().await?;
        let broker = Broker::start(BrokerOptions { pg: db.options(), ..queen_tests::options() }).await?;
        let client = db.connect().await?;
        Ok(One { broker, client, _db: db })
    }

    pub(crate) async fn configure(&self, name: &str, edit: OptionsEdit) -> anyhow::Result<()> {
        let request = ConfigureRequest { queue: queue(name), replace: false, edit };
        self.broker.configure(T, request).await?;
        Ok(())
    }

    /// Acks everything of an answer alike.
    pub(crate) async fn settle(
        &self,
        group: &Group,
        answer: &PopAnswer,
        status: AckStatus,
    ) -> Vec<AckResult> {
        self.broker.ack(T, group.clone(), acks(answer, status)).await
    }

    /// Pops and completes until nothing comes; the keys in the order of their delivery.
    pub(crate) async fn drain(&self, request: &PopRequest) -> anyhow::Result<Vec<String>> {
        let mut keys = Vec::new();
        loop {
            let answer = self.broker.pop(T, request.clone()).await?;
            if answer.is_empty() {
                return Ok(keys);
            }
            keys.extend(queen_tests::build::keys(&answer));
            let results = self.settle(&request.group, &answer, AckStatus::Completed).await;
            anyhow::ensure!(results.iter().all(|result| result.success), "{results:?}");
        }
    }
}
