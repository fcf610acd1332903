//! The published crate `queen-mq`, unmodified, against a broker on a real PostgreSQL.

mod admin;
mod consume;
mod groups;
mod lease;
mod names;
mod operator;
mod pop_ack;
mod push;
mod status;
mod transaction;
