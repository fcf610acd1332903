//! Names that nobody knows, and what they were probably meant to be.

use crate::findings::Findings;
use crate::registry::{CLI_NAMES, DEAD_NAMES, variables};
use crate::sources::Sources;

/// Prefixes that are ours by habit, not by right: a name that begins so is only reported when it is nearly a known
/// one.
const SHARED_PREFIXES: &[&str] =
    &["PG_", "JWT_", "DB_", "FILE_BUFFER_", "RETENTION_", "POP_", "STATS_", "METRICS_", "PARTITION_"];

/// Warns about environment names that look like ours and are none.
pub(crate) fn report_unknown(sources: &Sources, findings: &mut Findings) {
    let known = known_names();
    for (name, value) in &sources.env {
        if known.contains(name) || is_ignored(name, value) {
            continue;
        }
        if name.starts_with("QUEEN_") {
            findings.warnings.push(match nearest(name, &known, 3, '_') {
                Some(near) => format!("{name} is not a known variable; did you mean {near}?"),
                None => format!("{name} is not a known variable"),
            });
        } else if SHARED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            && let Some(near) = nearest(name, &known, 2, '_')
        {
            findings.warnings.push(format!("{name} is not a known variable; did you mean {near}?"));
        }
    }
}

fn known_names() -> Vec<String> {
    let mut known = Vec::new();
    for variable in variables() {
        known.push(variable.name.to_owned());
        known.extend(variable.aliases.iter().map(|alias| alias.name.to_owned()));
        if variable.file {
            known.push(format!("{}_FILE", variable.name));
        }
    }
    known.extend(DEAD_NAMES.iter().map(|(name, _)| (*name).to_owned()));
    known
}

fn is_ignored(name: &str, value: &str) -> bool {
    CLI_NAMES.contains(&name) || is_service_link(name, value) || has_link_name(name)
}

/// Whether the value is what Kubernetes injects for a Service of that name.
pub(crate) fn is_service_link(name: &str, value: &str) -> bool {
    (name == "PORT" || name.ends_with("_PORT")) && value.trim_start().starts_with("tcp://")
}

/// `*_SERVICE_HOST`, `*_SERVICE_PORT[_NAME]`, `*_PORT_<n>_TCP[_PROTO|_PORT|_ADDR]`.
fn has_link_name(name: &str) -> bool {
    if name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT") || name.contains("_SERVICE_PORT_") {
        return true;
    }
    let head = ["_PROTO", "_PORT", "_ADDR"].iter().find_map(|tail| name.strip_suffix(tail)).unwrap_or(name);
    let Some(head) = head.strip_suffix("_TCP").or_else(|| head.strip_suffix("_UDP")) else { return false };
    let Some((front, number)) = head.rsplit_once('_') else { return false };
    front.ends_with("_PORT") && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// The known name that is nearest: the same words in another order, else the fewest edits, at most `edits`.
pub(crate) fn nearest<'k>(name: &str, known: &'k [String], edits: usize, separator: char) -> Option<&'k str> {
    let words = |name: &str| {
        let mut words: Vec<String> = name.split(separator).map(str::to_owned).collect();
        words.sort_unstable();
        words
    };
    let given = words(name);
    if let Some(same) = known.iter().find(|candidate| words(candidate) == given) {
        return Some(same);
    }
    let distances = known.iter().map(|candidate| (strsim::levenshtein(name, candidate), candidate));
    distances.filter(|(distance, _)| *distance <= edits).min().map(|(_, candidate)| candidate.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_links() {
        for link in [
            "QUEEN_MESH_SERVICE_HOST",
            "QUEEN_MESH_SERVICE_PORT",
            "QUEEN_MESH_SERVICE_PORT_HTTP",
            "QUEEN_MESH_PORT_6633_TCP",
            "QUEEN_MESH_PORT_6633_TCP_PROTO",
            "QUEEN_MESH_PORT_6633_TCP_PORT",
            "QUEEN_MESH_PORT_6633_TCP_ADDR",
        ] {
            assert!(has_link_name(link), "{link}");
        }
        for other in ["QUEEN_MESH_PORT", "QUEEN_PORT_X_TCP", "QUEEN_TCP", "QUEEN_6633_TCP"] {
            assert!(!has_link_name(other), "{other}");
        }
        assert!(is_service_link("QUEEN_MESH_PORT", "tcp://10.0.0.7:6633"));
        assert!(!is_service_link("QUEEN_MESH_PORT", "6633"));
        assert!(!is_service_link("QUEEN_MESH_PEERS", "tcp://10.0.0.7:6633"));
    }

    #[test]
    fn nearest_names() {
        let known: Vec<String> =
            ["QUEEN_STMT_TIMEOUT_MS", "QUEEN_LOG_JSON", "PORT"].map(str::to_owned).into();
        let near = |name, edits| nearest(name, &known, edits, '_');
        assert_eq!(near("QUEEN_STMT_TIMEOUT", 3), Some("QUEEN_STMT_TIMEOUT_MS"));
        assert_eq!(near("QUEEN_JSON_LOG", 3), Some("QUEEN_LOG_JSON"));
        assert_eq!(near("QUEEN_TIMEOUT_STMT_MS", 0), Some("QUEEN_STMT_TIMEOUT_MS"));
        assert_eq!(near("QUEEN_ENTIRELY_OTHER", 3), None);
    }
}
