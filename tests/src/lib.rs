//! Whole brokers on a real PostgreSQL, and what their tests share.

pub mod broker;

// Invariants: a reference model, random operations, and what must hold of tables and deliveries.
pub mod build;
pub mod failpoint;
pub mod history;
pub mod model;
pub mod scene;
pub mod seed;
pub mod tables;

use queen_core::{BrokerOptions, UpkeepOptions};

/// Options of a broker under test: a pop that finds nothing on the hot list always asks the database, so that what another
/// broker, or the test itself by hand, did is seen at once; no background work, which a test that wants it switches on. `QUEEN_TEST_HOTLIST=off` runs without the list.
pub fn options() -> BrokerOptions {
    BrokerOptions {
        hotlist: has_hotlist(),
        walk_pause_factor: 0,
        upkeep: UpkeepOptions::off(),
        ..BrokerOptions::default()
    }
}

/// Whether the brokers under test keep a hot list.
pub fn has_hotlist() -> bool {
    std::env::var("QUEEN_TEST_HOTLIST").as_deref() != Ok("off")
}
