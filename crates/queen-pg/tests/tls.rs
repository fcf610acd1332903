//! Each way to trust the server, with a real server that has a certificate; cancel requests are encrypted as well.
#![allow(clippy::unwrap_used)]

mod support;

use queen_pg::{PgError, PgOptions, Pool, TlsMode};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;
use support::{admin, eventually, options};

/// Gives the server a certificate for 127.0.0.1 of a fresh authority, and returns the authority's PEM.
async fn encrypt_server() -> String {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();

    let mut admin = admin().await;
    let pgdata = support::text(&mut admin, "SELECT current_setting('data_directory')").await;
    let owner = std::fs::metadata(&pgdata).unwrap();
    for (name, text) in [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())] {
        let path = std::path::Path::new(&pgdata).join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    admin.batch("ALTER SYSTEM SET ssl = on").await.unwrap();
    admin.batch("SELECT pg_reload_conf()").await.unwrap();
    eventually(&mut admin, "SELECT current_setting('ssl') = $1", "on").await;
    authority_certificate.pem()
}

async fn is_encrypted(options: PgOptions) -> Result<bool, PgError> {
    let mut conn = Pool::new(options)?.get().await?;
    let rows = conn.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).await?;
    Ok(rows[0].get(0))
}

#[tokio::test]
async fn every_kind_of_trust() {
    let plain = PgOptions { tls: TlsMode::AcceptAny, host: "127.0.0.1".to_owned(), ..options() };
    let refused = is_encrypted(plain).await.unwrap_err();
    assert!(refused.is_pool() && refused.to_string().contains("does not support TLS"), "{refused}");

    let ca = encrypt_server().await;
    let with = |tls: TlsMode| PgOptions { tls, host: "127.0.0.1".to_owned(), ..options() };

    assert!(is_encrypted(with(TlsMode::SuppliedCa(ca.clone()))).await.unwrap());
    assert!(is_encrypted(with(TlsMode::SuppliedCa(ca.replace('\n', "\\n")))).await.unwrap());
    assert!(is_encrypted(with(TlsMode::AcceptAny)).await.unwrap());
    assert!(!is_encrypted(with(TlsMode::Plaintext)).await.unwrap());
    for untrusted in [
        with(TlsMode::PublicRoots),
        PgOptions { host: "localhost".to_owned(), ..with(TlsMode::SuppliedCa(ca.clone())) },
    ] {
        let error = is_encrypted(untrusted).await.unwrap_err();
        assert!(
            matches!(&error, PgError::Connect { message, .. } if message.contains("certificate")),
            "{error}"
        );
    }

    let options =
        PgOptions { statement_timeout: Duration::from_millis(300), ..with(TlsMode::SuppliedCa(ca)) };
    let app = options.application_name.clone();
    let pool = Pool::new(options).unwrap();
    let mut conn = pool.get().await.unwrap();
    assert!(matches!(conn.query("SELECT pg_sleep(60)", &[]).await, Err(PgError::Timeout { .. })));
    let gone = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = $1";
    eventually(&mut admin().await, gone, &app).await;
}
