//! Checks of texts beyond their type.

use std::net::IpAddr;

use crate::registry::Check;

/// Says what is wrong with a text.
pub(crate) fn text(check: Check, text: &str) -> Result<(), String> {
    match check {
        Check::Any => Ok(()),
        Check::Host => host(text),
        Check::ServerId => server_id(text),
        Check::LogFilter => {
            queen_telemetry::check_filter(text).map_err(|_| "not a level and not a filter".to_owned())
        }
        Check::Hex64 => hex64(text),
        Check::Url => url(text),
        Check::Peers => peer(text),
    }
}

fn host(text: &str) -> Result<(), String> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if bracketed.unwrap_or(text).parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    if text.contains(':') {
        return Err("carries a port".to_owned());
    }
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if text.chars().all(letters) { Ok(()) } else { Err("not a host".to_owned()) }
}

fn server_id(text: &str) -> Result<(), String> {
    if text.len() > 128 {
        return Err(format!("{} bytes long", text.len()));
    }
    if text.chars().any(char::is_control) { Err("holds a control character".to_owned()) } else { Ok(()) }
}

fn hex64(text: &str) -> Result<(), String> {
    let digits = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if digits { Ok(()) } else { Err("not a key".to_owned()) }
}

fn url(text: &str) -> Result<(), String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !text.contains(char::is_whitespace) => {
            Ok(())
        }
        _ => Err("not an address".to_owned()),
    }
}

fn peer(text: &str) -> Result<(), String> {
    let bare = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    if bare.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    match bare.rsplit_once(':') {
        Some((name, port)) => {
            if port.parse::<u16>().is_ok_and(|port| port > 0) {
                host(name)
            } else {
                Err(format!("{text:?} has a bad port"))
            }
        }
        None => host(bare),
    }
}

/// Checks that a text holds PEM blocks whose label ends in `label`. What is inside them is checked by whoever uses
/// them; here it is about a path given in place of the text, or a text that was cut.
pub(crate) fn pem(text: &str, label: &str) -> Result<(), String> {
    let mut open: Option<&str> = None;
    let mut found = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let marker = |word: &str| line.strip_prefix(word).and_then(|rest| rest.strip_suffix("-----"));
        if let Some(name) = marker("-----BEGIN ") {
            open = Some(name);
        } else if let Some(name) = marker("-----END ") {
            if open.take() != Some(name) {
                return Err("a block ends that did not begin".to_owned());
            }
            found |= name.ends_with(label);
        } else if open.is_some() && !line.bytes().all(is_base64) {
            return Err("a block holds what is not base64".to_owned());
        }
    }
    match (open, found) {
        (Some(_), _) => Err("a block does not end".to_owned()),
        (None, false) if text.trim_start().starts_with('/') => Err("a path instead of the text".to_owned()),
        (None, false) => Err(format!("no {label} block")),
        (None, true) => Ok(()),
    }
}

fn is_base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for ok in ["localhost", "10.0.0.1", "::1", "[::1]", "queen-1.internal"] {
            assert_eq!(text(Check::Host, ok), Ok(()), "{ok}");
        }
        for bad in ["localhost:80", "10.0.0.1:80", "[::1]:80", "a b", "http://a"] {
            assert!(text(Check::Host, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn peers() {
        for ok in ["a", "a:1", "http://a:6633/", "[::1]:6633", "::1", "10.0.0.1:1"] {
            assert_eq!(text(Check::Peers, ok), Ok(()), "{ok}");
        }
        for bad in ["a:0", "a:70000", "a:b", "a b:1"] {
            assert!(text(Check::Peers, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_and_keys() {
        assert_eq!(text(Check::Url, "https://id.example.com/jwks"), Ok(()));
        for bad in ["ftp://x", "https://", "https:///x", "id.example.com", "http://a b"] {
            assert!(text(Check::Url, bad).is_err(), "{bad}");
        }
        assert_eq!(text(Check::Hex64, &"aF".repeat(32)), Ok(()));
        assert!(text(Check::Hex64, &"aG".repeat(32)).is_err());
        assert!(text(Check::Hex64, "abcd").is_err());
    }

    #[test]
    fn pem_blocks() {
        let good = "text before\n-----BEGIN CERTIFICATE-----\nTUlJ\nQ0E=\n-----END CERTIFICATE-----\n";
        assert_eq!(pem(good, "CERTIFICATE"), Ok(()));
        assert_eq!(pem(good, "PUBLIC KEY"), Err("no PUBLIC KEY block".to_owned()));
        let rsa = good.replace("CERTIFICATE", "RSA PUBLIC KEY");
        assert_eq!(pem(&rsa, "PUBLIC KEY"), Ok(()));
        assert_eq!(pem("/etc/ssl/ca.pem", "CERTIFICATE"), Err("a path instead of the text".to_owned()));
        assert_eq!(pem(&good[..50], "CERTIFICATE"), Err("a block does not end".to_owned()));
        assert_eq!(
            pem(&good.replace("TUlJ", "TU*J"), "CERTIFICATE"),
            Err("a block holds what is not base64".to_owned())
        );
    }
}
