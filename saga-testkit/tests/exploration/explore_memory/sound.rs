//! A sound saga passes, whatever it is made of.

use saga_testkit::explore::explore;

use super::shop::*;

/// Whichever branch comes first, and whatever crashes: nothing is done twice, and nothing stays that was undone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saga_with_a_group_survives_everything() {
    let report = explore(Shop::AtOnce).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in ["behind take-out", "behind charge", "before confirm", "before charge:undo", "behind take-out:undo"]
    {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
    assert!(report.unreached() < report.runs() / 4, "of {} runs {} came to nothing", report.runs(), report.unreached());
}

/// It wakes, and goes on with its word, in whatever life of the process that comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saga_that_waits_survives_everything() {
    let report = explore(Shop::Waiting).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report} {:#?}", report.boundaries());
    for boundary in [
        "behind the record of rest as done",
        "behind the record of word as done",
        "before charge",
        "behind charge:undo",
    ] {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

/// Whatever crashes, and wherever: no lock is left when it has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_a_saga_with_a_semantic_lock_survives_everything() {
    let report = explore(Shop::Locking).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report} {:#?}", report.boundaries());
    for boundary in [
        "before the request for a semantic lock",
        "behind the request for a semantic lock",
        "behind the record of till as done",
        "before charge:undo",
    ] {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

/// Whatever crashes, whichever of the two sagas it is of: they end together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_a_sub_saga_survives_everything_with_its_saga() {
    let report = explore(Shop::BySubSaga).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in ["before charge", "behind charge", "before charge:undo", "before confirm"] {
        let is_known = |known: &String| known.contains(boundary);
        assert!(report.boundaries().iter().any(is_known), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

/// Who pauses it and is gone has it paused; who comes next resumes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saga_that_is_held_up_survives_everything() {
    let report = explore(Shop::HeldUp).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report} {:#?}", report.boundaries());
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

/// What stands in the arm that this input does not take is named, not disturbed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_choice_is_made_once_whatever_crashes() {
    let report = explore(Shop::Choosing).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    assert_eq!(report.left_out(), ["waive"]);
    for boundary in ["behind the transaction of take-out", "before charge", "before charge:undo"] {
        assert!(
            report.boundaries().iter().any(|known| known.contains(boundary)),
            "{boundary}: {:#?}",
            report.boundaries()
        );
    }
    assert!(report.to_string().contains("left out: waive"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saga_with_lists_survives_everything() {
    let report = explore(Shop::Each).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in [
        "behind the record of take-out#0 as done",
        "behind the transaction of take-out#3",
        "behind the record of charge#2 as done",
        "behind the record of charge as done",
        "before charge:undo",
        "behind the transaction of take-out#1:undo",
    ] {
        assert!(
            report.boundaries().iter().any(|known| known.contains(boundary)),
            "{boundary}: {:#?}",
            report.boundaries()
        );
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
    assert!(report.unreached() < report.runs() / 4, "of {} runs {} came to nothing", report.runs(), report.unreached());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_saga_survives_everything() {
    let report = explore(Shop::Sound).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in [
        "before the start",
        "behind the start",
        "before take-out",
        "behind take-out",
        "before the transaction of take-out",
        "behind the transaction of take-out",
        "before charge",
        "behind charge",
        "before the record of charge as done",
        "behind the record of charge as done",
        "before charge:undo",
        "behind charge:undo",
        "behind the record of charge:undo as done",
        "behind the transaction of take-out:undo",
        "behind the claim of take-out",
    ] {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert_eq!(report.crashes() as usize, report.boundaries().len());
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}
