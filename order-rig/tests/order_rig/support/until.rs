use std::{process::Child, time::Duration};

/// The pause between two looks. A look takes processor time that the programs need which it waits for.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until the condition holds, while the program runs.
#[track_caller]
pub(crate) fn until(child: &mut Child, mut holds: impl FnMut() -> bool) {
    assert!(until_or_ended(child, &mut holds), "it ended too early");
}

/// Waits until the condition holds, or the program has ended; whether it holds.
pub(crate) fn until_or_ended(child: &mut Child, mut holds: impl FnMut() -> bool) -> bool {
    let mut has_ended = false;
    while !holds() {
        if has_ended {
            return false;
        }
        has_ended = child.try_wait().expect("a child").is_some();
        std::thread::sleep(PAUSE);
    }
    true
}
