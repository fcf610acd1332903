use super::variable::{Alias, AliasKind, Check, Empty, Variable, boolean, int, optional, text};

pub(super) const VARIABLES: &[Variable] = &[
    int("PORT", "server.port", 6632, 1, 65_535)
        .live()
        .doc("The one HTTP port: API, dashboard and metrics."),
    text("QUEEN_BIND_ADDR", "server.bind_addr", "0.0.0.0")
        .checked(Check::Host)
        .empty(Empty::Fatal)
        .live()
        .like("127.0.0.1")
        .doc("Address of the HTTP listener, an IP or a host without a port; also the default of the mesh listener."),
    int("QUEEN_MAX_BODY_BYTES", "server.max_body_bytes", 67_108_864, 1, 4_294_967_295)
        .live()
        .doc("A larger request body is answered 413."),
    optional("QUEEN_SERVER_ID", "server.id")
        .derived("`HOSTNAME`, else `queen-` and 8 random hex digits")
        .or(&[Alias { name: "HOSTNAME", kind: AliasKind::Platform }])
        .checked(Check::ServerId)
        .live()
        .like("queen-1")
        .doc("Name of this broker among its peers, in metrics rows and in `pg_stat_activity`. Distinct per broker."),
    boolean("QUEEN_BOOT_WITHOUT_DB", "server.boot_without_db", true)
        .live()
        .doc(
            "Start although the database is away, and apply the schema when it comes; until then calls fail as in an \
             outage. Off: a database that is away ends the start.",
        ),
    int("QUEEN_SHUTDOWN_TIMEOUT_MS", "server.shutdown_timeout_ms", 25_000, 0, 3_600_000)
        .live()
        .doc(
            "How long a shutdown may take, the drain delay included, before the connections of requests in flight are \
             dropped. Keep it some seconds below the grace period of whoever kills the process.",
        ),
    int("QUEEN_DRAIN_DELAY_MS", "server.drain_delay_ms", 0, 0, 3_600_000)
        .live()
        .like("5000")
        .doc("How long a broker that shuts down keeps accepting while `/readyz` already answers 503."),
    optional("QUEEN_CONFIG_FILE", "")
        .live()
        .like("/etc/queen/queen.toml")
        .doc(
            "Path of the configuration file; `--config FILE` wins over it. Without either, \
             `/etc/queen/queen.toml` is read when it exists.",
        ),
];
