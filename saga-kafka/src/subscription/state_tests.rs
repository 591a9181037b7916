use super::*;
use crate::subscription::mark::Mark;

const TOPIC: &str = "orders";
const MAX: Option<u32> = Some(1);

fn place(partition: i32) -> Place {
    (TOPIC.to_owned(), partition)
}

fn start(offset: i64, handed_out: i64) -> Start {
    Start { offset, mark: Mark { handed_out, partitions: 2 } }
}

fn record(partition: i32, offset: i64) -> Record {
    Record {
        topic: TOPIC.to_owned(),
        partition,
        offset,
        key: None,
        payload: None,
        headers: Vec::new(),
        timestamp: None,
    }
}

/// Two partitions with the records 0 to 2 each, all of which may be handed out.
fn state() -> State {
    let mut state = State::default();
    for partition in 0..2 {
        state.assign(place(partition), start(0, 0));
        (0..3).for_each(|offset| assert!(state.read(record(partition, offset))));
    }
    let commits = state.to_commit();
    state.committed(&commits);
    state
}

fn take(state: &mut State, receiver: u64, limit: usize) -> Vec<(u64, i32, i64, bool)> {
    let taken = state.take(receiver, limit);
    taken.into_iter().map(|(tag, record, redelivered)| (tag, record.partition, record.offset, redelivered)).collect()
}

#[test]
fn no_receiver_has_more_than_its_prefetch() {
    let mut state = state();
    let (one, two) = (state.add_receiver(2), state.add_receiver(10));
    assert_eq!(take(&mut state, one, 9), [(1, 0, 0, false), (2, 0, 1, false)]);
    assert_eq!(take(&mut state, one, 9), []);
    assert_eq!(take(&mut state, two, 1), [(3, 0, 2, false)]);
    state.settle(one, 2, Settlement::Accept, MAX);
    assert_eq!(take(&mut state, one, 9), [(4, 1, 0, false)]);
    assert_eq!(state.room(), 12);
}

#[test]
fn a_record_waits_until_its_mark_is_committed() {
    let mut state = State::default();
    let receiver = state.add_receiver(10);
    state.assign(place(0), start(5, 5));
    assert!(state.read(record(0, 5)));
    assert!(state.needs_marks());
    assert_eq!(take(&mut state, receiver, 9), []);
    let commits = state.to_commit();
    state.committed(&commits);
    assert!(!state.needs_marks());
    assert_eq!(take(&mut state, receiver, 9), [(1, 0, 5, false)]);
}

#[test]
fn a_rejected_record_comes_back_in_its_place_until_it_is_given_up() {
    let mut state = state();
    let receiver = state.add_receiver(10);
    take(&mut state, receiver, 2);
    assert!(state.settle(receiver, 1, Settlement::Reject, MAX).is_none());
    assert_eq!(take(&mut state, receiver, 1), [(3, 0, 0, true)]);
    let item = state.settle(receiver, 3, Settlement::Reject, MAX).expect("it was rejected too often");
    assert_eq!(item.rejections, 2);
    assert!(state.to_commit().is_empty(), "its offset has to wait until it is a dead letter");
    state.done(&item);
    assert_eq!(state.to_commit()[0].1.offset, 1);
    // A dead letter is never given up.
    take(&mut state, receiver, 1);
    (0..9).for_each(|_| {
        let (tag, ..) = *take(&mut state, receiver, 9).first().unwrap_or(&(4, 0, 0, true));
        assert!(state.settle(receiver, tag, Settlement::Reject, None).is_none());
    });
}

#[test]
fn tags_of_others_and_settled_ones_are_void() {
    let mut state = state();
    let (one, two) = (state.add_receiver(1), state.add_receiver(1));
    take(&mut state, one, 1);
    assert!(state.settle(two, 1, Settlement::Reject, Some(0)).is_none());
    assert!(state.settle(one, 99, Settlement::Reject, Some(0)).is_none());
    state.settle(one, 1, Settlement::Accept, MAX);
    assert!(state.settle(one, 1, Settlement::Reject, Some(0)).is_none());
    assert_eq!(state.to_commit()[0].1.offset, 1);
}

#[test]
fn tags_of_a_partition_that_was_given_away_are_void() {
    let mut state = state();
    let receiver = state.add_receiver(10);
    take(&mut state, receiver, 6);
    let given = state.settle(receiver, 2, Settlement::Reject, Some(0)).expect("it is given up");
    let last = state.to_give_away(&BTreeSet::from([place(0)]));
    assert_eq!(last, [(place(0), start(0, 3))]);
    state.revoke(&place(0));
    // The same partition comes back, with the same offsets.
    state.assign(place(0), start(0, 3));
    assert!(state.read(record(0, 0)));
    state.settle(receiver, 1, Settlement::Accept, MAX);
    state.done(&given);
    state.put_back(given);
    assert_eq!(take(&mut state, receiver, 9), [(7, 0, 0, true)], "the new one, which may have been handed out");
    assert!(state.to_commit().is_empty());
}

#[test]
fn a_partition_that_was_made_anew_is_read_from_its_beginning() {
    let mut state = state();
    let receiver = state.add_receiver(10);
    take(&mut state, receiver, 2);
    assert!(!state.read(record(0, 0)), "it is read a second time");
    assert!(state.read(record(0, 1)));
    state.settle(receiver, 1, Settlement::Accept, MAX);
    let came = take(&mut state, receiver, 9);
    let of_first: Vec<_> = came.iter().filter(|(_, partition, ..)| *partition == 0).collect();
    assert_eq!(of_first, [&(6, 0, 0, true), &(7, 0, 1, true)]);
    state.settle(receiver, 6, Settlement::Accept, MAX);
    assert_eq!(state.to_commit()[0].1.offset, 1);
}

#[test]
fn what_a_dropped_receiver_had_goes_to_another() {
    let mut state = state();
    let (one, two) = (state.add_receiver(10), state.add_receiver(10));
    take(&mut state, one, 2);
    state.settle(one, 1, Settlement::Accept, MAX);
    state.remove_receiver(one);
    assert_eq!(take(&mut state, two, 2), [(3, 0, 1, true), (4, 0, 2, false)]);
    assert_eq!(take(&mut state, one, 2), []);
    state.remove_receiver(two);
    assert!(!state.has_receivers());
    assert_eq!(state.waiting(), 5);
}

#[test]
fn what_waits_for_a_mark_takes_no_room_of_others() {
    let mut state = State::default();
    for (partition, handed_out) in [(0, 0), (1, 100)] {
        state.assign(place(partition), start(0, handed_out));
        (0..3).for_each(|offset| assert!(state.read(record(partition, offset))));
    }
    assert_eq!(state.waiting(), 3);
    assert_eq!([0, 1].map(|partition| state.needs_mark(&place(partition))), [true, false]);
}
