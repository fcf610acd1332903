//! A client process: some consumers that pop, ack and write down what they saw, until they are told to stop.

use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use anyhow::{Context, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::http::Connection;

/// Pops a whole queue as a group and acks every batch. One line a message on standard output:
/// `<nanoseconds> <transaction id> <acked 0|1>`. Ends when standard input does.
pub(super) fn run(url: &str, queue: &str, group: &str, consumers: usize) -> anyhow::Result<()> {
    let stop = AtomicBool::new(false);
    let (lines, written) = mpsc::channel::<String>();
    std::thread::scope(|scope| {
        let stop = &stop;
        let consumers: Vec<_> = (0..consumers)
            .map(|_| {
                let lines = lines.clone();
                scope.spawn(move || {
                    let outcome = consume(url, queue, group, stop, &lines);
                    stop.store(stop.load(Ordering::Relaxed) || outcome.is_err(), Ordering::Relaxed);
                    outcome
                })
            })
            .collect();
        drop(lines);
        scope.spawn(move || {
            // Nothing is ever written there; its end is the sign.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            stop.store(true, Ordering::Relaxed);
        });
        let mut out = BufWriter::new(std::io::stdout().lock());
        for line in written {
            out.write_all(line.as_bytes()).context("write a record")?;
            out.flush().context("write a record")?;
        }
        for consumer in consumers {
            match consumer.join() {
                Ok(outcome) => outcome?,
                Err(_) => anyhow::bail!("a consumer panicked"),
            }
        }
        Ok(())
    })
}

fn consume(
    url: &str,
    queue: &str,
    group: &str,
    stop: &AtomicBool,
    lines: &mpsc::Sender<String>,
) -> anyhow::Result<()> {
    let mut connection = Connection::open(url)?;
    let pop = format!(
        "/api/v1/pop/queue/{queue}?consumerGroup={group}&subscriptionMode=all&batch=50&partitions=4&wait=true&timeout=2000"
    );
    while !stop.load(Ordering::Relaxed) {
        let answer = connection.get(&pop)?;
        if answer.status == 204 {
            continue;
        }
        ensure!(
            answer.status == 200,
            "pop answered {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        let at = monotonic_nanos();
        let body: Value = serde_json::from_slice(&answer.body).context("read a pop answer")?;
        let messages = body["messages"].as_array().context("a pop answer without messages")?;
        let acks: Vec<Value> = messages
            .iter()
            .map(|m| {
                json!({ "transactionId": m["transactionId"], "partitionId": m["partitionId"],
                        "leaseId": m["leaseId"], "status": "completed" })
            })
            .collect();
        let acks = json!({ "consumerGroup": group, "acknowledgments": acks }).to_string();
        let answer = connection.post("/api/v1/ack/batch", acks.as_bytes())?;
        ensure!(answer.status == 200, "ack answered {}", answer.status);
        let results: Value = serde_json::from_slice(&answer.body).context("read an ack answer")?;
        let mut record = String::new();
        for (i, message) in messages.iter().enumerate() {
            let key = message["transactionId"].as_str().context("a message without transactionId")?;
            let acked = u8::from(results[i]["success"] == true);
            record.push_str(&format!("{at} {key} {acked}\n"));
        }
        // Nobody reads any more: the run is over.
        let _ = lines.send(record);
    }
    Ok(())
}

/// Nanoseconds since the machine started, the same in every process. The time of day could step back between two
/// batches and put them in the wrong order.
fn monotonic_nanos() -> u128 {
    let now = clock_gettime(ClockId::Monotonic);
    u128::from(now.tv_sec.unsigned_abs()) * 1_000_000_000 + u128::from(now.tv_nsec.unsigned_abs())
}
