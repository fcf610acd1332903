//! The route table, and how a method and a path find their row. Everything that depends on a route is derived from
//! here: 404 and 405, the `allow` header, `HEAD`, and the access level.

use hyper::Method;
use queen_wire::decode_segment;

/// Which roles may use a route. Levels are sets of roles, not a ladder: a write-only credential may push and not pop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone.
    Public,
    /// read-only, read-write, admin.
    Read,
    /// write-only, read-write, admin.
    Write,
    /// read-write, admin.
    ReadWrite,
    /// admin.
    Admin,
}

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Push,
    PopDiscovery,
    PopQueue,
    PopPartition,
    Ack,
    AckBatch,
    Transaction,
    LeaseExtend,
    Configure,
    Queues,
    QueueDetail,
    QueueDelete,
    QueueDepth,
    Overview,
    Namespaces,
    Tasks,
    StatusDocument,
    StatusQueues,
    StatusQueue,
    StatusAnalytics,
    StatusJobs,
    StatusAdmission,
    StatusSummary,
    SystemConfig,
    SystemMetrics,
    WorkerMetrics,
    QueueLag,
    QueueOps,
    ParkedReplicas,
    RetentionSeries,
    PostgresStats,
    StatsRefresh,
    JobSwitch,
    Dlq,
    DlqPurge,
    DlqReplay,
    Messages,
    MessageDetail,
    MessageDelete,
    MessageRetry,
    TraceAdd,
    TraceNames,
    TracesByName,
    TracesOfMessage,
    Groups,
    GroupsLagging,
    GroupDetail,
    GroupDelete,
    GroupDeleteOnQueue,
    GroupSubscription,
    GroupSeek,
    GroupSeekPartition,
    Notify,
    MeshStats,
    Me,
    Login,
    Logout,
    Buffers,
    Maintenance,
    SetMaintenance,
    PopMaintenance,
    SetPopMaintenance,
    SharedState,
    Spool,
    Quarantine,
    Requeue,
    DeleteQuarantined,
    DrainSpool,
    Health,
    Livez,
    Readyz,
    Status,
    Metrics,
    Prometheus,
}

impl Endpoint {
    /// A pop claims messages, so asking for its headers alone must not run it.
    fn answers_head(self) -> bool {
        !matches!(self, Endpoint::PopDiscovery | Endpoint::PopQueue | Endpoint::PopPartition)
    }
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Segments beginning with `:` match any one non-empty segment.
    pub(crate) pattern: &'static str,
    pub(crate) access: Access,
    pub(crate) endpoint: Endpoint,
}

const fn route(method: Method, pattern: &'static str, access: Access, endpoint: Endpoint) -> Route {
    Route { method, pattern, access, endpoint }
}

