//! `cargo xtask order-run`: client processes consume while producers push; everything must arrive, in order per
//! partition, once per group. With `--groups N` further groups read it all afterwards, one after the other.
//!
//! `--sabotage` tests the run itself: it damages the record of the deliveries, and the run must fail.

mod check;
mod client;
pub(crate) mod http;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};

use crate::cluster::TaskCluster;
use crate::conformance;
use crate::conformance::broker::Broker;
use check::Delivery;
use http::Connection;

/// Name under which the program starts itself as a client.
pub(crate) const CLIENT: &str = "order-client";

/// How long no message may arrive before the run is given up.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
struct Plan {
    /// Another one each run, so that a broker that already runs can be used again.
    queue: String,
    messages: u64,
    partitions: usize,
    clients: usize,
    consumers: usize,
    producers: usize,
    batch: usize,
    groups: usize,
    url: Option<String>,
    sabotage: Option<String>,
}

impl Plan {
    fn parse(arguments: &[String]) -> anyhow::Result<Plan> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let mut plan = Plan {
            queue: format!("order-run-{seconds}-{}", std::process::id()),
            messages: 200_000,
            partitions: 200,
            clients: 4,
            consumers: 8,
            producers: 4,
            batch: 20,
            groups: 1,
            url: None,
            sabotage: None,
        };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            let number = || value.parse::<usize>().with_context(|| format!("{name} {value}: not a number"));
            match name.as_str() {
                "--messages" => plan.messages = number()? as u64,
                "--partitions" => plan.partitions = number()?,
                "--clients" => plan.clients = number()?,
                "--consumers" => plan.consumers = number()?,
                "--producers" => plan.producers = number()?,
                "--batch" => plan.batch = number()?,
                "--groups" => plan.groups = number()?,
                "--url" => plan.url = Some(value.clone()),
                "--sabotage" => plan.sabotage = Some(value.clone()),
                other => bail!("unknown argument {other}"),
            }
        }
        let all = [plan.partitions, plan.clients, plan.consumers, plan.producers, plan.batch, plan.groups];
        ensure!(plan.messages > 0 && all.iter().all(|n| *n > 0), "every number must be above 0");
        Ok(plan)
    }

    /// Messages of one partition.
    fn share(&self, partition: usize) -> u64 {
        let partitions = self.partitions as u64;
        self.messages / partitions + u64::from((partition as u64) < self.messages % partitions)
    }
}

