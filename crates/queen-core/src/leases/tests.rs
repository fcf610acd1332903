use super::*;
use queen_types::{Timestamp, Uuid};

const T: TenantId = TenantId::DEFAULT;
const LONG: Duration = Duration::from_secs(60);

fn p(n: u128) -> PartitionId {
    PartitionId(Uuid::from_u128(n))
}

fn batch(block: u32) -> Batch {
    Batch {
        queue: QueueName::new("q").unwrap(),
        end: 4,
        row: Tid { block, offset: 1 },
        keys: KeySet::of(["a"].into_iter()),
    }
}

fn leases() -> Leases {
    Leases::new(1 << 20, true)
}

fn put(leases: &Leases, parts: &[u128]) -> LeaseId {
    let lease = LeaseId::mint();
    let parts = parts.iter().map(|n| (p(*n), Some(batch(*n as u32)))).collect();
    leases.put(lease.clone(), T, Group::queue_mode(), parts, LONG, None);
    lease
}

fn assert_empty(leases: &Leases) {
    let known = leases.known.lock();
    assert_eq!((known.numbers.len(), known.held.len(), known.ends.len(), known.bytes), (0, 0, 0, 0));
}

#[test]
fn a_lease_is_forgotten_with_its_last_partition() {
    let leases = leases();
    let lease = put(&leases, &[2, 1]);
    assert_eq!(leases.get(T, &lease), Some((vec![p(1), p(2)], Group::queue_mode())));
    leases.released(&lease, p(1));
    leases.released(&lease, p(1));
    assert_eq!(leases.get(T, &lease).map(|(p, _)| p), Some(vec![p(2)]));
    assert_eq!(leases.batch(T, &Group::queue_mode(), &lease, p(1)), None);
    leases.released(&lease, p(2));
    assert!(leases.get(T, &lease).is_none());
    assert_empty(&leases);
}

#[test]
fn a_batch_is_told_to_its_tenant_and_group_alone() {
    let leases = leases();
    let (lease, other) = (put(&leases, &[1, 2]), put(&leases, &[1]));
    let mode = Group::queue_mode();
    assert_eq!(leases.batch(T, &mode, &lease, p(2)), Some(batch(2)));
    let stranger = TenantId(Uuid::from_u128(9));
    assert_eq!(leases.batch(stranger, &mode, &lease, p(2)), None);
    assert_eq!(leases.get(stranger, &lease), None);
    assert_eq!(leases.batch(T, &Group::new("g").unwrap(), &lease, p(2)), None);
    assert_eq!(leases.batch(T, &mode, &other, p(2)), None);
    assert_eq!(leases.batch(T, &mode, &LeaseId::mint(), p(2)), None);
    leases.changed(&lease, p(2));
    assert_eq!(leases.batch(T, &mode, &lease, p(2)), None);
    assert_eq!(leases.get(T, &lease).map(|(p, _)| p.len()), Some(2), "the partition is still covered");
    assert_eq!(leases.batch(T, &mode, &other, p(1)), Some(batch(1)));
}

#[test]
fn an_extension_moves_rows_and_ends() {
    let leases = leases();
    let lease = put(&leases, &[1, 2]);
    let moved = Extended { partition: p(2), row: Tid { block: 77, offset: 3 }, expires_at: Timestamp::EPOCH };
    leases.extended(&lease, LONG * 10, &[moved]);
    let mode = Group::queue_mode();
    assert_eq!(leases.batch(T, &mode, &lease, p(2)).map(|b| b.row), Some(moved.row));
    assert_eq!(leases.batch(T, &mode, &lease, p(1)), Some(batch(1)));
    leases.known.lock().forget_ended(Instant::now() + LONG * 5);
    assert!(leases.get(T, &lease).is_some());
    leases.known.lock().forget_ended(Instant::now() + LONG * 11);
    assert_empty(&leases);
}

#[test]
fn a_lease_outlives_its_end_by_the_grace_alone() {
    let leases = leases();
    let lease = put(&leases, &[1]);
    let now = Instant::now();
    leases.known.lock().forget_ended(now + LONG + GRACE / 2);
    assert!(leases.get(T, &lease).is_some());
    leases.known.lock().forget_ended(now + LONG + GRACE * 2);
    assert_empty(&leases);
}

#[test]
fn the_oldest_give_way_and_the_bytes_stay_bounded() {
    let one = LEASE_BYTES + size_of::<Part>();
    let leases = Leases::new(one * 10, true);
    let all: Vec<LeaseId> = (0..1000).map(|_| put(&leases, &[1])).collect();
    assert!(leases.get(T, &all[989]).is_none());
    assert!(all[990..].iter().all(|lease| leases.get(T, lease).is_some()));
    assert_eq!(leases.known.lock().bytes, one * 10);
    let large: Vec<u128> = (0..1000).collect();
    let large = put(&leases, &large);
    assert_eq!(leases.get(T, &large).map(|(p, _)| p.len()), Some(1000), "one lease is always remembered");
    assert_eq!(leases.known.lock().held.len(), 1);
}
