//! Each guarantee in simulated schedules: nothing breaks it, and what could have broken it did happen. That the checker
//! would find it is tested in `sim_checker`, by damages of every guarantee.

use std::sync::OnceLock;

use saga_testkit::checker::Guarantee;
use saga_testkit::sim::{Fault, Report, run};

/// How many schedules all tests of this file share.
const SCHEDULES: u64 = 400;
/// Other seeds than those of `sim_schedules`.
const SEED_FROM: u64 = 100_000;

fn reports() -> &'static [Report] {
    static REPORTS: OnceLock<Vec<Report>> = OnceLock::new();
    REPORTS.get_or_init(|| (SEED_FROM..SEED_FROM + SCHEDULES).map(run).collect())
}

/// Nothing breaks the guarantee, though all of this happened.
fn holds(guarantee: Guarantee, though: &[Fault]) {
    for report in reports() {
        let broken = report.violations.iter().find(|violation| violation.guarantee == guarantee);
        let seed = report.scenario.seed;
        assert!(broken.is_none(), "seed {seed}: {broken:?}; cargo xtask sim --seed {seed}");
    }
    for fault in though {
        let hits: u64 = reports().iter().map(|report| report.hits[*fault as usize]).sum();
        assert!(hits > 0, "{guarantee} was not tried: {} never happened", fault.name());
    }
}

macro_rules! guarantees {
    ($($test:ident: $guarantee:ident though [$($fault:ident),*];)*) => {$(
        #[test]
        fn $test() {
            holds(Guarantee::$guarantee, &[$(Fault::$fault),*]);
        }
    )*};
}

guarantees! {
    g1_writes_record_progress_and_messages_commit_together: G1 though [CrashAtCommit, CommitFailed, CommitUnknownLost, HandlerFailedAfterWrite];
    g2_a_step_commits_at_most_once: G2 though [CommitUnknownKept, CommitDecidedLate, TakenOver, PausedPastLease, MessageDoubled, CommandSentAgain];
    g3_a_call_has_one_key_and_its_outcome_counts: G3 though [AnswerLost, ArrivedLate, KeyHonoured, TakenOver, ReplyLate];
    g4_what_was_committed_is_sent_and_nothing_else: G4 though [PublishFailed, ConfirmLost, DeliveredTwice, CommitUnknownLost, MessageLost, Redelivered, SettleLost];
    g5_every_saga_ends_and_exactly_what_took_effect_is_undone: G5 though [HandlerRejected, UndoUnknown, UndoBarred, Compensated, Completed, HostedDone, HostedUndone, UndoOvertook, Cancelled, CancelRefused, Moved, StepsTakenOver, RestartCompensated];
    g6_one_key_is_one_saga: G6 though [StartedTwice, StartRefused, StartFailed, StartDropped, SagaRestarted, RestartedAgain, RestartsRaced, RestartRefused];
    g7_who_lost_the_claim_cannot_decide: G7 though [PausedPastLease, TakenOver, CommitDecidedLate, MoveBusy, ActedInBulk, BulkKnown, BulkRefused];
    g8_nothing_spins_and_nothing_is_lost: G8 though [HandlerPanicked, HandlerHung, HandlerFailed, RowConflict, Stuck, HostIgnorant, LetterReplayed];
    g9_messages_of_one_key_arrive_in_commit_order: G9 though [PublishFailed, ConfirmLost, PausedPastLease, CrashAtCommit];
    g10_panics_dropped_futures_and_shutdowns_leave_the_others_intact: G10 though [HandlerPanicked, StartDropped, Drained];
    g11_what_a_dead_process_held_goes_on_elsewhere: G11 though [CrashAtPoll, CrashAtCommit, Restarted, StoreDown];
    g12_tenants_never_meet: G12 though [StartRefused, Completed, Compensated];
    g13_what_may_still_be_acted_on_is_never_purged: G13 though [TombstoneMade, SagaDeleted, SubPurged, HostedPurged, MessageHeld, Archived, CrashAfterArchive, TombstoneKnown, KeyReused];
}
