//! A hot list with one ring, and short words for what happens to it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::time::Duration;

use queen_hotlist::{
    Checkout, ClaimId, Deferral, EntryView, HotQueue, Millis, Options, Release, RingId, State, Verdict, Wake,
};
use queen_types::{Group, PartitionId, PartitionName, Uuid};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn id(n: u128) -> PartitionId {
    PartitionId(Uuid::from_u128(n))
}

pub(crate) fn name(n: u128) -> PartitionName {
    PartitionName::new(format!("p{n}")).expect("a short name")
}

pub(crate) fn group(text: &str) -> Group {
    Group::new(text).expect("a short name")
}

pub(crate) const PLAIN: Deferral = Deferral { delayed: Duration::ZERO, window: Duration::ZERO };

pub(crate) fn delayed(millis: u64) -> Deferral {
    Deferral { delayed: ms(millis), window: Duration::ZERO }
}

pub(crate) fn window(millis: u64) -> Deferral {
    Deferral { delayed: Duration::ZERO, window: ms(millis) }
}

/// One ring, and a clock that the test moves.
pub(crate) struct Bed {
    pub(crate) queue: HotQueue,
    pub(crate) ring: RingId,
    pub(crate) now: Millis,
    /// Of the last [`Bed::claim`].
    pub(crate) claim: Option<ClaimId>,
}

impl Bed {
    pub(crate) fn new(deferral: Deferral) -> Bed {
        Bed::with(Options::default(), deferral)
    }

    pub(crate) fn with(options: Options, deferral: Deferral) -> Bed {
        let now = Millis(10_000);
        let mut queue = HotQueue::new(&options, deferral, 1, now);
        let ring = queue.ring(&group("g"), now);
        Bed { queue, ring, now, claim: None }
    }

    pub(crate) fn pass(&mut self, millis: u64) -> &mut Bed {
        self.now = Millis(self.now.0 + millis);
        self
    }

    pub(crate) fn mark(&mut self, n: u128, messages: u32) -> &mut Bed {
        self.queue.mark(id(n), &name(n), messages, self.now);
        self
    }

    pub(crate) fn take(&mut self, partitions: usize, messages: u64) -> Checkout {
        self.queue.checkout(self.ring, partitions, messages, self.now).expect("something is ready")
    }

    /// Checks out one partition, and in with this verdict.
    pub(crate) fn claim(&mut self, n: u128, verdict: Verdict) -> &mut Bed {
        let mut checkout = self.queue.checkout_partition(self.ring, id(n), self.now).expect("claimable");
        assert!(checkout.note(0, verdict));
        self.claim = Some(checkout.claim());
        self.end(checkout)
    }

    pub(crate) fn end(&mut self, checkout: Checkout) -> &mut Bed {
        assert_eq!(self.queue.checkin(checkout, self.now), 0);
        self
    }

    /// The lease of the last claim ended.
    pub(crate) fn released(&mut self, n: u128, release: Release) -> &mut Bed {
        self.released_by(self.claim, n, release)
    }

    pub(crate) fn released_by(&mut self, claim: Option<ClaimId>, n: u128, release: Release) -> &mut Bed {
        assert!(self.queue.released(self.ring, id(n), claim, release, self.now));
        self
    }

    pub(crate) fn reseed(&mut self, n: u128) -> &mut Bed {
        assert!(self.queue.reseed_row(self.ring, id(n), &name(n), self.now));
        self
    }

    pub(crate) fn entry(&self, n: u128) -> EntryView {
        self.queue.entry(self.ring, id(n)).expect("known")
    }

    pub(crate) fn state(&self, n: u128) -> State {
        self.entry(n).state
    }

    /// How long until the entry is looked at again; it is parked.
    pub(crate) fn parked_for(&self, n: u128) -> Duration {
        let entry = self.entry(n);
        assert_eq!(entry.state, State::Wheel);
        entry.at.since(self.now)
    }

    pub(crate) fn wakes(&mut self) -> u32 {
        let mut wakes: Vec<Wake> = Vec::new();
        self.queue.take_wakes(&mut wakes);
        wakes.iter().map(|wake| wake.entries).sum()
    }
}

pub(crate) fn partitions(checkout: &Checkout) -> Vec<u128> {
    checkout.candidates().iter().map(|candidate| candidate.partition.0.as_u128()).collect()
}
