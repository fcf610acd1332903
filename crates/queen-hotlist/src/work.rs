//! Counts elementary steps (a link changed, a slot looked at, an entry probed) in this crate's own tests, and is
//! nothing otherwise: costs are asserted as operations, which no busy machine can blur.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// Steps of this thread since the last call.
#[cfg(test)]
pub(crate) fn taken() -> u64 {
    STEPS.with(|steps| steps.replace(0))
}
