//! Values that do not go together.

use crate::support::{ok, problems};

const PEM: &str = "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----";

#[test]
fn refused_together() {
    for (pairs, expected) in [
        (&[("QUEEN_TENANCY_HEADER", "1")][..], "allowed with QUEEN_KV_TRUSTED_PROXY=true"),
        (
            &[("QUEEN_ADMISSION_SHARE_PUSH", "0.9")],
            "the four QUEEN_ADMISSION_SHARE_* sum to 1.650; allowed at most 1",
        ),
        (&[("QUEEN_SWEEPER_MIN_SLEEP_MS", "2000")], "allowed QUEEN_SWEEPER_MIN_SLEEP_MS (2000) <= this <="),
        (
            &[("QUEEN_SWEEPER_BACKOFF_MIN_MS", "70000")],
            "allowed at most QUEEN_SWEEPER_BACKOFF_MAX_MS (60000)",
        ),
        (&[("JWT_ENABLED", "1")], "has no key; allowed with JWT_SECRET"),
        (
            &[("JWT_ENABLED", "1"), ("JWT_ALGORITHM", "RS256"), ("JWT_SECRET", "x")],
            "has no key; allowed with JWT_PUBLIC_KEY or JWT_JWKS_URL",
        ),
        (
            &[("JWT_ENABLED", "1"), ("JWT_ALGORITHM", "auto")],
            "has no key; allowed with JWT_SECRET, JWT_PUBLIC_KEY or JWT_JWKS_URL",
        ),
        (
            &[("JWT_ENABLED", "1"), ("JWT_SECRET", "0123456789abcdef0123456789abcdef")],
            "this version checks no tokens, so every route would be open; allowed false",
        ),
        (
            &[("QUEEN_TENANCY_HEADER", "1"), ("QUEEN_KV_TRUSTED_PROXY", "1")],
            "this version does not keep tenants apart; allowed false",
        ),
        (&[("QUEEN_MESH_PEERS", "a")], "peers are named; allowed a secret, mutual TLS"),
        (&[("QUEEN_MESH_TLS_CA", PEM)], "QUEEN_MESH_TLS_CA together or none of them"),
    ] {
        let found = problems(pairs);
        assert!(found.len() == 1 && found[0].contains(expected), "{pairs:?}: {found:?}");
    }
}

#[test]
fn fine_together() {
    for pairs in [
        &[("QUEEN_MESH_PEERS", "a"), ("QUEEN_SYNC_SECRET", "0123456789abcdef")][..],
        &[("QUEEN_MESH_PEERS", "a"), ("QUEEN_SYNC_ENABLED", "0")],
        &[("QUEEN_ADMISSION_SHARE_PUSH", "0.1"), ("QUEEN_ADMISSION_SHARE_POP", "0.55")],
    ] {
        ok(pairs);
    }
}

#[test]
fn warned_about_together() {
    for (pairs, expected) in [
        (
            &[("QUEEN_BIND_ADDR", "0.0.0.0")][..],
            "authentication is off: the API is open to whoever reaches the port",
        ),
        (&[("PG_HOST", "db.internal")], "PG_PASSWORD is left at its default for db.internal"),
        (
            &[("PG_SSL_ROOT_CERT", PEM)],
            "PG_SSL_ROOT_CERT is set but PG_USE_SSL is off: the link is plaintext",
        ),
        (
            &[("PG_USE_SSL", "1"), ("PG_SSL_REJECT_UNAUTHORIZED", "0")],
            "PG_SSL_REJECT_UNAUTHORIZED is off: the link is encrypted but not authenticated",
        ),
        (
            &[("PG_USE_SSL", "1"), ("PG_SSL_REJECT_UNAUTHORIZED", "0"), ("PG_SSL_ROOT_CERT", PEM)],
            "PG_SSL_REJECT_UNAUTHORIZED=false changes nothing: PG_SSL_ROOT_CERT is set and is verified against",
        ),
        (&[("JWT_SECRET", "short")], "JWT_SECRET is shorter than 32 bytes"),
        (
            &[("JWT_JWKS_URL", "http://id/keys")],
            "JWT_JWKS_URL is plain http: whoever is on the way can forge tokens",
        ),
        (&[("QUEEN_SYNC_SECRET", "short")], "QUEEN_SYNC_SECRET is shorter than 16 bytes"),
        (
            &[("QUEEN_MESH_PEERS", "a"), ("QUEEN_MESH_INSECURE", "1")],
            "the mesh has no secret: whoever reaches its port can flip switches",
        ),
        (
            &[("QUEEN_SYNC_HEARTBEAT_MS", "4000")],
            "QUEEN_SYNC_DEAD_THRESHOLD_MS is under two heartbeats: peers will flap",
        ),
        (&[("QUEEN_SWEEPER", "off")], "QUEEN_SWEEPER is off: timers never fire and expired keys stay"),
    ] {
        let warnings = ok(pairs).warnings;
        assert!(warnings.iter().any(|w| w == expected), "{pairs:?}: {warnings:?}");
    }
}
