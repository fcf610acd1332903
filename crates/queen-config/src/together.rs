//! Values that are fine alone and wrong together, and values that deserve a remark.

use std::path::Path;

use crate::error::{Layer, Problem};
use crate::findings::{Findings, Origin};
use crate::merge::Merged;
use crate::registry::{Effect, variables};
use crate::value::{Value, masked, quoted};

/// Runs every check over the merged values.
pub(crate) fn check(merged: &Merged, file: Option<&Path>, findings: &mut Findings) {
    tenancy(merged, findings);
    admission(merged, findings);
    sweeper(merged, findings);
    auth(merged, findings);
    protections(merged, findings);
    mesh(merged, findings);
    postgres(merged, findings);
    secrets_in_a_shared_file(merged, file, findings);
    without_effect(merged, findings);
}

/// A problem of one value in the light of others.
fn problem(merged: &Merged, name: &'static str, text: impl Into<String>) -> Problem {
    let variable = variables().find(|variable| variable.name == name);
    let secret = variable.is_some_and(|variable| variable.secret);
    let given = match variable.and_then(|variable| merged.get(variable)) {
        None => "unset".to_owned(),
        Some((value, _)) if secret => masked(&value.plain()),
        Some((value, _)) => quoted(&value.plain()),
    };
    let (shown, source, other) = match merged.origin(name) {
        Origin::Environment(used) => (used, "environment".to_owned(), variable.and_then(|v| v.key)),
        Origin::File(place) => (variable.and_then(|v| v.key).unwrap_or(name).to_owned(), place, Some(name)),
        origin => (name.to_owned(), origin.to_string(), variable.and_then(|v| v.key)),
    };
    Problem {
        layer: Layer::Together,
        name: shown,
        given,
        source,
        text: text.into(),
        other: other.map(str::to_owned),
    }
}

fn tenancy(merged: &Merged, findings: &mut Findings) {
    if merged.boolean("QUEEN_TENANCY_HEADER") && !merged.boolean("QUEEN_KV_TRUSTED_PROXY") {
        findings.problems.push(problem(
            merged,
            "QUEEN_TENANCY_HEADER",
            "whoever reaches the port chooses the tenant; allowed with QUEEN_KV_TRUSTED_PROXY=true, which affirms that \
             a proxy sets and strips the header",
        ));
    }
}

/// Features that protect something and that this version does not have. To serve without them, although somebody asked
/// for them, would be worse than not to serve.
fn protections(merged: &Merged, findings: &mut Findings) {
    for (name, family, lacks) in [
        ("JWT_ENABLED", "JWT_", "this version checks no tokens, so every route would be open; allowed false"),
        ("QUEEN_TENANCY_HEADER", "QUEEN_TENANCY", "this version does not keep tenants apart; allowed false"),
    ] {
        let refused = findings.problems.iter().any(|p| p.name.starts_with(family));
        if merged.boolean(name) && !refused {
            findings.problems.push(problem(merged, name, lacks));
        }
    }
}

fn admission(merged: &Merged, findings: &mut Findings) {
    let shares = ["PUSH", "POP", "ACK", "MAINT"].map(|lane| format!("QUEEN_ADMISSION_SHARE_{lane}"));
    let sum: f64 = shares.iter().map(|name| merged.float(name)).sum();
    // Four decimal fractions that sum to 1 may miss it by rounding.
    if sum > 1.0 + 1e-9 {
        findings.problems.push(problem(
            merged,
            "QUEEN_ADMISSION_SHARE_PUSH",
            format!("the four QUEEN_ADMISSION_SHARE_* sum to {:.3}; allowed at most 1", sum),
        ));
    }
}

fn sweeper(merged: &Merged, findings: &mut Findings) {
    let sleeps = ["MIN", "MAX", "IDLE_MAX"].map(|kind| merged.int(&format!("QUEEN_SWEEPER_{kind}_SLEEP_MS")));
    if !sleeps.is_sorted() {
        findings.problems.push(problem(
            merged,
            "QUEEN_SWEEPER_MAX_SLEEP_MS",
            format!(
                "out of order; allowed QUEEN_SWEEPER_MIN_SLEEP_MS ({}) <= this <= QUEEN_SWEEPER_IDLE_MAX_SLEEP_MS ({})",
                sleeps[0], sleeps[2]
            ),
        ));
    }
    let longest = merged.int("QUEEN_SWEEPER_BACKOFF_MAX_MS");
    if merged.int("QUEEN_SWEEPER_BACKOFF_MIN_MS") > longest {
        findings.problems.push(problem(
            merged,
            "QUEEN_SWEEPER_BACKOFF_MIN_MS",
            format!("allowed at most QUEEN_SWEEPER_BACKOFF_MAX_MS ({longest})"),
        ));
    }
    if !merged.boolean("QUEEN_SWEEPER") {
        findings.warnings.push("QUEEN_SWEEPER is off: timers never fire and expired keys stay".to_owned());
    }
}

