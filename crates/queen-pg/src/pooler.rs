//! Whether a session is one: a pooler in transaction or statement mode gives each transaction whatever connection to the
//! server is free. Prepared statements, session settings and advisory locks then go astray, hours later and anywhere.

use crate::conn::Conn;
use crate::error::PgError;
use crate::pool::Pool;
use tokio_postgres::SimpleQueryMessage;

/// The setting that a session has to keep.
const SETTING: &str = "queen.session";
/// The two sessions, in the order in which they are asked. A pooler that hands out the connection that was used last
/// gives both of them the same; one that takes turns gives one session two.
const ORDER: [usize; 6] = [0, 0, 1, 1, 0, 1];

/// What a session says of itself: its process on the server, and the setting.
type Seen = (String, String);

impl Pool {
    /// Finds out whether the server is reached through a pooler that does not keep sessions together. Opens two sessions
    /// outside the pool and closes them; takes at most twice [`crate::PgOptions::connect_timeout`] and a few statements.
    ///
    /// One session alone is asked when a second is not to be had. Cancel safe.
    ///
    /// # Errors
    /// [`PgError::Pooler`], or that the database could not be asked.
    pub async fn refuse_pooler(&self) -> Result<(), PgError> {
        let name = self.options().application_name.clone();
        let mut sessions = vec![self.connect(&name).await?];
        match self.connect(&name).await {
            Ok(second) => sessions.push(second),
            Err(error) => tracing::debug!(%error, "no second session to compare with"),
        }
        for (number, session) in sessions.iter_mut().enumerate() {
            session.batch(&format!("SET {SETTING} = '{number}'")).await?;
        }
        let mut seen: Vec<(usize, Seen)> = Vec::new();
        for number in ORDER {
            if let Some(session) = sessions.get_mut(number) {
                seen.push((number, ask(session).await?));
            }
        }
        if is_kept(&seen) { Ok(()) } else { Err(PgError::Pooler) }
    }
}

async fn ask(session: &mut Conn) -> Result<Seen, PgError> {
    let sql = format!("SELECT pg_backend_pid(), current_setting('{SETTING}', TRUE)");
    let row = session.simple_query(&sql).await?.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let value = |column| {
        let text = row.as_ref().and_then(|row| row.get(column));
        text.unwrap_or_default().to_owned()
    };
    Ok((value(0), value(1)))
}

/// Whether each session kept its process and its setting, and no two shared a process.
fn is_kept(seen: &[(usize, Seen)]) -> bool {
    seen.iter().all(|(session, (process, setting))| {
        *setting == session.to_string()
            && seen.iter().all(|(other, (theirs, _))| (other == session) == (theirs == process))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seen: &[(usize, &str, &str)], kept: bool) {
        let seen: Vec<(usize, Seen)> =
            seen.iter().map(|(s, pid, set)| (*s, ((*pid).to_owned(), (*set).to_owned()))).collect();
        assert_eq!(is_kept(&seen), kept, "{seen:?}");
    }

    #[test]
    fn a_session_keeps_its_process_and_its_setting_to_itself() {
        check(&[(0, "7", "0"), (0, "7", "0"), (1, "8", "1"), (0, "7", "0"), (1, "8", "1")], true);
        check(&[(0, "7", "0"), (0, "7", "0")], true);
        check(&[(0, "7", "0"), (0, "8", "0")], false);
        check(&[(0, "7", "0"), (1, "7", "1")], false);
        check(&[(0, "7", "0"), (0, "7", "")], false);
        check(&[(0, "7", "1"), (1, "8", "0")], false);
    }
}