/// Where two patterns match one path the earlier row wins.
#[rustfmt::skip]
pub(crate) static ROUTES: &[Route] = {
    use Access::*;
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    const DELETE: Method = Method::DELETE;
    &[
        route(POST,   "/api/v1/push",                                     Write,     Endpoint::Push),
        route(GET,    "/api/v1/pop/queue/:queue/partition/:partition",    ReadWrite, Endpoint::PopPartition),
        route(GET,    "/api/v1/pop/queue/:queue",                         ReadWrite, Endpoint::PopQueue),
        route(GET,    "/api/v1/pop",                                      ReadWrite, Endpoint::PopDiscovery),
        route(POST,   "/api/v1/ack",                                      ReadWrite, Endpoint::Ack),
        route(POST,   "/api/v1/ack/batch",                                ReadWrite, Endpoint::AckBatch),
        route(POST,   "/api/v1/transaction",                              ReadWrite, Endpoint::Transaction),
        route(POST,   "/api/v1/lease/:leaseId/extend",                    ReadWrite, Endpoint::LeaseExtend),
        route(POST,   "/api/v1/configure",                                ReadWrite, Endpoint::Configure),
        route(GET,    "/api/v1/resources/queues",                         Read,      Endpoint::Queues),
        route(GET,    "/api/v1/resources/queues/:queue",                  Read,      Endpoint::QueueDetail),
        route(DELETE, "/api/v1/resources/queues/:queue",                  Admin,     Endpoint::QueueDelete),
        route(GET,    "/api/v1/resources/queues/:queue/depth",            Read,      Endpoint::QueueDepth),
        route(GET,    "/api/v1/resources/overview",                       Read,      Endpoint::Overview),
        route(GET,    "/api/v1/resources/namespaces",                     Read,      Endpoint::Namespaces),
        route(GET,    "/api/v1/resources/tasks",                          Read,      Endpoint::Tasks),
        route(GET,    "/api/v1/status",                                   Read,      Endpoint::StatusDocument),
        route(GET,    "/api/v1/status/queues",                            Read,      Endpoint::StatusQueues),
        route(GET,    "/api/v1/status/queues/:queue",                     Read,      Endpoint::StatusQueue),
        route(GET,    "/api/v1/status/analytics",                         Read,      Endpoint::StatusAnalytics),
        route(GET,    "/api/v1/status/jobs",                              Read,      Endpoint::StatusJobs),
        route(GET,    "/api/v1/status/admission",                         Read,      Endpoint::StatusAdmission),
        route(GET,    "/api/v1/status/summary",                           Read,      Endpoint::StatusSummary),
        route(GET,    "/api/v1/status/mesh",                              Read,      Endpoint::MeshStats),
        route(GET,    "/api/v1/analytics/system-metrics",                 Read,      Endpoint::SystemMetrics),
        route(GET,    "/api/v1/analytics/worker-metrics",                 Read,      Endpoint::WorkerMetrics),
        route(GET,    "/api/v1/analytics/queue-lag",                      Read,      Endpoint::QueueLag),
        route(GET,    "/api/v1/analytics/queue-ops",                      Read,      Endpoint::QueueOps),
        route(GET,    "/api/v1/analytics/queue-parked-replicas",          Read,      Endpoint::ParkedReplicas),
        route(GET,    "/api/v1/analytics/retention",                      Read,      Endpoint::RetentionSeries),
        route(GET,    "/api/v1/analytics/postgres-stats",                 Read,      Endpoint::PostgresStats),
        route(POST,   "/api/v1/stats/refresh",                            Admin,     Endpoint::StatsRefresh),
        route(POST,   "/api/v1/system/jobs/:task",                        Admin,     Endpoint::JobSwitch),
        route(GET,    "/api/v1/dlq",                                      Read,      Endpoint::Dlq),
        route(DELETE, "/api/v1/dlq",                                      Admin,     Endpoint::DlqPurge),
        route(POST,   "/api/v1/dlq/:id/replay",                           ReadWrite, Endpoint::DlqReplay),
        route(GET,    "/api/v1/messages",                                 Read,      Endpoint::Messages),
        route(GET,    "/api/v1/messages/:partitionId/:transactionId",     Read,      Endpoint::MessageDetail),
        route(DELETE, "/api/v1/messages/:partitionId/:transactionId",     ReadWrite, Endpoint::MessageDelete),
        route(POST,   "/api/v1/messages/:partitionId/:transactionId/retry", ReadWrite, Endpoint::MessageRetry),
        route(POST,   "/api/v1/traces",                                   ReadWrite, Endpoint::TraceAdd),
        route(GET,    "/api/v1/traces/names",                             Read,      Endpoint::TraceNames),
        route(GET,    "/api/v1/traces/by-name/:traceName",                Read,      Endpoint::TracesByName),
        route(GET,    "/api/v1/traces/:partitionId/:transactionId",       Read,      Endpoint::TracesOfMessage),
        route(GET,    "/api/v1/consumer-groups",                          Read,      Endpoint::Groups),
        route(GET,    "/api/v1/consumer-groups/lagging",                  Read,      Endpoint::GroupsLagging),
        route(GET,    "/api/v1/consumer-groups/:group",                   Read,      Endpoint::GroupDetail),
        route(DELETE, "/api/v1/consumer-groups/:group",                   Admin,     Endpoint::GroupDelete),
        route(DELETE, "/api/v1/consumer-groups/:group/queues/:queue",     Admin,     Endpoint::GroupDeleteOnQueue),
        route(POST,   "/api/v1/consumer-groups/:group/subscription",      ReadWrite, Endpoint::GroupSubscription),
        route(POST,   "/api/v1/consumer-groups/:group/queues/:queue/seek", ReadWrite, Endpoint::GroupSeek),
        route(POST,   "/api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek", ReadWrite, Endpoint::GroupSeekPartition),
        route(POST,   "/internal/api/notify",                             Admin,     Endpoint::Notify),
        route(GET,    "/internal/api/shared-state/stats",                 Admin,     Endpoint::MeshStats),
        route(GET,    "/internal/api/inter-instance/stats",               Admin,     Endpoint::MeshStats),
        route(GET,    "/auth/me",                                         Public,    Endpoint::Me),
        route(GET,    "/auth/login",                                      Public,    Endpoint::Login),
        route(POST,   "/auth/logout",                                     Public,    Endpoint::Logout),
        route(GET,    "/api/v1/status/buffers",                           Read,      Endpoint::Buffers),
        route(GET,    "/api/v1/system/maintenance",                       Admin,     Endpoint::Maintenance),
        route(POST,   "/api/v1/system/maintenance",                       Admin,     Endpoint::SetMaintenance),
        route(GET,    "/api/v1/system/maintenance/pop",                   Admin,     Endpoint::PopMaintenance),
        route(POST,   "/api/v1/system/maintenance/pop",                   Admin,     Endpoint::SetPopMaintenance),
        route(GET,    "/api/v1/system/config",                            Admin,     Endpoint::SystemConfig),
        route(GET,    "/api/v1/system/shared-state",                      Admin,     Endpoint::SharedState),
        route(GET,    "/api/v1/system/spool",                             Admin,     Endpoint::Spool),
        route(GET,    "/api/v1/system/spool/quarantine",                  Admin,     Endpoint::Quarantine),
        route(POST,   "/api/v1/system/spool/quarantine/:file/requeue",    Admin,     Endpoint::Requeue),
        route(DELETE, "/api/v1/system/spool/quarantine/:file",            Admin,     Endpoint::DeleteQuarantined),
        route(POST,   "/api/v1/system/spool/drain",                       Admin,     Endpoint::DrainSpool),
        route(GET,    "/health",                                          Public,    Endpoint::Health),
        route(GET,    "/livez",                                           Public,    Endpoint::Livez),
        route(GET,    "/readyz",                                          Public,    Endpoint::Readyz),
        route(GET,    "/status",                                          Read,      Endpoint::Status),
        route(GET,    "/metrics",                                         Public,    Endpoint::Metrics),
        route(GET,    "/metrics/prometheus",                              Public,    Endpoint::Prometheus),
    ]
};

