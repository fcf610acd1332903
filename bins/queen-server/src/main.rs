//! The broker process: parse arguments, load the configuration, start, serve, drain.

mod args;
mod config;
mod dev;
mod healthcheck;
mod migrate;
mod serve;
mod signals;
mod spool;
mod telemetry;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use args::{Command, ConfigFile, DevArgs};
use queen_config::Loaded;
use queen_http::HttpOptions;
use queen_telemetry::Recorder;
use signals::Signals;
use tokio_util::sync::CancellationToken;

/// Spends a fifth less of the broker's time than glibc's on what a message allocates, in the same memory
/// (docs/decisions/015).
#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How long tasks that do not end by themselves may hold up the end of the process.
const RUNTIME_PATIENCE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let outcome = match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => print(args::HELP),
        Ok(Command::Version) => print(concat!("queen-server ", env!("CARGO_PKG_VERSION"))),
        Ok(Command::Migrate) => Ok(migrate::run()),
        Ok(Command::ConfigCheck(file)) => config::check(file),
        Ok(Command::ConfigPrint(file, format)) => config::print(file, format),
        Ok(Command::ConfigSchema) => print(&queen_config::schema_text()),
        Ok(Command::Serve(file)) => run(file, serve_configured),
        Ok(Command::Dev(DevArgs { config, data, port, fresh })) => {
            let args = DevArgs { config: ConfigFile::default(), data, port, fresh };
            run(config, |loaded, recorder, stop| dev::run(args, loaded, recorder, stop))
        }
        Ok(Command::Provoke(task)) => {
            run(ConfigFile::default(), |loaded, recorder, stop| serve::provoked(task, loaded, recorder, stop))
        }
        Ok(Command::Spool(args)) => spool::run(args),
        Ok(Command::Healthcheck(args)) => healthcheck::run(args),
        Err(error) => Err(error),
    };
    outcome.unwrap_or_else(|error| {
        let text = describe(&error);
        tracing::error!(target: "boot", "not running: {text}");
        eprintln!("queen-server: {text}");
        ExitCode::FAILURE
    })
}

/// An error with its causes, leaving out those that the text before already tells.
fn describe(error: &anyhow::Error) -> String {
    error.chain().map(|cause| cause.to_string()).fold(String::new(), |text, cause| match &*text {
        "" => cause,
        _ if text.contains(&cause) => text,
        _ => format!("{text}: {cause}"),
    })
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout().lock(), "{}", text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

async fn serve_configured(
    loaded: Loaded,
    recorder: Recorder,
    stop: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let http = HttpOptions { config: Some(config::shown(&loaded)), ..loaded.config.http };
    serve::serve(loaded.config.broker, http, recorder, stop, |_, _| Ok(())).await
}

/// Loads the configuration and runs `work` on a runtime until it ends or a second signal ends it.
fn run<W, F>(file: ConfigFile, work: W) -> anyhow::Result<ExitCode>
where
    W: FnOnce(Loaded, Recorder, CancellationToken) -> F,
    F: Future<Output = anyhow::Result<ExitCode>>,
{
    let recorder = telemetry::install()?;
    let Some(loaded) = config::load(file)? else { return Ok(ExitCode::FAILURE) };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::install().context("take over the signals")?;
        let work = Box::pin(work(loaded, recorder, signals.stop.clone()));
        tokio::select! {
            ended = work => ended,
            code = signals.forced() => Ok(ExitCode::from(code)),
        }
    });
    runtime.shutdown_timeout(RUNTIME_PATIENCE);
    outcome
}
