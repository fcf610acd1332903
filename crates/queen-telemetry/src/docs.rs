//! The text of `docs/metrics.md`.

use std::fmt::Write;

use crate::catalogue::{CATALOGUE, Family};

const HEAD: &str = "\
# Metrics

Generated from `crates/queen-telemetry/src/catalogue.rs`; a test keeps it in step.

`GET /metrics/prometheus` answers these families in the text format 0.0.4. A family whose label values are known exists
with zeros from the first scrape. One that is labelled by a queue, a route, a group or a tenant is declared and gets
its series as they appear. Families of features that are switched off stay at zero. Counters count from the start of the
process, except `queen_cluster_*`: those are totals over all brokers and restarts, the same on each of them, so
aggregate them with `max`. Histograms have buckets from 0.5 ms to 60 s.

| Family | Kind | Labels | Unit | Meaning |
|---|---|---|---|---|
";

/// `docs/metrics.md`, from the catalogue.
pub fn docs_markdown() -> String {
    let mut out = String::from(HEAD);
    for family in CATALOGUE {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            family.name,
            family.kind.as_str(),
            labels(family),
            family.unit,
            family.description
        );
    }
    out
}

fn labels(family: &Family) -> String {
    let each = family.labels.iter().map(|label| match label.values {
        [] => format!("`{}`", label.key),
        values => format!("`{}` ({})", label.key, values.join(", ")),
    });
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");

    #[test]
    fn the_checked_in_file_is_in_step() {
        if std::env::var_os("QUEEN_WRITE_DOCS").is_some() {
            std::fs::write(PATH, docs_markdown()).unwrap();
        }
        let file = std::fs::read_to_string(PATH).unwrap();
        assert!(
            file == docs_markdown(),
            "docs/metrics.md is out of step: QUEEN_WRITE_DOCS=1 cargo test -p queen-telemetry"
        );
    }
}
