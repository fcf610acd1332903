use queen_types::FailureClass;

/// The one table from SQLSTATE to what a caller may do about it.
///
/// `None` stands for a failure without an answer of the server: a lost connection, a deadline. `message` matters
/// only for `0A000`, which is transient when it reports an outdated cached plan and permanent otherwise.
///
/// `57014` (query cancelled) is transient: our own cancel and an operator's look alike.
pub fn classify(sqlstate: Option<&str>, message: &str) -> FailureClass {
    let Some(code) = sqlstate else { return FailureClass::Transient };
    match code {
        // serialization failure, deadlock, read-only after a failover, lock timeout, object in use, a prepared
        // statement that a pooler or a DISCARD took away
        "40001" | "40P01" | "25006" | "55P03" | "55006" | "26000" => return FailureClass::Transient,
        "0A000" if message.contains("cached plan") => return FailureClass::Transient,
        "3F000" => return FailureClass::Config,
        _ => {}
    }
    match code.as_bytes() {
        // connection, resources, operator intervention, system
        [b'0', b'8', ..] | [b'5', b'3' | b'7' | b'8', ..] => FailureClass::Transient,
        // syntax, rights, missing objects
        [b'4', b'2', ..] => FailureClass::Config,
        _ => FailureClass::Permanent,
    }
}

/// Whether the failure says that a statement prepared earlier on this connection is of no use any more. The server
/// reports it before it executes anything.
pub(crate) fn is_stale_statement(sqlstate: &str, message: &str) -> bool {
    sqlstate == "26000" || (sqlstate == "0A000" && message.contains("cached plan"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureClass::{Config, Permanent, Transient};

    #[test]
    fn the_table() {
        let table = [
            (None, Transient),
            (Some("40001"), Transient),
            (Some("40P01"), Transient),
            (Some("40002"), Permanent),
            (Some("40003"), Permanent),
            (Some("08000"), Transient),
            (Some("08006"), Transient),
            (Some("08P01"), Transient),
            (Some("53100"), Transient),
            (Some("53200"), Transient),
            (Some("53300"), Transient),
            (Some("57014"), Transient),
            (Some("57P01"), Transient),
            (Some("57P02"), Transient),
            (Some("57P03"), Transient),
            (Some("57P05"), Transient),
            (Some("58000"), Transient),
            (Some("58030"), Transient),
            (Some("25006"), Transient),
            (Some("25P02"), Permanent),
            (Some("25P03"), Permanent),
            (Some("55P03"), Transient),
            (Some("55006"), Transient),
            (Some("55000"), Permanent),
            (Some("26000"), Transient),
            (Some("42501"), Config),
            (Some("42883"), Config),
            (Some("42P01"), Config),
            (Some("42703"), Config),
            (Some("3F000"), Config),
            (Some("3D000"), Permanent),
            (Some("23505"), Permanent),
            (Some("23514"), Permanent),
            (Some("22001"), Permanent),
            (Some("22023"), Permanent),
            (Some("22P05"), Permanent),
            (Some("P0001"), Permanent),
            (Some("XX000"), Permanent),
            (Some("54000"), Permanent),
            (Some("0A000"), Permanent),
        ];
        for (code, class) in table {
            assert_eq!(classify(code, "some message"), class, "{code:?}");
        }
    }

    #[test]
    fn an_outdated_plan_is_transient() {
        assert_eq!(classify(Some("0A000"), "cached plan must not change result type"), Transient);
        assert!(is_stale_statement("0A000", "cached plan must not change result type"));
        assert!(!is_stale_statement("0A000", "cannot do that"));
        assert!(is_stale_statement("26000", "prepared statement \"s1\" does not exist"));
    }

    #[test]
    fn odd_codes_do_not_panic() {
        for code in ["", "4", "5", "é", "42", "日本語"] {
            classify(Some(code), "");
        }
    }
}
