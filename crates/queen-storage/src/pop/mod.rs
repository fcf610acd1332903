//! Popping: which partitions a group may claim, the claim itself, and what it delivers.

mod candidates;
mod claim;
mod deliver;
mod register;
mod repair;

pub use candidates::{Found, MatchingQueue, WINDOW_BATCH};
pub use claim::{Candidate, Claim, ClaimedSegment, Hold};
pub use deliver::{Delivered, DeliveredSegment, Delivery};
pub use register::{Registration, Seed};
