//! Administration: storage rows to the values of the calls, and caches kept honest.

use queen_storage::admin;
use queen_types::{Group, QueueName, QueueOptions, TenantId};

use crate::api::{
    ConfigureRequest, Configured, Counts, DeadLetter, Depth, DlqFilter, DlqPage, KeyTotals, PartitionSummary,
    QueueDeleted, QueueDetail, QueueSummary,
};
use crate::{Broker, Error};

impl Broker {
    /// Creates or alters a queue. Takes effect here at once, on other brokers within their cache time.
    ///
    /// # Errors
    /// [`Error::Refused`] when the queue is to be encrypted: this broker has no key, and plain text must not pass for
    /// it. See [`Error`] for the rest.
    pub async fn configure(&self, tenant: TenantId, request: ConfigureRequest) -> Result<Configured, Error> {
        if request.edit.encryption_enabled == Some(true) {
            return Err(Error::Refused(
                "encryptionEnabled needs an encryption key, and this broker has none".to_owned(),
            ));
        }
        let pool = self.inner.storage.pool();
        let (queue_id, options) =
            admin::configure(pool, tenant, &request.queue, request.replace, &request.edit).await?;
        self.inner.caches.forget(tenant, &request.queue);
        self.inner.gates.wake_everybody_of(tenant, &request.queue);
        Ok(Configured { queue_id, options })
    }

    /// Deletes a queue with everything of it. A queue of that name pushed to afterwards is a new one.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn delete_queue(&self, tenant: TenantId, queue: &QueueName) -> Result<QueueDeleted, Error> {
        let deleted = admin::delete_queue(self.inner.storage.pool(), tenant, queue).await?;
        self.inner.storage.forget_queue(tenant, queue);
        self.inner.caches.forget(tenant, queue);
        self.inner.hot.forget(tenant, queue);
        self.inner.gates.wake_everybody_of(tenant, queue);
        Ok(QueueDeleted { existed: deleted.is_some() })
    }

    /// Every queue of the tenant, newest first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn queues(&self, tenant: TenantId) -> Result<Vec<QueueSummary>, Error> {
        let rows = admin::queue_list(self.inner.storage.pool(), tenant, true).await?;
        Ok(rows
            .into_iter()
            .map(|row| QueueSummary {
                id: row.id,
                name: row.name,
                namespace: row.namespace,
                task: row.task,
                created_at: row.created_at,
                partitions: row.partitions,
                retained_bytes: 0,
                segments: row.segments,
                counts: Counts { pending: row.counts.ready(), ..counts(&row.counts) },
            })
            .collect())
    }

    /// One queue in detail; `None` when there is none of that name.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn queue(&self, tenant: TenantId, queue: &QueueName) -> Result<Option<QueueDetail>, Error> {
        let Some(detail) = admin::queue_detail(self.inner.storage.pool(), tenant, queue).await? else {
            return Ok(None);
        };
        let options: QueueOptions = detail.queue.options;
        Ok(Some(QueueDetail {
            summary: QueueSummary {
                id: detail.queue.id,
                name: queue.clone(),
                namespace: options.namespace.to_string(),
                task: options.task.to_string(),
                created_at: detail.queue.created_at,
                partitions: detail.partitions.len() as i64,
                retained_bytes: detail.stored.bytes,
                segments: detail.stored.segments,
                counts: counts(&detail.totals),
            },
            options,
            partitions: detail
                .partitions
                .into_iter()
                .map(|row| PartitionSummary {
                    id: row.id,
                    name: row.name,
                    created_at: row.created_at,
                    counts: counts(&row.counts),
                    oldest_message: row.oldest_at,
                    newest_message: row.newest_at,
                })
                .collect(),
        }))
    }

    /// The exact backlog of a queue for a group, or for its slowest consumers; `None` when there is no such queue.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn depth(
        &self,
        tenant: TenantId,
        queue: &QueueName,
        group: Option<&Group>,
    ) -> Result<Option<Depth>, Error> {
        let rows = admin::depth(self.inner.storage.pool(), tenant, queue, group).await?;
        Ok(rows.map(|rows| Depth {
            partitions: rows.into_iter().map(|row| (row.partition, row.pending, row.processing)).collect(),
        }))
    }

    /// Totals by namespace.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn namespaces(&self, tenant: TenantId) -> Result<Vec<KeyTotals>, Error> {
        Ok(admin::namespaces(self.inner.storage.pool(), tenant).await?.into_iter().map(totals).collect())
    }

    /// Totals by task.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn tasks(&self, tenant: TenantId) -> Result<Vec<KeyTotals>, Error> {
        Ok(admin::tasks(self.inner.storage.pool(), tenant).await?.into_iter().map(totals).collect())
    }

    /// A page of dead letters, newest failure first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn dead_letters(&self, tenant: TenantId, filter: DlqFilter) -> Result<DlqPage, Error> {
        let page = admin::dlq_page(self.inner.storage.pool(), tenant, &filter).await?;
        Ok(DlqPage { records: page.records.into_iter().map(dead_letter).collect(), total: page.total })
    }
}

fn counts(counts: &admin::Counts) -> Counts {
    Counts {
        total: counts.total,
        pending: counts.backlog,
        processing: counts.processing,
        completed: counts.completed,
        dead_letter: counts.dead_letter,
    }
}

fn totals(row: admin::KeyTotals) -> KeyTotals {
    KeyTotals {
        key: row.key,
        queues: row.queues,
        partitions: row.partitions,
        total: row.counts.total,
        pending: row.counts.backlog,
    }
}

fn dead_letter(row: admin::DeadLetterRow) -> DeadLetter {
    DeadLetter {
        id: row.id,
        message_id: row.message_id,
        transaction_id: row.transaction_id.unwrap_or_default(),
        partition_id: row.partition_id,
        partition: row.partition,
        queue: row.queue,
        group: row.group,
        error: row.error,
        retry_count: row.retry_count,
        payload: row.payload,
        producer_sub: row.producer_sub,
        message_created_at: row.message_created_at,
        failed_at: row.failed_at,
    }
}
