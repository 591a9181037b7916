use std::collections::BTreeSet;

use crate::subscription::mark::{Mark, STEP};

/// Where a partition begins that was assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// The first offset to read.
    pub(crate) offset: i64,
    /// What is committed with it.
    pub(crate) mark: Mark,
}

/// What became of the records of an assigned partition.
#[derive(Debug)]
pub(crate) struct Partition {
    /// The number of the assignment. A record of an earlier one is settled without effect.
    pub(crate) assignment: u64,
    /// Records below this offset may have been handed out before this assignment.
    redelivered_below: i64,
    /// What is committed.
    committed: Start,
    /// Behind the highest record that was read.
    end: i64,
    /// The records that were read and are not settled.
    open: BTreeSet<i64>,
}

impl Partition {
    pub(crate) fn new(assignment: u64, start: Start) -> Self {
        let (redelivered_below, end) = (start.mark.handed_out, start.offset);
        Self { assignment, redelivered_below, committed: start, end, open: BTreeSet::new() }
    }

    /// A record was read, which is behind all that were read in this assignment.
    pub(crate) fn read(&mut self, offset: i64) {
        debug_assert!(offset >= self.end, "{offset} is before {}", self.end);
        self.end = offset + 1;
        self.open.insert(offset);
    }

    /// Whether a record may have been handed out before this assignment.
    pub(crate) fn is_redelivered(&self, offset: i64) -> bool {
        offset < self.redelivered_below
    }

    /// Whether a record may be handed out: that it may have been is committed.
    pub(crate) fn is_marked(&self, offset: i64) -> bool {
        offset < self.committed.mark.handed_out
    }

    /// A record needs no delivery any more.
    pub(crate) fn settle(&mut self, offset: i64) {
        self.open.remove(&offset);
    }

    /// Where another process would go on: the lowest record that is not settled.
    pub(crate) fn watermark(&self) -> i64 {
        self.open.first().copied().unwrap_or(self.end)
    }

    /// Where reading goes on.
    pub(crate) fn end(&self) -> i64 {
        self.end
    }

    /// Whether records wait for the mark to be committed.
    pub(crate) fn needs_mark(&self) -> bool {
        self.open.last().is_some_and(|last| !self.is_marked(*last))
    }

    /// How many records wait for the mark to be committed.
    pub(crate) fn unmarked(&self) -> usize {
        self.open.range(self.committed.mark.handed_out..).count()
    }

    /// What is to be committed, if it differs from what is.
    pub(crate) fn to_commit(&self) -> Option<Start> {
        let handed_out = if self.needs_mark() { self.end + STEP } else { self.committed.mark.handed_out };
        self.changed(handed_out)
    }

    /// What is to be committed at last, when the partition is given away: no record beyond those that were read was handed out.
    pub(crate) fn to_give_away(&self) -> Option<Start> {
        self.changed(self.end.max(self.redelivered_below))
    }

    pub(crate) fn committed(&mut self, start: Start) {
        self.committed = start;
    }

    /// Where the partition begins when it was made anew, or lost its end: its records may all have been handed out, as far as is known.
    pub(crate) fn made_anew(&self, offset: i64) -> Start {
        let handed_out = self.end.max(self.redelivered_below);
        Start { offset, mark: Mark { handed_out, ..self.committed.mark } }
    }

    fn changed(&self, handed_out: i64) -> Option<Start> {
        let mark = Mark { handed_out, ..self.committed.mark };
        let start = Start { offset: self.watermark(), mark };
        (start != self.committed).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTITIONS: i32 = 12;

    fn start(offset: i64, handed_out: i64) -> Start {
        Start { offset, mark: Mark { handed_out, partitions: PARTITIONS } }
    }

    fn reading(from: Start, offsets: std::ops::Range<i64>) -> Partition {
        let mut partition = Partition::new(1, from);
        for offset in offsets {
            partition.read(offset);
        }
        partition
    }

    #[test]
    fn the_lowest_open_record_is_committed() {
        let mut partition = reading(start(5, 100), 5..9);
        assert_eq!(partition.to_commit(), None);
        partition.settle(6);
        assert_eq!(partition.to_commit(), None, "5 is open");
        partition.settle(5);
        assert_eq!(partition.to_commit(), Some(start(7, 100)));
        partition.settle(8);
        partition.settle(7);
        assert_eq!(partition.to_commit(), Some(start(9, 100)));
        partition.committed(start(9, 100));
        assert_eq!(partition.to_commit(), None);
    }

    #[test]
    fn records_are_marked_before_they_are_handed_out() {
        let mut partition = reading(start(0, 0), 0..3);
        assert!(!partition.is_marked(0));
        let to_commit = partition.to_commit().expect("the mark is committed first");
        assert_eq!(to_commit, start(0, 3 + STEP));
        partition.committed(to_commit);
        assert!(partition.is_marked(2) && partition.is_marked(2 + STEP) && !partition.is_marked(3 + STEP));
        assert!(!partition.is_redelivered(0), "it is the first time");
        assert!(!partition.needs_mark());
    }

    #[test]
    fn what_another_process_may_have_had_is_a_redelivery() {
        let partition = reading(start(3, 7), 3..10);
        let redelivered: Vec<i64> = (3..10).filter(|offset| partition.is_redelivered(*offset)).collect();
        assert_eq!(redelivered, [3, 4, 5, 6]);
    }

    #[test]
    fn a_partition_that_is_given_away_marks_what_was_read() {
        let mut partition = reading(start(0, 0), 0..3);
        partition.committed(start(0, 3 + STEP));
        partition.settle(0);
        assert_eq!(partition.to_give_away(), Some(start(1, 3)));
        let unread = Partition::new(1, start(3, 7));
        assert_eq!(unread.to_give_away(), None, "what was handed out before stays so");
    }

    /// Records of transactions that were aborted, or that were compacted away, leave gaps.
    #[test]
    fn offsets_may_leave_gaps() {
        let mut partition = reading(start(0, 9), 0..3);
        partition.read(7);
        partition.settle(1);
        assert_eq!(partition.watermark(), 0);
        (0..8).for_each(|offset| partition.settle(offset));
        assert_eq!((partition.watermark(), partition.end()), (8, 8));
    }
}
