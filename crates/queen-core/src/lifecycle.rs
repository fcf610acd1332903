//! How a running broker stands: its schema, its background tasks, and what it cannot go on without.

use crate::supervise::{Beat, TaskState};
use crate::{Broker, StartError};

/// Why a broker that started cannot go on. It serves what it can until it is shut down.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The database came, and cannot be used.
    #[error(transparent)]
    Start(StartError),
    /// A background task ended more often than is borne.
    #[error("the background task {task:?} ended too often")]
    Exhausted {
        /// Its name.
        task: &'static str,
    },
}

impl Broker {
    /// Whether the schema of the database is known to be in place. False after a degraded start, until the database
    /// came and the schema is applied; until then every call that needs the database fails as in an outage.
    pub fn schema_applied(&self) -> bool {
        self.inner.schema.is_applied()
    }

    /// Waits until the broker cannot go on, and says why; the one who runs it should then shut it down. Cancel safe.
    pub async fn fatal(&self) -> Fatal {
        tokio::select! {
            refusal = self.inner.schema.refused() => Fatal::Start(refusal),
            task = self.inner.supervisor.gave_up() => Fatal::Exhausted { task },
        }
    }

    /// Whether no background task was given up.
    pub fn is_sound(&self) -> bool {
        self.inner.supervisor.exhausted().is_none()
    }

    /// The background tasks that run, or should.
    pub fn background_tasks(&self) -> Vec<TaskState> {
        self.inner.supervisor.states()
    }

    /// Reports background tasks that make no progress. To be called every few seconds.
    pub fn watch_tasks(&self) {
        self.inner.supervisor.watch();
    }

    /// Runs a task of the host like one of the broker's own: started again when it panics or returns, counted, ended
    /// with the broker.
    pub fn supervise<F>(&self, name: &'static str, make: impl FnMut(Beat) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.inner.supervisor.run(name, make);
    }

    /// Makes a background task panic where it waits, to test what follows. False: there is none of this name.
    #[doc(hidden)]
    pub fn provoke_panic(&self, task: &str) -> bool {
        self.inner.supervisor.provoke(task)
    }
}
