//! The page as a scraper sees it, from metrics emitted through the macros.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use queen_telemetry::{BuildInfo, CATALOGUE, DatabaseNumbers, Kind, Recorder};

fn recorder() -> Recorder {
    let build = BuildInfo { version: "0.1.0".into(), revision: "abc\"1".into(), rustc: "1.90".into() };
    Recorder::build(&build).unwrap()
}

/// Series by their text before the value.
fn series(page: &str) -> BTreeMap<&str, f64> {
    let lines = page.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series, value.parse().unwrap())
        })
        .collect()
}

#[test]
fn every_fixed_series_is_there_from_the_first_scrape() {
    let page = recorder().render();
    let series = series(&page);
    for name in [
        "queen_process_push_messages_total",
        "queen_db_pool_size",
        "queen_maintenance_mode_enabled",
        "queen_file_buffer_pending",
        "queen_cluster_dlq_total{scope=\"cluster\"}",
        "queen_dlq_depth{scope=\"cluster\"}",
        "queen_admission_budget",
        "queen_kv_ops_total{op=\"getMany\",result=\"applied\"}",
        "queen_timers_fired_total{result=\"stale\"}",
        "queen_ephemeral_queues",
        "queen_delivery_age_seconds_count",
    ] {
        assert_eq!(series.get(name), Some(&0.0), "{name}");
    }
    assert_eq!(series["queen_file_buffer_db_healthy"], 1.0);
    assert!(series["queen_process_resident_memory_bytes"] > 1e6);
    assert_eq!(series["queen_build_info{version=\"0.1.0\",revision=\"abc\\\"1\",rustc=\"1.90\"}"], 1.0);
}

#[test]
fn samples_stand_under_their_own_head() {
    let recorder = recorder();
    metrics::with_local_recorder(recorder.sink(), || {
        metrics::gauge!("queen_parked_long_polls", "queue" => "a\nb\"c\\").set(2.0);
        metrics::counter!("queen_http_requests_total", "route" => "/x", "method" => "GET", "code" => "200")
            .increment(1);
        metrics::histogram!("queen_http_request_duration_seconds", "route" => "/x", "method" => "GET")
            .record(0.003);
    });
    let page = recorder.render();
    let mut declared: BTreeMap<&str, usize> = BTreeMap::new();
    let mut family = "";
    for line in page.lines() {
        if let Some(head) = line.strip_prefix("# HELP ") {
            family = head.split(' ').next().unwrap();
        } else if let Some(head) = line.strip_prefix("# TYPE ") {
            assert_eq!(head.split(' ').next(), Some(family), "TYPE follows HELP");
            *declared.entry(family).or_default() += 1;
        } else {
            let name = line.split(['{', ' ']).next().unwrap();
            let stem =
                ["_bucket", "_sum", "_count"].iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name);
            assert!(name == family || stem == family, "{line} under {family}");
        }
    }
    assert!(CATALOGUE.iter().all(|f| declared.get(f.name) == Some(&1)));
    assert_eq!(declared.len(), CATALOGUE.len());
    assert!(page.contains("queen_parked_long_polls{queue=\"a\\nb\\\"c\\\\\"} 2\n"), "escaped label");
}

#[test]
fn histograms_have_the_buckets_of_the_documentation() {
    let recorder = recorder();
    metrics::with_local_recorder(recorder.sink(), || {
        for seconds in [0.0004, 0.003, 59.0, 61.0] {
            metrics::histogram!("queen_delivery_age_seconds").record(seconds);
        }
    });
    recorder.upkeep();
    let page = recorder.render();
    let series = series(&page);
    let bucket = |le: &str| series[format!("queen_delivery_age_seconds_bucket{{le=\"{le}\"}}").as_str()];
    assert_eq!(bucket("0.0005"), 1.0);
    assert_eq!(bucket("0.005"), 2.0);
    assert_eq!(bucket("60"), 3.0);
    assert_eq!(bucket("+Inf"), 4.0);
    assert_eq!(series["queen_delivery_age_seconds_count"], 4.0);
    assert!(CATALOGUE.iter().filter(|f| f.kind == Kind::Histogram).all(|f| f.name.ends_with("_seconds")));
}

#[test]
fn totals_of_the_json_body_follow_the_counters() {
    let recorder = recorder();
    metrics::with_local_recorder(recorder.sink(), || {
        metrics::counter!("queen_process_push_requests_total").increment(2);
        metrics::counter!("queen_process_ack_requests_total").increment(1);
        metrics::counter!("queen_process_push_messages_total").increment(20);
        metrics::counter!("queen_process_pop_messages_total").increment(5);
        metrics::counter!("queen_batches_fired_total", "op" => "push").increment(9);
    });
    let body = recorder.json(DatabaseNumbers::default());
    assert!(body.contains(r#""requests":{"total":3,"#), "{body}");
    assert!(body.contains(r#""messages":{"total":25,"#), "{body}");
    let page = recorder.render();
    assert_eq!(series(&page)["queen_process_push_messages_total"], 20.0);
}

#[test]
fn only_one_recorder_serves_a_process() {
    let build = BuildInfo { version: "0.1.0".into(), revision: "r".into(), rustc: "c".into() };
    let first = Recorder::install(&build).unwrap();
    assert!(Recorder::install(&build).is_err());
    metrics::counter!("queen_ack_unknown_status_total").increment(4);
    assert!(first.render().contains("queen_ack_unknown_status_total 4\n"));
}
