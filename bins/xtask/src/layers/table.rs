//! The layers of the product: a crate may use only the crates that its row names, and of the outside packages
//! that mean a runtime, a socket, a database or a decision of the process, only those that its row names.

/// One crate. The row is a whitelist; extend it when a need is real, and say why beside it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) layer: Layer,
    /// Crates of this workspace.
    pub(crate) queen: &'static [&'static str],
    /// Guarded outside packages; `name:feature` allows that feature alone.
    pub(crate) outside: &'static [&'static str],
}

/// From below to above. A crate never uses one of a higher layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// Vocabulary.
    Zero,
    /// Pure: no socket, file, SQL, clock.
    One,
    /// One kind of I/O each.
    TwoA,
    /// Services over the store.
    TwoB,
    /// The broker.
    Three,
    /// Edges of the process.
    Four,
    /// Binaries, and what only tests use.
    Top,
}

/// Outside packages that a row has to allow.
pub(crate) const GUARDED: &[&str] = &[
    "anyhow",
    "async-std",
    "axum",
    "clap",
    "deadpool-postgres",
    "diesel",
    "figment",
    "http-body-util",
    "hyper",
    "hyper-util",
    "jsonwebtoken",
    "metrics-exporter-prometheus",
    "postgres",
    "reqwest",
    "rustls",
    "smol",
    "sqlx",
    "tokio",
    "tokio-postgres",
    "tokio-postgres-rustls",
    "tokio-util",
    "tracing-subscriber",
    "ureq",
];

/// Packages of tests and benches, which may use everything.
pub(crate) const FREE: &[&str] = &["queen-tests", "queen-client-rust-tests", "queen-benches"];

/// What tests of layer 2 and above may use besides their row: the crates under the testkit take the cluster itself.
pub(crate) const TEST_SUPPORT: &[&str] = &["queen-testkit", "queen-pgcluster"];

const HTTP: [&str; 5] = ["tokio", "tokio-util", "hyper", "hyper-util", "http-body-util"];

pub(crate) const ROWS: &[Row] = &[
    Row { name: "queen-types", layer: Layer::Zero, queen: &[], outside: &[] },
    Row { name: "queen-wire", layer: Layer::Zero, queen: &["queen-types"], outside: &[] },
    Row { name: "queen-segment", layer: Layer::One, queen: &["queen-types"], outside: &[] },
    Row { name: "queen-admission", layer: Layer::One, queen: &["queen-types"], outside: &["tokio:sync"] },
    Row { name: "queen-hotlist", layer: Layer::One, queen: &["queen-types"], outside: &[] },
    Row { name: "queen-dedup", layer: Layer::One, queen: &["queen-types"], outside: &[] },
    Row { name: "queen-fusion", layer: Layer::One, queen: &["queen-types"], outside: &[] },
    Row { name: "queen-ephemeral", layer: Layer::One, queen: &["queen-types"], outside: &[] },
    Row {
        name: "queen-pg",
        layer: Layer::TwoA,
        queen: &["queen-types"],
        outside: &[
            "tokio",
            "tokio-util",
            "tokio-postgres",
            "deadpool-postgres",
            "tokio-postgres-rustls",
            "rustls",
        ],
    },
    Row {
        // The failure classes of its errors are vocabulary.
        name: "queen-schema",
        layer: Layer::TwoA,
        queen: &["queen-types", "queen-pg"],
        outside: &["tokio", "tokio-postgres"],
    },
    Row {
        name: "queen-storage",
        layer: Layer::TwoA,
        queen: &["queen-types", "queen-segment", "queen-dedup", "queen-pg"],
        outside: &["tokio", "tokio-postgres"],
    },
    Row { name: "queen-spool", layer: Layer::TwoA, queen: &["queen-types"], outside: &["tokio"] },
    Row { name: "queen-mesh", layer: Layer::TwoA, queen: &["queen-types"], outside: &["tokio"] },
    Row { name: "queen-pgcluster", layer: Layer::TwoA, queen: &[], outside: &["tokio"] },
    Row {
        // hyper for the runner behind its feature `http`.
        name: "queen-streams",
        layer: Layer::TwoB,
        queen: &["queen-types", "queen-storage", "queen-pg", "queen-admission"],
        outside: &["tokio", "tokio-postgres", "hyper", "hyper-util", "http-body-util"],
    },
    Row {
        name: "queen-maintenance",
        layer: Layer::TwoB,
        queen: &["queen-types", "queen-storage", "queen-admission"],
        outside: &["tokio", "tokio-util"],
    },
    Row {
        name: "queen-core",
        layer: Layer::Three,
        queen: &[
            "queen-types",
            "queen-segment",
            "queen-admission",
            "queen-hotlist",
            "queen-fusion",
            "queen-ephemeral",
            "queen-pg",
            "queen-schema",
            "queen-storage",
            "queen-spool",
            "queen-mesh",
            "queen-streams",
            "queen-maintenance",
        ],
        outside: &["tokio", "tokio-util"],
    },
    Row {
        name: "queen-auth",
        layer: Layer::Four,
        queen: &["queen-types"],
        outside: &["tokio", "hyper", "hyper-util", "http-body-util", "jsonwebtoken"],
    },
    Row {
        name: "queen-http",
        layer: Layer::Four,
        queen: &["queen-types", "queen-wire", "queen-core", "queen-auth"],
        outside: &HTTP,
    },
    Row {
        // It builds the options of the database and of the vocabulary too.
        name: "queen-config",
        layer: Layer::Four,
        queen: &["queen-types", "queen-pg", "queen-core", "queen-http", "queen-auth", "queen-telemetry"],
        outside: &["figment"],
    },
    Row {
        name: "queen-telemetry",
        layer: Layer::Four,
        queen: &[],
        outside: &["tracing-subscriber", "metrics-exporter-prometheus"],
    },
    Row {
        name: "queen-testkit",
        layer: Layer::Top,
        queen: &["queen-types", "queen-pg", "queen-schema", "queen-pgcluster"],
        outside: &["anyhow", "tokio", "tokio-postgres"],
    },
    Row {
        name: "queen-server",
        layer: Layer::Top,
        queen: &[
            "queen-config",
            "queen-http",
            "queen-auth",
            "queen-telemetry",
            "queen-core",
            "queen-pgcluster",
        ],
        outside: &["anyhow", "clap", "tokio", "tokio-util"],
    },
    Row {
        name: "queenctl",
        layer: Layer::Top,
        queen: &["queen-wire"],
        outside: &["anyhow", "clap", "tokio", "hyper", "hyper-util", "http-body-util"],
    },
    Row {
        name: "xtask",
        layer: Layer::Top,
        queen: &["queen-config", "queen-pgcluster"],
        outside: &["anyhow", "tokio", "hyper", "hyper-util", "http-body-util"],
    },
];
