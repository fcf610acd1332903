use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use queen_hotlist::Millis;
use tokio::sync::Notify;

use super::Hot;
use crate::broker::Inner;
use crate::supervise::Beat;

/// Shortest pause between two looks at the hot lists: what is due within it is taken together.
const STEP: Duration = Duration::from_millis(20);

/// When which hot list has something due. Nothing runs while nothing is parked.
#[derive(Default)]
pub(crate) struct Timer {
    due: Mutex<Due>,
    sooner: Notify,
}

#[derive(Default)]
struct Due {
    by_hot: BTreeMap<usize, (Millis, Weak<Hot>)>,
    /// The task sleeps until then; zero: it is awake and will look at everything.
    sleeping_until: Millis,
}

impl Timer {
    /// Says that a hot list has something due.
    pub(crate) fn look_at(&self, at: Millis, hot: &Arc<Hot>) {
        let sooner = {
            let mut due = self.due.lock();
            let entry = due.by_hot.entry(Arc::as_ptr(hot) as usize).or_insert((Millis::NEVER, Weak::new()));
            if entry.0 <= at && entry.1.strong_count() > 0 {
                return;
            }
            *entry = (at, Arc::downgrade(hot));
            at < due.sleeping_until
        };
        if sooner {
            self.sooner.notify_one();
        }
    }

    /// The hot lists that have something due, and when the next will.
    fn take(&self, now: Millis) -> (Vec<Arc<Hot>>, Millis) {
        let mut due = self.due.lock();
        let mut ready = Vec::new();
        let mut next = Millis::NEVER;
        due.by_hot.retain(|_, (at, hot)| {
            if *at <= now {
                ready.extend(hot.upgrade());
                return false;
            }
            next = next.min(*at);
            true
        });
        due.sleeping_until = if ready.is_empty() { next } else { Millis(0) };
        (ready, next)
    }
}

/// Makes ready what is due, until the broker is gone.
pub(crate) async fn run(inner: Weak<Inner>, timer: Arc<Timer>, beat: Beat) {
    loop {
        let pause = {
            let Some(inner) = inner.upgrade() else { return };
            let now = inner.hot.now();
            let (ready, next) = timer.take(now);
            for hot in &ready {
                inner.hot.change(hot, |list| list.tick(now));
            }
            if ready.is_empty() { (next != Millis::NEVER).then(|| next.since(now)) } else { Some(STEP) }
        };
        match pause {
            Some(pause) => beat.within(pause),
            None => beat.idle(),
        }
        tokio::select! {
            () = timer.sooner.notified() => {}
            () = sleep(pause) => continue,
        }
        // What was announced together is looked at together.
        tokio::time::sleep(STEP).await;
    }
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}
