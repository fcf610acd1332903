//! `cargo xtask outage-run`: PostgreSQL is killed, crashed and stopped at random under load. Afterwards every message of
//! a push that was answered `queued` or `buffered` has to be there, once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::cluster::{Outage, TaskCluster};
use crate::conformance;
use crate::conformance::broker::Broker;
use crate::order_run::http::Connection;

const QUEUE: &str = "outage-run";
/// Messages of one request.
const BATCH: usize = 5;
/// How long the replay may take after the last outage.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Debug)]
struct Plan {
    time: Duration,
    producers: usize,
    partitions: u64,
    binary: Option<PathBuf>,
    seed: u64,
}

impl Plan {
    fn parse(arguments: &[String]) -> anyhow::Result<Plan> {
        let mut plan = Plan {
            time: Duration::from_secs(600),
            producers: 4,
            partitions: 16,
            binary: None,
            seed: u64::from(std::process::id()),
        };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            let number = || value.parse::<u64>().with_context(|| format!("{name} {value}: not a number"));
            match name.as_str() {
                "--seconds" => plan.time = Duration::from_secs(number()?),
                "--producers" => plan.producers = usize::try_from(number()?)?,
                "--partitions" => plan.partitions = number()?,
                "--seed" => plan.seed = number()?,
                "--binary" => plan.binary = Some(value.into()),
                other => bail!("unknown argument {other}"),
            }
        }
        ensure!(plan.producers > 0 && plan.partitions > 0, "every number must be above 0");
        Ok(plan)
    }
}

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, from: u64, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from + self.0 % (below - from)
    }
}

/// What the producers were told.
#[derive(Debug, Default)]
struct Told {
    /// Keys that were answered `queued`, `buffered` or `duplicate`.
    accepted: Vec<String>,
    /// Keys of which nothing can be expected.
    others: Vec<String>,
    statuses: HashMap<String, u64>,
    requests: u64,
    slowest: Duration,
}

/// Runs the whole thing and judges it.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let plan = Plan::parse(arguments)?;
    let binary = match &plan.binary {
        Some(binary) => binary.clone(),
        None => conformance::build(true)?,
    };
    let mut cluster = TaskCluster::start_durable()?;
    let broker = Broker::start(&binary, cluster.port())?;
    let url = broker.url();
    println!(
        "{} s, {} producers, {} partitions, seed {}",
        plan.time.as_secs(),
        plan.producers,
        plan.partitions,
        plan.seed
    );
    let stop = AtomicBool::new(false);
    let (outages, told) = std::thread::scope(|scope| {
        let producers: Vec<_> = (0..plan.producers)
            .map(|producer| {
                let (plan, url, stop) = (&plan, &url, &stop);
                scope.spawn(move || produce(plan, url, producer, stop))
            })
            .collect();
        let outages = trouble(&plan, &mut cluster);
        stop.store(true, Ordering::Relaxed);
        let mut told = Told::default();
        for producer in producers {
            match producer.join() {
                Ok(one) => told.add(one?),
                Err(_) => bail!("a producer panicked"),
            }
        }
        anyhow::Ok((outages?, told))
    })?;
    let ended = Instant::now();
    let left = pending(&url)?;
    drained(&url)?;
    println!("outages: {outages:?}");
    println!("requests: {}, the slowest took {:.2} s", told.requests, told.slowest.as_secs_f64());
    let mut statuses: Vec<_> = told.statuses.iter().collect();
    statuses.sort();
    println!("messages by status: {statuses:?}");
    println!("spooled at the end of the load: {left}, drained after {:.2} s", ended.elapsed().as_secs_f64());
    let good = judge(&url, &told)?;
    if !good {
        println!("the broker's last words ({}):\n{}", broker.log().display(), broker.last_words());
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Told {
    fn add(&mut self, one: Told) {
        self.accepted.extend(one.accepted);
        self.others.extend(one.others);
        self.requests += one.requests;
        self.slowest = self.slowest.max(one.slowest);
        one.statuses.into_iter().for_each(|(status, n)| *self.statuses.entry(status).or_default() += n);
    }
}

/// Takes PostgreSQL away again and again; how often in which way.
fn trouble(plan: &Plan, cluster: &mut TaskCluster) -> anyhow::Result<HashMap<&'static str, u32>> {
    let mut dice = Dice(plan.seed | 1);
    let mut outages = HashMap::new();
    let end = Instant::now() + plan.time;
    loop {
        let calm = Duration::from_millis(dice.roll(1500, 8000));
        let left = end.saturating_duration_since(Instant::now());
        if calm >= left {
            std::thread::sleep(left);
            return Ok(outages);
        }
        std::thread::sleep(calm);
        let (name, how) = match dice.roll(0, 3) {
            0 => ("killed", Outage::Kill),
            1 => ("crashed", Outage::Immediate),
            _ => ("stopped", Outage::Fast),
        };
        *outages.entry(name).or_default() += 1;
        cluster.outage(how, Duration::from_millis(dice.roll(0, 4000)))?;
    }
}

