//! `queen-server spool`: what stands in quarantine in the directory of a broker that is stopped. A running broker has
//! routes for it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use queen_config::{Sources, load};
use queen_core::{Event, OnConflict, Quarantined, Spool, SpoolOptions};

use crate::args::{SpoolArgs, SpoolVerb};

/// Events that are read at a time.
const PAGE: u64 = 1000;

pub(crate) fn run(args: SpoolArgs) -> anyhow::Result<ExitCode> {
    let dir = match args.dir {
        Some(dir) => dir,
        None => configured(args.config.0)?,
    };
    ensure!(dir.is_dir(), "{} is no directory", dir.display());
    let options =
        SpoolOptions { on_conflict: OnConflict::Refuse, min_free_bytes: 0, ..SpoolOptions::at(dir) };
    let spool = Spool::open(options).context("open the spool; the routes of a running broker do the same")?;
    let mut out = std::io::stdout().lock();
    match args.verb {
        SpoolVerb::List => {
            for file in spool.status().files {
                writeln!(
                    out,
                    "{} {} events={} bytes={}",
                    file.name,
                    file.state.as_str(),
                    file.events,
                    file.bytes
                )?;
            }
        }
        SpoolVerb::Show(file) => {
            each(&spool, &file, |quarantined| Ok(writeln!(out, "{}", shown(&quarantined))?))?;
        }
        SpoolVerb::Export(file) => {
            let mut left = 0;
            each(&spool, &file, |quarantined| {
                match quarantined.event.as_ref().map(Event::encode) {
                    Some(record) => writeln!(out, "{}", String::from_utf8_lossy(&record?))?,
                    None => left += 1,
                }
                Ok(())
            })?;
            ensure!(left == 0, "{left} records of {file} are no events and were left out");
        }
        SpoolVerb::Requeue(file, indexes) => {
            let runtime =
                tokio::runtime::Builder::new_current_thread().build().context("start the runtime")?;
            let indexes = Some(indexes).filter(|indexes| !indexes.is_empty());
            let requeued = runtime.block_on(spool.requeue(&file, indexes.as_deref()))?;
            writeln!(out, "requeued {requeued}")?;
        }
        SpoolVerb::Delete(file) => writeln!(out, "deleted {}", spool.delete(&file)?)?,
    }
    spool.close();
    Ok(ExitCode::SUCCESS)
}

/// The directory that a broker with this configuration uses.
fn configured(file: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    match load(&Sources::from_process(file)) {
        Ok(loaded) => Ok(loaded.config.broker.buffer.map(|buffer| buffer.files.dir).unwrap_or_default()),
        Err(errors) => bail!("{errors}"),
    }
}

fn each(
    spool: &Spool,
    file: &str,
    mut what: impl FnMut(Quarantined) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut offset = 0;
    loop {
        let page = spool.quarantined(Some(file), offset, PAGE)?;
        offset += page.events.len() as u64;
        let end = page.events.is_empty() || offset >= page.total;
        page.events.into_iter().try_for_each(&mut what)?;
        if end {
            return Ok(());
        }
    }
}

/// One line of text for an event.
fn shown(quarantined: &Quarantined) -> String {
    let code = quarantined.why.sqlstate.as_deref().unwrap_or("-");
    let why = format!("{} {code} {}", quarantined.why.failed_at, quarantined.why.error.escape_debug());
    match &quarantined.event {
        Some(event) => format!(
            "{} {:?} {:?} {:?} {} | {why}",
            quarantined.index,
            event.queue.as_str(),
            event.partition.as_str(),
            event.transaction_id.as_str(),
            String::from_utf8_lossy(&event.payload),
        ),
        None => format!("{} no event | {why}", quarantined.index),
    }
}
