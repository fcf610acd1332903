use super::variable::{Alias, AliasKind, Check, Variable, at_least, boolean, int, optional, text};

pub(super) const VARIABLES: &[Variable] = &[
    text("LOG_LEVEL", "log.filter", "info")
        .or(&[Alias { name: "RUST_LOG", kind: AliasKind::Wins }])
        .checked(Check::LogFilter)
        .live()
        .like("info,spool=debug")
        .doc("A level or filter directives."),
    boolean("QUEEN_LOG_JSON", "log.json", false).live().doc("One flat JSON object per line."),
    at_least("QUEEN_LOG_RATES_MS", "log.rates_ms", 10_000, 1_000)
        .doc("Period of the lines with rates and sizes."),
    at_least("QUEEN_LOG_TOPN_QUEUES", "log.top_n", 10, 1).doc("Lines of single queues per period."),
    int("QUEEN_METRICS_MAX_QUEUES", "metrics.max_queues", 500, 1, 1_000_000)
        .doc("Queues with series of their own; the rest is under `queue=\"__other__\"`."),
    optional("OTEL_EXPORTER_OTLP_ENDPOINT", "otel.endpoint")
        .checked(Check::Url)
        .like("http://collector:4317")
        .doc("Where traces go; the other standard `OTEL_*` names belong to it."),
];