/// Pushes until told to stop. A request without an answer is sent again with the same keys.
fn produce(plan: &Plan, url: &str, producer: usize, stop: &AtomicBool) -> anyhow::Result<Told> {
    let mut dice = Dice(plan.seed.wrapping_mul(31).wrapping_add(producer as u64 + 1) | 1);
    let mut told = Told::default();
    let mut connection = None;
    let mut number = 0u64;
    while !stop.load(Ordering::Relaxed) {
        let keys: Vec<String> = (0..BATCH as u64).map(|n| format!("{producer}-{}", number + n)).collect();
        number += BATCH as u64;
        let item = |key: &String| {
            let partition = dice.roll(0, plan.partitions);
            format!(
                r#"{{"queue":"{QUEUE}","partition":"p{partition}","transactionId":"{key}","payload":"{key}"}}"#
            )
        };
        let items: Vec<String> = keys.iter().map(item).collect();
        let body = format!(r#"{{"items":[{}]}}"#, items.join(","));
        let answer = loop {
            let began = Instant::now();
            let open = match connection.take() {
                Some(open) => Ok(open),
                None => Connection::open(url),
            };
            let asked = open.and_then(|mut open| {
                let answer = open.post("/api/v1/push", body.as_bytes())?;
                Ok((open, answer))
            });
            told.slowest = told.slowest.max(began.elapsed());
            told.requests += 1;
            match asked {
                Ok((open, answer)) => {
                    connection = Some(open);
                    break answer;
                }
                Err(error) => {
                    println!("a push was not answered: {error:#}");
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        };
        let results: Vec<Value> = serde_json::from_slice(&answer.body).unwrap_or_default();
        ensure!(
            answer.status == 201 && results.len() == keys.len(),
            "push answered {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        for (key, result) in keys.into_iter().zip(results) {
            let status = result["status"].as_str().unwrap_or("none").to_owned();
            let accepted = matches!(status.as_str(), "queued" | "buffered" | "duplicate");
            if accepted {
                told.accepted.push(key)
            } else {
                told.others.push(key)
            }
            *told.statuses.entry(status).or_default() += 1;
        }
    }
    Ok(told)
}

fn pending(url: &str) -> anyhow::Result<u64> {
    let answer = Connection::open(url)?.get("/api/v1/status/buffers")?;
    let body: Value = serde_json::from_slice(&answer.body).context("status of the buffers")?;
    body["pending"].as_u64().with_context(|| format!("no pending in {body}"))
}

fn drained(url: &str) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = pending(url)?;
        if left == 0 {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{left} messages are still spooled after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Reads everything and compares it with what was told.
fn judge(url: &str, told: &Told) -> anyhow::Result<bool> {
    let mut stored: HashMap<String, u32> = HashMap::new();
    let mut connection = Connection::open(url)?;
    let path = format!(
        "/api/v1/pop/queue/{QUEUE}?consumerGroup=judge&batch=5000&autoAck=true&subscriptionMode=all&wait=true&timeout=1500"
    );
    loop {
        let answer = connection.get(&path)?;
        if answer.status == 204 {
            break;
        }
        ensure!(answer.status == 200, "pop answered {}", answer.status);
        let body: Value = serde_json::from_slice(&answer.body).context("answer of a pop")?;
        for message in body["messages"].as_array().context("no messages")? {
            let key = message["transactionId"].as_str().context("no key")?;
            *stored.entry(key.to_owned()).or_default() += 1;
        }
    }
    let lost: Vec<&String> = told.accepted.iter().filter(|key| !stored.contains_key(*key)).collect();
    let twice: Vec<&String> = stored.iter().filter(|(_, n)| **n > 1).map(|(key, _)| key).collect();
    let refused = told.others.iter().filter(|key| stored.contains_key(*key)).count();
    println!(
        "accepted {}, stored {}, lost {}, stored twice {}, stored although answered `failed` {refused}",
        told.accepted.len(),
        stored.len(),
        lost.len(),
        twice.len()
    );
    lost.iter().take(10).for_each(|key| println!("  lost: {key}"));
    twice.iter().take(10).for_each(|key| println!("  twice: {key}"));
    Ok(lost.is_empty() && twice.is_empty())
}
