use saga_core::Outcome;
use saga_core::StepPhase;
use saga_core::engine::{RestartOutcome, RuntimeError};
use saga_core::store::AuditFilter;
use saga_tests::{Act, Fixture, Order, Shop, on_both_stores};

use crate::desk::{acts, desk, ended, stuck_at_ship};

/// A desk without a runtime does what the operator of a runtime does, and says who it was.
async fn what_is_stuck_is_decided_from_another_process<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    let seen = stuck_at_ship(&fixture, &runtime, "k").await;
    fixture.world.repair("k:ship");
    let ann = desk(&fixture).control("k").at_revision(seen);
    ann.retry("the carrier is back").await.unwrap();
    assert!(matches!(ann.retry("again").await, Err(RuntimeError::Moved { .. })));
    assert!(matches!(ended(&runtime, "k").await, Outcome::Completed { .. }));
    let seen = stuck_at_ship(&fixture, &runtime, "l").await;
    desk(&fixture).control("l").at_revision(seen).skip("it was sent by hand").await.unwrap();
    assert!(matches!(ended(&runtime, "l").await, Outcome::Completed { .. }));

    let all = runtime.admin().query().audit_log(AuditFilter::default()).await.unwrap();
    let said: Vec<String> = all.iter().map(|acted| format!("{} {}", acted.key, acted.entry)).collect();
    assert_eq!(said, ["l skip by ann: it was sent by hand", "k retry by ann: the carrier is back"]);
}

/// The input that is replaced is that of one step, and the history has its hash and not what it holds.
async fn a_stuck_step_gets_another_input<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.always("k:book", Act::EndTransaction);
    let outcome = fixture.run(&runtime, "k").await;
    assert!(matches!(&outcome, Outcome::Stuck { step, .. } if step == "book"), "{outcome}");
    let revision = fixture.status(&runtime, "k").await.revision;
    let operator = desk(&fixture).control("k").at_revision(revision);
    let refused = operator.retry_with("no order", "a typing error").await.unwrap_err().to_string();
    assert!(refused.contains("the step `book` cannot have another input: this is no input of it"), "{refused}");
    fixture.world.repair("k:book");
    operator.retry_with(&Order::of(7), "a typing error").await.unwrap();
    assert!(matches!(ended(&runtime, "k").await, Outcome::Completed { .. }));
    assert_eq!(
        (fixture.store.total("booked").await, fixture.store.total("finished").await),
        (7, 1),
        "of one step only"
    );
    let acts = acts(&fixture, &runtime, "k").await;
    assert_eq!(acts.len(), 1, "what was refused leaves no line");
    let input = acts[0].input.as_ref().unwrap();
    assert_eq!(input.step, "book");
    assert!(input.old != input.new && input.old.len() >= 64 && input.new.len() == input.old.len(), "{input:?}");

    // What is undone is undone with the input that it was done with.
    fixture.world.always("l:book", Act::EndTransaction);
    fixture.run(&runtime, "l").await;
    fixture.world.repair("l:book");
    fixture.world.plan("l:charge", [Act::Reject]);
    let revision = fixture.status(&runtime, "l").await.revision;
    desk(&fixture).control("l").at_revision(revision).retry_with(&Order::of(5), "a typing error").await.unwrap();
    assert!(matches!(ended(&runtime, "l").await, Outcome::Compensated { .. }));
    assert_eq!(fixture.store.total("booked").await, 7);
}

/// What may have happened with one input is not tried with another: its undo needs what it had.
async fn what_may_have_happened_keeps_its_input<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    let seen = stuck_at_ship(&fixture, &runtime, "k").await;
    let operator = desk(&fixture).control("k").at_revision(seen);
    let refused = operator.retry_with(&Order::of(7), "a typing error").await.unwrap_err().to_string();
    assert!(refused.contains("it may have happened with the input that it had"), "{refused}");
    assert!(acts(&fixture, &runtime, "k").await.is_empty(), "what is refused leaves no line");
}

