use std::fmt;
use std::sync::Arc;

pub use uuid::Uuid;

/// Position of one message inside one partition, counted from 0. -1 stands for "before the first message".
pub type Offset = i64;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

uuid_id!(
    /// Owner of a name space. Without the tenancy header every request belongs to [`TenantId::DEFAULT`].
    TenantId
);
uuid_id!(
    /// Row id of a queue; a deleted and recreated queue gets a new one.
    QueueId
);
uuid_id!(
    /// Row id of a partition; on the wire `partitionId`. A UUIDv7, so partitions that are made together lie together in
    /// every index.
    PartitionId
);
uuid_id!(
    /// Id of a message, a UUIDv7 minted by the broker.
    MessageId
);

impl TenantId {
    /// The tenant of every request while the tenancy header is off.
    pub const DEFAULT: TenantId = TenantId(Uuid::from_u128(1));
}

impl PartitionId {
    /// Mints a new id, ascending within one process.
    pub fn mint() -> PartitionId {
        PartitionId(Uuid::now_v7())
    }
}

impl MessageId {
    /// The id answered for a duplicate whose original can no longer be read.
    pub const ZERO: MessageId = MessageId(Uuid::nil());

    /// Mints a new id: 48 bits of milliseconds, a counter that keeps ids of one process ascending, then random bits.
    pub fn mint() -> MessageId {
        MessageId(Uuid::now_v7())
    }
}

/// Id of one claim. Opaque text to clients; every partition of one pop shares it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(Arc<str>);

impl LeaseId {
    /// A fresh lease id for one claim.
    pub fn mint() -> LeaseId {
        LeaseId(Uuid::now_v7().to_string().into())
    }

    /// Takes whatever a client sent as a lease id; an id that was never minted simply owns nothing.
    pub fn from_client(text: &str) -> LeaseId {
        LeaseId(text.into())
    }

    /// The text as it travels.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_tenant_has_the_public_id() {
        assert_eq!(TenantId::DEFAULT.to_string(), "00000000-0000-0000-0000-000000000001");
    }

    #[test]
    fn minted_ids_are_version_7_unique_and_ascending() {
        let ids: Vec<MessageId> = (0..10_000).map(|_| MessageId::mint()).collect();
        assert!(ids.iter().all(|id| id.0.get_version_num() == 7));
        assert!(ids.windows(2).all(|w| w[0] < w[1]));
    }
}
