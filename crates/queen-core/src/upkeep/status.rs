//! Reading what the statistics and the collectors stored.

use queen_types::{Namespace, QueueName, Task, TenantId};

use crate::api::{
    DeadLetterSummary, LeaseSummary, Overview, ParkedBucket, Pin, QueueBucket, QueueFilter, RetentionBucket,
    Span, StoredQueue, SystemValue, WorkerBucket, WorkerSummary,
};
use crate::{Broker, Error};

impl Broker {
    /// The stored counters of a tenant.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn overview(&self, tenant: TenantId) -> Result<Overview, Error> {
        Ok(self.inner.storage.overview(tenant).await?)
    }

    /// The stored counters of queues, newest queue first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn stored_queues(
        &self,
        tenant: TenantId,
        filter: &QueueFilter,
    ) -> Result<Vec<StoredQueue>, Error> {
        Ok(self.inner.storage.stored_queues(tenant, filter).await?)
    }

    /// Who keeps `completedRetentionSeconds` of a queue from deleting, most partitions first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn pins(&self, tenant: TenantId, queue: &QueueName) -> Result<Vec<Pin>, Error> {
        Ok(queen_storage::admin::queue_pins(self.inner.storage.pool(), tenant, queue).await?)
    }

    /// What all brokers, or one of them, counted; and each of them over the whole span.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn worker_series(
        &self,
        span: Span,
        server: Option<&str>,
        worker: Option<i32>,
    ) -> Result<(Vec<WorkerBucket>, Vec<WorkerSummary>), Error> {
        Ok(self.inner.storage.worker_series(span, server, worker).await?)
    }

    /// What was counted of the queues of a tenant.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn queue_series(
        &self,
        tenant: TenantId,
        span: Span,
        queue: Option<&QueueName>,
        namespace: Option<&Namespace>,
        task: Option<&Task>,
    ) -> Result<Vec<QueueBucket>, Error> {
        Ok(self.inner.storage.queue_series(tenant, span, queue, namespace, task).await?)
    }

    /// Parked pops of the queues of a tenant.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn parked_series(
        &self,
        tenant: TenantId,
        span: Span,
        queue: Option<&QueueName>,
    ) -> Result<Vec<ParkedBucket>, Error> {
        Ok(self.inner.storage.parked_series(tenant, span, queue).await?)
    }

    /// What retention deleted of a tenant.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn retention_series(
        &self,
        tenant: TenantId,
        span: Span,
    ) -> Result<Vec<RetentionBucket>, Error> {
        Ok(self.inner.storage.retention_series(tenant, span).await?)
    }

    /// What processes used; values of one process and bucket stand together.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn system_series(&self, span: Span, server: Option<&str>) -> Result<Vec<SystemValue>, Error> {
        Ok(self.inner.storage.system_series(span, server).await?)
    }

    /// Live leases of the queues of a tenant. Looks at all their cursors.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn lease_summary(
        &self,
        tenant: TenantId,
        queue: Option<&QueueName>,
    ) -> Result<LeaseSummary, Error> {
        Ok(self.inner.storage.lease_summary(tenant, queue).await?)
    }

    /// Dead letters of the queues of a tenant.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn dead_letter_summary(
        &self,
        tenant: TenantId,
        span: Span,
        queue: Option<&QueueName>,
    ) -> Result<DeadLetterSummary, Error> {
        Ok(self.inner.storage.dead_letter_summary(tenant, span, queue).await?)
    }

    /// What PostgreSQL says of itself and of the tables, as a JSON text; sections that the role may not read are empty.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn postgres_stats(&self) -> Result<String, Error> {
        Ok(self.inner.storage.postgres_stats().await?)
    }
}
