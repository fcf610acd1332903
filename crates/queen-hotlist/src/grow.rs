/// Appends to a vector that grows by an eighth: partitions stay, so room for twice as many would be lost memory.
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) {
    reserve(list, 1);
    list.push(value);
}

/// Room for `more` elements, and for an eighth beyond when there has to be new room anyway.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 8).max(8));
    }
}