/// The parameters of a matched path, decoded, in the order of the pattern.
pub(crate) type Params = Vec<String>;

/// What a method and a path lead to.
#[derive(Debug)]
pub(crate) enum Found {
    /// A row, by its index in [`ROUTES`].
    Route(usize, Params),
    /// The path exists, the method does not: what would be allowed.
    MethodNotAllowed(String),
    /// No row has such a path.
    NoSuchRoute,
    /// A parameter is not UTF-8 after decoding: its name.
    NotUtf8(&'static str),
}

/// Looks up a request by method and undecoded path.
pub(crate) fn find(method: &Method, path: &str) -> Found {
    let head = method == Method::HEAD;
    let wanted = if head { &Method::GET } else { method };
    let mut allowed: Vec<&str> = Vec::new();
    for (index, route) in ROUTES.iter().enumerate() {
        let Some(params) = match_path(route.pattern, path) else { continue };
        if route.method == wanted && (!head || route.endpoint.answers_head()) {
            return match decode(&params) {
                Ok(params) => Found::Route(index, params),
                Err(name) => Found::NotUtf8(name),
            };
        }
        allowed.push(route.method.as_str());
        if route.method == Method::GET && route.endpoint.answers_head() {
            allowed.push(Method::HEAD.as_str());
        }
    }
    if allowed.is_empty() { Found::NoSuchRoute } else { Found::MethodNotAllowed(allowed.join(",")) }
}

/// The access level that a request needs. A path without a route needs read-write, so that an unknown path tells
/// nothing to those who may not write.
pub fn access(method: &Method, path: &str) -> Access {
    match find(method, path) {
        Found::Route(index, _) => ROUTES[index].access,
        _ => Access::ReadWrite,
    }
}

/// Name and undecoded text of every parameter when the path is one of the pattern.
fn match_path<'p>(pattern: &'static str, path: &'p str) -> Option<Vec<(&'static str, &'p str)>> {
    let mut params = Vec::new();
    let mut segments = path.split('/');
    for part in pattern.split('/') {
        let segment = segments.next()?;
        match part.strip_prefix(':') {
            Some(_) if segment.is_empty() => return None,
            Some(name) => params.push((name, segment)),
            None if part == segment => {}
            None => return None,
        }
    }
    segments.next().is_none().then_some(params)
}

