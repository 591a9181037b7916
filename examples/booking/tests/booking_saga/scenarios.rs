//! A test for each scenario and each transport that it is tagged with.

use anyhow::{Context as _, bail, ensure};
use booking::saga::book_seat;
use cucumber::gherkin::{Feature, GherkinEnv};
use libtest_mimic::{Failed, Trial};

use crate::carrier::{Carrier, feature};
use crate::run::{Setting, run};
use crate::transcript::Transcript;

/// The tests of the specification, and one of a step that it does not define.
pub(crate) fn trials() -> anyhow::Result<Vec<Trial>> {
    let specification = Feature::parse_path(feature(), GherkinEnv::default())
        .with_context(|| format!("{} cannot be read", feature().display()))?;
    let mut trials = vec![Trial::test("a_step_that_is_not_defined_fails", undefined)];
    for scenario in &specification.scenarios {
        let tags: Vec<&String> = specification.tags.iter().chain(&scenario.tags).collect();
        for tag in Carrier::TAGS {
            if !tags.iter().any(|given| *given == tag) {
                bail!("the scenario {:?} does not have the tag @{tag}: each runs on every transport", scenario.name);
            }
            if let Some(carrier) = Carrier::of_tag(tag) {
                trials.push(trial(tag, carrier, scenario.name.clone()));
            }
        }
    }
    Ok(trials)
}

fn trial(tag: &str, carrier: Carrier, scenario: String) -> Trial {
    let name = format!("{tag}::{}", scenario.replace(' ', "_"));
    Trial::test(name, move || {
        let setting = Setting { carrier, definition: || Ok(book_seat()?) };
        let ran = run(feature(), Some(scenario), setting).map_err(|error| failed(&error))?;
        if ran.failures.is_empty() { Ok(()) } else { Err(Failed::from(ran.to_string())) }
    })
}

/// A scenario with a step that has no function.
fn undefined() -> Result<(), Failed> {
    let check = || {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("undefined.feature");
        std::fs::write(&file, "Feature: F\n  Scenario: S\n    When the moon is booked\n")?;
        let setting = Setting { carrier: Carrier::Memory, definition: || Ok(book_seat()?) };
        let ran: Transcript = run(&file, None, setting)?;
        let step = ran.failures.get("S").map(String::as_str);
        ensure!(step == Some("When the moon is booked"), "{ran}");
        anyhow::Ok(())
    };
    check().map_err(|error| failed(&error))
}

/// The error with its causes.
pub(crate) fn failed(error: &anyhow::Error) -> Failed {
    Failed::from(format!("{error:#}"))
}
