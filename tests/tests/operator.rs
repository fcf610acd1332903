//! What applications and operators do around push and pop: groups, replay, browsing, traces, delays.

#[path = "operator/counts.rs"]
mod counts;
#[path = "operator/delays.rs"]
mod delays;
#[path = "operator/docs.rs"]
mod docs;
#[path = "operator/groups.rs"]
mod groups;
#[path = "operator/locks.rs"]
mod locks;
#[path = "operator/messages.rs"]
mod messages;
#[path = "operator/peers.rs"]
mod peers;
#[path = "operator/scale.rs"]
mod scale;
#[path = "operator/support.rs"]
mod support;