fn auth(merged: &Merged, findings: &mut Findings) {
    let enabled = merged.boolean("JWT_ENABLED");
    if !enabled && !is_loopback(merged.text("QUEEN_BIND_ADDR").unwrap_or_default()) {
        findings
            .warnings
            .push("authentication is off: the API is open to whoever reaches the port".to_owned());
    }
    let secret = merged.text("JWT_SECRET");
    if secret.is_some_and(|secret| secret.len() < 32) {
        findings.warnings.push("JWT_SECRET is shorter than 32 bytes".to_owned());
    }
    if merged.text("JWT_JWKS_URL").is_some_and(|url| url.starts_with("http://")) {
        findings
            .warnings
            .push("JWT_JWKS_URL is plain http: whoever is on the way can forge tokens".to_owned());
    }
    if !enabled {
        return;
    }
    let algorithm = merged.text("JWT_ALGORITHM").unwrap_or_default();
    let has_public = merged.text("JWT_PUBLIC_KEY").or(merged.text("JWT_JWKS_URL")).is_some();
    let missing = match algorithm {
        "auto" if secret.is_none() && !has_public => "JWT_SECRET, JWT_PUBLIC_KEY or JWT_JWKS_URL",
        hs if hs.starts_with("HS") && secret.is_none() => "JWT_SECRET",
        other if other != "auto" && !other.starts_with("HS") && !has_public => {
            "JWT_PUBLIC_KEY or JWT_JWKS_URL"
        }
        _ => return,
    };
    findings.problems.push(problem(merged, "JWT_ALGORITHM", format!("has no key; allowed with {missing}")));
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn mesh(merged: &Merged, findings: &mut Findings) {
    let tls = ["CERT", "KEY", "CA"].map(|part| merged.text(&format!("QUEEN_MESH_TLS_{part}")).is_some());
    if tls.contains(&true) && tls.contains(&false) {
        findings.problems.push(problem(
            merged,
            "QUEEN_MESH_TLS_CERT",
            "allowed QUEEN_MESH_TLS_CERT, QUEEN_MESH_TLS_KEY and QUEEN_MESH_TLS_CA together or none of them",
        ));
    }
    let secret = merged.text("QUEEN_SYNC_SECRET");
    if secret.is_some_and(|secret| secret.len() < 16) {
        findings.warnings.push("QUEEN_SYNC_SECRET is shorter than 16 bytes".to_owned());
    }
    let runs = merged.boolean("QUEEN_SYNC_ENABLED") && !merged.list("QUEEN_MESH_PEERS").is_empty();
    if runs && secret.is_none() && !tls.contains(&true) {
        if merged.boolean("QUEEN_MESH_INSECURE") {
            findings
                .warnings
                .push("the mesh has no secret: whoever reaches its port can flip switches".to_owned());
        } else {
            findings.problems.push(problem(
                merged,
                "QUEEN_SYNC_SECRET",
                "peers are named; allowed a secret, mutual TLS (QUEEN_MESH_TLS_*), or QUEEN_MESH_INSECURE=true",
            ));
        }
    }
    let heartbeat = merged.int("QUEEN_SYNC_HEARTBEAT_MS");
    if merged.int("QUEEN_SYNC_DEAD_THRESHOLD_MS") < heartbeat.saturating_mul(2) {
        findings
            .warnings
            .push("QUEEN_SYNC_DEAD_THRESHOLD_MS is under two heartbeats: peers will flap".to_owned());
    }
}

fn postgres(merged: &Merged, findings: &mut Findings) {
    let host = merged.text("PG_HOST").unwrap_or_default();
    if merged.origin("PG_PASSWORD") == Origin::Default && !host.starts_with('/') && !is_loopback(host) {
        findings.warnings.push(format!("PG_PASSWORD is left at its default for {host}"));
    }
    let tls = merged.boolean("PG_USE_SSL");
    let verify = merged.boolean("PG_SSL_REJECT_UNAUTHORIZED");
    match (merged.text("PG_SSL_ROOT_CERT").is_some(), tls, verify) {
        (true, false, _) => {
            findings.warnings.push("PG_SSL_ROOT_CERT is set but PG_USE_SSL is off: the link is plaintext".to_owned());
        }
        (true, true, false) => findings.warnings.push(
            "PG_SSL_REJECT_UNAUTHORIZED=false changes nothing: PG_SSL_ROOT_CERT is set and is verified against"
                .to_owned(),
        ),
        (false, true, false) => findings
            .warnings
            .push("PG_SSL_REJECT_UNAUTHORIZED is off: the link is encrypted but not authenticated".to_owned()),
        _ => {}
    }
}

#[cfg(unix)]
fn secrets_in_a_shared_file(merged: &Merged, file: Option<&Path>, findings: &mut Findings) {
    use std::os::unix::fs::PermissionsExt;
    let Some(path) = file else { return };
    let held = variables().filter(|variable| variable.secret).filter(|variable| {
        // A secret that came through a file of its own has the same origin, but is no text of this file.
        matches!(merged.origin(variable.name), Origin::File(_))
    });
    let names: Vec<&str> = held.map(|variable| variable.key.unwrap_or(variable.name)).collect();
    let open = std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
    if open && !names.is_empty() {
        findings.warnings.push(format!(
            "{} holds {} and others may read it; chmod 600 it",
            path.display(),
            names.join(", ")
        ));
    }
}

#[cfg(not(unix))]
fn secrets_in_a_shared_file(_: &Merged, _: Option<&Path>, _: &mut Findings) {}

/// What was set in vain, in one line each for what never and what does not yet do anything.
fn without_effect(merged: &Merged, findings: &mut Findings) {
    let given = |effect: Effect| -> Vec<&str> {
        let these = variables().filter(|v| v.effect == effect && merged.is_given(v.name));
        these
            .filter(|v| merged.get(v).map(|(value, _)| value) != Value::default_of(v).as_ref())
            .map(|v| v.name)
            .collect()
    };
    let without = given(Effect::Without);
    if !without.is_empty() {
        findings.warnings.push(format!("without effect in this product: {}", without.join(", ")));
    }
    let planned = given(Effect::Planned);
    if !planned.is_empty() {
        findings
            .warnings
            .push(format!("of features that this version does not have: {}", planned.join(", ")));
    }
}