fn decode(params: &[(&'static str, &str)]) -> Result<Params, &'static str> {
    params
        .iter()
        .map(|(name, text)| decode_segment(text).map(|t| t.into_owned()).map_err(|_| *name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `METHOD path` in, the pattern with its parameters, `405 allow` or `404` out.
    fn check(request: &str, expected: &str) {
        let (method, path) = request.split_once(' ').unwrap();
        let got = match find(&method.parse().unwrap(), path) {
            Found::Route(index, params) => {
                [vec![ROUTES[index].pattern.to_owned()], params].concat().join(" ")
            }
            Found::MethodNotAllowed(allow) => format!("405 {allow}"),
            Found::NoSuchRoute => "404".to_owned(),
            Found::NotUtf8(name) => format!("400 {name}"),
        };
        assert_eq!(got, expected, "{request}");
    }

    #[test]
    fn paths_and_parameters() {
        check("POST /api/v1/push", "/api/v1/push");
        check("GET /api/v1/pop", "/api/v1/pop");
        check("GET /api/v1/pop/queue/q", "/api/v1/pop/queue/:queue q");
        check(
            "GET /api/v1/pop/queue/a%2Fb%2520/partition/%C3%A9",
            "/api/v1/pop/queue/:queue/partition/:partition a/b%20 é",
        );
        check("POST /api/v1/ack/batch", "/api/v1/ack/batch");
        check("DELETE /api/v1/resources/queues/q", "/api/v1/resources/queues/:queue q");
        check("GET /api/v1/resources/queues/q/depth", "/api/v1/resources/queues/:queue/depth q");
        check("POST /api/v1/lease/L/extend", "/api/v1/lease/:leaseId/extend L");
    }

    #[test]
    fn nothing_is_normalised() {
        for path in [
            "/",
            "",
            "*",
            "/api",
            "/API/v1/pop",
            "/api/v1/pop/",
            "/api//v1/pop",
            "/api/v1/pop/queue",
            "/api/v1/pop/queue/",
            "/api/v1/pop/queue//partition/p",
            "/api/v1/pop/queue/q/partition/",
            "/api/v1/p%6Fp",
            "/api/v2/pop",
            "/api/v1/push/extra",
            "/api/v1/resources/partitions",
            "/api/v1/queues/q/clear",
        ] {
            check(&format!("GET {path}"), "404");
        }
        check("POST /api/v1/messages/p/t/dlq", "404");
    }

    #[test]
    fn wrong_methods_tell_the_right_ones() {
        check("GET /api/v1/push", "405 POST");
        check("OPTIONS /api/v1/push", "405 POST");
        check("POST /api/v1/pop/queue/x", "405 GET");
        check("POST /api/v1/resources/queues", "405 GET,HEAD");
        check("PUT /api/v1/resources/queues/q", "405 GET,HEAD,DELETE");
        check("DELETE /health", "405 GET,HEAD");
    }

    #[test]
    fn head_runs_what_is_safe_to_run() {
        check("HEAD /health", "/health");
        check("HEAD /api/v1/resources/queues/q", "/api/v1/resources/queues/:queue q");
        check("HEAD /api/v1/push", "405 POST");
        for pop in ["/api/v1/pop", "/api/v1/pop/queue/q", "/api/v1/pop/queue/q/partition/p"] {
            check(&format!("HEAD {pop}"), "405 GET");
        }
    }

    #[test]
    fn a_parameter_that_is_not_text() {
        check("GET /api/v1/pop/queue/%ff%fe", "400 queue");
        check("GET /api/v1/resources/queues/%ff", "400 queue");
    }

    #[test]
    fn every_row_is_reachable() {
        for (index, row) in ROUTES.iter().enumerate() {
            match find(&row.method, row.pattern) {
                Found::Route(found, _) => assert_eq!(found, index, "{}", row.pattern),
                other => panic!("{}: {other:?}", row.pattern),
            }
        }
    }

    #[test]
    fn access_levels() {
        for (request, level) in [
            ("POST /api/v1/push", Access::Write),
            ("GET /api/v1/pop/queue/q", Access::ReadWrite),
            ("GET /api/v1/resources/queues/q", Access::Read),
            ("HEAD /api/v1/resources/queues/q", Access::Read),
            ("DELETE /api/v1/resources/queues/q", Access::Admin),
            ("GET /health", Access::Public),
            ("GET /nothing", Access::ReadWrite),
            ("PUT /api/v1/push", Access::ReadWrite),
        ] {
            let (method, path) = request.split_once(' ').unwrap();
            assert_eq!(access(&method.parse().unwrap(), path), level, "{request}");
        }
    }
}
