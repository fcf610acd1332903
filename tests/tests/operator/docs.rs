//! Every example of `docs/concepts`, in the order of its page, on a broker of its own.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use queen_tests::broker::{Broker, TestBroker};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/concepts");

/// A request of a page and what follows it.
struct Example {
    line: usize,
    request: String,
    answer: String,
}

/// The pairs of blocks marked `http` and `json`.
fn examples(page: &str) -> anyhow::Result<Vec<Example>> {
    let mut blocks: Vec<(usize, &str, String)> = Vec::new();
    let mut open: Option<(usize, &str, String)> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((number + 1, kind, String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((.., text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    ensure!(open.is_none(), "a block does not end");
    let mut examples = Vec::new();
    for pair in blocks.chunks(2) {
        let [(line, "http", request), (_, "json", answer)] = pair else {
            bail!("line {}: a request and an answer were expected", pair[0].0);
        };
        examples.push(Example { line: *line, request: request.clone(), answer: answer.clone() });
    }
    Ok(examples)
}

/// Sends one request; status and body.
async fn send(broker: &TestBroker, request: &str) -> anyhow::Result<(u16, Option<Value>)> {
    let (head, body) = request.split_once('\n').context("a request line")?;
    let mut stream = TcpStream::connect(broker.addr()).await?;
    let text = format!(
        "{head} HTTP/1.1\r\nhost: docs\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    Ok((status, (!body.is_empty()).then(|| serde_json::from_str(body)).transpose()?))
}

/// Whether an answer has what a page shows of it. `$name` takes a value, or stands for one that was taken.
fn shows(wanted: &Value, given: &Value, names: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    match (wanted, given) {
        (Value::Object(wanted), Value::Object(given)) => {
            for (key, value) in wanted {
                let found = given.get(key).with_context(|| format!("{key} is missing"))?;
                shows(value, found, names).with_context(|| key.clone())?;
            }
        }
        (Value::Array(wanted), Value::Array(given)) => {
            ensure!(wanted.len() == given.len(), "{} elements, not {}", given.len(), wanted.len());
            for (wanted, given) in wanted.iter().zip(given) {
                shows(wanted, given, names)?;
            }
        }
        (Value::String(wanted), Value::String(given)) if wanted.starts_with('$') => {
            let known = names.entry(wanted.clone()).or_insert_with(|| given.clone());
            ensure!(known == given, "{wanted} was {known} and is {given}");
        }
        (Value::String(wanted), given) => {
            let wanted = filled(wanted, names);
            ensure!(given.as_str() == Some(&wanted), "{given}, not {wanted}");
        }
        _ => ensure!(wanted == given, "{given}, not {wanted}"),
    }
    Ok(())
}

fn filled(text: &str, names: &BTreeMap<String, String>) -> String {
    // Longer names first, so that none is taken for another's beginning.
    let mut names: Vec<_> = names.iter().collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}

async fn run(page: &Path) -> anyhow::Result<usize> {
    let examples = examples(&std::fs::read_to_string(page)?)?;
    if examples.is_empty() {
        return Ok(0);
    }
    let broker = Broker::start().await?;
    let mut names = BTreeMap::new();
    for example in &examples {
        let request = filled(&example.request, &names);
        let outcome = async {
            let (status, body) = send(&broker, &request).await?;
            let (wanted, shown) = example.answer.trim().split_at(3);
            ensure!(wanted == status.to_string(), "{status}: {body:?}");
            if shown.trim().is_empty() {
                ensure!(body.is_none(), "{body:?}");
                return Ok(());
            }
            let body = body.context("an answer with a body")?;
            let shown: Value = serde_json::from_str(shown)?;
            shows(&shown, &body, &mut names).with_context(|| body.to_string())
        };
        outcome.await.with_context(|| format!("{}:{}\n{request}", page.display(), example.line))?;
    }
    Ok(examples.len())
}

/// Broken by a page that promises what a broker does not do.
#[tokio::test]
async fn every_example_of_the_documentation_is_true() -> anyhow::Result<()> {
    let mut pages: Vec<_> =
        std::fs::read_dir(PAGES)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    pages.sort();
    let mut total = 0;
    for page in pages {
        total += run(&page).await?;
    }
    ensure!(total >= 40, "{total} examples");
    Ok(())
}
