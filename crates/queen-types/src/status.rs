use crate::Timestamp;

/// Verdict over one pushed item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PushStatus {
    /// Committed in PostgreSQL.
    Queued,
    /// Its transaction id was stored before, inside the window; nothing was written.
    Duplicate,
    /// In this broker's spool, to be stored later under the same ids.
    Buffered,
    /// Neither stored nor spooled; the client has to retry.
    Failed,
}

impl PushStatus {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            PushStatus::Queued => "queued",
            PushStatus::Duplicate => "duplicate",
            PushStatus::Buffered => "buffered",
            PushStatus::Failed => "failed",
        }
    }
}

/// What a stored message is to its consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageStatus {
    /// Some consumer has it ahead of it.
    Pending,
    /// Under a live lease.
    Processing,
    /// Every consumer is done with it.
    Completed,
    /// It was given up.
    DeadLetter,
}

impl MessageStatus {
    /// All of them.
    pub const ALL: [MessageStatus; 4] = [
        MessageStatus::Pending,
        MessageStatus::Processing,
        MessageStatus::Completed,
        MessageStatus::DeadLetter,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageStatus::Pending => "pending",
            MessageStatus::Processing => "processing",
            MessageStatus::Completed => "completed",
            MessageStatus::DeadLetter => "dead_letter",
        }
    }

    /// Reads the wire word.
    pub fn parse(word: &str) -> Option<MessageStatus> {
        MessageStatus::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// What a consumer says of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AckStatus {
    /// Handled.
    Completed,
    /// Give it back; costs no retry.
    Retry,
    /// Handling failed; costs a retry.
    Failed,
    /// Dead-letter it now.
    Dlq,
}

impl AckStatus {
    /// Reads the wire word. The flag is true when the word was unknown, which counts as [`AckStatus::Failed`]:
    /// text that nobody understands must never complete a message.
    ///
    /// ```
    /// use queen_types::AckStatus;
    /// assert_eq!(AckStatus::parse(None), (AckStatus::Completed, false));
    /// assert_eq!(AckStatus::parse(Some("acked")), (AckStatus::Completed, false));
    /// assert_eq!(AckStatus::parse(Some("COMPLETED")), (AckStatus::Failed, true));
    /// ```
    pub fn parse(word: Option<&str>) -> (AckStatus, bool) {
        match word {
            None | Some("completed" | "success" | "acked" | "ok") => (AckStatus::Completed, false),
            Some("retry") => (AckStatus::Retry, false),
            Some("dlq") => (AckStatus::Dlq, false),
            Some("failed") => (AckStatus::Failed, false),
            Some(_) => (AckStatus::Failed, true),
        }
    }

    /// Whether this is anything but [`AckStatus::Completed`].
    pub fn is_signal(self) -> bool {
        self != AckStatus::Completed
    }
}

/// Where a group that names only a mode begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubscriptionMode {
    /// After the newest message.
    New,
    /// Before the oldest retained message.
    All,
}

impl SubscriptionMode {
    /// Reads a mode word as the wire and the environment spell it.
    pub fn parse(word: &str) -> Option<SubscriptionMode> {
        match word {
            "new" | "new-only" | "new_only" | "newonly" => Some(SubscriptionMode::New),
            "all" => Some(SubscriptionMode::All),
            _ => None,
        }
    }
}

/// Where a group begins at its first contact with a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StartPoint {
    /// Before the oldest retained message.
    All,
    /// After the newest message.
    New,
    /// At the first segment created at or after the instant.
    At(Timestamp),
}

impl From<SubscriptionMode> for StartPoint {
    fn from(mode: SubscriptionMode) -> Self {
        match mode {
            SubscriptionMode::New => StartPoint::New,
            SubscriptionMode::All => StartPoint::All,
        }
    }
}
