//! A free port on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::ClusterError;

/// The port for a start: the one asked for, else the recorded one while it is free, else any free one.
pub(crate) fn choose(asked: Option<u16>, recorded_in: &Path) -> Result<u16, ClusterError> {
    if let Some(port) = asked {
        return Ok(port);
    }
    let recorded = std::fs::read_to_string(recorded_in).ok().and_then(|text| text.trim().parse().ok());
    match recorded {
        Some(port) if is_free(port) => Ok(port),
        _ => any_free(recorded_in),
    }
}

pub(crate) fn is_free(port: u16) -> bool {
    port != 0 && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn any_free(recorded_in: &Path) -> Result<u16, ClusterError> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(ClusterError::io("find a free port for", recorded_in))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_port_is_kept_only_while_it_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("port");
        let first = choose(None, &file).unwrap();
        assert!(is_free(first));
        std::fs::write(&file, format!("{first}\n")).unwrap();
        assert_eq!(choose(None, &file).unwrap(), first);

        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        assert_ne!(choose(None, &file).unwrap(), first);
        assert_eq!(choose(Some(first), &file).unwrap(), first);
    }
}
