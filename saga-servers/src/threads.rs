//! Whether a process that got SIGSTOP has stopped: its threads stop one after the other, and later than the signal is sent.

use std::fs;
use std::time::Duration;

/// How often to look for the threads at most.
const LOOKS_MAX: usize = 5_000;
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until all threads of a process have stopped, or it has ended. Where the system does not tell, it returns at once.
pub(crate) fn wait_until_stopped(process: u32) {
    for _ in 0..LOOKS_MAX {
        if have_stopped(process) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

fn have_stopped(process: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return true };
    let mut stats = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.all(|stat| has_stopped(&stat))
}

/// Whether `/proc/PID/task/TID/stat` says that the thread does nothing: its state stands behind its name, which may have brackets.
fn has_stopped(stat: &str) -> bool {
    let state = stat.rsplit_once(") ").and_then(|(_, behind)| behind.chars().next());
    state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::has_stopped;

    #[test]
    fn the_state_of_a_thread_is_read_behind_its_name() {
        assert!(has_stopped("12 (a ) S name) T 1 12"));
        assert!(!has_stopped("12 (T) S 1 12") && !has_stopped("12 (T) R 1 12"));
    }
}
