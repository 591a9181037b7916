//! How much processor time processes have spent.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The kernel counts processor time in hundredths of a second, on every machine that this runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process has spent until now, all its threads together; `self` is this one.
pub(crate) fn spent_by(process: &str) -> Result<Duration> {
    let file = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    // The name in brackets may hold anything, so the fields are counted from behind it: user and system are these two.
    let mut fields = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|ticks| ticks.parse::<f64>().ok());
    let (user, system) = ticks().zip(ticks()).with_context(|| format!("{file} has no processor time"))?;
    Ok(Duration::from_secs_f64((user + system) / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::spent_by;

    #[test]
    fn busy_threads_are_counted() {
        let before = spent_by("self").expect("this process is there");
        let spin = || (0..200_000_000_u64).map(std::hint::black_box).fold(0_u64, u64::wrapping_add);
        std::thread::spawn(spin).join().expect("the thread ends");
        assert!(spent_by("self").expect("this process is there") > before);
    }
}
