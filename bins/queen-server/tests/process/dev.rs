use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{Program, between, endless_request, http, is_alive, run, try_http, wait_until};

/// A directory that the user who runs PostgreSQL for root may enter.
fn directory() -> TempDir {
    let open = std::fs::Permissions::from_mode(0o755);
    tempfile::Builder::new().permissions(open).tempdir().unwrap()
}

/// Small, so that the cluster is made quickly.
const ENV: [(&str, &str); 1] = [("DB_POOL_SIZE", "8")];

/// A dev broker on a free port.
struct Dev {
    program: Program,
    addr: SocketAddr,
    postmaster: i32,
    pid_file: PathBuf,
}

impl Dev {
    fn start(dir: &Path, more: &[&str]) -> Dev {
        let data = dir.to_str().unwrap();
        let mut program = Program::start(&[&["dev", "--data", data, "--port", "0"], more].concat(), &ENV);
        // Nothing was said about the address.
        assert!(program.line_with("listening").contains(" addr=127.0.0.1:"));
        let line = program.line_with(" is ready: ");
        let addr = between(&line, "http://", " ").parse().unwrap();
        let pid_file = dir.join("postgres/pgdata/postmaster.pid");
        let text = std::fs::read_to_string(&pid_file).unwrap();
        let postmaster = text.lines().next().unwrap().trim().parse().unwrap();
        Dev { program, addr, postmaster, pid_file }
    }

    fn push(&self, key: &str) -> String {
        let body =
            format!(r#"{{"items":[{{"queue":"q","transactionId":"{key}","payload":{{"k":"{key}"}}}}]}}"#);
        let (status, answer) = http(self.addr, "POST", "/api/v1/push", &body);
        assert_eq!(status, 201);
        between(&answer, r#""status":""#, "\"").to_owned()
    }

    fn pop(&self) -> (u16, String) {
        http(self.addr, "GET", "/api/v1/pop/queue/q?batch=1", "")
    }

    fn pop_and_ack(&self, key: &str) {
        let (status, answer) = self.pop();
        assert!(status == 200 && answer.contains(&format!(r#""data":{{"k":"{key}"}},"#)), "{answer}");
        let field = |name| between(&answer, &format!("\"{name}\":\""), "\"");
        let ack = format!(
            r#"{{"transactionId":"{key}","partitionId":"{}","leaseId":"{}","status":"completed"}}"#,
            field("partitionId"),
            field("leaseId")
        );
        let (status, answer) = http(self.addr, "POST", "/api/v1/ack", &ack);
        assert!(status == 200 && answer.contains(r#""success":true"#), "{answer}");
    }

    /// Ends it in order; nothing of it is left.
    fn stop(mut self) {
        assert_eq!(self.program.stop(), Some(0));
        self.left_nothing();
    }

    fn left_nothing(&self) {
        // A process that ends at once does not wait for a slow machine to end its server.
        wait_until("the postmaster to end", || !is_alive(self.postmaster));
        assert!(!self.pid_file.exists());
        assert!(try_http(self.addr, "GET", "/health", "").is_none());
    }
}

#[test]
fn a_broker_from_nothing_that_keeps_its_data() {
    let dir = directory();
    let dev = Dev::start(dir.path(), &[]);
    let (status, health) = http(dev.addr, "GET", "/health", "");
    assert!(status == 200 && health.contains(r#""status":"healthy""#), "{health}");
    for key in ["a", "b"] {
        assert_eq!(dev.push(key), "queued");
    }
    dev.pop_and_ack("a");

    let (code, _, err) = run(&["dev", "--data", dir.path().to_str().unwrap(), "--fresh"], &ENV);
    assert_eq!(code, Some(1));
    assert!(err.contains("is in use by process"), "{err}");
    assert_eq!(http(dev.addr, "GET", "/health", "").0, 200, "the first goes on");
    let page = http(dev.addr, "GET", "/metrics/prometheus", "").1;
    assert!(page.contains("queen_db_pool_size 8\n"), "{page}");
    assert!(http(dev.addr, "GET", "/metrics", "").1.contains(r#""poolSize":8"#));
    dev.stop();

    let dev = Dev::start(dir.path(), &[]);
    assert_eq!(dev.push("a"), "duplicate", "what was pushed before is known");
    dev.pop_and_ack("b");
    assert_eq!(dev.pop().0, 204);
    dev.stop();

    let dev = Dev::start(dir.path(), &["--fresh"]);
    assert_eq!(dev.push("a"), "queued", "nothing is known");
    dev.stop();
}

#[test]
fn a_killed_owner_is_succeeded_and_a_second_signal_takes_everything_down() {
    let dir = directory();
    let mut killed = Dev::start(dir.path(), &[]);
    assert_eq!(killed.push("a"), "queued");
    killed.program.signal(Signal::KILL);
    killed.program.ended();
    assert!(is_alive(killed.postmaster), "a kept cluster survives its owner");

    let mut dev = Dev::start(dir.path(), &[]);
    assert_eq!(dev.postmaster, killed.postmaster, "the running cluster is adopted");
    dev.pop_and_ack("a");

    let _open = endless_request(dev.addr);
    dev.program.signal(Signal::TERM);
    wait_until("the listener to close", || try_http(dev.addr, "GET", "/health", "").is_none());
    dev.program.signal(Signal::TERM);
    assert_eq!(dev.program.ended().code(), Some(143));
    dev.left_nothing();
}
