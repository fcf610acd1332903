//! The recorder behind the `metrics` macros.

use std::sync::Arc;
use std::time::Instant;

use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Label, Metadata, SharedString, Unit};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::catalogue::{CATALOGUE, Kind, names};
use crate::page;
use crate::process;
use crate::rates::{DatabaseNumbers, Total, Totals};

/// Upper bounds of the histogram buckets, seconds.
const BUCKETS: [f64; 16] =
    [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

const METADATA: Metadata<'static> = Metadata::new(module_path!(), metrics::Level::INFO, Some(module_path!()));

/// Which binary runs; the labels of `queen_build_info`.
#[derive(Debug, Clone)]
pub struct BuildInfo {
    /// Version of the product.
    pub version: String,
    /// Source revision, or `unknown`.
    pub revision: String,
    /// Compiler version, or `unknown`.
    pub rustc: String,
}

/// Why no recorder could be set up.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Another recorder serves this process already.
    #[error("another metrics recorder is installed in this process")]
    Taken,
    /// The exporter refused the bucket table.
    #[error("set up the metrics recorder")]
    Build(#[from] metrics_exporter_prometheus::BuildError),
}

/// Records what the `metrics` macros of this process emit and renders it. Cheap to clone; clones share everything.
///
/// Histograms keep raw observations until the next [`Recorder::render`] or [`Recorder::upkeep`]; whoever owns the
/// recorder calls the latter every few seconds, so that a broker that nobody scrapes does not grow.
#[derive(Clone)]
pub struct Recorder {
    handle: PrometheusHandle,
    sink: Arc<Sink>,
    started: Instant,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    /// Builds a recorder that nothing emits to yet; for tests and for hosts with a recorder of their own, together
    /// with [`Recorder::sink`].
    ///
    /// # Errors
    /// [`InstallError::Build`] when the exporter refuses its set-up.
    pub fn build(build: &BuildInfo) -> Result<Recorder, InstallError> {
        let inner = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?
            .build_recorder();
        let started = Instant::now();
        let handle = inner.handle();
        let sink = Arc::new(Sink { inner, totals: Arc::new(Totals::new(started)) });
        sink.declare(build);
        Ok(Recorder { handle, sink, started })
    }

    /// Builds a recorder and makes it the one of this process.
    ///
    /// # Errors
    /// [`InstallError::Taken`] when there is one already.
    pub fn install(build: &BuildInfo) -> Result<Recorder, InstallError> {
        let recorder = Recorder::build(build)?;
        metrics::set_global_recorder(Arc::clone(&recorder.sink)).map_err(|_| InstallError::Taken)?;
        Ok(recorder)
    }

    /// What `metrics::with_local_recorder` takes.
    pub fn sink(&self) -> &(impl metrics::Recorder + use<>) {
        &*self.sink
    }

    /// The page of `GET /metrics/prometheus`, text format 0.0.4: every family under its HELP and TYPE, by name.
    /// Reads `/proc`; touches no network.
    pub fn render(&self) -> String {
        let gauge =
            |name| metrics::Recorder::register_gauge(&*self.sink, &Key::from_static_name(name), &METADATA);
        gauge(names::UPTIME_SECONDS).set(self.started.elapsed().as_secs_f64());
        if let Some(bytes) = process::resident_bytes() {
            gauge(names::PROCESS_RESIDENT_MEMORY_BYTES).set(bytes as f64);
        }
        page::finish(&self.handle.render())
    }

    /// The body of `GET /metrics`.
    pub fn json(&self, database: DatabaseNumbers) -> String {
        self.sink.totals.json(Instant::now(), self.started.elapsed(), database)
    }

    /// Folds raw histogram observations into their buckets. Call it every few seconds.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

/// Passes everything on to the exporter and keeps the totals that the JSON route shows, which cannot be read back
/// from it.
struct Sink {
    inner: PrometheusRecorder,
    totals: Arc<Totals>,
}

impl Sink {
    /// Describes every family and creates the series that exist from the first scrape.
    fn declare(&self, build: &BuildInfo) {
        use metrics::Recorder as _;
        for family in CATALOGUE {
            let name = KeyName::from_const_str(family.name);
            let description = SharedString::const_str(family.description);
            match family.kind {
                Kind::Counter => self.inner.describe_counter(name, None, description),
                Kind::Gauge => self.inner.describe_gauge(name, None, description),
                Kind::Histogram => self.inner.describe_histogram(name, None, description),
            }
            for series in family.fixed_series() {
                let labels: Vec<Label> =
                    series.into_iter().map(|(key, value)| Label::from_static_parts(key, value)).collect();
                let key = Key::from_parts(family.name, labels);
                match family.kind {
                    Kind::Counter => drop(self.inner.register_counter(&key, &METADATA)),
                    Kind::Gauge => self.inner.register_gauge(&key, &METADATA).set(family.initial),
                    Kind::Histogram => drop(self.inner.register_histogram(&key, &METADATA)),
                }
            }
        }
        let labels = vec![
            Label::new("version", build.version.clone()),
            Label::new("revision", build.revision.clone()),
            Label::new("rustc", build.rustc.clone()),
        ];
        self.inner.register_gauge(&Key::from_parts(names::BUILD_INFO, labels), &METADATA).set(1.0);
    }
}

impl metrics::Recorder for Sink {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.inner.describe_counter(key, unit, description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.inner.describe_gauge(key, unit, description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.inner.describe_histogram(key, unit, description);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        let counter = self.inner.register_counter(key, metadata);
        match Total::of(key.name()) {
            None => counter,
            Some(which) => {
                Counter::from_arc(Arc::new(Tee { counter, which, totals: Arc::clone(&self.totals) }))
            }
        }
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.inner.register_gauge(key, metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.inner.register_histogram(key, metadata)
    }
}

/// A counter that also adds to a total.
struct Tee {
    counter: Counter,
    which: Total,
    totals: Arc<Totals>,
}

impl CounterFn for Tee {
    fn increment(&self, value: u64) {
        self.counter.increment(value);
        self.totals.add(self.which, value);
    }

    fn absolute(&self, value: u64) {
        self.counter.absolute(value);
    }
}
