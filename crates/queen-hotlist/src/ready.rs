use crate::entry::{Entry, NIL};
use crate::work;

/// The ready list: first in, first out, linked through the entries.
#[derive(Debug)]
pub(crate) struct Ready {
    head: u32,
    tail: u32,
    len: u32,
}

impl Ready {
    pub(crate) fn new() -> Ready {
        Ready { head: NIL, tail: NIL, len: 0 }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn head(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    pub(crate) fn push_back(&mut self, entries: &mut [Entry], index: u32) {
        work::step();
        self.len += 1;
        let entry = &mut entries[index as usize];
        (entry.prev, entry.next) = (self.tail, NIL);
        match self.tail {
            NIL => self.head = index,
            tail => entries[tail as usize].next = index,
        }
        self.tail = index;
    }

    pub(crate) fn push_front(&mut self, entries: &mut [Entry], index: u32) {
        work::step();
        self.len += 1;
        let entry = &mut entries[index as usize];
        (entry.prev, entry.next) = (NIL, self.head);
        match self.head {
            NIL => self.tail = index,
            head => entries[head as usize].prev = index,
        }
        self.head = index;
    }

    pub(crate) fn remove(&mut self, entries: &mut [Entry], index: u32) {
        work::step();
        self.len -= 1;
        let Entry { prev, next, .. } = entries[index as usize];
        match prev {
            NIL => self.head = next,
            prev => entries[prev as usize].next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => entries[next as usize].prev = prev,
        }
    }
}