/// What the old saga did stands, also when the new one turns round.
async fn a_new_saga_goes_on_where_another_one_ended<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    assert!(matches!(fixture.run(&runtime, "k").await, Outcome::Completed { .. }));
    let ann = desk(&fixture);
    assert_eq!(ann.control("k").restart("ship", "k-again", "the parcel is lost").await.unwrap(), RestartOutcome::Begun);
    assert_eq!(
        ann.control("k").restart("ship", "k-again", "the parcel is lost").await.unwrap(),
        RestartOutcome::Already
    );
    assert!(matches!(ended(&runtime, "k-again").await, Outcome::Completed { .. }));
    let calls = |key: &str| fixture.world.calls_of(key);
    assert_eq!((calls("k-again:charge"), calls("k-again:ship"), calls("k:ship")), (0, 1, 1));
    assert_eq!((fixture.store.total("k-again:book").await, fixture.store.total("k-again:finish").await), (0, 1));

    fixture.world.plan("k-third:ship", [Act::Reject]);
    ann.control("k").restart("ship", "k-third", "and once more").await.unwrap();
    assert!(matches!(ended(&runtime, "k-third").await, Outcome::Compensated { .. }));
    let third = fixture.status(&runtime, "k-third").await;
    let phases: Vec<StepPhase> = third.steps.iter().map(|step| step.phase).collect();
    let skipped = StepPhase::Skipped;
    assert_eq!(phases, [skipped, skipped, StepPhase::Rejected, StepPhase::Ready], "what was taken over stands");
    assert_eq!(third.steps[0].error.as_deref(), Some("taken over from the saga `k`"));
    assert_eq!((calls("k-third:charge:undo"), fixture.world.standing("k:charge")), (0, 1));
    let said = |acts: Vec<saga_core::engine::AuditEntry>| acts.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        said(acts(&fixture, &runtime, "k").await),
        [
            "restart from `ship` by ann: the parcel is lost; see the saga `k-again`",
            "restart from `ship` by ann: and once more; see the saga `k-third`"
        ]
    );
    let of_third = said(acts(&fixture, &runtime, "k-third").await);
    assert_eq!(of_third, ["taken over from `ship` by ann: and once more; see the saga `k`"]);
}

async fn what_cannot_be_taken_over_says_why<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    let ann = desk(&fixture);
    let refused = async |key: &str, from: &str, new: &str| {
        ann.control(key).restart(from, new, "for luck").await.map(|_| ()).unwrap_err().to_string()
    };
    assert!(matches!(ann.control("nobody").restart("ship", "new", "why").await, Err(RuntimeError::NoSaga(_))));
    stuck_at_ship(&fixture, &runtime, "stuck").await;
    let said = refused("stuck", "ship", "new").await;
    assert!(said.contains("it has not ended, it is stuck; end it first, by a cancel or by force"), "{said}");

    fixture.world.plan("undone:ship", [Act::Reject]);
    assert!(matches!(fixture.run(&runtime, "undone").await, Outcome::Compensated { .. }));
    let said = refused("undone", "ship", "new").await;
    assert!(said.contains("its step `book` was undone, so that nothing of it can be taken over"), "{said}");
    // Nothing stands before the first step: that one can always be begun with.
    assert_eq!(
        ann.control("undone").restart("book", "new", "the shelf was filled").await.unwrap(),
        RestartOutcome::Begun
    );
    assert!(matches!(ended(&runtime, "new").await, Outcome::Completed { .. }));

    fixture.run(&runtime, "k").await;
    let said = refused("k", "sihp", "other").await;
    assert!(said.contains("it has no step `sihp`; its steps are `book`, `charge`, `ship`, `finish`"), "{said}");
    let said = refused("k", "ship", "undone").await;
    assert!(said.contains("the key `undone` belongs to another saga"), "{said}");
    assert!(refused("k", "ship", "no key").await.contains("the key"));

    // Forced to its end as compensated, it left what it did as it is.
    let seen = fixture.status(&runtime, "stuck").await.revision;
    ann.control("stuck").at_revision(seen).force_compensated("by hand").await.unwrap();
    let said = refused("stuck", "finish", "after").await;
    assert!(said.contains("its step `ship` did not take effect, so that it cannot be taken over"), "{said}");
    ann.control("stuck").restart("ship", "after", "the carrier is back").await.unwrap();
    assert!(matches!(ended(&runtime, "after").await, Outcome::Completed { .. }));
    assert_eq!(fixture.world.standing("stuck:charge"), 1);
}

on_both_stores!(
    what_is_stuck_is_decided_from_another_process,
    a_stuck_step_gets_another_input,
    what_may_have_happened_keeps_its_input,
    a_new_saga_goes_on_where_another_one_ended,
    what_cannot_be_taken_over_says_why,
);