/// Runs a client process.
pub(crate) fn client(arguments: &[String]) -> ExitCode {
    let [url, queue, group, consumers] = arguments else { return ExitCode::from(2) };
    match client::run(url, queue, group, consumers.parse().unwrap_or(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("order client: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the whole thing and judges it.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let plan = Plan::parse(arguments)?;
    if let Some(url) = plan.url.clone() {
        return load(&plan, &url, None);
    }
    let binary = conformance::build(true)?;
    let cluster = TaskCluster::start_durable()?;
    let broker = Broker::start(&binary, cluster.port())?;
    let outcome = load(&plan, &broker.url(), Some(broker.pid()));
    if !matches!(outcome, Ok(ExitCode::SUCCESS)) {
        println!("the broker's last words ({}):\n{}", broker.log().display(), broker.last_words());
    }
    outcome
}

fn load(plan: &Plan, url: &str, pid: Option<u32>) -> anyhow::Result<ExitCode> {
    let per_second = |time: Duration| plan.messages as f64 / time.as_secs_f64();
    println!(
        "{} messages, {} partitions, {} producers, {} clients x {} consumers",
        plan.messages, plan.partitions, plan.producers, plan.clients, plan.consumers
    );
    let mut all_good = true;
    for group in 1..=plan.groups {
        let name = format!("g{group}");
        let consumed = consume(plan, url, &name, group == 1)?;
        if let Some(time) = consumed.push_time {
            println!("pushed in {:.1} s ({:.0}/s)", time.as_secs_f64(), per_second(time));
        }
        let took = consumed.took;
        println!("handled by {name} in {:.1} s ({:.0}/s)", took.as_secs_f64(), per_second(took));
        all_good &= judge(plan, &name, consumed.deliveries)?;
    }
    if let Some((memory, peak)) =
        pid.and_then(|pid| Some((resident_mib(pid, "VmRSS:")?, resident_mib(pid, "VmHWM:")?)))
    {
        println!("resident memory of the broker: {memory} MiB, at most {peak} MiB");
    }
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What one group was given.
struct Consumed {
    deliveries: Vec<Delivery>,
    /// From the start of the clients until everything was acked.
    took: Duration,
    /// Until everything was pushed, when that went on at the same time.
    push_time: Option<Duration>,
}

/// Lets a group handle everything, while producers push it if it is not there yet.
fn consume(plan: &Plan, url: &str, group: &str, pushing: bool) -> anyhow::Result<Consumed> {
    let (records, arriving) = mpsc::channel();
    let mut clients = Clients::start(plan, url, group, &records)?;
    drop(records);
    let started = Instant::now();
    let producers = if pushing { plan.producers } else { 0 };
    let (mut deliveries, push_time) = std::thread::scope(|scope| {
        let producers: Vec<_> = (0..producers)
            .map(|producer| scope.spawn(move || produce(plan, url, producer).map(|()| started.elapsed())))
            .collect();
        let deliveries = collect(plan, &arriving);
        let mut push_time = None;
        for producer in producers {
            match producer.join() {
                Ok(time) => push_time = push_time.max(Some(time?)),
                Err(_) => bail!("a producer panicked"),
            }
        }
        anyhow::Ok((deliveries?, push_time))
    })?;
    let took = started.elapsed();
    clients.stop()?;
    deliveries.extend(arriving.iter());
    Ok(Consumed { deliveries, took, push_time })
}

/// Checks what a group was given and prints the verdict.
fn judge(plan: &Plan, group: &str, mut deliveries: Vec<Delivery>) -> anyhow::Result<bool> {
    if let Some(kind) = &plan.sabotage {
        check::sabotage(&mut deliveries, kind)?;
    }
    let expected: Vec<u64> = (0..plan.partitions).map(|p| plan.share(p)).collect();
    match check::check(deliveries, &expected) {
        Ok(verdict) => {
            println!(
                "{group}: in order, complete, once each: {} deliveries, {} redelivered, {} failed acks",
                verdict.delivered, verdict.redelivered, verdict.failed_acks
            );
            if verdict.failed_acks > 0 {
                println!("{group}: no ack may fail while the broker and its database are well");
            }
            Ok(verdict.failed_acks == 0)
        }
        Err(violations) => {
            println!("{group}: {} violations:", violations.len());
            for violation in violations.iter().take(20) {
                println!("  {violation}");
            }
            Ok(false)
        }
    }
}

/// Pushes the partitions of one producer, batch after batch, each in order.
fn produce(plan: &Plan, url: &str, producer: usize) -> anyhow::Result<()> {
    let mut connection = Connection::open(url)?;
    let mine: Vec<usize> = (producer..plan.partitions).step_by(plan.producers).collect();
    let mut next = vec![0u64; mine.len()];
    loop {
        let mut any = false;
        for (partition, next) in mine.iter().zip(&mut next) {
            let end = plan.share(*partition).min(*next + plan.batch as u64);
            if *next == end {
                continue;
            }
            any = true;
            let items: Vec<_> = (*next..end)
                .map(|n| {
                    serde_json::json!({ "queue": plan.queue, "partition": partition.to_string(),
                                        "transactionId": format!("{partition}-{n}"), "payload": { "n": n } })
                })
                .collect();
            let body = serde_json::json!({ "items": items }).to_string();
            let answer = connection.post("/api/v1/push", body.as_bytes())?;
            let text = String::from_utf8_lossy(&answer.body);
            let queued = text.matches("\"queued\"").count() as u64;
            ensure!(answer.status == 201 && queued == end - *next, "push answered {}: {text}", answer.status);
            *next = end;
        }
        if !any {
            return Ok(());
        }
    }
}

/// Gathers deliveries until as many were acked as are pushed.
fn collect(plan: &Plan, arriving: &mpsc::Receiver<Delivery>) -> anyhow::Result<Vec<Delivery>> {
    let mut deliveries = Vec::new();
    let mut acked = 0;
    while acked < plan.messages {
        let delivery = arriving.recv_timeout(PATIENCE).with_context(|| {
            format!("{acked} of {} messages arrived, then none for {PATIENCE:?}", plan.messages)
        })?;
        acked += u64::from(delivery.acked);
        deliveries.push(delivery);
    }
    Ok(deliveries)
}

/// The client processes and the threads that read their records.
struct Clients {
    children: Vec<Child>,
    readers: Vec<std::thread::JoinHandle<anyhow::Result<()>>>,
}

impl Clients {
    fn start(
        plan: &Plan,
        url: &str,
        group: &str,
        records: &mpsc::Sender<Delivery>,
    ) -> anyhow::Result<Clients> {
        let program = std::env::current_exe().context("find this program")?;
        let mut clients = Clients { children: Vec::new(), readers: Vec::new() };
        for _ in 0..plan.clients {
            let mut child = Command::new(&program)
                .args([CLIENT, url, &plan.queue, group, &plan.consumers.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .context("start a client")?;
            let output = child.stdout.take().context("a client without output")?;
            let records = records.clone();
            clients.children.push(child);
            clients.readers.push(std::thread::spawn(move || {
                for line in BufReader::new(output).lines() {
                    // Nobody listens once the run has failed.
                    let _ = records.send(parse(&line?)?);
                }
                Ok(())
            }));
        }
        Ok(clients)
    }

    /// Lets the clients finish what they hold and end.
    fn stop(&mut self) -> anyhow::Result<()> {
        for child in &mut self.children {
            drop(child.stdin.take());
        }
        for child in &mut self.children {
            let status = child.wait()?;
            ensure!(status.success(), "a client ended with {status}");
        }
        for reader in self.readers.drain(..) {
            match reader.join() {
                Ok(outcome) => outcome?,
                Err(_) => bail!("a reader panicked"),
            }
        }
        Ok(())
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Ended already, when the run went well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn parse(line: &str) -> anyhow::Result<Delivery> {
    let read = || {
        let mut fields = line.split(' ');
        let at = fields.next()?.parse().ok()?;
        let (partition, number) = fields.next()?.split_once('-')?;
        let acked = fields.next()? == "1";
        Some(Delivery { at, partition: partition.parse().ok()?, number: number.parse().ok()?, acked })
    };
    read().with_context(|| format!("a record that nobody wrote: {line:?}"))
}

/// A line of the process's status that is given in KiB.
fn resident_mib(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib / 1024)
}
