//! One file per area of the API.

mod ack;
mod analytics;
mod configure;
mod dlq;
mod groups;
mod internal;
mod lease;
mod maintenance;
mod messages;
mod pop;
mod push;
mod queues;
mod spool;
mod status;
mod summary;
mod system;
mod traces;
mod transaction;

use bytes::Bytes;

use crate::app::App;
use crate::context::RequestContext;
use crate::error::ApiError;
use crate::reply::Answer;
use crate::router::{Endpoint, Params};

/// One call of a handler: everything of the request that a handler may look at.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) context: RequestContext,
    /// Decoded path parameters, in the order of the pattern.
    pub(crate) params: Params,
    /// What follows the `?`.
    pub(crate) query: Option<&'a str>,
    pub(crate) body: Bytes,
}

impl Call<'_> {
    /// A path parameter. The route table guarantees that a handler's pattern has it.
    pub(crate) fn param(&self, index: usize) -> &str {
        self.params.get(index).map_or("", String::as_str)
    }
}

/// Runs the handler of a route.
pub(crate) async fn dispatch(app: &App, endpoint: Endpoint, call: Call<'_>) -> Result<Answer, ApiError> {
    match endpoint {
        Endpoint::Push => push::push(app, call).await,
        Endpoint::PopDiscovery => pop::discovery(app, call).await,
        Endpoint::PopQueue => pop::queue(app, call).await,
        Endpoint::PopPartition => pop::partition(app, call).await,
        Endpoint::Ack => ack::single(app, call).await,
        Endpoint::AckBatch => ack::batch(app, call).await,
        Endpoint::Transaction => transaction::transaction(app, call).await,
        Endpoint::LeaseExtend => lease::extend(app, call).await,
        Endpoint::Configure => configure::configure(app, call).await,
        Endpoint::Queues => queues::list(app, call).await,
        Endpoint::QueueDetail => queues::detail(app, call).await,
        Endpoint::QueueDelete => queues::delete(app, call).await,
        Endpoint::QueueDepth => queues::depth(app, call).await,
        Endpoint::Overview => status::overview(app, call).await,
        Endpoint::Namespaces => queues::namespaces(app, call).await,
        Endpoint::Tasks => queues::tasks(app, call).await,
        Endpoint::StatusDocument => status::document(app, call).await,
        Endpoint::StatusQueues => status::queues(app, call).await,
        Endpoint::StatusQueue => status::queue(app, call).await,
        Endpoint::StatusAnalytics => status::ingest(app, call).await,
        Endpoint::StatusJobs => status::jobs(app).await,
        Endpoint::StatusAdmission => Ok(status::admission(app)),
        Endpoint::StatusSummary => Ok(summary::summary(app, call).await),
        Endpoint::SystemConfig => summary::config(app),
        Endpoint::StatsRefresh => status::refresh(app).await,
        Endpoint::JobSwitch => status::switch_job(app, call).await,
        Endpoint::SystemMetrics => analytics::system_metrics(app, call).await,
        Endpoint::WorkerMetrics => analytics::worker_metrics(app, call).await,
        Endpoint::QueueLag => analytics::queue_lag(app, call).await,
        Endpoint::QueueOps => analytics::queue_ops(app, call).await,
        Endpoint::ParkedReplicas => analytics::parked_replicas(app, call).await,
        Endpoint::RetentionSeries => analytics::retention(app, call).await,
        Endpoint::PostgresStats => analytics::postgres_stats(app).await,
        Endpoint::Dlq => dlq::list(app, call).await,
        Endpoint::DlqPurge => messages::purge(app, call).await,
        Endpoint::DlqReplay => messages::replay_record(app, call).await,
        Endpoint::Messages => messages::list(app, call).await,
        Endpoint::MessageDetail => messages::detail(app, call).await,
        Endpoint::MessageDelete => messages::delete(app, call).await,
        Endpoint::MessageRetry => messages::retry(app, call).await,
        Endpoint::TraceAdd => traces::add(app, call).await,
        Endpoint::TraceNames => traces::names(app, call).await,
        Endpoint::TracesByName => traces::by_name(app, call).await,
        Endpoint::TracesOfMessage => traces::of_message(app, call).await,
        Endpoint::Groups => groups::list(app, call).await,
        Endpoint::GroupsLagging => groups::lagging(app, call).await,
        Endpoint::GroupDetail => groups::detail(app, call).await,
        Endpoint::GroupDelete => groups::delete(app, call).await,
        Endpoint::GroupDeleteOnQueue => groups::delete_on_queue(app, call).await,
        Endpoint::GroupSubscription => groups::subscription(app, call).await,
        Endpoint::GroupSeek => groups::seek(app, call).await,
        Endpoint::GroupSeekPartition => groups::seek_partition(app, call).await,
        Endpoint::Notify => internal::notify(app, call).await,
        Endpoint::MeshStats => Ok(internal::mesh_stats(app)),
        Endpoint::Me => Ok(internal::me(&call)),
        Endpoint::Login => Ok(internal::login()),
        Endpoint::Logout => Ok(internal::logout()),
        Endpoint::Buffers => Ok(maintenance::buffers(app).await),
        Endpoint::Maintenance => Ok(maintenance::get(app).await),
        Endpoint::SetMaintenance => maintenance::set(app, call).await,
        Endpoint::PopMaintenance => Ok(maintenance::get_pop(app).await),
        Endpoint::SetPopMaintenance => maintenance::set_pop(app, call).await,
        Endpoint::SharedState => Ok(maintenance::shared_state(app)),
        Endpoint::Spool => Ok(spool::show(app).await),
        Endpoint::Quarantine => spool::quarantine(app, call).await,
        Endpoint::Requeue => spool::requeue(app, call).await,
        Endpoint::DeleteQuarantined => spool::delete(app, call).await,
        Endpoint::DrainSpool => spool::drain(app, call).await,
        Endpoint::Health => Ok(system::health(app).await),
        Endpoint::Livez => Ok(system::livez(app)),
        Endpoint::Readyz => system::readyz(app, &call).await,
        Endpoint::Status => Ok(system::status()),
        Endpoint::Metrics => Ok(system::metrics(app)),
        Endpoint::Prometheus => Ok(system::prometheus(app)),
    }
}
