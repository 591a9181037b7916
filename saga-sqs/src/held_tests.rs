use super::*;

const VISIBILITY: Duration = Duration::from_secs(30);

fn received(handle: &str) -> Received {
    Received { handle: handle.into(), attributes: BTreeMap::new(), body: String::new(), receives: 1, died_in: None }
}

fn holding(handles: &[&str], now: Instant) -> HeldMessages {
    let mut held = HeldMessages::new(3, VISIBILITY);
    held.add(handles.iter().map(|handle| received(handle)).collect(), now);
    held
}

fn tags(taken: &[(u64, Received)]) -> Vec<u64> {
    taken.iter().map(|(tag, _)| *tag).collect()
}

/// T-SUB-4
#[test]
fn there_is_room_for_the_prefetch_of_what_is_not_settled() {
    let mut held = holding(&["a", "b"], Instant::now());
    assert_eq!(held.room(), 1);
    let taken = held.take(10);
    assert_eq!((tags(&taken), held.room()), (vec![0, 1], 1));
    held.settle(0, Settlement::Accept);
    assert_eq!(held.room(), 2, "what is settled takes no room, also before SQS knows it");
    assert_eq!(held.settled(Settlement::Accept, 10), [(0, "a".to_owned())]);
}

#[test]
fn what_sqs_does_not_take_is_held_up_to_a_limit_and_without_its_body() {
    let mut held = HeldMessages::new(2, VISIBILITY);
    for number in 0..10 {
        assert_eq!(held.room(), 2, "{number}");
        let body = Received { body: "body".into(), ..received("a") };
        held.add(vec![body.clone(), body], Instant::now());
        for (tag, received) in held.take(2) {
            assert_eq!(received.body, "body");
            held.settle(tag, Settlement::Accept);
        }
    }
    assert_eq!(held.room(), 0);
    assert!(held.messages.values().all(|held| held.received.body.is_empty()));
    held.forget(0);
    assert_eq!(held.room(), 1);
}

/// T-SUB-7
#[test]
fn only_what_the_receiver_has_is_settled_and_once() {
    let mut held = holding(&["a", "b"], Instant::now());
    assert_eq!(held.settle(0, Settlement::Accept), None, "it was not handed out");
    held.take(1);
    assert_eq!(held.settle(7, Settlement::Accept), None);
    assert_eq!(held.settle(0, Settlement::Reject), Some(1));
    assert_eq!(held.settle(0, Settlement::Accept), None);
    assert_eq!(held.settled(Settlement::Reject, 10).len(), 1);
    held.forget(0);
    assert_eq!((held.settle(0, Settlement::Accept), held.unsettled()), (None, 1));
}

#[test]
fn a_third_of_the_time_passes_before_a_message_is_withheld_for_longer() {
    let start = Instant::now();
    let mut held = holding(&["a", "b"], start);
    held.take(1);
    assert_eq!(held.next_due(), Some(start + VISIBILITY / 3));
    let before = start + VISIBILITY / 3 - Duration::from_millis(1);
    assert_eq!(held.due(before, 10), Due::default());
    let at = start + VISIBILITY / 3;
    assert_eq!(held.due(at, 10).extended.len(), 2, "what waits and what was handed out");
    assert_eq!(held.due(at, 1).extended.len(), 1);
    held.extended(0, at);
    assert_eq!(held.due(at, 10).extended, [(1, "b".to_owned())]);
    held.extended(1, at);
    assert_eq!(held.next_due(), Some(at + VISIBILITY / 3));
}

#[test]
fn what_is_settled_is_withheld_until_sqs_knows_it() {
    let start = Instant::now();
    let mut held = holding(&["a"], start);
    held.take(1);
    held.settle(0, Settlement::Accept);
    assert_eq!(held.due(start + VISIBILITY / 3, 10).extended.len(), 1);
}

#[test]
fn no_message_is_held_for_more_than_twelve_hours() {
    let start = Instant::now();
    let mut held = holding(&["a"], start);
    let last = start + HELD_MAX - VISIBILITY;
    assert_eq!(held.due(last, 10).extended.len(), 1);
    held.extended(0, last);
    assert_eq!(held.next_due(), Some(start + HELD_MAX));
    assert_eq!(held.due(start + HELD_MAX - VISIBILITY / 2, 10), Due::default(), "SQS would refuse it");
    assert_eq!(held.due(start + HELD_MAX, 10).lost, [0]);
}

/// T-SUB-2
#[test]
fn what_is_not_settled_goes_back_when_the_receiver_is_gone() {
    let mut held = holding(&["a", "b", "c"], Instant::now());
    held.take(2);
    held.settle(0, Settlement::Accept);
    held.close();
    held.add(vec![received("late")], Instant::now());
    assert_eq!(held.settled(Settlement::Accept, 10), [(0, "a".to_owned())]);
    let back: Vec<String> = held.settled(Settlement::Reject, 10).into_iter().map(|(_, handle)| handle).collect();
    assert_eq!(back, ["b", "c", "late"]);
    assert_eq!((held.room(), held.take(10).len()), (0, 0));
}
