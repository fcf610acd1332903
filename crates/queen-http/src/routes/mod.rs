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

use std::future::{Future, ready};
use std::pin::Pin;

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

/// A handler that runs. Each is allocated by itself: in one future for all of them, each call would be as large as the
/// largest, and is moved before it is polled.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, ApiError>> + Send + 'a>>;

/// Starts the handler of a route.
pub(crate) fn dispatch<'a>(app: &'a App, endpoint: Endpoint, call: Call<'a>) -> Running<'a> {
    match endpoint {
        Endpoint::Push => Box::pin(push::push(app, call)),
        Endpoint::PopDiscovery => Box::pin(pop::discovery(app, call)),
        Endpoint::PopQueue => Box::pin(pop::queue(app, call)),
        Endpoint::PopPartition => Box::pin(pop::partition(app, call)),
        Endpoint::Ack => Box::pin(ack::single(app, call)),
        Endpoint::AckBatch => Box::pin(ack::batch(app, call)),
        Endpoint::Transaction => Box::pin(transaction::transaction(app, call)),
        Endpoint::LeaseExtend => Box::pin(lease::extend(app, call)),
        Endpoint::Configure => Box::pin(configure::configure(app, call)),
        Endpoint::Queues => Box::pin(queues::list(app, call)),
        Endpoint::QueueDetail => Box::pin(queues::detail(app, call)),
        Endpoint::QueueDelete => Box::pin(queues::delete(app, call)),
        Endpoint::QueueDepth => Box::pin(queues::depth(app, call)),
        Endpoint::Overview => Box::pin(status::overview(app, call)),
        Endpoint::Namespaces => Box::pin(queues::namespaces(app, call)),
        Endpoint::Tasks => Box::pin(queues::tasks(app, call)),
        Endpoint::StatusDocument => Box::pin(status::document(app, call)),
        Endpoint::StatusQueues => Box::pin(status::queues(app, call)),
        Endpoint::StatusQueue => Box::pin(status::queue(app, call)),
        Endpoint::StatusAnalytics => Box::pin(status::ingest(app, call)),
        Endpoint::StatusJobs => Box::pin(status::jobs(app)),
        Endpoint::StatusAdmission => Box::pin(ready(Ok(status::admission(app)))),
        Endpoint::StatusSummary => Box::pin(async move { Ok(summary::summary(app, call).await) }),
        Endpoint::SystemConfig => Box::pin(ready(summary::config(app))),
        Endpoint::StatsRefresh => Box::pin(status::refresh(app)),
        Endpoint::JobSwitch => Box::pin(status::switch_job(app, call)),
        Endpoint::SystemMetrics => Box::pin(analytics::system_metrics(app, call)),
        Endpoint::WorkerMetrics => Box::pin(analytics::worker_metrics(app, call)),
        Endpoint::QueueLag => Box::pin(analytics::queue_lag(app, call)),
        Endpoint::QueueOps => Box::pin(analytics::queue_ops(app, call)),
        Endpoint::ParkedReplicas => Box::pin(analytics::parked_replicas(app, call)),
        Endpoint::RetentionSeries => Box::pin(analytics::retention(app, call)),
        Endpoint::PostgresStats => Box::pin(analytics::postgres_stats(app)),
        Endpoint::Dlq => Box::pin(dlq::list(app, call)),
        Endpoint::DlqPurge => Box::pin(messages::purge(app, call)),
        Endpoint::DlqReplay => Box::pin(messages::replay_record(app, call)),
        Endpoint::Messages => Box::pin(messages::list(app, call)),
        Endpoint::MessageDetail => Box::pin(messages::detail(app, call)),
        Endpoint::MessageDelete => Box::pin(messages::delete(app, call)),
        Endpoint::MessageRetry => Box::pin(messages::retry(app, call)),
        Endpoint::TraceAdd => Box::pin(traces::add(app, call)),
        Endpoint::TraceNames => Box::pin(traces::names(app, call)),
        Endpoint::TracesByName => Box::pin(traces::by_name(app, call)),
        Endpoint::TracesOfMessage => Box::pin(traces::of_message(app, call)),
        Endpoint::Groups => Box::pin(groups::list(app, call)),
        Endpoint::GroupsLagging => Box::pin(groups::lagging(app, call)),
        Endpoint::GroupDetail => Box::pin(groups::detail(app, call)),
        Endpoint::GroupDelete => Box::pin(groups::delete(app, call)),
        Endpoint::GroupDeleteOnQueue => Box::pin(groups::delete_on_queue(app, call)),
        Endpoint::GroupSubscription => Box::pin(groups::subscription(app, call)),
        Endpoint::GroupSeek => Box::pin(groups::seek(app, call)),
        Endpoint::GroupSeekPartition => Box::pin(groups::seek_partition(app, call)),
        Endpoint::Notify => Box::pin(internal::notify(app, call)),
        Endpoint::MeshStats => Box::pin(ready(Ok(internal::mesh_stats(app)))),
        Endpoint::Me => Box::pin(ready(Ok(internal::me(&call)))),
        Endpoint::Login => Box::pin(ready(Ok(internal::login()))),
        Endpoint::Logout => Box::pin(ready(Ok(internal::logout()))),
        Endpoint::Buffers => Box::pin(async move { Ok(maintenance::buffers(app).await) }),
        Endpoint::Maintenance => Box::pin(async move { Ok(maintenance::get(app).await) }),
        Endpoint::SetMaintenance => Box::pin(maintenance::set(app, call)),
        Endpoint::PopMaintenance => Box::pin(async move { Ok(maintenance::get_pop(app).await) }),
        Endpoint::SetPopMaintenance => Box::pin(maintenance::set_pop(app, call)),
        Endpoint::SharedState => Box::pin(ready(Ok(maintenance::shared_state(app)))),
        Endpoint::Spool => Box::pin(async move { Ok(spool::show(app).await) }),
        Endpoint::Quarantine => Box::pin(spool::quarantine(app, call)),
        Endpoint::Requeue => Box::pin(spool::requeue(app, call)),
        Endpoint::DeleteQuarantined => Box::pin(spool::delete(app, call)),
        Endpoint::DrainSpool => Box::pin(spool::drain(app, call)),
        Endpoint::Health => Box::pin(async move { Ok(system::health(app).await) }),
        Endpoint::Livez => Box::pin(ready(Ok(system::livez(app)))),
        Endpoint::Readyz => Box::pin(async move { system::readyz(app, &call).await }),
        Endpoint::Status => Box::pin(ready(Ok(system::status()))),
        Endpoint::Metrics => Box::pin(ready(Ok(system::metrics(app)))),
        Endpoint::Prometheus => Box::pin(ready(Ok(system::prometheus(app)))),
    }
}
