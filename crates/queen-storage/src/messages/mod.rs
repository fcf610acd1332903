//! Looking at stored messages without consuming them, and what an operator does with dead letters.

mod browse;
mod detail;
mod replay;
mod standing;

pub use browse::{BrowseFilter, BrowsePage, StoredMessage};
pub use detail::{DeadInfo, MessageDetail};
pub use replay::{Address, Replay, Replayed};
pub use standing::{GroupStanding, Mode};
