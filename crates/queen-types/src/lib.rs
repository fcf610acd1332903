//! The vocabulary of Queen: names, ids, options and times, validated where they are made, and what is counted in a bucket
//! of time ([`series`]).
//!
//! Nothing here touches a socket, a file, a clock or a database. A value of these types is valid by
//! construction and never checked again further in.

mod class;
mod id;
mod name;
mod options;
pub mod series;
mod status;
mod time;

pub use class::FailureClass;
pub use id::{LeaseId, MessageId, Offset, PartitionId, QueueId, TenantId, Uuid};
pub use name::{Group, NameError, Namespace, PartitionName, QueueName, Task, TransactionId};
pub use options::{OptionsEdit, QueueOptions, RetryBackoff};
pub use status::{AckStatus, MessageStatus, PushStatus, StartPoint, SubscriptionMode};
pub use time::{Timestamp, TimestampError};
