//! Popping: which partitions a group may claim, the claim itself, and what it delivers.

mod candidates;
mod claim;
mod deliver;
mod hint;
mod register;
mod repair;
mod short;

pub use candidates::{Found, MatchingQueue, Pending, WINDOW_BATCH};
pub use claim::{Candidate, Claim, Claimed, ClaimedSegment, Hold, Outcome};
pub use deliver::{Delivered, DeliveredSegment, Delivery};
pub use hint::CursorHint;
pub use queen_pg::Tid;
pub use register::{Registration, Seed};
