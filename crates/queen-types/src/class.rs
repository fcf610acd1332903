/// What a database failure means for whoever called.
///
/// The table from SQLSTATE to class is `queen_pg::classify`; this is only the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The same call may succeed later without anybody acting: lost connections, deadlocks, a restarting server.
    Transient,
    /// An operator has to act first: missing tables or rights (SQLSTATE class 42, 3F000).
    Config,
    /// The call can never succeed as it stands.
    Permanent,
}
