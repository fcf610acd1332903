//! Values that follow from others.

use std::hash::{BuildHasher, Hasher};

use crate::merge::Merged;
use crate::value::Value;

/// Fills every derived value that nothing has set.
pub(crate) fn fill(merged: &mut Merged) {
    let pool = merged.int("DB_POOL_SIZE");
    merged.derive("QUEEN_SERVER_ID", Value::Text(random_id()));
    merged.derive("QUEEN_ADMISSION_POOL_RESERVE", Value::Int((pool / 4).min(16)));
    let open = (pool - merged.int("QUEEN_ADMISSION_POOL_RESERVE")).max(1);
    let ceiling = open.min(merged.int("QUEEN_ADMISSION_MAX"));
    merged.derive("QUEEN_ADMISSION_MIN", Value::Int((open * 2 / 3).max(8).min(ceiling)));
    merged.derive("QUEEN_ADMISSION_INIT", Value::Int(merged.int("QUEEN_ADMISSION_MIN").min(ceiling)));
    merged.derive("QUEEN_KV_POOL_SIZE", Value::Int((pool / 10).clamp(4, 32)));

    let shards = Value::Int(merged.int("QUEEN_V2_FUSION_SHARDS"));
    merged.derive("QUEEN_ACK_FUSION_SHARDS", shards.clone());
    merged.derive("QUEEN_HOTLIST_SHARDS", shards);

    let tenancy = Value::Bool(merged.boolean("QUEEN_TENANCY_HEADER"));
    merged.derive("QUEEN_KV_REQUIRE_GRANT", tenancy.clone());
    merged.derive("QUEEN_EPHEMERAL_REQUIRE_GRANT", tenancy);

    if let Some(bind) = merged.text("QUEEN_BIND_ADDR").map(str::to_owned) {
        merged.derive("QUEEN_MESH_BIND_ADDR", Value::Text(bind));
    }
}

/// A name for a process whose platform gives it none. Distinct, not secret.
fn random_id() -> String {
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("queen-{:08x}", hasher.finish() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Origin, Values};

    fn derived(pairs: &[(&'static str, Value)]) -> Merged {
        let env: Values =
            pairs.iter().map(|(n, v)| (*n, (v.clone(), Origin::Environment((*n).to_owned())))).collect();
        let mut merged = Merged::of(Values::new(), env);
        fill(&mut merged);
        merged
    }

    #[test]
    fn values_follow_the_pool_the_shards_and_the_tenancy() {
        let plain = derived(&[]);
        assert_eq!(plain.int("QUEEN_ADMISSION_POOL_RESERVE"), 16);
        assert_eq!((plain.int("QUEEN_ADMISSION_MIN"), plain.int("QUEEN_ADMISSION_INIT")), (96, 96));
        assert_eq!(plain.int("QUEEN_KV_POOL_SIZE"), 16);
        assert_eq!(plain.text("QUEEN_MESH_BIND_ADDR"), Some("0.0.0.0"));
        assert!(!plain.boolean("QUEEN_KV_REQUIRE_GRANT"));
        let id = plain.text("QUEEN_SERVER_ID").unwrap();
        assert_eq!(id.len(), "queen-".len() + 8);
        assert_ne!(derived(&[]).text("QUEEN_SERVER_ID"), Some(id));

        let other = derived(&[
            ("DB_POOL_SIZE", Value::Int(20)),
            ("QUEEN_V2_FUSION_SHARDS", Value::Int(3)),
            ("QUEEN_TENANCY_HEADER", Value::Bool(true)),
            ("QUEEN_BIND_ADDR", Value::Text("127.0.0.1".to_owned())),
        ]);
        assert_eq!(other.int("QUEEN_ADMISSION_POOL_RESERVE"), 5);
        assert_eq!((other.int("QUEEN_ADMISSION_MIN"), other.int("QUEEN_ADMISSION_INIT")), (10, 10));
        assert_eq!(other.int("QUEEN_KV_POOL_SIZE"), 4);
        assert_eq!(other.int("QUEEN_ACK_FUSION_SHARDS"), 3);
        assert_eq!(other.int("QUEEN_HOTLIST_SHARDS"), 3);
        assert!(other.boolean("QUEEN_EPHEMERAL_REQUIRE_GRANT"));
        assert_eq!(other.text("QUEEN_MESH_BIND_ADDR"), Some("127.0.0.1"));
    }
}
