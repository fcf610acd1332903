use super::variable::{Alias, AliasKind, Variable, boolean, choice, int, list, pem, secret, text};
use super::{Default, Empty};

const fn password() -> Variable {
    let mut variable = secret("PG_PASSWORD", "postgres.password");
    variable.default = Default::Text("postgres");
    variable
}

pub(super) const VARIABLES: &[Variable] = &[
    text("PG_HOST", "postgres.host", "localhost")
        .live()
        .doc("Host, IP address, or the directory of a Unix socket."),
    int("PG_PORT", "postgres.port", 5432, 1, 65_535).live().doc("Port of PostgreSQL."),
    text("PG_USER", "postgres.user", "postgres").live().doc("Role to log in as."),
    password()
        .empty(Empty::Value)
        .live()
        .doc("Password of the role; empty means none. Its default on a host that is not local is warned about."),
    text("PG_DATABASE", "postgres.database", "postgres")
        .or(&[Alias { name: "PG_DB", kind: AliasKind::Yields }])
        .live()
        .doc("Database that holds the schemas `queen` and `queen_streams`."),
    int("DB_POOL_SIZE", "postgres.pool_size", 160, 1, 10_000)
        .raised_to(4)
        .warn_below(8)
        .live()
        .doc("Ceiling on the concurrent database work of this broker. All brokers together stay under `max_connections`."),
    int("QUEEN_STMT_TIMEOUT_MS", "postgres.statement_timeout_ms", 30_000, 1, 3_600_000)
        .live()
        .doc("Deadline of every statement; on expiry it is cancelled and its connection is thrown away."),
    int("QUEEN_POOL_WAIT_MS", "postgres.pool_wait_ms", 5_000, 1, 3_600_000)
        .live()
        .doc("Longest wait for a free connection of the pool."),
    int("QUEEN_PG_CONNECT_TIMEOUT_MS", "postgres.connect_timeout_ms", 5_000, 1, 3_600_000)
        .live()
        .doc("Longest time to open a connection: look-up, TCP, TLS and login together."),
    boolean("QUEEN_APPLY_SCHEMA", "postgres.apply_schema", true)
        .live()
        .doc("Create what is missing of the schema at boot. False: no DDL and no version check."),
    choice("QUEEN_SCHEMA_MISMATCH", "postgres.schema_mismatch", "fail", &[("fail", &[]), ("warn", &[])])
        .live()
        .doc("What to do about a database whose schema another release built: refuse to start, or warn."),
    list("QUEEN_DB_ROLE", "postgres.grant_roles", &[])
        .live()
        .like("queen_app,queen_ops")
        .doc("Roles that each boot grants USAGE and DML on both schemas."),
    boolean("PG_USE_SSL", "postgres.tls.enabled", false)
        .live()
        .doc("False: plaintext. True: TLS is required."),
    pem("PG_SSL_ROOT_CERT", "postgres.tls.root_cert", "CERTIFICATE")
        .live()
        .doc("PEM text (not a path; a literal `\\n` is a line break). When set, the only trust anchor."),
    boolean("PG_SSL_REJECT_UNAUTHORIZED", "postgres.tls.verify", true)
        .live()
        .doc("False and no CA: any certificate is accepted."),
];
