//! The end of a server as a state machine: what follows what, and when. It touches no socket and no clock; the driver is
//! `Server::serve`.
//!
//! ```text
//! Running ──asked──▶ Lingering ──drain delay──▶ Draining ──last connection──▶ Stopped(Clean)
//!                        │                         └───────limit──▶ Dropping ──▶ Stopped(Dropped)
//! ```

use std::time::Duration;

use crate::server::Drained;

/// Where a server stands on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It serves.
    Running,
    /// It is not ready any more and still accepts, until a balancer has noticed.
    Lingering,
    /// The listener is closed; requests in flight are finished.
    Draining,
    /// What is left is dropped.
    Dropping,
    /// No connection is left.
    Stopped(Drained),
}

/// What happens to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Somebody asked for the end. Asking again changes nothing: whoever is out of patience ends the process.
    Asked,
    /// The time of [`Shutdown::deadline`] has come.
    Deadline,
    /// The last connection ended; so many were dropped.
    Emptied(usize),
}

/// What the driver does, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Readiness and health answer 503.
    TurnUnready,
    /// No connection is accepted any more.
    CloseListener,
    /// No connection outlives its current request. Before parked pops are woken, so that their answers say so.
    EndConnectionsAfterRequest,
    /// Parked pops get their empty answer, and no pop parks any more.
    EndParkedPops,
    /// Connections are dropped in the middle of whatever they do.
    DropConnections,
}

/// One server's way out.
#[derive(Debug)]
pub(crate) struct Shutdown {
    drain_delay: Duration,
    limit: Duration,
    phase: Phase,
    /// When the end was asked for.
    asked: Duration,
}

impl Shutdown {
    /// `limit` counts from the moment the end is asked for and has `drain_delay` in it.
    pub(crate) fn new(drain_delay: Duration, limit: Duration) -> Shutdown {
        Shutdown { drain_delay, limit, phase: Phase::Running, asked: Duration::ZERO }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// When [`Event::Deadline`] is due.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Lingering => Some(self.asked + self.drain_delay.min(self.limit)),
            Phase::Draining => Some(self.asked + self.limit),
            Phase::Running | Phase::Dropping | Phase::Stopped(_) => None,
        }
    }

    /// Takes an event at `now`; what is to be done.
    pub(crate) fn on(&mut self, event: Event, now: Duration) -> &'static [Action] {
        use Action::{
            CloseListener, DropConnections, EndConnectionsAfterRequest, EndParkedPops, TurnUnready,
        };
        let (phase, actions): (Phase, &'static [Action]) = match (self.phase, event) {
            (Phase::Running, Event::Asked) => {
                self.asked = now;
                (Phase::Lingering, &[TurnUnready])
            }
            (Phase::Lingering, Event::Deadline) => {
                (Phase::Draining, &[CloseListener, EndConnectionsAfterRequest, EndParkedPops])
            }
            (Phase::Draining, Event::Deadline) => (Phase::Dropping, &[DropConnections]),
            (Phase::Draining, Event::Emptied(_)) => (Phase::Stopped(Drained::Clean), &[]),
            (Phase::Dropping, Event::Emptied(0)) => (Phase::Stopped(Drained::Clean), &[]),
            (Phase::Dropping, Event::Emptied(dropped)) => (Phase::Stopped(Drained::Dropped(dropped)), &[]),
            // While the listener is open the number of connections means nothing; after the end nothing does.
            (phase, Event::Asked | Event::Deadline | Event::Emptied(_)) => (phase, &[]),
        };
        self.phase = phase;
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn shutdown(drain_delay: u64, limit: u64) -> Shutdown {
        Shutdown::new(ms(drain_delay), ms(limit))
    }

    #[test]
    fn a_clean_end() {
        let mut end = shutdown(500, 25_000);
        assert_eq!((end.phase(), end.deadline()), (Phase::Running, None));
        assert_eq!(end.on(Event::Asked, ms(100)), [Action::TurnUnready]);
        assert_eq!((end.phase(), end.deadline()), (Phase::Lingering, Some(ms(600))));
        let actions = end.on(Event::Deadline, ms(600));
        assert_eq!(
            actions,
            [Action::CloseListener, Action::EndConnectionsAfterRequest, Action::EndParkedPops]
        );
        assert_eq!(
            (end.phase(), end.deadline()),
            (Phase::Draining, Some(ms(25_100))),
            "counted from the asking"
        );
        assert_eq!(end.on(Event::Emptied(0), ms(700)), []);
        assert_eq!((end.phase(), end.deadline()), (Phase::Stopped(Drained::Clean), None));
    }

    #[test]
    fn what_does_not_end_by_itself_is_dropped_at_the_limit() {
        let mut end = shutdown(0, 1000);
        end.on(Event::Asked, ms(0));
        assert_eq!(end.deadline(), Some(ms(0)), "without a delay at once");
        end.on(Event::Deadline, ms(0));
        assert_eq!(end.on(Event::Deadline, ms(1000)), [Action::DropConnections]);
        assert_eq!((end.phase(), end.deadline()), (Phase::Dropping, None));
        assert_eq!(end.on(Event::Emptied(3), ms(1001)), []);
        assert_eq!(end.phase(), Phase::Stopped(Drained::Dropped(3)));
    }

    #[test]
    fn a_delay_longer_than_the_limit_leaves_nothing_for_requests_in_flight() {
        let mut end = shutdown(60_000, 1000);
        end.on(Event::Asked, ms(5));
        assert_eq!(end.deadline(), Some(ms(1005)));
        end.on(Event::Deadline, ms(1005));
        assert_eq!(end.deadline(), Some(ms(1005)));
    }

    #[test]
    fn asking_again_changes_nothing_in_any_phase() {
        let mut end = shutdown(10, 1000);
        for (event, at) in
            [(Event::Asked, 0), (Event::Deadline, 10), (Event::Deadline, 1000), (Event::Emptied(1), 1001)]
        {
            end.on(event, ms(at));
            let before = (end.phase(), end.deadline());
            assert_eq!(end.on(Event::Asked, ms(at + 1)), []);
            assert_eq!((end.phase(), end.deadline()), before);
        }
    }

    /// From every phase, whatever comes in whatever order, no action is done twice, and none before those that it follows.
    #[test]
    fn every_order_of_events_does_the_actions_once_and_in_order() {
        let events = [Event::Asked, Event::Deadline, Event::Emptied(0), Event::Emptied(2)];
        let order = [
            Action::TurnUnready,
            Action::CloseListener,
            Action::EndConnectionsAfterRequest,
            Action::EndParkedPops,
            Action::DropConnections,
        ];
        for word in 0..events.len().pow(6) {
            let (mut end, mut word, mut done) = (shutdown(10, 100), word, Vec::<Action>::new());
            for step in 0..6 {
                done.extend(end.on(events[word % events.len()], ms(step * 50)));
                word /= events.len();
            }
            assert_eq!(done, order[..done.len()]);
        }
    }
}
