//! The statements, by name. Each lives in a file of its own under `schema/statements/metrics/`.

statements! { "metrics/":
    WORKER = "worker.sql";
    QUEUES = "queues.sql";
    PARKED = "parked.sql";
    SYSTEM = "system.sql";
    PURGE = "purge.sql";
    WORKER_SERIES = "worker_series.sql";
    WORKERS = "workers.sql";
    QUEUE_SERIES = "queue_series.sql";
    PARKED_SERIES = "parked_series.sql";
    RETENTION_SERIES = "retention_series.sql";
    SYSTEM_SERIES = "system_series.sql";
    LEASES = "leases.sql";
    POSTGRES = "postgres.sql";
    DEAD_LETTERS = "dead_letters.sql";
}
