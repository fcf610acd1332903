use crate::error::PgError;
use crate::options::{PgOptions, TlsMode};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;
use tokio_postgres::{CancelToken, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What both connections and cancel requests go through.
#[derive(Clone)]
pub(crate) enum Connector {
    Plain,
    Tls(MakeRustlsConnect),
}

impl Connector {
    pub(crate) fn new(options: &PgOptions) -> Result<Connector, PgError> {
        if options.is_unix_socket() {
            return Ok(Connector::Plain);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = match &options.tls {
            TlsMode::Plaintext => return Ok(Connector::Plain),
            TlsMode::PublicRoots => {
                builder(&provider)?.with_root_certificates(public_roots()).with_no_client_auth()
            }
            TlsMode::SuppliedCa(pem) => {
                builder(&provider)?.with_root_certificates(supplied_roots(pem)?).with_no_client_auth()
            }
            TlsMode::AcceptAny => builder(&provider)?
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAny(Arc::clone(&provider))))
                .with_no_client_auth(),
        };
        Ok(Connector::Tls(MakeRustlsConnect::new(config)))
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Connector::Tls(_))
    }

    /// Asks the server, on a connection of its own, to cancel what the token's session runs.
    pub(crate) async fn cancel(&self, token: CancelToken) -> Result<(), tokio_postgres::Error> {
        match self {
            Connector::Plain => token.cancel_query(NoTls).await,
            Connector::Tls(tls) => token.cancel_query(tls.clone()).await,
        }
    }
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn builder(provider: &Arc<CryptoProvider>) -> Result<Builder, PgError> {
    ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| PgError::Tls(e.to_string()))
}

fn public_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn supplied_roots(pem: &str) -> Result<RootCertStore, PgError> {
    let text = pem.replace("\\n", "\n");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        let certificate = certificate.map_err(|e| PgError::Tls(format!("the CA text is not PEM: {e}")))?;
        roots.add(certificate).map_err(|e| PgError::Tls(format!("a CA certificate cannot be used: {e}")))?;
    }
    if roots.is_empty() {
        return Err(PgError::Tls("the CA text holds no certificate".to_owned()));
    }
    Ok(roots)
}

/// Believes any certificate, but still checks that the server holds its key.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(tls: TlsMode) -> PgOptions {
        PgOptions { tls, ..PgOptions::default() }
    }

    #[test]
    fn every_mode_builds_without_a_process_wide_provider() {
        assert!(!Connector::new(&options(TlsMode::Plaintext)).unwrap().is_tls());
        assert!(Connector::new(&options(TlsMode::PublicRoots)).unwrap().is_tls());
        assert!(Connector::new(&options(TlsMode::AcceptAny)).unwrap().is_tls());
    }

    #[test]
    fn useless_ca_text_is_refused() {
        for bad in ["", "not pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let refused = Connector::new(&options(TlsMode::SuppliedCa(bad.to_owned())));
            assert!(matches!(refused, Err(PgError::Tls(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_unix_socket_is_never_encrypted() {
        let options = PgOptions { host: "/run/postgresql".to_owned(), ..options(TlsMode::PublicRoots) };
        assert!(!Connector::new(&options).unwrap().is_tls());
    }
}
