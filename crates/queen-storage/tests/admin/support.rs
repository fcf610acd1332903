use queen_pg::{Conn, Pool};
use queen_testkit::TestDb;
use queen_types::{Group, PartitionId, PartitionName, QueueId, QueueName, TenantId, Uuid};

pub(crate) const TENANT: TenantId = TenantId::DEFAULT;

/// A database of its own with rows put into it by hand, so that nothing but the statement under test decides.
pub(crate) struct Fixture {
    pub(crate) pool: Pool,
    pub(crate) db: TestDb,
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub(crate) fn group(name: &str) -> Group {
    Group::new(name).unwrap()
}

pub(crate) fn partition(name: &str) -> PartitionName {
    PartitionName::new(name).unwrap()
}

impl Fixture {
    pub(crate) async fn new() -> Fixture {
        let db = queen_testkit::db().await.unwrap();
        Fixture { pool: db.pool().await, db }
    }

    pub(crate) async fn conn(&self) -> Conn {
        self.pool.get().await.unwrap()
    }

    pub(crate) async fn queue(&self, name: &str) -> QueueId {
        self.queue_of(TENANT, name).await
    }

    pub(crate) async fn queue_of(&self, tenant: TenantId, name: &str) -> QueueId {
        let sql = "INSERT INTO queen.queues (tenant_id, name, namespace, task, created_by)
            VALUES ($1::uuid, $2::text, split_part($2::text, '.', 1), split_part($2::text, '.', 2), 'push') RETURNING id";
        let rows = self.conn().await.query(sql, &[&tenant.0, &name]).await.unwrap();
        QueueId(rows[0].get(0))
    }

    pub(crate) async fn partition(&self, queue: QueueId, name: &str) -> PartitionId {
        let sql =
            "INSERT INTO queen.log_partitions (queue_id, name) VALUES ($1::uuid, $2::text) RETURNING id";
        let rows = self.conn().await.query(sql, &[&queue.0, &name]).await.unwrap();
        PartitionId(rows[0].get(0))
    }

    /// A segment of the offsets `base..=end`.
    pub(crate) async fn segment(&self, partition: PartitionId, base: i64, end: i64) {
        let sql = "INSERT INTO queen.log_segments VALUES ($1::uuid, $2::int8, $3::int8, now(), '\\x00', '\\x0102030405')";
        self.conn().await.execute(sql, &[&partition.0, &base, &end]).await.unwrap();
    }

    pub(crate) async fn cursor(&self, partition: PartitionId, group: &str, committed: i64) {
        let sql = "INSERT INTO queen.log_consumers (partition_id, consumer_group, committed)
            VALUES ($1::uuid, $2::text, $3::int8)";
        self.conn().await.execute(sql, &[&partition.0, &group, &committed]).await.unwrap();
    }

    /// Leases `committed + 1 ..= batch_end`, for `seconds` from the database's clock.
    pub(crate) async fn lease(&self, partition: PartitionId, group: &str, batch_end: i64, seconds: i32) {
        let sql = "UPDATE queen.log_consumers SET batch_end = $3::int8, worker_id = 'w',
                lease_expires_at = now() + $4::int4 * interval '1 second'
            WHERE partition_id = $1::uuid AND consumer_group = $2::text";
        self.conn().await.execute(sql, &[&partition.0, &group, &batch_end, &seconds]).await.unwrap();
    }

    /// A dead letter that failed `ago` seconds ago; its payload is the text of its offset.
    pub(crate) async fn dead(&self, partition: PartitionId, group: &str, offset: i64, ago: i32) -> Uuid {
        let sql =
            "INSERT INTO queen.log_dlq (partition_id, consumer_group, \"offset\", message_id, transaction_id,
                payload_raw, producer_sub, error, retry_count, message_created_at, failed_at)
            VALUES ($1::uuid, $2::text, $3::int8, gen_random_uuid(), 't' || $3::int8,
                convert_to($3::int8::text, 'UTF8'), 'sub', 'why', 2, now() - interval '1 day',
                now() - $4::int4 * interval '1 second') RETURNING id";
        let rows = self.conn().await.query(sql, &[&partition.0, &group, &offset, &ago]).await.unwrap();
        rows[0].get(0)
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.conn().await.batch(sql).await.unwrap();
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        self.conn().await.query(sql, &[]).await.unwrap()[0].get(0)
    }
}
