//! The scenarios of `features/booking_saga.feature`: each is a test for each transport that it is tagged with.
//!
//! Two planted mistakes, and a step that is not defined, show that the scenarios find what they are for.

mod carrier;
mod mistakes;
mod run;
mod scenarios;
#[cfg(feature = "sqs")]
mod sqs;
mod steps;
mod transcript;
mod world;

use libtest_mimic::Arguments;

fn main() -> anyhow::Result<()> {
    // A step that fails panics, and cucumber catches it: the transcript of the scenario has what it said.
    std::panic::set_hook(Box::new(|_| {}));
    let arguments = Arguments::from_args();
    let mut trials = scenarios::trials()?;
    trials.extend(mistakes::trials());
    libtest_mimic::run(&arguments, trials).exit()
}
